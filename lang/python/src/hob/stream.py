"""The stream protocol: a worker's side of the socket that the server hands down.

`Channel` turns bytes into the state of requests and opens nothing; `Stream` drives it with
blocking calls, for programs and WSGI (asgi.py drives it from an event loop). A message is a head
of 16 bytes and a payload, all numbers little-endian:

    0 u32 payload bytes   4 u8 kind   5 u8 flags   6 u16 small   8 u32 request   12 u32 large

The payload of a request is its block: u32 bytes, u16 variables, u16 entries of an index, u64
content length (all ones: not known), the index (16 times u32 offset, u32 length), which Python has
no need of, and from byte 144 the strings: NAME NUL value NUL ...
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
import traceback
from collections import deque
from typing import Any, Callable, Deque, Dict, Generic, List, Optional, Sequence, Tuple, TypeVar

VERSION = 1
LIBRARY = b"hob-python/0.1"

HELLO, REQUEST, BODY, CANCEL, WINDOW, REPLY, DRAIN = range(1, 8)
GREETING, HEAD, DATA, END, INFO, BODY_WINDOW, CALLOUT, FILE = range(33, 41)
LAST, TUNNEL, QUIET, FAILED, FILES = 1, 2, 4, 16, 32
TAKES_FILES = 1  # a flag of hello

PIECE_BYTES_MAX = 65536
REQUEST_BYTES_MAX = 131072
SENT_AT_ONCE_BYTES_MAX = 4 * PIECE_BYTES_MAX
# What a file takes of the window, however long it is.
FILE_WINDOW_BYTES = 16384
READ_BYTES = PIECE_BYTES_MAX + 4096
STRINGS_AT = 144
INDEX_ENTRIES = 16
LENGTH_NOT_KNOWN = 0xFFFF_FFFF_FFFF_FFFF
# How long a program may go on writing before it looks whether its client has left.
LOOK_EVERY_SECONDS = 0.05

message_head = struct.Struct("<IBBHII")
pack = message_head.pack
unpack = message_head.unpack_from
block_head = struct.Struct("<IHHQ").unpack_from
hello_payload = struct.Struct("<HHIIB3x")
file_payload = struct.Struct("<QQ")

Waiter = Any  # a lock of `_thread`, whose type has no public name before Python 3.13


class Disconnected(ConnectionError):
    """The server has closed the socket: it ended, or gave this worker up."""


class NotOurs(Exception):
    """HOB_FD is set, but the server did not start this program."""


class Malformed(Exception):
    """The server sent what the protocol does not have; nothing after it can be trusted."""


class Cancelled(ConnectionError):
    """The client left, or the answer was over, before the request was complete."""


def comes_of_leaving(error: Optional[BaseException]) -> bool:
    """Whether an exception is, or was raised because of, what `send` raises."""
    while error is not None:
        if isinstance(error, Cancelled):
            return True
        error = error.__cause__ or error.__context__
    return False


def print_failure(exchange: Any, error: BaseException, *, is_one_of_many: bool) -> None:
    """A traceback on standard error. Where a worker has several requests at a time, each line
    begins with the one it is of, which the server takes off and tells in its log."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    # What is over has no variables any more.
    has_ident = is_one_of_many and not exchange.is_over
    ident = exchange.environ.get("UNIQUE_ID") if has_ident else None
    if ident:
        text = "".join(f"\x1e{ident}\x1f{line}\n" for line in text.splitlines())
    sys.stderr.write(text)
    sys.stderr.flush()


