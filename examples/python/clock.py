"""A clock that ticks five times, as an ASGI application: each tick leaves when it happens."""

import asyncio
from datetime import datetime


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return await live(receive, send)
    fields = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    for tick in range(1, 6):
        event = f"data: tick {tick} at {datetime.now():%H:%M:%S}\n\n".encode()
        await send({"type": "http.response.body", "body": event, "more_body": tick < 5})
        await asyncio.sleep(0.2)


async def live(receive, send):
    """Where an application opens and closes what it keeps: pools, caches, connections."""
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
