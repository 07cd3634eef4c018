#!/usr/bin/env python3
"""Tunnels over every protocol, opened by clients that share no line with hob.

    pipe.py install                             the packages into target/tunnels, from PyPI; says why it could not
    pipe.py WAY PORT CASE...                    some of the cases below, against 127.0.0.1

A way is `h1`, `h1s` (over TLS), `h2` (over TLS) or `h3`. A case ends with 0, or says what was wrong.
"""

import os
import select
import signal
import socket
import ssl
import struct
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "h3"))
import client  # noqa: E402

PACKAGES = ["aioquic==1.7.2", "h2==4.4.1", "hpack==4.2.0", "websockets==15.0.1", "wsproto==1.2.0"]
SECONDS_MAX = 60
VENV = HERE.parents[3] / "target" / "tunnels"


class Broken(Exception):
    """The tunnel did not end, it broke."""


class Tunnel:
    """A tunnel, or another answer in its place: its status, its fields, and bytes both ways."""

    status = 0
    fields: dict
    came: bytearray
    has_ended = False

    def take(self, count: int) -> bytes:
        """So many bytes, which must come."""
        self.until(lambda: len(self.came) >= count or self.has_ended)
        taken = bytes(self.came[:count])
        del self.came[:count]
        if len(taken) < count:
            raise ValueError(f"the tunnel ended {count - len(taken)} bytes early")
        return taken

    def line(self) -> str:
        self.until(lambda: b"\n" in self.came or self.has_ended)
        return self.take(self.came.index(b"\n") + 1).decode().rstrip()

    def rest(self) -> bytes:
        """All bytes until the server ends its side."""
        self.until(lambda: self.has_ended)
        return bytes(self.came)

    def until(self, is_done, seconds: float = SECONDS_MAX) -> None:
        limit = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > limit:
                raise ValueError("nothing more came")
            self.step(limit)

    def send(self, data: bytes) -> None:
        """Sends all of it, and takes what comes meanwhile."""
        raise NotImplementedError

    def send_what_goes(self, data: bytes, seconds: float) -> int:
        """Sends until nothing leaves for so long; tells how much left."""
        raise NotImplementedError

    def end(self) -> None:
        """Nothing more is sent."""
        raise NotImplementedError

    def stay(self) -> None:
        """Stays until standard input has ended."""
        sys.stdin.read()

    def cut(self) -> None:
        """Leaves without a word."""
        raise NotImplementedError

    def step(self, limit: float) -> None:
        """Waits for something to come, and takes it."""
        raise NotImplementedError


def connected(port: int, alpn=None) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if alpn is not None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols([alpn])
        sock = context.wrap_socket(sock, server_hostname="localhost", suppress_ragged_eofs=False)
    return sock


class Streamed(Tunnel):
    """What goes over TCP: bytes to be sent, bytes that came."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.came, self.unsent = bytearray(), bytearray()
        self.sock.setblocking(False)

    def flush(self) -> bool:
        """Whether something left."""
        if not self.unsent:
            return False
        try:
            count = self.sock.send(bytes(self.unsent[: 1 << 16]))
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return False
        del self.unsent[:count]
        return True

    def step(self, limit: float) -> None:
        had_unsent = bool(self.unsent)
        while self.flush():
            pass
        if had_unsent and not self.unsent:
            return  # which is what somebody may wait for
        if not (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending()):
            wants = [self.sock] if self.unsent else []
            select.select([self.sock], wants, [], max(0.0, limit - time.monotonic()))
        try:
            data = self.sock.recv(1 << 16)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except ConnectionError as error:
            raise Broken(str(error)) from error
        except ssl.SSLError as error:
            raise Broken(str(error)) from error
        self.handle(data)

    def handle(self, data: bytes) -> None:
        raise NotImplementedError

    def cut(self) -> None:
        # With a reset: a plain end is half a close as long as nothing is sent to it.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class H1(Streamed):
    def __init__(self, port: int, path: str, early: bytes = b"", is_secure: bool = False, fields: str = ""):
        super().__init__(connected(port, "http/1.1" if is_secure else None))
        self.head = b""
        fields = fields or "Connection: keep-alive, Upgrade\r\nUpgrade: echo/1, other\r\n"
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
        self.unsent += head.encode() + early
        self.until(lambda: self.status)

    def handle(self, data: bytes) -> None:
        if not data:
            self.has_ended = True
            return
        self.came += data
        if not self.status and b"\r\n\r\n" in self.came:
            head, _, rest = bytes(self.came).partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            self.status = int(lines[0].split()[1])
            pairs = (line.split(": ", 1) for line in lines[1:])
            self.fields = {name.lower(): value for name, value in pairs}
            self.came = bytearray(rest)

    def body(self, length: int) -> bytes:
        """The first so many bytes of an answer's body, its chunks taken apart."""
        if "content-length" in self.fields:
            return self.take(length)
        expect("chunked", self.fields.get("transfer-encoding"), "how the body is framed")
        body = b""
        while len(body) < length:
            size = b""
            while not size.endswith(b"\r\n"):
                size += self.take(1)
            body += self.take(int(size, 16))
            expect(b"\r\n", self.take(2), "the end of a chunk")
        return body

    def send(self, data: bytes) -> None:
        self.unsent += data
        self.until(lambda: not self.unsent)

    def send_what_goes(self, data: bytes, seconds: float) -> int:
        self.unsent += data
        limit = time.monotonic() + seconds
        while self.unsent and time.monotonic() < limit:
            if self.flush():
                limit = time.monotonic() + seconds
            else:
                select.select([], [self.sock], [], 0.05)
        return len(data) - len(self.unsent)

    def end(self) -> None:
        if isinstance(self.sock, ssl.SSLSocket):
            # close_notify says it, and the other side may go on.
            self.sock.setblocking(True)
            self.sock.settimeout(SECONDS_MAX)
            try:
                plain = self.sock.unwrap()
            except (ssl.SSLError, OSError):
                self.has_ended = True
                return
            plain.close()
            self.has_ended = True
        else:
            self.sock.shutdown(socket.SHUT_WR)


