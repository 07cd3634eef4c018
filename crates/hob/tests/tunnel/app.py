"""An ASGI application with WebSockets alone."""


async def application(scope, receive, send):
    assert scope["type"] == "websocket", scope["type"]
    await receive()
    if scope["path"] == "/ws/refused":
        await send({"type": "websocket.close"})
        return
    wanted = "chat" if "chat" in scope["subprotocols"] else None
    await send({"type": "websocket.accept", "subprotocol": wanted})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})
    print("disconnect", message["code"])