class Incoming:
    """What has arrived of one request, and how much of its answer may leave."""

    is_over = False
    is_cancelled = False
    is_whole = False
    sent = 0
    taken = 0
    replies: Optional[Dict[int, Tuple[int, str]]] = None
    pieces: Optional[Deque[memoryview]] = None

    def __init__(self, channel: Any, ident: int, block: bytes, is_whole: bool) -> None:
        if len(block) < STRINGS_AT:
            raise Malformed(f"request block of {len(block)} bytes")
        total, self._variables, entries, length = block_head(block)
        if total != len(block) or entries != INDEX_ENTRIES:
            raise Malformed(f"request block of {len(block)} bytes says {total}, index {entries}")
        self.channel = channel
        self.block = block
        self.ident = ident
        self.granted = channel.data_window
        #: Bytes of the body; None when not known before its end.
        self.length: Optional[int] = length if length != LENGTH_NOT_KNOWN else None
        if is_whole:
            self.is_whole = True

    @property
    def environ(self) -> Dict[str, str]:
        """The CGI variables, a new dict each time, values decoded as WSGI wants them (latin-1)."""
        words = self.block[STRINGS_AT:].decode("latin-1").split("\0")
        if len(words) != 2 * self._variables + 1:
            raise Malformed(f"request block of {self._variables} variables has {len(words)} words")
        pairs = iter(words)
        return dict(zip(pairs, pairs))

    def environ_on(self, base: Dict[str, Any]) -> Dict[str, Any]:
        """The variables together with those."""
        environ: Dict[str, Any] = self.environ
        environ.update(base)
        return environ

    @property
    def variables(self) -> List[bytes]:
        """Names and values in turn, as they came."""
        words = self.block[STRINGS_AT:].split(b"\0")
        if len(words) != 2 * self._variables + 1:
            raise Malformed(f"request block of {self._variables} variables has {len(words)} words")
        del words[-1]
        return words


E = TypeVar("E", bound=Incoming)


class Channel(Generic[E]):
    """Messages of the server in, state of requests out. Reads and writes nothing itself."""

    concurrency = 1
    data_window = 262144
    body_window = 65536
    is_greeted = False
    is_draining = False
    takes_files = False

    def __init__(self) -> None:
        self.exchanges: Dict[int, E] = {}
        self.replies: Dict[int, Tuple[int, str]] = {}
        self._rest = b""
        self._serial = 0

    def begun(self, ident: int, block: bytes, is_whole: bool) -> E:
        """Makes the state of a request that has arrived, and remembers that it waits."""
        raise NotImplementedError

    def changed(self, exchange: E) -> None:
        """A message for this request was taken."""
        raise NotImplementedError

    def replied(self) -> None:
        """The server answered a callout that belongs to no request."""

    def feed(self, data: bytes) -> None:
        """Takes what was read. Every whole message is acted upon, the rest is kept."""
        if self._rest:
            data = self._rest + data
            self._rest = b""
        at, size = 0, len(data)
        while size - at >= 16:
            length, kind, flags, small, ident, large = unpack(data, at)
            if kind != REQUEST or length > REQUEST_BYTES_MAX or flags > LAST:
                check_head(length, kind, flags, ident)
            begin = at + 16
            at = begin + length
            if at > size:
                self._rest = data[begin - 16 :]
                return
            if kind != REQUEST or not self.is_greeted:
                self._other(kind, flags, small, ident, large, memoryview(data)[begin:at])
            elif not ident or ident in self.exchanges:
                raise Malformed(f"a request with the number {ident}, which is zero or taken")
            else:
                self.exchanges[ident] = self.begun(ident, data[begin:at], flags & LAST != 0)
        if at != size:
            self._rest = data[at:]

    def _other(
        self, kind: int, flags: int, small: int, ident: int, large: int, payload: memoryview
    ) -> None:
        if kind == HELLO:
            self._hello(small, payload)
            return
        if not self.is_greeted:
            raise Malformed(f"message of kind {kind} before hello")
        if kind == DRAIN:
            self.is_draining = True
            return
        if kind == REPLY and not ident:
            self.replies[small] = reply_of(payload)
            self.replied()
            return
        exchange = self.exchanges.get(ident)
        if exchange is None:
            return  # late, for a request that is over
        if kind == BODY:
            if exchange.is_whole:
                raise Malformed(f"body after the end of the body of request {ident}")
            if payload:
                if exchange.pieces is None:
                    exchange.pieces = deque()
                exchange.pieces.append(payload)
            if flags & LAST:
                exchange.is_whole = True
        elif kind == WINDOW:
            exchange.granted += large
        elif kind == CANCEL:
            exchange.is_cancelled = True
        else:
            if exchange.replies is None:
                exchange.replies = {}
            exchange.replies[small] = reply_of(payload)
        self.changed(exchange)

    def _hello(self, version: int, payload: memoryview) -> None:
        if self.is_greeted:
            raise Malformed("a second hello")
        if version != VERSION:
            raise Malformed(f"the server speaks version {version}, this library {VERSION}")
        if len(payload) != hello_payload.size:
            raise Malformed(f"hello of {len(payload)} bytes")
        concurrency, flags, self.data_window, self.body_window, _ = hello_payload.unpack(payload)
        self.takes_files = bool(flags & TAKES_FILES) and self.data_window >= FILE_WINDOW_BYTES
        self.concurrency = max(1, concurrency)
        self.is_greeted = True

    def serial(self) -> int:
        """A number for a callout that waits for its reply."""
        self._serial = self._serial % 65535 + 1
        return self._serial


