"""An ASGI application that sends every WebSocket message back: the judge of WebSockets talks to it."""


async def app(scope, receive, send):
    if scope["type"] != "websocket":
        raise RuntimeError(f"this is for WebSockets, not for {scope['type']}")
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})
