"""A server that answers every request and keeps every byte; what came is read by two parsers that share no line."""

import re
import socket
import threading
from dataclasses import dataclass

import h11

STATUS = 299
ANSWER = b"HTTP/1.1 %d Seen\r\nContent-Length: 4\r\n\r\n" % STATUS
TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
LINE = re.compile(rb"(%s) (/[!-~]*) HTTP/1\.1" % TOKEN)
FIELD = re.compile(rb"(%s): ((?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?)" % TOKEN)
LENGTH = re.compile(rb"0|[1-9][0-9]{0,17}")
SIZE = re.compile(rb"0|[1-9a-f][0-9a-f]{0,7}")
# What is between a client and hob has no business here, in whatever spelling a program behind may read it. A tunnel for
# WebSocket is asked for, and refused.
OF_CONNECTION = {b"keep-alive", b"te", b"trailer", b"upgrade", b"expect", b"proxy-connection", b"http2-settings", b"connection"}
OF_TUNNEL = {b"connection": [b"Upgrade"], b"upgrade": [b"websocket"]}


@dataclass(frozen=True)
class Seen:
    """A request that came whole."""

    method: bytes
    target: bytes
    host: bytes
    fields: tuple
    body: bytes


class Unfinished(Exception):
    """The connection ended within a request."""


def strictly(raw: bytes) -> list[Seen]:
    """The requests of a connection, by the letter of RFC 9112 and of what hob says that it writes."""
    seen = []
    while raw:
        try:
            one, raw = one_strictly(raw)
        except Unfinished:
            break
        seen.append(one)
    return seen


def one_strictly(raw: bytes) -> tuple[Seen, bytes]:
    head, end, rest = raw.partition(b"\r\n\r\n")
    if not end:
        raise Unfinished
    first, *lines = head.split(b"\r\n")
    line = LINE.fullmatch(first)
    found = [FIELD.fullmatch(one) for one in lines]
    if not line or not all(found):
        raise ValueError(f"no head: {head!r}")
    fields = [(one[1].lower(), one[2]) for one in found]
    values: dict[bytes, list] = {}
    for name, value in fields:
        values.setdefault(name.replace(b"_", b"-"), []).append(value)
    if values.get(b"upgrade"):
        values = {name: value for name, value in values.items() if OF_TUNNEL.get(name) != value}
    lengths, codings = values.get(b"content-length", []), values.get(b"transfer-encoding", [])
    if len(values.get(b"host", [])) != 1 or len(lengths) + len(codings) > 1 or OF_CONNECTION & values.keys():
        raise ValueError(f"fields that contradict each other, or belong to a connection: {head!r}")
    if codings:
        if codings != [b"chunked"]:
            raise ValueError(f"a coding: {codings}")
        body, rest = chunks_strictly(rest)
    else:
        if lengths and not LENGTH.fullmatch(lengths[0]):
            raise ValueError(f"a length: {lengths}")
        size = int(lengths[0]) if lengths else 0
        if len(rest) < size:
            raise Unfinished
        body, rest = rest[:size], rest[size:]
    return Seen(line[1], line[2], values[b"host"][0], tuple(fields), body), rest


def chunks_strictly(rest: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        line, end, rest = rest.partition(b"\r\n")
        if not end:
            raise Unfinished
        if not SIZE.fullmatch(line):
            raise ValueError(f"the size of a chunk: {line!r}")
        size = int(line, 16)
        if len(rest) < size + 2:
            raise Unfinished
        if rest[size : size + 2] != b"\r\n":
            raise ValueError(f"the end of a chunk: {rest[size : size + 2]!r}")
        body, rest = body + rest[:size], rest[size + 2 :]
        if size == 0:
            return body, rest


class ByH11:
    """The requests of a connection as h11 reads them."""

    def __init__(self) -> None:
        self.h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        self.head, self.body = None, b""

    def take(self, data: bytes):
        """Yields each request that ends with these bytes."""
        self.h11.receive_data(data)
        while True:
            event = self.h11.next_event()
            if isinstance(event, h11.Request):
                self.head, self.body = event, b""
            elif isinstance(event, h11.Data):
                self.body += event.data
            elif isinstance(event, h11.EndOfMessage):
                if event.headers:
                    raise ValueError(f"trailers: {event.headers}")
                yield self.seen()
            else:
                return

    def seen(self) -> Seen:
        head = self.head
        host = dict(head.headers)[b"host"]
        if head.http_version != b"1.1":
            raise ValueError(f"HTTP/{head.http_version}")
        # As if it were answered: the next one may come.
        self.h11.send(h11.Response(status_code=200, headers=[(b"content-length", b"0")]))
        self.h11.send(h11.EndOfMessage())
        self.h11.start_next_cycle()
        return Seen(head.method, head.target, host, tuple((bytes(name), bytes(value)) for name, value in head.headers), self.body)


class Recorder:
    """It listens until the program ends."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.connections: list[bytearray] = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            raw = bytearray()
            self.connections.append(raw)
            threading.Thread(target=self.answer, args=(connection, raw), daemon=True).start()

    def answer(self, connection: socket.socket, raw: bytearray) -> None:
        reader = ByH11()
        with connection:
            try:
                while data := connection.recv(1 << 16):
                    raw += data
                    for seen in reader.take(data):
                        connection.sendall(ANSWER + (b"" if seen.method == b"HEAD" else b"seen"))
            # What is wrong with it is found when all of it is read.
            except (OSError, ValueError, LookupError, h11.ProtocolError):
                return

    def requests(self) -> tuple[list[Seen], list[str]]:
        """Everything that came, and where the two parsers do not agree on it."""
        all_seen, faults = [], []
        for raw in map(bytes, self.connections):
            one, other = [], []
            try:
                one.extend(ByH11().take(raw))
                other = strictly(raw)
            except (ValueError, LookupError, h11.ProtocolError) as error:
                faults.append(f"no parser should have read this: {error}")
            else:
                if one != other:
                    faults.append(f"two parsers read {one} and {other}")
            all_seen += one
        return all_seen, faults
