"""Runs an ASGI 3 application: many requests at a time on one event loop.

HTTP with streaming both ways, disconnects, trailers and early hints; WebSockets (websocket.py);
lifespan before the server is greeted, so that a start that fails is the reason the server shows.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Optional,
    Set,
    Tuple,
)

from .lifespan import VERSIONS, Application, Lifespan, Message, Scope
from .stream import (
    BODY_WINDOW,
    DATA,
    END,
    FAILED,
    HEAD,
    INFO,
    LAST,
    PIECE_BYTES_MAX,
    QUIET,
    READ_BYTES,
    TUNNEL,
    Cancelled,
    Channel,
    Disconnected,
    Incoming,
    Malformed,
    callout_message,
    checked_fields,
    checked_status,
    comes_of_leaving,
    greeting,
    pack,
    print_failure,
)

Pairs = Iterable[Iterable[bytes]]
Connection = Any  # a socket, or Server of _native.c

UNSENT_BYTES_MAX = 262144
NAMES_MAX = 1000


def serve(load: Callable[[], Application], connect: Callable[[], Connection]) -> None:
    """Answers requests until the server wants no more. Raises Disconnected when it is gone.

    The application is loaded with the loop running, which its module may want already. Only then,
    with its start behind it, the connection is made: a socket, or one of the native part's.
    """
    loop = new_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_serve(load, connect))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's if it is installed, else the standard library's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return made


async def _serve(load: Callable[[], Application], connect: Callable[[], Connection]) -> None:
    application = load()
    lifespan = Lifespan(application)
    await lifespan.start()
    connection = connect()
    if isinstance(connection, socket.socket):
        await Server(application, connection, lifespan.state).run()
    else:
        # Who has no native part does not load it.
        from .shared import Shared

        await Shared(application, connection, lifespan.state).run()
    await lifespan.end()


class Server(Channel["Call"]):
    """The socket on an event loop, and the requests that are under way."""

    def __init__(
        self, application: Application, sock: socket.socket, state: Optional[Dict[str, Any]]
    ) -> None:
        Channel.__init__(self)
        self.application = application
        self.state = state
        self.loop = asyncio.get_running_loop()
        self._socket = sock
        self._tasks: Set[asyncio.Task[None]] = set()
        self._ready: List[Call] = []
        self.websockets: Set[Any] = set()
        self._changed: Dict[Call, None] = {}
        self._unsent = bytearray()
        self._writers: List[asyncio.Future[None]] = []
        self._done: asyncio.Future[None] = self.loop.create_future()

    async def run(self) -> None:
        """Until the server drains this worker and the last request is through."""
        self._socket.setblocking(False)
        number = self._socket.fileno()
        self.loop.add_reader(number, self._read)
        try:
            await self._done
        finally:
            self.loop.remove_reader(number)
            self.loop.remove_writer(number)

    def send(self, message: bytes) -> None:
        """Whole messages, which leave at once or wait in memory."""
        if self._unsent:
            self._unsent += message
            return
        try:
            sent = self._socket.send(message)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            self._end(Disconnected("the server has closed the socket"))
            return
        if sent < len(message):
            self._unsent += message[sent:]
            self.loop.add_writer(self._socket.fileno(), self._write)

    async def room(self) -> None:
        """Waits while too much waits in memory already."""
        while len(self._unsent) > UNSENT_BYTES_MAX:
            writer = self.loop.create_future()
            self._writers.append(writer)
            await writer

    def begun(self, ident: int, block: bytes, is_whole: bool) -> Call:
        call = Call(self, ident, block, is_whole)
        self._ready.append(call)
        return call

    def changed(self, exchange: Call) -> None:
        exchange.wake()
        if exchange.change is not None:
            self._changed[exchange] = None

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._end(Disconnected("the server has closed the socket"))
            return
        was_greeted = self.is_greeted
        try:
            self.feed(data)
        except Malformed as error:
            self._end(error)
            return
        if not was_greeted and self.is_greeted:
            self.send(greeting())
        while self._changed:
            call, _ = self._changed.popitem()
            if call.change is not None:
                call.change()
        if self._ready:
            ready, self._ready = self._ready, []
            for call in ready:
                self._start(call)
        if self.is_draining:
            for one in list(self.websockets):
                one.go_away()
            self._check_end()

    def _start(self, call: Call) -> None:
        task = new_task(call.run(), self.loop)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self.is_draining:
            self._check_end()

    def _check_end(self) -> None:
        if not self._tasks and not self._unsent and not self._done.done():
            self._done.set_result(None)

    def _end(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)

    def _write(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except ConnectionError:
            self._end(Disconnected("the server has closed the socket"))
            return
        del self._unsent[:sent]
        if len(self._unsent) <= UNSENT_BYTES_MAX:
            writers, self._writers = self._writers, []
            for writer in writers:
                if not writer.done():
                    writer.set_result(None)
        if not self._unsent:
            self.loop.remove_writer(self._socket.fileno())
            if self.is_draining:
                self._check_end()


class Call(Incoming):
    """One request: the application's `receive` and `send`."""

    _is_started = False
    _is_body_taken = False
    _has_trailers = False
    _is_head = False
    _is_websocket = False
    _head: Optional[bytes] = None
    _waiters: Optional[List[asyncio.Future[None]]] = None
    #: Called when something has come for a tunnel.
    change: Optional[Callable[[], None]] = None

    channel: Server

    async def run(self) -> None:
        """The application, from its scope to its end, which may be long after the answer's."""
        try:
            scope = self._scope()
            if self._is_websocket:
                server = self.channel
                await serve_websocket(server.application, Tunnel(self), scope, server.websockets)
            else:
                await self.channel.application(scope, self.receive, self.send)
            if not self.is_over and not self.is_cancelled:
                print("hob: the application ended before its answer was complete", file=sys.stderr)
                self._fail("the application ended before its answer was complete")
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            if not (self.is_cancelled and comes_of_leaving(error)):
                print_failure(self, error, is_one_of_many=self.channel.concurrency > 1)
            self._fail(reason)
        finally:
            if not self.is_over:
                self._fail("the client left" if self.is_cancelled else "stopped")

    async def receive(self) -> Message:
        """The next piece of the body; after it, the client's leaving or the answer's end."""
        while True:
            if self.is_cancelled or self.is_over:
                return {"type": "http.disconnect"}
            pieces = self.pieces
            if pieces:
                body = bytes(pieces.popleft()) if len(pieces) == 1 else b"".join(pieces)
                pieces.clear()
                self._is_body_taken = self.is_whole
                self._give_back(len(body))
                return {"type": "http.request", "body": body, "more_body": not self.is_whole}
            if self.is_whole and not self._is_body_taken:
                self._is_body_taken = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await self._change()

    async def send(self, message: Message) -> None:
        """Start, body or trailers of the answer. Raises an OSError once the client has left."""
        kind = message["type"]
        if self.is_cancelled:
            raise Cancelled("the client has left")
        if kind == "http.response.body":
            if not self._is_started:
                raise RuntimeError("http.response.body before http.response.start")
            body = message.get("body", b"")
            await self._body(body, bool(message.get("more_body", False)))
        elif kind == "http.response.start":
            self._begin(message)
        elif kind == "http.response.trailers":
            self._trailers(message)
        elif kind == "http.response.early_hint":
            self._hint(message)
        else:
            raise RuntimeError(f"a message of type {kind!r}, which is not of HTTP")

    async def callout(self, text: str) -> Tuple[int, str]:
        """Asks the server (`KEYWORD: parameters`); code and text of its reply."""
        serial = self.channel.serial()
        self.channel.send(callout_message(self.ident, serial, text, 0))
        while not (self.replies and serial in self.replies):
            await self._change()
        return self.replies.pop(serial)

    def tell(self, text: str) -> None:
        """A callout that wants no reply."""
        self.channel.send(callout_message(self.ident, 0, text, QUIET))

    def wake(self) -> None:
        """Something has arrived for this request, or it is over."""
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    async def _change(self) -> None:
        waiter = self.channel.loop.create_future()
        if self._waiters is None:
            self._waiters = []
        self._waiters.append(waiter)
        await waiter

    def _begin(self, message: Message) -> None:
        if self._is_started:
            raise RuntimeError("a second http.response.start")
        status = checked_status(message["status"])
        fields = field_lines(message.get("headers", ()))
        self._has_trailers = bool(message.get("trailers", False))
        self._is_head = self._is_head or status in (204, 304)
        self._head = pack(len(fields), HEAD, 0, status, self.ident, 0) + fields
        self._is_started = True

    async def _body(self, body: bytes, is_more: bool) -> None:
        if self.is_over:
            if self._is_head:
                return
            raise RuntimeError("http.response.body after the end of the answer")
        last = LAST if not (is_more or self._has_trailers) else 0
        if self._is_head or (last and not body and self._head is not None):
            self._finish_head()
            return
        size = len(body)
        if size > PIECE_BYTES_MAX or size > self.granted - self.sent:
            await self._body_much(memoryview(body), last)
            return
        head, self._head = self._head, None
        if not (size or last):
            if head is not None:
                self.channel.send(head)
            return
        self.sent += size
        data = pack(size, DATA, last, 0, self.ident, 0)
        if last:
            self._forget()
        server = self.channel
        server.send(b"".join((head, data, body)) if head is not None else data + body)
        if server._unsent:
            await server.room()

    async def _body_much(self, body: memoryview, last: int) -> None:
        at, size, server = 0, len(body), self.channel
        head, self._head = self._head, None
        if head is not None:
            server.send(head)
        while at < size:
            if self.is_cancelled:
                raise Cancelled("the client has left")
            step = min(PIECE_BYTES_MAX, size - at, self.granted - self.sent)
            if step <= 0:
                await self._change()
                continue
            self.sent += step
            flags = last if at + step == size else 0
            if flags:
                self._forget()
            server.send(b"".join((pack(step, DATA, flags, 0, self.ident, 0), body[at : at + step])))
            at += step
            await server.room()

    def _finish_head(self) -> None:
        """The head is the whole answer."""
        head, self._head = self._head, None
        assert head is not None
        self._forget()
        self.channel.send(head[:5] + bytes((LAST,)) + head[6:])

    def _trailers(self, message: Message) -> None:
        if not self._has_trailers:
            raise RuntimeError("http.response.trailers that the start did not announce")
        if not self.is_over and not message.get("more_trailers", False):
            self._end(field_lines(message.get("headers", ())))

    def _hint(self, message: Message) -> None:
        if not (self._is_started or self.is_over):
            fields = field_lines([(b"Link", link) for link in message["links"]])
            self.channel.send(pack(len(fields), INFO, 0, 103, self.ident, 0) + fields)

    def _end(self, trailers: bytes) -> None:
        head, self._head = self._head, None
        self._forget()
        end = pack(len(trailers), END, LAST, 0, self.ident, 0) + trailers
        self.channel.send(end if head is None else head + end)

    def _fail(self, reason: str) -> None:
        if not self.is_over:
            self._forget()
            words = reason.encode("utf-8", "replace")[:PIECE_BYTES_MAX]
            self.channel.send(pack(len(words), END, LAST | FAILED, 0, self.ident, 0) + words)

    def _forget(self) -> None:
        # Before the last message leaves: the server may use the number again at once.
        self.is_over = True
        self.channel.exchanges.pop(self.ident, None)
        if self._waiters:
            self.wake()

    def _give_back(self, size: int) -> None:
        if self.is_whole:
            return
        self.taken += size
        if 2 * self.taken >= self.channel.body_window:
            grant, self.taken = self.taken, 0
            self.channel.send(pack(0, BODY_WINDOW, 0, 0, self.ident, grant))

    def _scope(self) -> Scope:
        words = self.variables
        pairs = iter(words)
        found = dict(zip(pairs, pairs))
        names = _names
        get = found.get
        method = found[b"REQUEST_METHOD"].decode("latin-1")
        self._is_head = method == "HEAD"
        if b"HOB_TUNNEL" in found:
            self._is_websocket = found[b"HOB_TUNNEL"].lower() == b"websocket"
        root = get(b"SCRIPT_NAME", b"").decode("utf-8", "replace")
        client = get(b"REMOTE_ADDR")
        protocol = get(b"SERVER_PROTOCOL", b"HTTP/1.1")
        scope = {
            "type": "http",
            "asgi": VERSIONS,
            "http_version": _versions.get(protocol) or protocol[5:].decode("latin-1"),
            "method": method,
            "scheme": get(b"REQUEST_SCHEME", b"http").decode("latin-1"),
            "path": root + get(b"PATH_INFO", b"").decode("utf-8", "replace"),
            "raw_path": get(b"REQUEST_URI", b"").partition(b"?")[0],
            "query_string": get(b"QUERY_STRING", b""),
            "root_path": root,
            "headers": [(name, value) for key, value in found.items() if (name := names[key])],
            "client": client and (client.decode("latin-1"), _number(get(b"REMOTE_PORT"))),
            "server": (get(b"SERVER_NAME", b"").decode("latin-1"), _number(get(b"SERVER_PORT"))),
            "extensions": {
                "http.response.trailers": {},
                "http.response.early_hint": {},
                "hob": {"exchange": self},
            },
        }
        if self.channel.state is not None:
            scope["state"] = self.channel.state.copy()
        return scope