# Of each kind: its longest payload, its flags, whether it is about the worker (None: or a request).
_rules: Dict[int, Tuple[int, int, Optional[bool]]] = {
    HELLO: (PIECE_BYTES_MAX, 0, True),
    REQUEST: (REQUEST_BYTES_MAX, LAST, False),
    BODY: (PIECE_BYTES_MAX, LAST, False),
    CANCEL: (0, 0, False),
    WINDOW: (0, 0, False),
    REPLY: (PIECE_BYTES_MAX, 0, None),
    DRAIN: (0, 0, True),
}


def check_head(length: int, kind: int, flags: int, ident: int) -> None:
    """Refuses a message by its head, before its payload has come."""
    rule = _rules.get(kind)
    if rule is None:
        raise Malformed(f"a message of kind {kind}, which a server never sends")
    longest, allowed, is_about_worker = rule
    if length > longest:
        raise Malformed(f"a message of kind {kind} with {length} bytes, {longest} are allowed")
    if flags & ~allowed:
        raise Malformed(f"a message of kind {kind} with flags {flags:#x}")
    if is_about_worker is not None and is_about_worker != (ident == 0):
        raise Malformed(f"a message of kind {kind} for the request {ident}")


def reply_of(payload: memoryview) -> Tuple[int, str]:
    """Code and text of a reply, `200 text`."""
    code, _, text = str(payload, "utf-8", "replace").partition(" ")
    if len(code) != 3 or not code.isdigit():
        raise Malformed(f"a reply that begins with {code[:16]!r}")
    return int(code), text


def greeting(flags: int = 0) -> bytes:
    """The answer to hello: this library, over the stream."""
    return pack(len(LIBRARY), GREETING, flags, VERSION, 0, 1) + LIBRARY


def callout_message(ident: int, serial: int, text: str, flags: int) -> bytes:
    """A question to the server; control characters would end its line too early."""
    words = text.replace("\0", " ").encode("utf-8", "replace")[:PIECE_BYTES_MAX]
    return pack(len(words), CALLOUT, flags, serial, ident, 0) + words


def checked_status(status: int) -> int:
    """A status that ends a request."""
    if not 200 <= status <= 599:
        raise ValueError(f"status {status}: an answer has 200 to 599")
    return status


def checked_fields(fields: bytes) -> bytes:
    """Field lines that fit into one message."""
    if len(fields) > PIECE_BYTES_MAX:
        raise ValueError(f"{len(fields)} bytes of response fields, at most {PIECE_BYTES_MAX} fit")
    return fields


def field_lines(fields: Sequence[Tuple[str, str]]) -> bytes:
    """Fields as the lines of a head; what could forge another line is refused."""
    if not fields:
        return b""
    text = "\n".join(map(": ".join, fields)) + "\n"
    if text.count("\n") != len(fields) or "\r" in text or "\0" in text:
        raise ValueError("a line end or NUL in a response field")
    return text.encode("latin-1")


