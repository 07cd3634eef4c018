"""The plain loop: `for request in hob.requests(): ...`, one request after another.

The same program runs as plain CGI when the server did not start it to stay: then there is one
request, from the environment and standard input, and its answer goes to standard output.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Protocol,
    Tuple,
    Union,
)

from .stream import Disconnected, attach, checked_status, field_lines

Fields = Union[Mapping[str, str], Iterable[Tuple[str, str]]]
Text = Union[str, bytes, bytearray, memoryview]


class Accepted(Protocol):
    """What one request is, whatever brought it: a stream.Exchange, libhob's, or plain CGI's."""

    @property
    def environ(self) -> Dict[str, str]: ...
    @property
    def length(self) -> Optional[int]: ...
    @property
    def has_begun(self) -> bool: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def is_cancelled(self) -> bool: ...
    def environ_on(self, base: Dict[str, Any]) -> Dict[str, Any]: ...
    def look(self) -> bool: ...
    def take(self, size: int) -> Union[bytes, memoryview]: ...
    def answer(self, status: int, fields: bytes, body: bytes) -> None: ...
    def head(self, status: int, fields: bytes) -> None: ...
    def flush(self) -> None: ...
    def write(self, data: Any, *, last: bool = False) -> None: ...
    def end(self, trailers: bytes = b"") -> None: ...
    def fail(self, reason: str) -> None: ...
    def info(self, status: int, fields: bytes = b"") -> None: ...
    def callout(self, text: str) -> Tuple[int, str]: ...
    def tell(self, text: str) -> None: ...


class Source(Protocol):
    """What requests come from."""

    @property
    def concurrency(self) -> int: ...
    def accept(self) -> Optional[Accepted]: ...
    def callout(self, text: str) -> Tuple[int, str]: ...


def requests() -> Iterator[Request]:
    """The requests for this program, until the server wants no more from it.

    A request that is left unfinished is finished when the next one is asked for; one that has no
    answer at all gets the status 500. Several threads may each run a loop of their own.
    """
    source = connection()
    while True:
        try:
            exchange = source.accept()
        except Disconnected:
            return
        if exchange is None:
            return
        request = Request(exchange)
        yield request
        request.leave()


def concurrency() -> int:
    """How many requests the server may give this program at a time; 1 as plain CGI."""
    return connection().concurrency


def lifetime(seconds: int) -> Tuple[int, str]:
    """Asks that this program be kept so long while idle; -1 is for ever."""
    return connection().callout(f"LIFETIME: {seconds}")


class Request:
    """A request and the calls that answer it."""

    def __init__(self, exchange: Accepted) -> None:
        self._exchange = exchange
        self._environ: Optional[Dict[str, str]] = None
        self._body: Optional[io.BufferedReader] = None
        self._headers: Optional[Headers] = None

    @property
    def environ(self) -> Dict[str, str]:
        """The CGI variables, values decoded as latin-1 (as WSGI has it)."""
        if self._environ is None:
            self._environ = self._exchange.environ
        return self._environ

    @property
    def method(self) -> str:
        """`GET`, `POST`, ..."""
        return self.environ.get("REQUEST_METHOD", "GET")

    @property
    def path(self) -> str:
        """The path, decoded: the part that names the program and what follows it."""
        environ = self.environ
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        return path.encode("latin-1").decode("utf-8", "replace")

    @property
    def query(self) -> str:
        """What follows the `?`, still encoded."""
        return self.environ.get("QUERY_STRING", "")

    @property
    def headers(self) -> Headers:
        """The request's fields; their names are compared without case."""
        if self._headers is None:
            self._headers = Headers(self.environ)
        return self._headers

    @property
    def length(self) -> Optional[int]:
        """Bytes of the body; None when not known before its end."""
        return self._exchange.length

    @property
    def body(self) -> io.BufferedReader:
        """The body, a binary file to read from."""
        if self._body is None:
            self._body = io.BufferedReader(Body(self._exchange))
        return self._body

    @property
    def is_cancelled(self) -> bool:
        """The client has left; what is written still is discarded."""
        return self._exchange.look()

    @property
    def is_finished(self) -> bool:
        """The answer is complete."""
        return self._exchange.is_over

    def respond(self, status: int = 200, headers: Fields = (), body: Text = b"") -> None:
        """The whole answer at once. Text is sent as UTF-8."""
        data = as_bytes(body)
        fields = lines_of(headers)
        if self.method != "HEAD":
            self._exchange.answer(checked_status(status), fields, data)
            return
        if b"content-length:" not in fields.lower():
            fields += b"Content-Length: %d\n" % len(data)
        self._exchange.head(checked_status(status), fields)
        self._exchange.end()

    def start(self, status: int = 200, headers: Fields = ()) -> None:
        """Begins an answer that is written piece by piece."""
        self._exchange.head(checked_status(status), lines_of(headers))

    def write(self, data: Text) -> None:
        """Sends a piece of the answer. Waits while the client is slow."""
        if not self._exchange.has_begun:
            self.start()
        piece = as_bytes(data)
        if self.method != "HEAD":
            self._exchange.write(piece)

    def flush(self) -> None:
        """Sends status and headers now, before there is anything to write."""
        self._exchange.flush()

    def finish(self, trailers: Fields = ()) -> None:
        """Ends the answer."""
        if not self._exchange.has_begun:
            self.start()
        self._exchange.end(lines_of(trailers))

    def fail(self, reason: str) -> None:
        """Gives the request up: 500, or a broken answer if it had begun. The reason is logged."""
        self._exchange.fail(reason)

    def inform(self, status: int, headers: Fields = ()) -> None:
        """An informational answer (1xx) that goes before the real one."""
        self._exchange.info(status, lines_of(headers))

    def log(self, text: str, level: str = "info") -> None:
        """A line for the server's log."""
        self._exchange.tell(f"LOG: {level} {text}")

    def trace(self, text: str) -> None:
        """A line for the live trace of this request."""
        self._exchange.tell(f"TRACE: {text}")

    def timeout(self, seconds: float) -> Tuple[int, str]:
        """Sets how long this request may take in all; code and text of the reply."""
        return self._exchange.callout(f"TIMEOUT: {seconds:g}")

    def map_path(self, path: str) -> Tuple[int, str]:
        """The file that a path of the site stands for: (200, "/the/file")."""
        return self._exchange.callout(f"MAP-PATH: {path}")

    def noop(self) -> Tuple[int, str]:
        """A question that does nothing but come back."""
        return self._exchange.callout("NOOP:")

    def callout(self, text: str) -> Tuple[int, str]:
        """Any other question, `KEYWORD: parameters`."""
        return self._exchange.callout(text)

    def leave(self) -> None:
        """Finishes what was left unfinished."""
        exchange = self._exchange
        if exchange.is_over:
            return
        try:
            if exchange.has_begun:
                exchange.end()
            else:
                exchange.fail("the program left the request without an answer")
        except Disconnected:
            pass  # the loop finds out when it asks for the next request