async def serve_websocket(
    application: Application, pipe: Any, scope: Scope, among: Set[Any]
) -> None:
    """A connection from its handshake to its end. Who has none does not load what they need."""
    from . import websocket

    await websocket.serve(application, pipe, scope, among)


class Tunnel:
    """The bytes of a Call that has become a tunnel (websocket.Pipe)."""

    def __init__(self, call: Call) -> None:
        self._call = call

    unframe = None

    def open(self, fields: Pairs, change: Callable[[], None]) -> None:
        call, lines = self._call, field_lines(fields)
        call._is_started = True
        call.change = change
        # Bytes come for a request that had no body.
        call.is_whole = call.is_whole and call.length is None
        call.channel.send(pack(len(lines), HEAD, TUNNEL, 101, call.ident, 0) + lines)

    async def refuse(self, status: int, fields: Pairs, body: bytes) -> None:
        self._call._begin({"status": status, "headers": fields})
        await self._call._body(body, False)

    def take(self) -> Optional[bytes]:
        call = self._call
        if call.is_cancelled or call.is_over:
            return b""
        if call.pieces:
            data = b"".join(call.pieces)
            call.pieces.clear()
            call._give_back(len(data))
            return data
        return b"" if call.is_whole else None

    def write_now(self, data: bytes) -> int:
        call, server = self._call, self._call.channel
        if call.is_cancelled or call.is_over:
            raise Cancelled("the client has left")
        size: int = (
            0 if server._unsent else min(len(data), PIECE_BYTES_MAX, call.granted - call.sent)
        )
        if size > 0:
            call.sent += size
            server.send(pack(size, DATA, 0, 0, call.ident, 0) + data[:size])
        return size

    async def write(self, data: bytes) -> None:
        if self._call.is_cancelled or self._call.is_over:
            raise Cancelled("the client has left")
        await self._call._body(data, True)

    def end(self) -> None:
        if not self._call.is_over:
            self._call._end(b"")


