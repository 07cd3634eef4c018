#!/usr/bin/env python3
"""WebSockets over every protocol: by the package `websockets` over HTTP/1.1, and with the frames of `wsproto` in the
tunnels of pipe.py over HTTP/2 and 3.

    sockets.py WAY PORT CASE...                 as pipe.py
"""

import asyncio
import ssl

import pipe

MESSAGE_BYTES_MAX = 1_500_000  # as the route has it


class Socket:
    """A WebSocket over HTTP/1.1, each step of which is waited for. (The package's client with threads reads and
    writes TLS at the same time, which Pythons before 3.13 do not bear.)"""

    def __init__(self, way: str, port: int, path: str):
        from websockets.asyncio.client import connect

        options = {}
        if way == "h1s":
            options["ssl"] = ssl.create_default_context()
            options["ssl"].check_hostname = False
            options["ssl"].verify_mode = ssl.CERT_NONE
        scheme = "wss" if way == "h1s" else "ws"
        url = f"{scheme}://localhost:{port}{path}"
        self.loop = asyncio.new_event_loop()

        async def connected():
            options.update(max_size=None, proxy=None, open_timeout=pipe.SECONDS_MAX)
            return await connect(url, subprotocols=["other", "chat"], **options)

        self.ws = self.run(connected())

    def run(self, step):
        return self.loop.run_until_complete(asyncio.wait_for(step, pipe.SECONDS_MAX))

    def subprotocol(self):
        return self.ws.subprotocol

    def is_compressed(self) -> bool:
        return bool(self.ws.protocol.extensions)

    def send(self, data) -> None:
        self.run(self.ws.send(data))

    def take(self):
        return self.run(self.ws.recv())

    def ping(self) -> None:
        async def answered():
            await (await self.ws.ping(b"there?"))

        self.run(answered())

    def close(self, code: int, reason: str) -> None:
        self.run(self.ws.close(code, reason))

    def closed(self):
        """Code and reason of the server's close frame, which must come."""
        from websockets.exceptions import ConnectionClosed

        try:
            got = self.take()
        except ConnectionClosed as closed:
            return closed.rcvd and (closed.rcvd.code, closed.rcvd.reason)
        raise ValueError(f"a message came: {got[:100]!r}")


class Framed:
    """A WebSocket in a tunnel."""

    def __init__(self, way: str, port: int, path: str):
        from wsproto.connection import Connection, ConnectionType

        from wsproto.extensions import PerMessageDeflate

        self.deflate = deflate = PerMessageDeflate(client_no_context_takeover=True)
        fields = [
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "other, chat"),
            ("sec-websocket-extensions", f"{deflate.name}; {deflate.offer()}"),
        ]
        self.tunnel = pipe.dial(way, port, path, protocol="websocket", fields=fields)
        if self.tunnel.status != 200:
            raise Refused(self.tunnel.status)
        answer = self.tunnel.fields["sec-websocket-extensions"]
        deflate.finalize(answer)
        pipe.expect(True, "client_no_context_takeover" in answer, answer)
        self.frames = Connection(ConnectionType.CLIENT, extensions=[deflate])
        self.events: list = []
        self.pieces: list = []

    def is_compressed(self) -> bool:
        return self.deflate.enabled()

    def subprotocol(self):
        return self.tunnel.fields.get("sec-websocket-protocol")

    def say(self, event) -> None:
        self.tunnel.send(self.frames.send(event))

    def send(self, data) -> None:
        from wsproto.events import BytesMessage, TextMessage

        if isinstance(data, (str, bytes)):
            data = [data]
        for at, piece in enumerate(data):
            kind = TextMessage if isinstance(piece, str) else BytesMessage
            self.say(kind(data=piece, message_finished=at == len(data) - 1))

    def event(self):
        while not self.events:
            self.tunnel.until(lambda: self.tunnel.came or self.tunnel.has_ended)
            came = bytes(self.tunnel.came)
            self.tunnel.came.clear()
            self.frames.receive_data(came or None)
            self.events += self.frames.events()
        return self.events.pop(0)

    def take(self):
        while True:
            event = self.event()
            self.pieces.append(event.data)
            if event.message_finished:
                pieces, self.pieces = self.pieces, []
                return (b"" if isinstance(pieces[0], (bytes, bytearray)) else "").join(pieces)

    def ping(self) -> None:
        from wsproto.events import Ping, Pong

        self.say(Ping(payload=b"there?"))
        pipe.expect(Pong(payload=b"there?"), self.event(), "the answer to a ping")

    def close(self, code: int, reason: str) -> None:
        from wsproto.events import CloseConnection

        self.say(CloseConnection(code, reason))
        pipe.expect(code, self.event().code, "the server's close frame")
        pipe.expect(b"", self.tunnel.rest(), "what comes after it")

    def closed(self):
        from wsproto.events import CloseConnection

        event = self.event()
        if not isinstance(event, CloseConnection):
            raise ValueError(f"a message came: {event}")
        if not self.tunnel.has_ended:
            self.say(event.response())
        return event.code, event.reason


class Refused(Exception):
    """Another answer than a WebSocket."""


def dial(way: str, port: int, path: str):
    return (Socket if way.startswith("h1") else Framed)(way, port, path)


def echo(way: str, port: int) -> None:
    """Messages of every kind and size, in parts too; a ping; a close with a code."""
    socket = dial(way, port, "/ws/echo")
    pipe.expect("chat", socket.subprotocol(), "the subprotocol")
    pipe.expect(True, socket.is_compressed(), "whether compression was agreed on")
    for number in range(1000):
        socket.send(f"message {number}")
        pipe.expect(f"message {number}", socket.take(), "a small message")
    for data in ["", b"", "\u00e4" * 70_000, bytes(range(256)) * 3000]:
        socket.send(data)
        pipe.expect(data, socket.take(), "a message")
    socket.send(["in ", "", "parts"])
    pipe.expect("in parts", socket.take(), "a message in parts")
    socket.ping()
    socket.close(4000, "done")


def limits(way: str, port: int) -> None:
    """What is too large, and what is refused."""
    socket = dial(way, port, "/ws/echo")
    try:
        socket.send(b"x" * (MESSAGE_BYTES_MAX + 1))
    except Exception as error:
        # It is told before it has sent all, and nobody takes the rest.
        print("sending ended:", error)
    pipe.expect(1009, socket.closed()[0], "the code for a message that is too large")
    try:
        dial(way, port, "/ws/refused")
    except Exception as error:
        if "403" not in str(error):
            raise
    else:
        raise ValueError("it was not refused")


def drained(way: str, port: int) -> None:
    """A server that stops says so."""
    socket = dial(way, port, "/ws/echo")
    socket.send("a")
    pipe.expect("a", socket.take(), "a message")
    print("begun", flush=True)
    pipe.expect((1012, ""), socket.closed(), "the close frame of a server that stops")


if __name__ == "__main__":
    pipe.main([echo, limits, drained])
