"""The server's side of the stream, for tests: what a worker is told and what it says, byte by byte.

Written from the drawing of the layout alone; it shares no code with the package.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

FOLDER = Path(__file__).resolve().parent.parent
SOURCES = FOLDER / "src"
UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF
INDEX = (
    "REQUEST_METHOD REQUEST_URI SCRIPT_NAME PATH_INFO QUERY_STRING SERVER_PROTOCOL CONTENT_TYPE "
    "CONTENT_LENGTH HTTP_HOST HTTP_COOKIE REMOTE_ADDR SCRIPT_FILENAME SERVER_NAME SERVER_PORT "
    "REQUEST_SCHEME HTTP_USER_AGENT"
).split()
NAMES = {33: "hello", 34: "head", 35: "data", 36: "end", 37: "info", 38: "window", 39: "callout"}
PATIENCE_SECONDS = float(os.environ.get("PATIENCE_SECONDS", 60))


class Message(NamedTuple):
    kind: str
    flags: int
    small: int
    ident: int
    large: int
    payload: bytes


class Answer(NamedTuple):
    status: int
    fields: List[Tuple[str, str]]
    body: bytes
    trailers: List[Tuple[str, str]]
    infos: List[Tuple[int, List[Tuple[str, str]]]]
    failure: Optional[str]

    def field(self, name: str) -> Optional[str]:
        found = [value for key, value in self.fields if key.lower() == name.lower()]
        return found[0] if found else None


def message(
    kind: int, payload: bytes = b"", flags: int = 0, small: int = 0, ident: int = 0, large: int = 0
) -> bytes:
    return struct.pack("<IBBHII", len(payload), kind, flags, small, ident, large) + payload


def block(variables: Dict[str, Any], length: int = 0) -> bytes:
    strings, index = b"", {}
    at = 144
    for name, value in variables.items():
        raw = value if isinstance(value, bytes) else value.encode("utf-8")
        index[name] = (at + len(strings) + len(name) + 1, len(raw))
        strings += name.encode() + b"\0" + raw + b"\0"
    head = struct.pack("<IHHQ", at + len(strings), len(variables), 16, length)
    entries = b"".join(struct.pack("<II", *index.get(name, (0, 0))) for name in INDEX)
    return head + entries + strings


def variables(path: str = "/", method: str = "GET", query: str = "", **more: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_SOFTWARE": "hob",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "8080",
        "REQUEST_SCHEME": "http",
        "REQUEST_METHOD": method,
        "REQUEST_URI": path + ("?" + query if query else ""),
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REMOTE_ADDR": "127.0.0.1",
        "REMOTE_PORT": "40000",
        "HTTP_HOST": "localhost:8080",
        "HTTP_USER_AGENT": "peer",
        "HTTP_ACCEPT": "*/*",
    }
    found.update(more)
    return found


def lines(payload: bytes) -> List[Tuple[str, str]]:
    pairs = []
    for line in payload.decode("latin-1").splitlines():
        name, colon, value = line.partition(":")
        assert colon and name == name.strip(), line
        pairs.append((name, value.strip()))
    return pairs


class Peer:
    """One worker's server."""

    def __init__(self, sock: socket.socket, *, data_window: int = 262144, body_window: int = 65536):
        self.socket = sock
        sock.settimeout(PATIENCE_SECONDS)
        self.data_window = data_window
        self.body_window = body_window
        self.kept: List[Message] = []
        self._rest = b""
        self._ident = 0

    def hello(
        self, concurrency: int = 1, *, version: int = 1, descriptors: Sequence[int] = ()
    ) -> None:
        payload = struct.pack(
            "<HHIIB3x", concurrency, 0, self.data_window, self.body_window, 2 if descriptors else 1
        )
        data = message(1, payload, small=version)
        if descriptors:
            socket.send_fds(self.socket, [data], list(descriptors))
        else:
            self.socket.sendall(data)

    def greet(self, concurrency: int = 1, **more: Any) -> Message:
        self.hello(concurrency, **more)
        return self.take()

    def send(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # a worker that ended; reading shows it
            self.socket.sendall(data)

    def request(
        self,
        environ: Dict[str, Any],
        body: Optional[bytes] = b"",
        *,
        length: Optional[int] = None,
        ident: Optional[int] = None,
    ) -> int:
        """Sends a request whose body fits into the window; None: the body follows later."""
        if ident is None:
            self._ident += 1
            ident = self._ident
        if length is None:
            length = UNKNOWN if body is None else len(body)
        data = message(2, block(environ, length), 1 if body == b"" else 0, 0, ident)
        if body:
            assert len(body) <= self.body_window
            data += message(3, body, 1, 0, ident)
        self.send(data)
        return ident

    def body(self, ident: int, data: bytes, *, last: bool = False) -> None:
        self.send(message(3, data, int(last), 0, ident))

    def upload(self, ident: int, data: bytes, piece: int = 16384) -> List[Message]:
        """A body of any size as the window allows; what else came meanwhile."""
        at, room, others = 0, self.body_window, []
        if not data:
            self.body(ident, b"", last=True)
        while at < len(data):
            while not room:
                got = self.read()
                if got.kind == "window" and got.ident == ident:
                    room += got.large
                else:
                    others.append(got)
                    if got.ident == ident and (got.flags & 1):
                        self.kept += others
                        return others
            step = min(piece, room, len(data) - at)
            self.body(ident, data[at : at + step], last=at + step == len(data))
            at += step
            room -= step
        self.kept += others
        return others

    def cancel(self, ident: int) -> None:
        self.send(message(4, b"", 0, 0, ident))

    def window(self, ident: int, size: int) -> None:
        self.send(message(5, b"", 0, 0, ident, size))

    def reply(self, to: Message, text: str) -> None:
        self.send(message(6, text.encode(), 0, to.small, to.ident))

    def drain(self) -> None:
        self.send(message(7))

    def read(self) -> Message:
        """The next message from the socket itself."""
        while True:
            if len(self._rest) >= 16:
                length, kind, flags, small, ident, large = struct.unpack_from("<IBBHII", self._rest)
                assert length <= 65536, f"a message of {length} bytes"
                if len(self._rest) >= 16 + length:
                    payload = self._rest[16 : 16 + length]
                    self._rest = self._rest[16 + length :]
                    return Message(NAMES[kind], flags, small, ident, large, payload)
            try:
                data = self.socket.recv(262144)
            except ConnectionResetError:  # it ended before it read all we said
                data = b""
            if not data:
                raise EOFError(f"the worker closed the socket; {self._rest!r} was left over")
            self._rest += data

    def take(self, ident: Optional[int] = None) -> Message:
        """The next message, of this request if one is named; others are kept."""
        for at, got in enumerate(self.kept):
            if ident is None or got.ident == ident:
                return self.kept.pop(at)
        while True:
            got = self.read()
            if ident is None or got.ident == ident:
                return got
            self.kept.append(got)

    def answer(self, ident: int, *, grants: bool = True) -> Answer:
        """A whole answer, giving windows as it comes."""
        status, fields, infos = 0, b"", []
        pieces: List[bytes] = []
        room = self.data_window
        while True:
            got = self.take(ident)
            if got.kind == "head":
                assert not status, "a second head"
                status, fields = got.small, got.payload
            elif got.kind == "info":
                infos.append((got.small, lines(got.payload)))
            elif got.kind == "data":
                assert status, "data before a head"
                pieces.append(got.payload)
                room -= len(got.payload)
                assert room >= 0, f"{-room} bytes beyond the window"
                if grants and not got.flags & 1 and got.payload:
                    self.window(ident, len(got.payload))
                    room += len(got.payload)
            elif got.kind == "end":
                failed = got.flags & 16 != 0
                return Answer(
                    status or 500,
                    lines(fields),
                    b"".join(pieces),
                    [] if failed else lines(got.payload),
                    infos,
                    got.payload.decode() if failed else None,
                )
            else:
                assert got.kind == "window", got
            if got.flags & 1 and got.kind in ("head", "data"):
                return Answer(status, lines(fields), b"".join(pieces), [], infos, None)

    def ask(self, *words: Any, **more: Any) -> Answer:
        """A request without a body and its answer."""
        return self.answer(self.request(variables(*words, **more)))

    def is_ended(self) -> bool:
        """Waits for the worker to close its side."""
        try:
            self.read()
        except EOFError:
            return True
        return False


class Worker:
    """A real process with the stream on a descriptor of its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Any = None,
        environ: Optional[Dict[str, str]] = None,
    ) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            path = str(SOURCES)
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                cwd=folder,
                env={
                    **os.environ,
                    "HOB_FD": str(theirs.fileno()),
                    "PYTHONPATH": path,
                    "PYTHONWARNINGS": "error",
                    **(environ or {}),
                },
            )
        self.peer = Peer(ours)

    def end(self) -> Tuple[int, str, str]:
        """Exit status, standard output and error; the process must end by itself."""
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out.decode(), err.decode()

    def close(self) -> None:
        self.peer.socket.close()
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def host(*words: str, folder: Any = None, **more: Any) -> Iterator[Worker]:
    """A worker as the server starts it, by a verb of the host."""
    worker = Worker([sys.executable, "-m", "hob", *words], folder=folder, **more)
    try:
        yield worker
    finally:
        worker.close()