class H2(Streamed):
    def __init__(self, port: int, path: str, protocol="echo/1", method="CONNECT", fields=()):
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from hyperframe.frame import GoAwayFrame

        super().__init__(connected(port, "h2"))
        self.http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        # It would take nothing more after GOAWAY, though streams that are open go on.
        self.http._frame_dispatch_table[GoAwayFrame] = lambda frame: ([], [])
        self.http.initiate_connection()
        self.has_settings = False
        self.is_broken = None
        self.id = 0
        self.until(lambda: self.has_settings)
        expect(1, self.http.remote_settings.enable_connect_protocol, "SETTINGS_ENABLE_CONNECT_PROTOCOL")
        self.id = self.http.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":path", path), (":authority", "localhost")]
        if protocol is not None:
            head.insert(1, (":protocol", protocol))
        self.http.send_headers(self.id, [*head, *fields], end_stream=method == "GET")
        self.until(lambda: self.status)

    def step(self, limit: float) -> None:
        self.unsent += self.http.data_to_send()
        super().step(limit)
        self.unsent += self.http.data_to_send()
        if self.is_broken is not None:
            raise Broken(f"the stream was reset: {self.is_broken}")

    def handle(self, data: bytes) -> None:
        from h2 import events

        if not data:
            raise Broken("the connection ended")
        for event in self.http.receive_data(data):
            if isinstance(event, events.RemoteSettingsChanged):
                self.has_settings = True
            elif isinstance(event, events.ResponseReceived):
                self.fields = dict(event.headers)
                self.status = int(self.fields[":status"])
            elif isinstance(event, events.DataReceived):
                self.came += event.data
                self.http.acknowledge_received_data(event.flow_controlled_length, self.id)
            elif isinstance(event, events.StreamEnded):
                self.has_ended = True
            elif isinstance(event, events.StreamReset):
                self.is_broken = event.error_code

    def room(self) -> int:
        return min(self.http.local_flow_control_window(self.id), self.http.max_outbound_frame_size)

    def send(self, data: bytes) -> None:
        while data:
            self.until(lambda: self.room() > 0)
            piece, data = data[: self.room()], data[self.room() :]
            self.http.send_data(self.id, piece)
            self.unsent += self.http.data_to_send()
            self.until(lambda: len(self.unsent) < 1 << 18)
        self.until(lambda: not self.unsent)

    def send_what_goes(self, data: bytes, seconds: float) -> int:
        sent = 0
        while sent < len(data):
            limit = time.monotonic() + seconds
            while self.room() <= 0 and time.monotonic() < limit:
                self.step(time.monotonic() + 0.05)
            count = min(self.room(), len(data) - sent)
            if count <= 0:
                break
            self.http.send_data(self.id, data[sent : sent + count])
            sent += count
            self.step(time.monotonic())
        return sent

    def end(self) -> None:
        self.http.end_stream(self.id)
        self.unsent += self.http.data_to_send()
        self.until(lambda: not self.unsent)

    def cut(self) -> None:
        self.http.reset_stream(self.id)
        self.unsent += self.http.data_to_send()
        self.until(lambda: not self.unsent)