class Names(Dict[bytes, bytes]):
    """Field names by variable, remembered; empty for a variable that is none."""

    def __missing__(self, variable: bytes) -> bytes:
        name = b""
        if variable.startswith(b"HTTP_"):
            name = variable[5:].lower().replace(b"_", b"-")
        elif variable in (b"CONTENT_TYPE", b"CONTENT_LENGTH"):
            name = variable.lower().replace(b"_", b"-")
        if len(self) < NAMES_MAX:
            self[variable] = name
        return name


_names = Names()


def field_lines(fields: Pairs) -> bytes:
    """Fields as the lines of a head; what could forge another line is refused."""
    pairs = list(map(b": ".join, fields))
    if not pairs:
        return b""
    text = b"\n".join(pairs) + b"\n"
    if text.count(b"\n") != len(pairs) or b"\r" in text or b"\0" in text:
        raise ValueError("a line end or NUL in a response field")
    return checked_fields(text)


_versions = {
    b"HTTP/1.1": "1.1",
    b"HTTP/2": "2",
    b"HTTP/2.0": "2",
    b"HTTP/3": "3",
    b"HTTP/3.0": "3",
}


def _number(text: Optional[bytes]) -> int:
    return int(text) if text is not None and text.isdigit() else 0


if sys.version_info >= (3, 12):

    def new_task(run: Any, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
        """A task that runs at once as far as it can: short answers never reach the loop."""
        return asyncio.Task(run, loop=loop, eager_start=True)

else:

    def new_task(run: Any, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
        """A task."""
        return loop.create_task(run)
