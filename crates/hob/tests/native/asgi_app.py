"""The tests' program as an ASGI application."""

import asyncio
import os

import acts

FIELDS = [(b"content-type", b"application/octet-stream")]
waiting = []


async def application(scope, receive, send):
    if scope["type"] != "http":
        raise NotImplementedError(scope["type"])
    verb, _, rest = scope["path"][len(scope["root_path"]) :].lstrip("/").partition("/")
    start = {"type": "http.response.start", "status": 200, "headers": FIELDS}
    if verb == "raise":
        raise ValueError("told to raise")
    if verb == "kill":
        acts.die()
    if verb == "down":
        start["headers"] = [*FIELDS, (b"content-length", rest.encode())]
    await send(start)

    async def write(data, more=True):
        await send({"type": "http.response.body", "body": data, "more_body": more})

    if verb == "pid":
        await write(str(os.getpid()).encode(), False)
    elif verb == "down":
        await write(acts.pattern(int(rest)), False)
    elif verb == "together":
        waiting.append(None)
        while len(waiting) < 8:
            await asyncio.sleep(0.01)
        await write(b"together", False)
    elif verb == "echo":
        more = True
        while more:
            message = await receive()
            more = message["more_body"]
            await write(message["body"], more)
    elif verb == "pieces":
        await write(b"first\n")
        while not os.path.exists(rest + ".go"):
            await asyncio.sleep(0.01)
        await write(b"second\n", False)
    elif verb == "endless":
        try:
            while True:
                await write(b"x" * 10_000)
                await asyncio.sleep(0)
        finally:
            acts.mark(rest + ".left")
    else:
        await write(b"first\n")
        while not os.path.exists(rest + ".go"):
            await asyncio.sleep(0.01)
        if verb == "raise_late":
            raise ValueError("told to raise")
        acts.die()