class Exchange(Incoming):
    """One request and its answer, with calls that wait."""

    has_begun = False
    _head: Optional[bytes] = None
    _looked = 0.0

    channel: Stream

    # The answer.

    def answer(self, status: int, fields: bytes, body: bytes) -> None:
        """A whole answer: one system call when it is small."""
        size = len(body)
        if not size:
            message = pack(len(fields), HEAD, LAST, status, self.ident, 0) + fields
        elif size <= PIECE_BYTES_MAX and size <= self.granted and len(fields) <= PIECE_BYTES_MAX:
            ident = self.ident
            head = pack(len(fields), HEAD, 0, status, ident, 0)
            message = b"".join((head, fields, pack(size, DATA, LAST, 0, ident, 0), body))
        else:
            self.head(status, fields)
            self.write(body, last=True)
            return
        if self.has_begun:
            raise RuntimeError("this request has its answer already")
        if len(fields) > PIECE_BYTES_MAX:
            checked_fields(fields)
        self.has_begun = self.is_over = True
        channel = self.channel
        channel.exchanges.pop(self.ident, None)
        channel.send(message)

    def head(self, status: int, fields: bytes) -> None:
        """Status and fields; they leave together with what is written next."""
        if self.has_begun:
            raise RuntimeError("this request has its answer already")
        checked_fields(fields)
        self.has_begun = True
        self._head = pack(len(fields), HEAD, 0, status, self.ident, 0) + fields

    def flush(self) -> None:
        """Sends a head that still waits for the first bytes."""
        head, self._head = self._head, None
        if head is not None:
            self.channel.send(head)

    def write(self, data: Any, *, last: bool = False) -> None:
        """Bytes of the answer. Waits while the client is slow; discards once it has left."""
        if self.is_over:
            raise RuntimeError("bytes after the end of an answer")
        if not self.has_begun:
            raise RuntimeError("bytes before the head of an answer")
        size = len(data)
        if not size and not last:
            return
        if size > PIECE_BYTES_MAX or size > self.granted - self.sent or self.is_cancelled:
            self._write_much(memoryview(data).cast("B"), last)
            return
        head, self._head = self._head, None
        if head is None and not last:
            self._look_now_and_then()
        self.sent += size
        message = pack(size, DATA, LAST if last else 0, 0, self.ident, 0)
        if last:
            self._forget()
        self.channel.send(b"".join((head or b"", message, data)))

    def _write_much(self, data: memoryview, last: bool) -> None:
        at, size = 0, len(data)
        head, self._head = self._head, None
        parts: List[Any] = [head] if head is not None else []
        while at < size and not self.is_cancelled:
            room = min(self.granted - self.sent, size - at, SENT_AT_ONCE_BYTES_MAX)
            if room <= 0:
                self.channel.send_parts(parts)
                parts = []
                self.channel.wait(self, self._may_write)
                continue
            self.sent += room
            stop = at + room
            while at < stop:
                piece = min(PIECE_BYTES_MAX, stop - at)
                flags = LAST if last and at + piece == size else 0
                parts.append(pack(piece, DATA, flags, 0, self.ident, 0))
                parts.append(data[at : at + piece])
                at += piece
            if last and at == size:
                self._forget()
            self.channel.send_parts(parts)
            parts = []
        self.channel.send_parts(parts)
        if last and not self.is_over:
            self.end()

    def send_file(self, file: int, offset: int, size: int, *, last: bool = False) -> None:
        """Bytes of a regular file that is open for reading, where `channel.takes_files` says so.

        The server reads them, as its client takes them: the file must stay as it is until then. The
        descriptor may be closed after the call.
        """
        if self.is_over or not self.has_begun:
            raise RuntimeError("a file before the head of an answer, or after its end")
        if self.granted - self.sent < FILE_WINDOW_BYTES and not self.is_cancelled:
            self.flush()
            self.channel.wait(self, self._may_send_file)
        if self.is_cancelled:
            if last:
                self.end()
            return
        head, self._head = self._head, None
        self.sent += FILE_WINDOW_BYTES
        message = pack(file_payload.size, FILE, LAST if last else 0, 0, self.ident, 0)
        if last:
            self._forget()
        self.channel.send_with((head or b"") + message + file_payload.pack(offset, size), file)

    def _may_send_file(self) -> bool:
        return self.granted - self.sent >= FILE_WINDOW_BYTES or self.is_cancelled

    def look(self) -> bool:
        """Whether the client has left, asked anew."""
        self.channel.look()
        return self.is_cancelled

    def _may_write(self) -> bool:
        return self.granted > self.sent or self.is_cancelled

    def _look_now_and_then(self) -> None:
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY_SECONDS:
            if self._looked:
                self.channel.look()
            self._looked = now

    def end(self, trailers: bytes = b"") -> None:
        """Ends the answer; a head that still waits goes before."""
        if self.is_over:
            return
        if not self.has_begun:
            raise RuntimeError("the end of an answer that has no head")
        head, self._head = self._head, None
        checked_fields(trailers)
        self._forget()
        if head is not None and not trailers:
            length, kind, flags, small, ident, large = unpack(head, 0)
            self.channel.send(pack(length, kind, flags | LAST, small, ident, large) + head[16:])
            return
        end = pack(len(trailers), END, LAST, 0, self.ident, 0) + trailers
        self.channel.send(end if head is None else head + end)

    def fail(self, reason: str) -> None:
        """Ends a request that cannot be answered: 500, or a broken answer if it had begun."""
        if self.is_over:
            return
        self._head = None
        self._forget()
        words = reason.encode("utf-8", "replace")[:PIECE_BYTES_MAX]
        self.channel.send(pack(len(words), END, LAST | FAILED, 0, self.ident, 0) + words)

    def info(self, status: int, fields: bytes = b"") -> None:
        """An informational answer (1xx) before the real one."""
        if not (status == 100 or 102 <= status <= 199):
            raise ValueError(f"status {status}: an informational answer has 100 to 199, not 101")
        if not self.has_begun:
            checked_fields(fields)
            self.channel.send(pack(len(fields), INFO, 0, status, self.ident, 0) + fields)

    def _forget(self) -> None:
        # Before the last message leaves: the server may use the number again at once.
        self.is_over = True
        self.channel.exchanges.pop(self.ident, None)

    # The body.

    def take(self, size: int) -> memoryview:
        """At most so many bytes of the body, waiting for the first; none at its end."""
        if not self.pieces and not self.is_whole:
            self.channel.wait(self, self._may_read)
        pieces = self.pieces
        if not pieces:
            if self.is_over and not self.is_whole:
                raise Cancelled("the answer is over: nothing more of its request comes")
            if not self.is_whole:
                raise Cancelled("the client left before its request was complete")
            return memoryview(b"")
        piece = pieces[0]
        if len(piece) > size:
            pieces[0] = piece[size:]
            piece = piece[:size]
        else:
            pieces.popleft()
        self._give_back(len(piece))
        return piece

    def _may_read(self) -> bool:
        return bool(self.pieces) or self.is_whole or self.is_cancelled or self.is_over

    def _give_back(self, size: int) -> None:
        if self.is_whole or self.is_over:
            return
        self.taken += size
        if 2 * self.taken >= self.channel.body_window:
            grant, self.taken = self.taken, 0
            self.channel.send(pack(0, BODY_WINDOW, 0, 0, self.ident, grant))

    # Questions to the server.

    def callout(self, text: str) -> Tuple[int, str]:
        """Asks the server (`KEYWORD: parameters`); code and text of its reply."""
        serial = self.channel.serial()
        self.channel.send(callout_message(self.ident, serial, text, 0))
        self.channel.wait(self, lambda: bool(self.replies) and serial in (self.replies or ()))
        assert self.replies is not None
        return self.replies.pop(serial)

    def tell(self, text: str) -> None:
        """A callout that wants no reply."""
        self.channel.send(callout_message(self.ident, 0, text, QUIET))


