"""An ASGI application whose answers and questions come in pieces."""

import asyncio


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({**message, "type": "websocket.send"})
        return
    await ACTIONS[scope["path"].rpartition("/")[2]](receive, send)


async def around(receive, send):
    """An interim answer before the answer, trailers behind it."""
    await send({"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload"]})
    fields = [(b"content-type", b"text/plain"), (b"trailer", b"checksum")]
    await send({"type": "http.response.start", "status": 201, "headers": fields, "trailers": True})
    await send({"type": "http.response.body", "body": b"made"})
    await send({"type": "http.response.trailers", "headers": [(b"checksum", b"1")]})


async def start(send):
    fields = [(b"content-type", b"text/plain"), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})


async def say(send, text, more=True):
    await send({"type": "http.response.body", "body": text.encode(), "more_body": more})


async def converse(receive, send):
    """Answers each piece of the request as it comes."""
    await start(send)
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        if message["body"]:
            await say(send, "heard " + message["body"].decode() + "\n")
    await say(send, "bye\n", False)


async def endless(receive, send):
    """Counts in a file what it got rid of."""
    await start(send)
    for count in range(1, 1 << 30):
        await say(send, "x" * 65536)
        with open("count", "w") as file:
            file.write(str(count))
        await asyncio.sleep(0)


ACTIONS = {"around": around, "converse": converse, "endless": endless}
