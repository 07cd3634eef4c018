#!/usr/bin/env python3
"""An HTTP/3 client on aioquic, which shares no line with hob.

    client.py install                        into target/aioquic, from PyPI; says why it could not
    client.py PORT CASE [ARGUMENT]...        one of the cases below, against 127.0.0.1, or the ADDRESS and
                                             PORT in the environment

A case prints what it saw and ends with 0, or says what was wrong. It drives sockets and clock itself, so that
it can change its port, hold back what it owes, and send what no library would.
"""

import fcntl
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

PACKAGES = ["aioquic==1.7.2"]
SECONDS_MAX = 60
ADDRESS = os.environ.get("ADDRESS", "127.0.0.1")
VENV = Path(__file__).resolve().parents[4] / "target" / "aioquic"
PYTHON = VENV / "bin" / "python"


def install(venv: Path = VENV, packages: list = PACKAGES) -> str:
    """Installs the packages where they are missing; says why it could not."""
    venv.mkdir(parents=True, exist_ok=True)
    with open(venv / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (venv / "done").exists():
            return ""
        steps = [
            [sys.executable, "-m", "venv", str(venv)],
            [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *packages],
        ]
        for step in steps:
            try:
                done = subprocess.run(step, capture_output=True, text=True, timeout=300)
            except (OSError, subprocess.TimeoutExpired) as error:
                return str(error)
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
                return said[-1]
        (venv / "done").touch()
    return ""


class Client:
    """One connection, and what came over its streams."""

    def __init__(self, port: int, name: str = "localhost", ticket=None, certificate=None, early="", shakes=True, **options):
        from aioquic.h3.connection import H3_ALPN, H3Connection
        from aioquic.quic.configuration import QuicConfiguration
        from aioquic.quic.connection import QuicConnection

        self.tickets: list = []
        configuration = QuicConfiguration(
            is_client=True,
            alpn_protocols=H3_ALPN,
            verify_mode=ssl.CERT_NONE,
            server_name=name,
            session_ticket=ticket,
            **options,
        )
        if certificate:
            configuration.load_cert_chain(*certificate)
        self.name = name
        self.quic = QuicConnection(configuration=configuration, session_ticket_handler=self.tickets.append)
        self.address = (ADDRESS, port, 0, 0) if ":" in ADDRESS else (ADDRESS, port)
        self.sock = self.new_socket()
        self.http = H3Connection(self.quic)
        # It knows nothing of HEAD, whose answers have a size and no body; sizes are checked here.
        self.http._check_content_length = lambda stream: None
        self.fields: dict[int, list] = {}
        self.bodies: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.reset: dict[int, int] = {}
        self.stopped: dict[int, int] = {}
        self.closed = None
        self.is_shaken = False
        # Bytes of the server's own streams: its control stream is among them.
        self.control = bytearray()
        self.quic.connect(self.address, now=time.monotonic())
        if early:
            self.early_stream = self.ask(early)
            self.flush()
            self.early_packets = self.sent_early()
        if shakes:
            self.until(lambda: self.is_shaken)
        else:
            self.flush()

    @staticmethod
    def new_socket() -> socket.socket:
        sock = socket.socket(socket.AF_INET6 if ":" in ADDRESS else socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind((ADDRESS, 0))
        sock.setblocking(False)
        return sock

    def sent_early(self) -> int:
        """How many packets of 0-RTT wait for their acknowledgement."""
        from aioquic import tls
        from aioquic.quic.packet import QuicPacketType

        sent = self.quic._spaces[tls.Epoch.ONE_RTT].sent_packets.values()
        return sum(packet.packet_type == QuicPacketType.ZERO_RTT for packet in sent)

    def move(self) -> None:
        """Goes on from another port, with another connection id, which RFC 9000 section 9 allows once
        the handshake is confirmed: what the server had not read of it would come from nobody."""
        self.until(lambda: self.quic._handshake_confirmed)
        self.sock.close()
        self.sock = self.new_socket()
        self.quic.change_connection_id()

    def flush(self) -> None:
        for data, address in self.quic.datagrams_to_send(now=time.monotonic()):
            try:
                self.sock.sendto(data, address)
            except BlockingIOError:
                pass

    def until(self, is_done, seconds: float = SECONDS_MAX) -> None:
        """Drives the connection until something is so."""
        limit = time.monotonic() + seconds
        while True:
            self.flush()
            if is_done():
                return
            if self.closed is not None:
                raise ValueError(f"the connection was closed: {self.closed}")
            now = time.monotonic()
            if now > limit:
                raise ValueError("nothing more came")
            timer = self.quic.get_timer()
            wait = min(limit, timer if timer is not None else limit) - now
            readable, _, _ = select.select([self.sock], [], [], max(0.0, wait))
            now = time.monotonic()
            for _ in range(64 if readable else 0):
                try:
                    data, address = self.sock.recvfrom(65536)
                except BlockingIOError:
                    break
                self.quic.receive_datagram(data, address, now=now)
            timer = self.quic.get_timer()
            if timer is not None and timer <= now:
                self.quic.handle_timer(now=now)
            while (event := self.quic.next_event()) is not None:
                self.take(event)

    def take(self, event) -> None:
        from aioquic.h3.events import DataReceived, HeadersReceived
        from aioquic.quic import events

        if isinstance(event, events.HandshakeCompleted):
            self.is_shaken = True
        elif isinstance(event, events.ConnectionTerminated):
            self.closed = (event.error_code, event.reason_phrase)
        elif isinstance(event, events.StreamReset):
            self.reset[event.stream_id] = event.error_code
        elif isinstance(event, events.StopSendingReceived):
            self.stopped[event.stream_id] = event.error_code
        elif isinstance(event, events.StreamDataReceived) and event.stream_id % 4 == 3:
            self.control += event.data
        for told in self.http.handle_event(event):
            if isinstance(told, HeadersReceived):
                self.fields.setdefault(told.stream_id, []).append(dict(told.headers))
            if isinstance(told, DataReceived):
                self.bodies.setdefault(told.stream_id, bytearray()).extend(told.data)
            if isinstance(told, (HeadersReceived, DataReceived)) and told.stream_ended:
                self.ended.add(told.stream_id)

    def ask(self, path: str, method: str = "GET", body=None, more=(), ends: bool = True) -> int:
        stream = self.quic.get_next_available_stream_id()
        usual = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", self.name.encode()),
            (b":path", path.encode()),
        ]
        self.http.send_headers(stream, usual + list(more), end_stream=ends and body is None)
        if body is not None:
            self.http.send_data(stream, body, end_stream=ends)
        return stream

    def finish(self, *streams: int) -> None:
        def is_done():
            broken = [stream for stream in streams if stream in self.reset]
            if broken:
                raise ValueError(f"stream {broken[0]} was reset: {self.reset[broken[0]]:#x}")
            return self.ended.issuperset(streams)

        self.until(is_done)

    def status(self, stream: int) -> str:
        return self.fields[stream][-1][b":status"].decode()

    def body(self, stream: int) -> bytes:
        return bytes(self.bodies.get(stream, b""))

    def get(self, path: str, method: str = "GET", body=None, more=()) -> bytes:
        stream = self.ask(path, method, body, more)
        self.finish(stream)
        expect("200", self.status(stream), path)
        return self.body(stream)

    def raw(self, data: bytes, ends: bool = True) -> int:
        """Bytes of our own on a stream for a request."""
        stream = self.quic.get_next_available_stream_id()
        self.quic.send_stream_data(stream, data, ends)
        return stream

    def end(self) -> None:
        from aioquic.h3.connection import ErrorCode

        self.quic.close(error_code=ErrorCode.H3_NO_ERROR)
        self.flush()


def expect(wanted, seen, what: str) -> None:
    if wanted != seen:
        raise ValueError(f"{what}: {seen!r}, not {wanted!r}")


def section(*fields: tuple[str, str]) -> bytes:
    """A field section, written out."""
    out = bytearray(b"\0\0")
    for name, value in fields:
        out += bytes([0x20 | 7, len(name) - 7]) if len(name) >= 7 else bytes([0x20 | len(name)])
        out += name.encode()
        out += bytes([len(value)]) + value.encode()
    return bytes(out)


def frame(kind: int, payload: bytes) -> bytes:
    return bytes([kind]) + (len(payload) | 0x4000).to_bytes(2, "big") + payload


USUAL = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/hello.txt")]


# The cases.


def fetch(port: int, *paths: str) -> None:
    """What comes for some paths: status, protocol facts and size, as JSON."""
    client = Client(port)
    for path in paths:
        stream = client.ask(path)
        client.finish(stream)
        fields = {name.decode(): value.decode() for name, value in client.fields[stream][-1].items()}
        text = client.body(stream)
        shown = text.decode("latin-1") if len(text) < 300 else ""
        print(json.dumps({"fields": fields, "size": len(text), "text": shown}))
    client.end()


def whole(port: int, path: str) -> None:
    """What comes for a path, as it comes: none of it is kept."""
    client = Client(port, max_data=8_000_000, max_stream_data=4_000_000)
    take = client.take

    def pass_on(event) -> None:
        take(event)
        for body in client.bodies.values():
            sys.stdout.buffer.write(body)
        client.bodies.clear()

    client.take = pass_on
    client.finish(client.ask(path))
    client.end()


def files(port: int, folder: str, *names: str) -> None:
    """Files come as they are on disk: one after the other, side by side, and with HEAD."""
    expected = {f"/{name}": (Path(folder) / name).read_bytes() for name in names}
    client = Client(port)
    for path, body in expected.items():
        expect(body, client.get(path), path)
    asked = {client.ask(path): path for path in expected}
    client.finish(*asked)
    for stream, path in asked.items():
        expect(expected[path], client.body(stream), path)
    for path, body in expected.items():
        stream = client.ask(path, "HEAD")
        client.finish(stream)
        size = client.fields[stream][-1][b"content-length"]
        expect((b"", len(body)), (client.body(stream), int(size)), f"HEAD {path}")
    client.end()


def sixty(port: int, folder: str, *names: str) -> None:
    """Sixty streams at a time, of all urgencies."""
    expected = {f"/{name}": (Path(folder) / name).read_bytes() for name in names}
    paths = list(expected)
    client = Client(port)
    asked = {}
    for at in range(60):
        path = paths[at % len(paths)]
        asked[client.ask(path, more=[(b"priority", f"u={at % 8}{', i' if at % 3 else ''}".encode())])] = path
    client.finish(*asked)
    for stream, path in asked.items():
        expect(expected[path], client.body(stream), path)
    client.end()


def tiny(port: int, folder: str, name: str) -> None:
    """A client that lets little be sent at a time gets all of it."""
    client = Client(port, max_data=3000, max_stream_data=1000)
    expect((Path(folder) / name).read_bytes(), client.get(f"/{name}"), name)
    client.end()


def upload(port: int, path: str, size: str) -> None:
    """A body of this size, and what the answer says."""
    client = Client(port)
    body = bytes(range(256)) * (int(size) // 256)
    stream = client.ask(path, "POST", body, [(b"content-length", str(len(body)).encode())])
    client.finish(stream)
    print(client.status(stream), client.body(stream).decode().strip())
    client.end()


def unread(port: int, path: str, size: str, small: str, go: str) -> None:
    """A body for a program that does not read it: what is on its way then, and what it gets when it does."""
    client = Client(port)
    body = bytes(int(size))
    stream = client.ask(path, "POST", body, [(b"content-length", size.encode())])

    def is_full() -> bool:
        sent = client.quic._streams[stream]
        return sent.sender.highest_offset == sent.max_stream_data_remote

    while True:
        client.until(is_full)
        client.get(small)
        if is_full():
            break
    print(client.quic._streams[stream].max_stream_data_remote)
    Path(go).touch()
    client.finish(stream)
    print(client.status(stream), client.body(stream).decode().strip())
    client.end()


def many_unread(port: int, path: str, count: str, size: str, small: str, go: str) -> None:
    """Bodies for programs that do not read them, side by side: a small request is answered all the same."""
    client = Client(port)
    body = bytes(int(size))
    more = [(b"content-length", size.encode())]
    streams = [client.ask(path, "POST", body, more) for _ in range(int(count))]

    def are_full() -> bool:
        senders = [client.quic._streams[stream] for stream in streams]
        return all(one.sender.highest_offset == one.max_stream_data_remote for one in senders)

    client.until(are_full)
    client.get(small)
    Path(go).touch()
    for stream in streams:
        client.finish(stream)
        print(client.status(stream), client.body(stream).decode().strip())
    client.end()


def all_unread(port: int, path: str, clients: str, count: str, size: str, small: str, held_back: str = "") -> None:
    """Clients one after the other, all of whose bodies nobody reads, or can read for want of a byte, and who are
    answered all the same."""
    kept = []
    for _ in range(int(clients)):
        client = Client(port, idle_timeout=600.0)
        more = [(b"content-length", size.encode())]
        streams = [client.ask(path, "POST", bytes(int(size)), more) for _ in range(int(count))]
        for stream in streams if held_back else []:
            client.quic._streams[stream].sender._pending.subtract(int(held_back), int(held_back) + 1)

        def is_settled(stream: int) -> bool:
            sent = client.quic._streams.get(stream)
            if stream in client.ended or sent is None:
                return True
            most = min(sent.max_stream_data_remote, int(size))
            return sent.sender.highest_offset >= most

        client.until(lambda: all(map(is_settled, streams)))
        # All that was sent before it has been read, and refused or not.
        expect(b"hello\n", client.get(small), small)
        refused = [stream for stream in streams if client.fields.get(stream)]
        expect({"503"} if refused else set(), {client.status(stream) for stream in refused}, "refused")
        kept.append(client)
    for client in kept:
        client.end()


def echo(port: int, path: str) -> None:
    """A body in pieces without a size, each sent when the one before was acknowledged."""
    client = Client(port)
    stream = client.ask(path, "POST", more=[(b"expect", b"100-continue")], ends=False)
    client.until(lambda: client.fields.get(stream))
    expect("100", client.status(stream), "the client is told to go on")
    for number in range(20):
        client.http.send_data(stream, b"%03d\n" % number, end_stream=number == 19)
        client.flush()
    client.finish(stream)
    print(client.status(stream), client.body(stream).decode().strip())
    client.end()


def resets(port: int, large: str, small: str) -> None:
    """Requests taken back, in both ways there are, leave the connection whole."""
    client = Client(port)
    wanted = client.get(small)
    for number in range(20):
        stream = client.ask(large)
        client.until(lambda: stream in client.fields)
        client.quic.stop_stream(stream, 0x10C)
        if number % 2:
            upload = client.ask(small, "POST", b"x", ends=False)
            client.flush()
            client.quic.reset_stream(upload, 0x10C)
        expect(wanted, client.get(small), small)
    client.end()


def keys(port: int, path: str) -> None:
    """Keys are changed in the middle, more than once."""
    client = Client(port)
    wanted = client.get(path)
    for _ in range(4):
        stream = client.ask(path)
        client.quic.request_key_update()
        client.finish(stream)
        expect(wanted, client.body(stream), path)
    client.end()


def migrate(port: int, folder: str, name: str, count: str) -> None:
    """The client changes its port, between requests and amid one."""
    wanted = (Path(folder) / name).read_bytes()
    client = Client(port)
    for number in range(int(count)):
        stream = client.ask(f"/{name}")
        if number % 2:
            client.until(lambda: stream in client.bodies)
        client.move()
        client.finish(stream)
        expect(wanted, client.body(stream), name)
    client.end()


def resume(port: int, path: str) -> None:
    """The second connection goes on where the first has ended."""
    first = Client(port)
    first.get(path)
    first.until(lambda: first.tickets)
    first.end()
    second = Client(port, ticket=first.tickets[-1])
    second.get(path)
    expect(True, second.quic.tls.session_resumed, "the second connection is resumed")
    second.end()


def early(port: int, path: str) -> None:
    """A request before the handshake is done is not taken, whatever the ticket is said to allow."""
    first = Client(port)
    first.get(path)
    first.until(lambda: first.tickets)
    ticket = first.tickets[-1]
    print(ticket.max_early_data_size)
    first.end()
    ticket.max_early_data_size = 0xFFFFFFFF
    second = Client(port, ticket=ticket, early=path)
    print(second.early_packets > 0, second.quic.tls.session_resumed, second.quic.tls.early_data_accepted)
    # What was sent too early is lost, and sent again.
    second.finish(second.early_stream)
    expect(b"hello\n", second.body(second.early_stream), path)
    second.end()


def malformed(port: int) -> None:
    """What is no request resets its stream, and nothing else."""
    client = Client(port)
    wrong = {
        "upper case": USUAL + [("Accept", "*/*")],
        "connection": USUAL + [("connection", "close")],
        "te": USUAL + [("te", "gzip")],
        "late pseudo": USUAL[:3] + [("accept", "*/*"), USUAL[3]],
        "twice": USUAL + [USUAL[3]],
        "no path": USUAL[:3],
        "no scheme": [USUAL[0]] + USUAL[2:],
        "unknown pseudo": [(":other", "x")] + USUAL,
        "status": [(":status", "200")] + USUAL,
        "line break": USUAL + [("accept", "a\r\nb")],
        "host differs": USUAL + [("host", "other")],
        "no authority": USUAL[:2] + USUAL[3:],
        "empty authority": USUAL[:2] + [(":authority", "")] + USUAL[3:],
        "two sizes": USUAL + [("content-length", "1"), ("content-length", "2")],
        "protocol": USUAL + [(":protocol", "websocket")],
    }
    streams = {what: client.raw(frame(1, section(*fields))) for what, fields in wrong.items()}
    streams["body too short"] = client.raw(frame(1, section(*USUAL, ("content-length", "5"))) + frame(0, b"abc"))
    streams["body too long"] = client.raw(frame(1, section(*USUAL, ("content-length", "2"))) + frame(0, b"abc"))
    streams["bad trailer"] = client.raw(
        frame(1, section(*USUAL)) + frame(0, b"abc") + frame(1, section((":path", "/")))
    )
    for what, stream in streams.items():
        client.until(lambda: stream in client.reset)
        expect(0x10E, client.reset[stream], what)
    incomplete = client.raw(b"")
    client.until(lambda: incomplete in client.reset)
    expect(0x10D, client.reset[incomplete], "no head")
    expect(b"hello\n", client.get("/hello.txt"), "a request after them")
    client.end()


def broken(port: int) -> None:
    """What breaks the protocol ends the connection, with the code that says why."""
    head = frame(1, section(*USUAL))
    for what, code, data in [
        ("DATA first", 0x105, frame(0, b"abc")),
        ("SETTINGS", 0x105, head + frame(4, b"")),
        ("GOAWAY", 0x105, frame(7, b"\0")),
        ("of HTTP/2", 0x105, frame(6, b"")),
        ("HEADERS three times", 0x105, head + frame(1, section(("a", "b"))) * 2),
        ("ends in a frame", 0x106, head[:-3]),
        ("ends in a header", 0x106, head + b"\0"),
        ("dynamic entry", 0x200, frame(1, b"\0\0\x80")),
        ("insert count", 0x200, frame(1, b"\1\0")),
        ("no such entry", 0x200, frame(1, b"\0\0\xff\x63")),
    ]:
        client = Client(port)
        client.raw(data)
        fails(client, what, code)
    for what, code, kind, data in [
        ("push", 0x103, 1, b""),
        ("second control", 0x103, 0, frame(4, b"")),
        ("encoder", 0x201, None, b"\x3f\x01"),
        ("decoder", 0x202, None, b"\x80"),
    ]:
        client = Client(port)
        if kind is None:
            stream = client.http._local_encoder_stream_id if what == "encoder" else client.http._local_decoder_stream_id
            client.quic.send_stream_data(stream, data)
        else:
            stream = client.quic.get_next_available_stream_id(is_unidirectional=True)
            client.quic.send_stream_data(stream, bytes([kind]) + data)
        fails(client, what, code)
    for what, code, data in [
        ("second settings", 0x105, frame(4, b"")),
        ("HEADERS on control", 0x105, frame(1, b"")),
        ("cancel push", 0x108, frame(3, b"\0")),
        ("bad goaway", 0x106, frame(7, b"")),
    ]:
        client = Client(port)
        client.quic.send_stream_data(client.http._local_control_stream_id, data)
        fails(client, what, code)
    client = Client(port)
    client.quic.send_stream_data(client.http._local_control_stream_id, b"", True)
    fails(client, "closed control", 0x104)


def fails(client: Client, what: str, code: int) -> None:
    try:
        client.until(lambda: False, 20)
    except ValueError:
        pass
    expect(code, client.closed and client.closed[0], what)


def unknown(port: int) -> None:
    """Frames and streams that nobody knows are passed over."""
    client = Client(port)
    grease = frame(0x21, b"anything")
    stream = client.quic.get_next_available_stream_id(is_unidirectional=True)
    client.quic.send_stream_data(stream, b"\x21more", False)
    client.quic.send_stream_data(client.http._local_control_stream_id, grease)
    asked = client.raw(grease + frame(1, section(*USUAL)) + grease)
    client.until(lambda: asked in client.ended)
    expect(b"hello\n", client.body(asked), "a request among them")
    client.until(lambda: stream in client.stopped)
    client.end()


def floods(port: int, what: str) -> None:
    """Too much of what costs nothing ends the connection."""
    client = Client(port)
    if what == "resets":
        for _ in range(400):
            if client.closed:
                break
            stream = client.raw(frame(1, section(*USUAL)), False)
            client.quic.reset_stream(stream, 0x10C)
            client.quic.stop_stream(stream, 0x10C)
            client.flush()
            try:
                client.until(lambda: stream in client.reset or stream in client.ended)
            except ValueError:
                break
    else:
        head = frame(1, section((":method", "POST"), *USUAL[1:3], (":path", "/cgi/wait")))
        client.raw(head + (frame(0, b"") * 1200 if what == "empty" else frame(0, b"x") * 5000), False)
    fails(client, what, 0x107)


def pieces(port: int, path: str) -> None:
    """Heads that come in two pieces, cut at every byte; each second one ends later still."""
    client = Client(port)
    head = section((":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path))
    whole = frame(1, head)
    for cut in range(1, len(whole)):
        stream = client.quic.get_next_available_stream_id()
        parts = [whole[:cut], whole[cut:]] + [b""] * (cut % 2)
        for number, part in enumerate(parts, 1):
            client.quic.send_stream_data(stream, part, end_stream=number == len(parts))
            sender = client.quic._streams[stream].sender
            # What was acknowledged has arrived before the rest leaves.
            client.until(lambda: number == len(parts) or sender._buffer_start == sender._buffer_stop)
        client.finish(stream)
        expect("200", client.status(stream), f"a head cut behind {cut} bytes")
    print(len(whole) - 1)


def unfinished(port: int, path: str, seconds: str) -> None:
    """Requests with more body to come, answered at once; the client says nothing for a while, then reads."""
    client = Client(port)
    client.until(lambda: client.quic._handshake_confirmed)
    length = [(b"content-length", b"200000")]
    streams = [client.ask(path, "POST", bytes(size), length, ends=False) for size in (0, 1000, 70_000)]
    client.flush()
    limit = time.monotonic() + float(seconds)
    while time.monotonic() < limit:
        select.select([], [], [], limit - time.monotonic())
    client.finish(*streams)
    print([client.status(stream) for stream in streams])


def long_heads(port: int) -> None:
    """A head that is too long, or has too many fields, is refused and the connection goes on."""
    client = Client(port)
    many = [(f"x-{number}".encode(), b"v") for number in range(300)]
    long = [(b"x-one", b"v" * 40_000), (b"x-two", b"v" * 40_000)]
    for more, target in [(many, "/"), (long, "/"), ([], "/" + "a" * 9000)]:
        stream = client.ask(target, more=more)
        client.until(lambda: stream in client.fields)
        print(client.status(stream))
    expect(b"hello\n", client.get("/hello.txt"), "a request after them")
    client.end()


def retry(port: int, path: str) -> None:
    """The server wants proof of the address, and takes it."""
    client = Client(port)
    client.get(path)
    expect(1, client.quic._retry_count, "times asked for proof")
    client.end()


def refused(port: int) -> None:
    """There is no room for the connection."""
    try:
        Client(port)
    except ValueError as error:
        print(error)
        return
    raise ValueError("the connection was taken")


def rejected(port: int, folder: str, name: str, small: str) -> None:
    """A request behind the last one that is answered is rejected, and answered over a new connection."""
    wanted = (Path(folder) / name).read_bytes()
    client = Client(port, max_data=200_000, max_stream_data=100_000)
    stream = client.ask(f"/{name}")
    client.until(lambda: len(client.body(stream)) > 50_000)
    print("begun", flush=True)
    sys.stdin.readline()
    # Meanwhile it takes no more of the answer, whose connection would end with it.
    client.quic._write_stream_limits = lambda **of: None
    client.until(lambda: client.control.endswith(bytes([7, 1, stream + 4])))
    late = client.ask(small)
    client.until(lambda: late in client.reset and late in client.stopped)
    print(hex(client.reset[late]), hex(client.stopped[late]))
    again = Client(port)
    expect(b"hello\n", again.get(small), "the request sent again")
    again.end()
    del client.quic._write_stream_limits
    client.finish(stream)
    expect(wanted, client.body(stream), name)
    client.end()


def slow(port: int, folder: str, name: str) -> None:
    """Begins to fetch a file, waits for a line of input, and takes the rest."""
    wanted = (Path(folder) / name).read_bytes()
    client = Client(port, max_data=200_000, max_stream_data=100_000)
    stream = client.ask(f"/{name}")
    client.until(lambda: len(client.body(stream)) > 50_000)
    print("begun", flush=True)
    sys.stdin.readline()
    client.finish(stream)
    expect(wanted, client.body(stream), name)
    # What the server said beside it: whether it announced its leaving.
    print("goaway" if b"\x07\x08" in client.control else "stayed", flush=True)
    client.until(lambda: True)
    client.end()


def stray(port: int, name: str) -> None:
    """Begins to fetch a file, waits for a line of input, and goes on until it is told by a stateless reset that
    the connection is gone."""
    client = Client(port, max_data=200_000, max_stream_data=100_000, idle_timeout=600.0)
    stream = client.ask(f"/{name}")
    client.until(lambda: len(client.body(stream)) > 50_000)
    print("begun", flush=True)
    sys.stdin.readline()
    # The library knows nothing of stateless resets.
    is_reset = []
    receive = client.quic.receive_datagram

    def look(data: bytes, address, now: float) -> None:
        token = client.quic._peer_cid.stateless_reset_token
        if data[0] & 0xC0 == 0x40 and data.endswith(token) and len(token) == 16:
            is_reset.append(True)
        receive(data, address, now=now)

    client.quic.receive_datagram = look
    client.until(lambda: is_reset)
    print("reset")


def silent(port: int, *states: str) -> None:
    """Connections from which nothing more comes, each in one of these states."""
    clients = []
    # They would wait for longer than a test does, so it is the server that gives them up.
    patient = {"idle_timeout": 600.0}
    for state in states:
        if state == "shaking":
            client = Client(port, shakes=False, **patient)
        elif state == "taking":
            client = Client(port, max_data=200_000, max_stream_data=100_000, **patient)
            stream = client.ask("/long.txt")
            client.until(lambda: len(client.body(stream)) > 50_000)
        else:
            client = Client(port, **patient)
            client.get("/hello.txt")
        if state == "closed":
            client.end()
        elif state == "asking":
            client.raw(frame(1, section(*USUAL))[:-3], False)
        elif state == "answered":
            client.ask("/hello.txt")
        elif state == "sending":
            client.ask("/cgi/count", "POST", bytes(100), ends=False)
        client.flush()
        if state in ("shaking", "asking", "answered", "sending"):
            # What the server says to it is not read: that it says something is enough.
            select.select([client.sock], [], [], SECONDS_MAX)
        clients.append(client)
    print("begun", flush=True)
    sys.stdin.readline()


def stuck(port: int, large: str, small: str) -> None:
    """Takes no more of an answer than one window holds, and goes on with another request."""
    client = Client(port, max_stream_data=50_000)
    client.quic._write_stream_limits = lambda **of: None
    stream = client.ask(large)
    client.until(lambda: stream in client.reset)
    print(hex(client.reset[stream]), len(client.body(stream)) < 60_000)
    client.get(small)
    client.end()


def idle(port: int, path: str) -> None:
    """Waits until the server closes the connection, and says how."""
    client = Client(port)
    try:
        client.get(path)
        client.until(lambda: False)
    except ValueError:
        print(client.closed[0])


def leave(port: int, path: str) -> None:
    """Goes amid an answer."""
    client = Client(port, max_data=100_000, max_stream_data=50_000)
    stream = client.ask(path)
    client.until(lambda: client.body(stream))
    client.end()


def named(port: int, *names: str) -> None:
    """The names in the certificates that are shown for some names."""
    for name in names:
        client = Client(port, name)
        certificate = client.quic.tls._peer_certificate
        print(certificate.subject.rfc4514_string())
        client.end()


def certified(port: int, path: str, name: str, *files: str) -> None:
    """What comes for a client with this certificate and key, or without; or how it is refused."""
    client = None
    try:
        client = Client(port, name, certificate=files)
        print(client.get(path).decode().strip())
    except ValueError:
        if client is None or client.closed:
            print("refused")
            return
        raise
    client.end()


CASES = {
    case.__name__: case
    for case in [
        fetch, whole, files, sixty, tiny, upload, unread, many_unread, all_unread, echo, resets, keys, migrate, resume, early, malformed, broken, unknown,
        floods, unfinished, long_heads, pieces, retry, refused, rejected, slow, stray, silent, stuck, idle, leave, named, certified,
    ]
}  # fmt: skip


def main() -> int:
    if sys.argv[1:] == ["install"]:
        reason = install()
        print(reason, end="")
        return 1 if reason else 0
    if len(sys.argv) < 3 or sys.argv[2] not in CASES:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        CASES[sys.argv[2]](int(os.environ.get("PORT", sys.argv[1])), *sys.argv[3:])
    except ValueError as error:
        print(f"{sys.argv[2]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