class H3(Tunnel):
    def __init__(self, port: int, path: str, protocol="echo/1", method="CONNECT", fields=()):
        self.client = client.Client(port)
        more = [(b":protocol", protocol.encode())] if protocol is not None else []
        self.id = self.client.quic.get_next_available_stream_id()
        self.came = bytearray()
        head = [
            (b":method", method.encode()),
            *more,
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", path.encode()),
            *((name.encode(), value.encode()) for name, value in fields),
        ]
        self.client.http.send_headers(self.id, head, end_stream=method == "GET")
        self.until(lambda: self.status)

    def step(self, limit: float) -> None:
        client = self.client
        client.until(lambda: self.look(), max(0.01, limit - time.monotonic()))

    def look(self) -> bool:
        client = self.client
        if self.id in client.reset:
            raise Broken(f"the stream was reset: {client.reset[self.id]:#x}")
        has_news = False
        if not self.status and client.fields.get(self.id):
            fields = client.fields[self.id][-1]
            self.fields = {name.decode(): value.decode() for name, value in fields.items()}
            self.status = int(self.fields[":status"])
            has_news = True
        body = client.bodies.get(self.id)
        if body:
            self.came += body
            body.clear()
            has_news = True
        if self.id in client.ended and not self.has_ended:
            self.has_ended = has_news = True
        return has_news

    def unsent(self) -> int:
        return len(self.client.quic._streams[self.id].sender._buffer)

    def send(self, data: bytes) -> None:
        for at in range(0, len(data), 20000):
            self.client.http.send_data(self.id, data[at : at + 20000], end_stream=False)
            self.client.until(lambda: self.look() or self.unsent() < 1 << 18)
            while self.unsent() >= 1 << 18:
                self.client.until(lambda: self.unsent() < 1 << 18 or self.look())
        self.client.flush()

    def send_what_goes(self, data: bytes, seconds: float) -> int:
        self.client.http.send_data(self.id, data, end_stream=False)
        before = -1
        while before != self.unsent():
            before = self.unsent()
            try:
                self.client.until(lambda: self.unsent() == 0, seconds)
            except ValueError:
                pass
        return len(data) - self.unsent()

    def end(self) -> None:
        self.client.http.send_data(self.id, b"", end_stream=True)
        self.client.flush()

    def stay(self) -> None:
        while not select.select([sys.stdin], [], [], 0)[0]:
            try:
                self.client.until(lambda: False, 0.05)
            except ValueError:
                pass

    def cut(self) -> None:
        self.client.quic.reset_stream(self.id, 0x10C)
        self.client.quic.stop_stream(self.id, 0x10C)
        self.client.flush()


def expect(wanted, seen, what: str) -> None:
    if wanted != seen:
        raise ValueError(f"{what}: {str(seen)[:200]!r}, not {str(wanted)[:200]!r}")


def opened(way: str, port: int, path: str, **more) -> Tunnel:
    """A tunnel, which must be open."""
    tunnel = dial(way, port, path, **more)
    expect(101 if way.startswith("h1") else 200, tunnel.status, f"status of {path}")
    expect("test", tunnel.fields["x-kind"], "a field of the program's")
    return tunnel


def dial(way: str, port: int, path: str, **more) -> Tunnel:
    if way == "h1":
        return H1(port, path, **more)
    if way == "h1s":
        return H1(port, path, is_secure=True, **more)
    return {"h2": H2, "h3": H3}[way](port, path, **more)


def breaks(tunnel: Tunnel) -> None:
    """It must break, not end."""
    try:
        rest = tunnel.rest()
    except Broken:
        return
    raise ValueError(f"it ended in order, with {rest!r}")


# The cases.


def echo(way: str, port: int) -> None:
    """Bytes both ways: small messages one by one, much at once; then half a close."""
    early = {"early": b"early"} if way.startswith("h1") else {}
    tunnel = opened(way, port, "/app/echo", **early)
    if early:
        expect(("echo/1", "upgrade"), (tunnel.fields["upgrade"], tunnel.fields["connection"]), "fields of 101")
        expect(b"early", tunnel.take(5), "bytes right behind the request")
    for number in range(1000):
        text = b"%04d" % number
        tunnel.send(text)
        expect(text, tunnel.take(4), "a small message")
    much = bytes(range(256)) * 4000
    tunnel.send(much)
    expect(much, tunnel.take(len(much)), "much")
    tunnel.end()
    if way != "h1s":  # whose library hears nothing after its own close_notify
        expect(b"bye", tunnel.rest(), "what comes after the client's end")


def half(way: str, port: int) -> None:
    """The program ends its direction first, and is still told things."""
    tunnel = opened(way, port, "/app/half")
    expect(bytes(2_000_000), tunnel.rest(), "what the program says before its end")
    tunnel.send(bytes(300_000))
    tunnel.send(b"more")
    tunnel.end()
    print("begun", flush=True)
    # Who left now would take along what the program has not read yet.
    tunnel.stay()


