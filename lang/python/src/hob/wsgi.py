"""Runs a WSGI application (PEP 3333), in as many threads as the server gives requests at a time."""

from __future__ import annotations

import io
import os
import stat
import sys
import threading
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from .loop import Accepted, Body, Cgi, Source
from .stream import Cancelled, Disconnected, checked_status, field_lines, print_failure

Environ = Dict[str, Any]
Fields = List[Tuple[str, str]]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

CODES_MAX = 256
# A file of which less is left is copied: passing it costs more.
PASSED_BYTES_MIN = 65536


def serve(application: Application, source: Source) -> None:
    """Answers requests until the server wants no more. Raises Disconnected when it is gone."""
    server = Server(application, source.concurrency, is_cgi=isinstance(source, Cgi))
    others = [
        threading.Thread(target=_follow, args=(server, source), name=f"hob-{n}", daemon=True)
        for n in range(1, source.concurrency)
    ]
    for thread in others:
        thread.start()
    server.run(source)
    for thread in others:
        thread.join()


def _follow(server: Server, source: Source) -> None:
    try:
        server.run(source)
    except Disconnected:
        pass  # the main thread sees the same and ends the process


class Server:
    """An application and what its environ has in every request."""

    def __init__(self, application: Application, concurrency: int, *, is_cgi: bool = False) -> None:
        self._application = application
        self._always: Environ = {
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BufferedReader(Empty(), 1),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": concurrency > 1,
            "wsgi.multiprocess": True,
            "wsgi.run_once": is_cgi,
            "wsgi.file_wrapper": FileWrapper,
            "hob.exchange": None,
        }

    def run(self, source: Source) -> None:
        """One thread's share of the requests."""
        run_wsgi = getattr(source, "run_wsgi", None)
        if run_wsgi is not None:
            run_wsgi(self._application, self._always, self)
            return
        accept, answer = source.accept, self.answer
        while True:
            exchange = accept()
            if exchange is None:
                return
            answer(exchange)
            del exchange

    def answer(self, exchange: Accepted) -> None:
        """One request, from its variables to the end of its answer."""
        environ = exchange.environ_on(self._always)
        if environ.get("REQUEST_SCHEME") == "https":
            environ["wsgi.url_scheme"] = "https"
        if exchange.length != 0:
            environ["wsgi.input"] = self.input_of(exchange)
        environ["hob.exchange"] = exchange
        answer = self.answer_for(exchange, environ["REQUEST_METHOD"] == "HEAD")
        try:
            result = self._application(environ, answer.start)
            if type(result) is list and len(result) == 1 and answer.is_plain:
                exchange.answer(answer.status, field_lines(answer.fields), result[0])
                return
        except Disconnected:
            raise
        except (Exception, SystemExit) as error:
            answer.fail(error)
            return
        self.conclude(answer, result)

    # These are called by the native part, too, for what it does not do itself.

    def input_of(self, exchange: Accepted) -> io.BufferedReader:
        """The request's body as a file."""
        return io.BufferedReader(Body(exchange))

    def answer_for(self, exchange: Accepted, is_head: object) -> Answer:
        """The state of an answer that has not begun."""
        answer = Answer(exchange, bool(is_head))
        answer.is_one_of_many = self._always["wsgi.multithread"]
        return answer

    def conclude(self, answer: Answer, result: Iterable[bytes]) -> None:
        """Sends what the application returned, and closes it."""
        try:
            try:
                answer.send(result)
            finally:
                if hasattr(result, "close"):
                    result.close()
        except Disconnected:
            raise
        except (Exception, SystemExit) as error:
            answer.fail(error)

    def raised(self, exchange: Accepted, error: BaseException, is_head: object) -> None:
        """The application has raised instead of returning."""
        if isinstance(error, Disconnected) or not isinstance(error, (Exception, SystemExit)):
            raise error
        self.answer_for(exchange, is_head).fail(error)


