"""A WebSocket server that sends everything back, on a port that it prints."""

import asyncio

from websockets.asyncio.server import serve


async def echo(socket):
    async for message in socket:
        await socket.send(message)


async def main():
    async with serve(echo, "127.0.0.1", 0, max_size=None) as server:
        port = server.sockets[0].getsockname()[1]
        print(f"ready on http://127.0.0.1:{port}", flush=True)
        await server.serve_forever()


asyncio.run(main())