class Headers(Mapping[str, str]):
    """Fields of a request as a mapping, made from its variables."""

    def __init__(self, environ: Dict[str, str]) -> None:
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        return self._environ[variable_of(name)]

    def __iter__(self) -> Iterator[str]:
        for name in self._environ:
            if name.startswith("HTTP_"):
                yield name[5:].replace("_", "-").title()
            elif name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                yield name.replace("_", "-").title()

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Body(io.RawIOBase):
    """A request's body as a raw file; a BufferedReader around it has the comfort."""

    def __init__(self, exchange: Accepted) -> None:
        self._exchange = exchange

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # The native part reads into it without a copy between.
        take_into: Optional[Callable[[Any], int]] = getattr(self._exchange, "take_into", None)
        if take_into is not None:
            return take_into(buffer)
        piece = self._exchange.take(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def readall(self) -> bytes:
        pieces: List[Union[bytes, memoryview]] = []
        while True:
            piece = self._exchange.take(1 << 62)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


class Cgi:
    """The one request of a plain CGI program, with the calls that an `Exchange` has."""

    has_begun = False
    is_over = False
    is_cancelled = False
    is_taken = False
    concurrency = 1

    def __init__(self) -> None:
        self._out = sys.stdout.buffer
        self._in: Any = sys.stdin.buffer
        number = os.environ.get("CONTENT_LENGTH", "")
        self.length: Optional[int] = int(number) if number.isdigit() else 0
        self._left = self.length or 0
        # What the program prints is not the answer: it goes where a resident program's goes.
        sys.stdout = sys.stderr

    @property
    def environ(self) -> Dict[str, str]:
        """The variables of the process."""
        found = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in os.environb.items()
        }
        found.setdefault("QUERY_STRING", "")
        return found

    def accept(self) -> Optional[Cgi]:
        """This one request, once."""
        was_taken, self.is_taken = self.is_taken, True
        return None if was_taken else self

    def environ_on(self, base: Dict[str, Any]) -> Dict[str, Any]:
        """The variables together with those."""
        return {**self.environ, **base}

    def look(self) -> bool:
        """Nobody says that a client has left."""
        return False

    def answer(self, status: int, fields: bytes, body: bytes) -> None:
        """A whole answer."""
        self.head(status, fields)
        self.write(body, last=True)

    def head(self, status: int, fields: bytes) -> None:
        """Status and fields."""
        if self.has_begun:
            raise RuntimeError("this request has its answer already")
        self.has_begun = True
        first = b"Status: %d\n" % status if status else b""
        if not (first or fields):
            first = b"Status: 200\n"
        self._out.write(first + fields + b"\n")

    def flush(self) -> None:
        """Sends what was written so far."""
        self._out.flush()

    def write(self, data: Any, *, last: bool = False) -> None:
        """Bytes of the answer."""
        if self.is_over:
            raise RuntimeError("bytes after the end of an answer")
        self._out.write(data)
        self._out.flush()
        self.is_over = last

    def end(self, trailers: bytes = b"") -> None:
        """Ends the answer; CGI has no trailers."""
        self._out.flush()
        self.is_over = True

    def fail(self, reason: str) -> None:
        """Says the reason on standard error; 500 if nothing was sent."""
        if not self.has_begun:
            self.head(500, b"Content-Type: text/plain\n")
        print(f"hob: {reason}", file=sys.stderr)
        self.end()

    def info(self, status: int, fields: bytes = b"") -> None:
        """CGI has no informational answers."""

    def take(self, size: int) -> memoryview:
        """At most so many bytes of the body."""
        data: bytes = self._in.read1(min(size, self._left, 65536)) if self._left else b""
        self._left -= len(data)
        if not data:
            self._left = 0
        return memoryview(data)

    def callout(self, text: str) -> Tuple[int, str]:
        """Nobody is there to be asked."""
        return NOT_THERE

    def tell(self, text: str) -> None:
        """Log lines go to standard error."""
        keyword, _, words = text.partition(": ")
        if keyword == "LOG":
            print(words.partition(" ")[2], file=sys.stderr)


NOT_THERE = (501, "no server to ask: this runs as plain CGI")
_opening = threading.Lock()
_connection: Optional[Source] = None


def connection() -> Source:
    """What brings requests to this process; made when first asked for."""
    global _connection
    with _opening:
        if _connection is None:
            _connection = _connected()
        return _connection


def _connected() -> Source:
    if "HOB_FD" not in os.environ:
        return Cgi()
    found: Optional[Source] = None
    with contextlib.suppress(ImportError):  # a copy that came without it has the stream alone
        from . import native

        found = native.connect()
    return attach(os.environ.pop("HOB_FD")) if found is None else found


def variable_of(name: str) -> str:
    """The variable that holds a request field."""
    word = name.upper().replace("-", "_")
    return word if word in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + word


def lines_of(fields: Fields) -> bytes:
    """Field lines from a mapping or from pairs."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return field_lines([(name, value) for name, value in pairs])


def as_bytes(data: Text) -> bytes:
    """Bytes as they are, text as UTF-8."""
    if isinstance(data, bytes):
        return data
    return data.encode("utf-8") if isinstance(data, str) else bytes(data)