class Answer:
    """The state of one answer: `start` is what applications know as start_response."""

    status = 0
    fields: Fields = []
    is_started = False
    is_sent = False
    #: The whole answer may leave at once, with all its body.
    is_plain = False
    left: Optional[int] = None
    #: Its worker has others at the same time.
    is_one_of_many = False

    def __init__(self, exchange: Accepted, is_head: bool) -> None:
        self._exchange = exchange
        self._is_head = is_head

    def start(self, status: str, headers: Fields, exc_info: Any = None) -> Callable[[bytes], None]:
        """Takes status and fields, which leave with the first byte of the body."""
        if self.is_started:
            if exc_info is None:
                raise RuntimeError("start_response was called before, and without exc_info")
            try:
                if self.is_sent:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None  # or the traceback would keep its own frame alive
        self.status = code = _codes.get(status) or code_of(status)
        self.fields = headers
        self.is_started = True
        self.is_plain = not self._is_head and code != 304 and code != 204
        return self.write

    def write(self, data: bytes) -> None:
        """The other way to send, for applications that have no iterable to return."""
        exchange = self._exchange
        if not self.is_sent:
            self._send_head()
            if self._has_no_body():
                exchange.end()
            elif not data:
                exchange.flush()
        if exchange.is_over or exchange.is_cancelled or not data:
            return
        left = self.left
        if left is None:
            exchange.write(data)
            return
        if len(data) >= left:
            if len(data) > left:
                self._complain(f"more body than the Content-Length it gave: {len(data) - left}")
            exchange.write(data[:left], last=True)
        else:
            exchange.write(data)
        self.left = left - len(data)

    def send(self, result: Iterable[bytes]) -> None:
        """Every piece as it comes; all at once when they are all there."""
        if isinstance(result, (list, tuple)):
            result = [b"".join(result)]
        exchange, write = self._exchange, self.write
        if type(result) is FileWrapper and not self.is_sent and self._pass_on(result):
            result = ()
        for data in result:
            if data:
                write(data)
                if exchange.is_cancelled or exchange.is_over:
                    break
        if not self.is_sent:
            self._send_head()
        if exchange.is_over:
            return
        if self.left and not exchange.is_cancelled and not self._has_no_body():
            exchange.fail(f"the application sent {self.left} bytes less than its Content-Length")
            return
        exchange.end()

    def fail(self, error: BaseException) -> None:
        """The application raised: its traceback goes to the log, the client gets a 500."""
        exchange = self._exchange
        if isinstance(error, Cancelled) and (exchange.is_cancelled or exchange.is_over):
            exchange.fail("the client left")
            return
        print_failure(exchange, error, is_one_of_many=self.is_one_of_many)
        exchange.fail(f"{type(error).__name__}: {error}")

    def _send_head(self) -> None:
        if not self.is_started:
            raise RuntimeError("the application sent a body before it called start_response")
        self.is_sent = True
        self.is_plain = False
        for name, value in self.fields:
            if name.lower() == "content-length" and value.isdigit():
                self.left = int(value)
        self._exchange.head(self.status, field_lines(self.fields))

    def _pass_on(self, wrapper: FileWrapper) -> bool:
        """Lets the server send the file by itself, if it can."""
        exchange: Any = self._exchange
        if not getattr(getattr(exchange, "channel", None), "takes_files", False):
            return False
        part = wrapper.part()
        if part is None:
            return False
        self._send_head()
        if self._has_no_body():
            return True
        file, offset, size = part
        if self.left is not None:
            size = min(size, self.left)
            self.left -= size
        exchange.send_file(file, offset, size, last=not self.left)
        return True

    def _has_no_body(self) -> bool:
        return self._is_head or self.left == 0 or self.status in (204, 304)

    def _complain(self, text: str) -> None:
        print(f"hob: the application sent {text}", file=sys.stderr)


class FileWrapper:
    """An iterable over a file, in pieces of a good size."""

    def __init__(self, file: Any, size: int = 65536) -> None:
        self._file = file
        self._size = max(size, 65536)
        if hasattr(file, "close"):
            self.close = file.close

    def part(self) -> Optional[Tuple[int, int, int]]:
        """Descriptor, offset and size of what is left, if that is much of a plain file."""
        file = getattr(self._file, "file", self._file)  # a temporary file has its file in it
        raw = file.raw if type(file) in (io.BufferedReader, io.BufferedRandom) else file
        if type(raw) is not io.FileIO:
            return None
        try:
            file.flush()
            status, offset = os.fstat(raw.fileno()), file.tell()
        except (OSError, ValueError):
            return None
        size = status.st_size - offset
        if not stat.S_ISREG(status.st_mode) or not raw.readable() or size < PASSED_BYTES_MIN:
            return None
        return raw.fileno(), offset, size

    def __iter__(self) -> FileWrapper:
        return self

    def __next__(self) -> bytes:
        data: bytes = self._file.read(self._size)
        if not data:
            raise StopIteration
        return data


class Empty(io.RawIOBase):
    """The body of a request that has none."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return 0


_codes: Dict[str, int] = {}


def code_of(status: str) -> int:
    """The number in `200 OK`, remembered: applications use few."""
    if not isinstance(status, str) or not status[:3].isdigit() or status[3:4] not in ("", " "):
        raise ValueError(f"the application's status is {status!r}, not like '200 OK'")
    code = checked_status(int(status[:3]))
    if len(_codes) < CODES_MAX:
        _codes[status] = code
    return code