def over(way: str, port: int) -> None:
    """The program ends its direction, then all of it, while the client still sends."""
    tunnel = opened(way, port, "/app/half?over")
    try:
        tunnel.rest()
        tunnel.until(lambda: False)
    except Broken as broken:
        expect("the stream was reset: 0", str(broken).replace("ErrorCodes.NO_ERROR", "0"), "what tells it to stop")
    expect((2_000_000, True), (len(tunnel.came), tunnel.has_ended), "what the program says before its end")


def about(way: str, port: int) -> None:
    """What the program is told."""
    tunnel = opened(way, port, "/app/about")
    expected = {
        "h1": "echo/1 echo/1, other GET HTTP/1.1",
        "h1s": "echo/1 echo/1, other GET HTTP/1.1",
        "h2": "echo/1 - CONNECT HTTP/2.0",
        "h3": "echo/1 - CONNECT HTTP/3.0",
    }
    expect(expected[way], tunnel.line().rsplit(" ", 1)[0], "what the program is told")
    tunnel.cut()


def refused(way: str, port: int) -> None:
    """Where no tunnel is opened."""
    if way.startswith("h1"):
        # The wish is passed over.
        for path, text in [("/app/plain", b"plain"), ("/hello.txt", b"hello\n")]:
            answer = dial(way, port, path)
            expect(200, answer.status, path)
            expect(text, answer.body(len(text)), path)
        for fields in ["Upgrade: echo\r\n", "Connection: close\r\n", "Connection: upgrade\r\nUpgrade: e o\r\n"]:
            expect(502, dial(way, port, "/app/echo", fields=fields).status, "a tunnel that was not asked for")
        body = "Connection: upgrade\r\nUpgrade: echo\r\nContent-Length: 1\r\n"
        expect(502, dial(way, port, "/app/echo", fields=body, early=b"x").status, "one behind a body")
        return
    for path, status in [("/hello.txt", 501), ("/app/plain", 501), ("/app/no", 404), ("/none", 501)]:
        expect(status, dial(way, port, path).status, path)
    expect(502, dial(way, port, "/app/echo", protocol=None, method="GET").status, "a tunnel that was not asked for")


def killed(way: str, port: int) -> None:
    """The program dies in the middle."""
    tunnel = opened(way, port, "/app/about")
    os.kill(int(tunnel.line().rsplit(" ", 1)[1]), signal.SIGKILL)
    breaks(tunnel)


def silent(way: str, port: int) -> None:
    """Nothing comes either way."""
    tunnel = opened(way, port, "/app/echo")
    tunnel.send(b"x")
    expect(b"x", tunnel.take(1), "one byte")
    breaks(tunnel)


def gone(way: str, port: int) -> None:
    """The client leaves."""
    tunnel = opened(way, port, "/app/echo")
    tunnel.send(b"x")
    expect(b"x", tunnel.take(1), "one byte")
    tunnel.cut()


def slow(way: str, port: int) -> None:
    """A client that takes a little, and then nothing while others are answered."""
    tunnel = opened(way, port, "/app/flood")
    tunnel.take(100_000)
    for _ in range(5):
        expect(404, dial(way, port, "/app/no").status, "another request")
    tunnel.cut()


def deaf(way: str, port: int) -> None:
    """A program that takes nothing stops the client."""
    tunnel = opened(way, port, "/app/deaf")
    expect(b"open", tunnel.take(4), "the first word")
    # What the kernels hold at both ends of a TCP connection counts; streams have windows.
    most = 20_000_000 if way.startswith("h1") else 1_000_000
    sent = tunnel.send_what_goes(bytes(2 * most), 0.3)
    if sent >= most:
        raise ValueError(f"{sent} bytes went to a program that takes none")
    tunnel.cut()


def drained(way: str, port: int) -> None:
    """The server stops while tunnels are open: one ends by itself, the other is cut."""
    tunnel, stubborn = opened(way, port, "/app/drain"), opened(way, port, "/app/echo")
    expect(b"open", tunnel.take(4), "the first word")
    print("begun", flush=True)
    expect(b"going", tunnel.rest(), "the last word")
    try:
        breaks(stubborn)
    except ValueError as error:
        # QUIC's own close says no more than that.
        if way != "h3" or not str(error).startswith("the connection was closed"):
            raise error


def keyed(way: str, port: int) -> None:
    """A server behind that opens a WebSocket for the key it was asked with, and others that do not."""
    for path, status in [("/right", 200), ("/wrong", 502), ("/none", 502), ("/twice", 502)]:
        expect(status, dial(way, port, path, protocol="websocket").status, path)


CASES = [echo, half, over, about, refused, keyed, killed, silent, gone, slow, deaf, drained]


def main(cases=CASES) -> None:
    if sys.argv[1] == "install":
        sys.exit(client.install(VENV, PACKAGES) or 0)
    way, port, *names = sys.argv[1:]
    for name in names:
        {case.__name__: case for case in cases}[name](way, int(port))


if __name__ == "__main__":
    main()