class Stream(Channel[Exchange]):
    """The socket, for as many threads as call it.

    One thread reads at a time, whichever waits first; what it reads for others wakes them. So there
    is no thread that only reads, and a program of one thread makes two system calls per request.
    """

    def __init__(self, sock: socket.socket) -> None:
        Channel.__init__(self)
        sock.setblocking(True)
        self._socket = sock
        self._lock = threading.Lock()  # guards all below, and every call of `feed`
        self._is_read = False
        self._is_gone = False
        self._ready: Deque[Exchange] = deque()
        self._idle: Deque[Waiter] = deque()
        self._blocked: Dict[Optional[Exchange], Deque[Waiter]] = {}
        self._sending = threading.Lock()
        self._greet()

    def accept(self) -> Optional[Exchange]:
        """The next request; None when the server wants no more from this worker."""
        with self._lock:
            try:
                while not self._ready:
                    if self.is_draining:
                        return None
                    self._turn(self._idle)
                return self._ready.popleft()
            finally:
                if self._idle or self._blocked:
                    self._pass_on()

    def wait(self, exchange: Optional[Exchange], is_met: Callable[[], bool]) -> None:
        """Returns when messages have made this true."""
        with self._lock:
            try:
                while not is_met():
                    self._turn(self._blocked.setdefault(exchange, deque()))
            finally:
                self._pass_on()

    def look(self) -> None:
        """Takes what has arrived already, without waiting."""
        if not self._lock.acquire(False):
            return
        try:
            if not self._is_read and not self._is_gone:
                data = self._socket.recv(READ_BYTES, socket.MSG_DONTWAIT)
                self._take(data)
                self._pass_on()
        except BlockingIOError:
            pass
        finally:
            self._lock.release()

    def send(self, message: bytes) -> None:
        """One whole message, or several in a row."""
        try:
            with self._sending:
                self._socket.sendall(message)
        except (BrokenPipeError, ConnectionResetError):
            raise Disconnected("the server has closed the socket") from None

    def send_with(self, message: bytes, file: int) -> None:
        """Messages of which the last names a file, together with its descriptor."""
        try:
            with self._sending:
                sent = socket.send_fds(self._socket, [message], [file])
                if sent < len(message):
                    self._socket.sendall(message[sent:])
        except (BrokenPipeError, ConnectionResetError):
            raise Disconnected("the server has closed the socket") from None

    def send_parts(self, parts: List[Any]) -> None:
        """The same from pieces that are not worth a copy. The list is used up."""
        if not parts:
            return
        try:
            with self._sending:
                sent = self._socket.sendmsg(parts)
                while True:
                    while parts and sent >= len(parts[0]):
                        sent -= len(parts.pop(0))
                    if not parts:
                        return
                    parts[0] = memoryview(parts[0])[sent:]
                    sent = self._socket.sendmsg(parts)
        except (BrokenPipeError, ConnectionResetError):
            raise Disconnected("the server has closed the socket") from None

    def callout(self, text: str) -> Tuple[int, str]:
        """A question about the worker itself, such as LIFETIME."""
        serial = self.serial()
        self.send(callout_message(0, serial, text, 0))
        self.wait(None, lambda: serial in self.replies)
        return self.replies.pop(serial)

    def begun(self, ident: int, block: bytes, is_whole: bool) -> Exchange:
        exchange = Exchange(self, ident, block, is_whole)
        self._ready.append(exchange)
        return exchange

    def changed(self, exchange: Exchange) -> None:
        if self._blocked:
            self._wake(exchange)

    def replied(self) -> None:
        self._wake(None)

    def _wake(self, exchange: Optional[Exchange]) -> None:
        for waiter in self._blocked.pop(exchange, ()):
            waiter.release()

    def forked(self) -> None:
        """In a forked child: the socket is its parent's alone."""
        self._is_gone = True
        self._lock = threading.Lock()
        self._socket.close()

    def _greet(self) -> None:
        # Descriptors for shared memory may come with hello: `recv` has no place for them, so the
        # kernel closes them.
        while not self.is_greeted:
            try:
                data = self._socket.recv(READ_BYTES)
            except ConnectionError:
                data = b""
            self._take(data)
        self.send(greeting(FILES if self.takes_files else 0))

    def _turn(self, waiters: Deque[Waiter]) -> None:
        """Reads once, or waits until another thread has read something of interest."""
        if self._is_gone:
            raise Disconnected("the server has closed the socket")
        if self._is_read:
            waiter = threading.Lock()
            waiter.acquire()
            waiters.append(waiter)
            self._lock.release()
            try:
                waiter.acquire()
            finally:
                self._lock.acquire()
            return
        self._is_read = True
        self._lock.release()
        try:
            data = self._socket.recv(READ_BYTES)
        except ConnectionError:
            data = b""
        finally:
            self._lock.acquire()
            self._is_read = False
        self._take(data)
        if self._idle:
            for _ in range(len(self._ready) - (1 if waiters is self._idle else 0)):
                if self._idle:
                    self._idle.popleft().release()

    def _take(self, data: bytes) -> None:
        if not data:
            self._is_gone = True
            raise Disconnected("the server has closed the socket")
        try:
            self.feed(data)
        except Malformed:
            self._is_gone = True
            raise

    def _pass_on(self) -> None:
        """Called by a thread that leaves: somebody else reads, or takes what is ready."""
        if self._idle and (self._ready or not self._is_read or self.is_draining):
            self._idle.popleft().release()
        elif self._blocked and not self._is_read:
            self._wake(next(iter(self._blocked)))


def opened(number: str) -> socket.socket:
    """The socket with this number (HOB_FD), which no child of ours shall have."""
    try:
        sock = socket.socket(fileno=int(number))
        sock.set_inheritable(False)
    except (ValueError, OSError) as error:
        raise NotOurs(f"HOB_FD={number} is no socket of the server: {error}") from None
    return sock


def attach(number: str) -> Stream:
    """The stream over that socket."""
    stream = Stream(opened(number))
    os.register_at_fork(after_in_child=stream.forked)
    return stream
