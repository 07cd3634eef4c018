"""WebSockets of an ASGI application: the handshake, the messages, and their end.

What carries the bytes is a Pipe: a tunnel of the stream (asgi.py), or of the native part. It tells
when something has come; then pings are answered and the end is heard of while the application does
something else, and an application that waits for a message goes on at once.

HOB_WEBSOCKET_MESSAGE_MAX: bytes of the longest message that is taken (16 MiB), else 1009.
HOB_WEBSOCKET_PING: seconds between two pings (60); who does not answer one in that time is given
up. 0 is none: then a connection ends that is silent for the server's `timeout.tunnel`.
HOB_WEBSOCKET_DEFLATE: bytes from which on a message is compressed (256), where the client offers
that. 0 is no compression at all.
"""

from __future__ import annotations

import asyncio
import binascii
from collections import deque
from typing import (
    TYPE_CHECKING,
    Any,
    Awaitable,
    Callable,
    Deque,
    Dict,
    Iterable,
    List,
    Optional,
    Protocol,
    Set,
    Tuple,
)

from .bell import Bell
from .frames import (
    ABNORMAL,
    BINARY,
    CLOSE,
    CODES,
    COMPRESSED,
    GOING_AWAY,
    INTERNAL,
    NO_STATUS,
    NORMAL,
    PING,
    PONG,
    RESTART,
    TEXT,
    Event,
    Fault,
    Frames,
    Unframe,
    close_frame,
    frame,
    number_of,
)
from .lifespan import Message, Scope
from .stream import Cancelled, comes_of_leaving

if TYPE_CHECKING:
    from .deflate import Deflate

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Pairs = Iterable[Tuple[bytes, bytes]]

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
PING_SECONDS = 60
# What is shorter fits into one packet anyway.
DEFLATE_BYTES_MIN = 256
# So much waits for an application that does not receive; then the client has to wait, too.
WAITING_BYTES_MAX = 65536
# What a message of nothing is counted as: it is an object that waits, too.
MESSAGE_BYTES_MIN = 256
# How long the client may take to answer a close frame.
CLOSE_SECONDS = 10.0
# RFC 6455 section 1.3.
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Pipe(Protocol):
    """Bytes both ways, once it is open."""

    #: Of the native part, where that carries them.
    unframe: Optional[Unframe]

    def open(self, fields: Pairs, change: Callable[[], None]) -> None:
        """Opens it; `change` is called whenever there may be something to take."""
        ...

    async def refuse(self, status: int, fields: Pairs, body: bytes) -> None: ...
    def take(self) -> Optional[bytes]:
        """What has come; nothing once the client has ended or left, None while more may come."""
        ...

    def write_now(self, data: bytes) -> int:
        """Sends as much as finds room; how many bytes."""
        ...

    async def write(self, data: bytes) -> None: ...
    def end(self) -> None: ...


def fault_of(scope: Scope) -> int:
    """The status for a handshake that is none; 0 where it is good."""
    fields: Dict[bytes, bytes] = dict(scope["headers"])
    if fields.get(b"sec-websocket-version") != b"13":
        return 426
    if scope["method"] == "CONNECT":
        return 0
    try:
        key = binascii.a2b_base64(fields.get(b"sec-websocket-key", b""))
    except ValueError:
        key = b""
    return 0 if scope["method"] == "GET" and len(key) == 16 else 400


def scope_of(scope: Scope) -> Scope:
    """The scope of a WebSocket, made of one of HTTP."""
    fields: Dict[bytes, bytes] = dict(scope["headers"])
    offered = fields.get(b"sec-websocket-protocol", b"").decode("latin-1").split(",")
    made = dict(scope)
    made.pop("method")
    made["type"] = "websocket"
    made["scheme"] = "wss" if scope["scheme"] == "https" else "ws"
    made["subprotocols"] = [name.strip() for name in offered if name.strip()]
    made["extensions"] = {
        "websocket.http.response": {},
        "hob": scope["extensions"]["hob"],
    }
    return made


def accept_of(key: bytes) -> bytes:
    """The value of Sec-WebSocket-Accept."""
    from hashlib import sha1  # which brings a large library along

    return binascii.b2a_base64(sha1(key + GUID).digest(), newline=False)


async def serve(application: Application, pipe: Pipe, scope: Scope, among: Set[WebSocket]) -> None:
    """One connection, from its handshake to its end. It is among the others meanwhile."""
    status = fault_of(scope)
    if status:
        await pipe.refuse(status, [(b"Sec-WebSocket-Version", b"13")], b"")
        return
    one = WebSocket(pipe, scope_of(scope))
    among.add(one)
    try:
        await one.run(application)
    except Exception as error:
        if not comes_of_leaving(error):
            raise
    finally:
        among.discard(one)


class WebSocket:
    """One connection: the application's `receive` and `send`."""

    def __init__(self, pipe: Pipe, scope: Scope) -> None:
        self._pipe = pipe
        self._scope = scope
        self._loop = asyncio.get_running_loop()
        most = number_of("HOB_WEBSOCKET_MESSAGE_MAX", MESSAGE_BYTES_MAX)
        self._deflate: Optional[Deflate] = None
        self._deflate_bytes_min = number_of("HOB_WEBSOCKET_DEFLATE", DEFLATE_BYTES_MIN)
        self._message_bytes_max = most
        self._frames = Frames(most, None, pipe.unframe)
        self._ping_seconds = number_of("HOB_WEBSOCKET_PING", PING_SECONDS)
        self._waiting: Deque[Message] = deque([{"type": "websocket.connect"}])
        self._waiting_bytes = _size(self._waiting[0])
        #: Rung when a message, or the end, waits.
        self._news = Bell(self._loop)
        #: Nothing is taken while a ping is answered, or too much waits.
        self._is_answering = self._is_full = False
        #: Who writes what did not find room at once, one behind the other.
        self._writing = asyncio.Lock()
        self._writer_count = 0
        self._tasks: Set[asyncio.Task[None]] = set()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._pinger: Optional[asyncio.TimerHandle] = None
        self._is_answered = True
        self._is_accepted = False
        self._refusal: Optional[Tuple[int, List[Tuple[bytes, bytes]], List[bytes]]] = None
        #: A close frame, or the refusal, has left: the application may send no more.
        self._has_closed = False
        #: Nothing more comes from the client.
        self._has_ended = False
        #: What the close frame says, whatever the application does on hearing of the end.
        self._why: Optional[Tuple[int, str]] = None

    async def run(self, application: Application) -> None:
        """The application, from its scope to the end of the connection. Raises what it raises."""
        try:
            await application(self._scope, self.receive, self.send)
            if not self._is_accepted and not self._has_closed and not self._has_ended:
                raise RuntimeError("the application ended before it accepted or refused")
        except BaseException:
            if self._is_accepted:
                await self._close(INTERNAL, "")
            raise
        else:
            await self._close(NORMAL, "")
        finally:
            await self._finish()

    async def receive(self) -> Message:
        """The next message; after the last one the disconnect, again and again."""
        while not self._waiting:
            if self._has_ended or (self._has_closed and not self._is_accepted):
                return {"type": "websocket.disconnect", "code": ABNORMAL, "reason": ""}
            await self._news
        message = self._waiting[0]
        if message["type"] != "websocket.disconnect":
            self._waiting.popleft()
            self._waiting_bytes -= _size(message)
            if self._is_full and not self._waiting:
                # Soon, so that others have their turn between.
                self._loop.call_soon(self._resume)
        return message

    async def send(self, message: Message) -> None:
        """Accept, a message, close, or an answer in place of them."""
        kind = message["type"]
        if not self._is_accepted:
            await self._begin(kind, message)
        elif kind == "websocket.send":
            if self._has_ended:
                raise Cancelled("the connection is closed")
            data = message.get("bytes")
            if data is not None:
                kind_of_frame, data = BINARY, bytes(data)
            else:
                kind_of_frame, data = TEXT, message["text"].encode()
            rest = None if self._writer_count else self._write_now(kind_of_frame, data)
            if rest is None or rest:
                await self._write_behind(kind_of_frame, data, rest)
        elif kind == "websocket.close":
            await self._close(message.get("code", NORMAL), message.get("reason") or "")
        else:
            raise RuntimeError(f"a message of type {kind!r} after the connection was accepted")

    def go_away(self) -> None:
        """No more requests come: the client is asked to come again, to another process."""
        if self._is_accepted:
            self._close_soon(RESTART, "")

    async def _begin(self, kind: str, message: Message) -> None:
        """What the application says first."""
        if self._has_closed or self._has_ended:
            raise Cancelled("the client has left, or was refused")
        if kind == "websocket.accept":
            self._accept(message)
        elif kind == "websocket.close":
            self._has_closed = True
            await self._pipe.refuse(403, [], b"")
        elif kind == "websocket.http.response.start":
            fields = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
            self._refusal = (message["status"], fields, [])
        elif kind == "websocket.http.response.body" and self._refusal is not None:
            status, fields, pieces = self._refusal
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._has_closed = True
                await self._pipe.refuse(status, fields, b"".join(pieces))
        else:
            raise RuntimeError(f"a message of type {kind!r} before the connection was accepted")

    def _accept(self, message: Message) -> None:
        fields = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        key = dict(self._scope["headers"]).get(b"sec-websocket-key")
        if key is not None and self._scope["http_version"] == "1.1":
            fields.append((b"Sec-WebSocket-Accept", accept_of(key)))
        if message.get("subprotocol"):
            fields.append((b"Sec-WebSocket-Protocol", message["subprotocol"].encode("latin-1")))
        self._agree(fields)
        self._is_accepted = True
        self._pipe.open(fields, self._change)
        self._wait_for_pong()
        self._take()

    def _agree(self, fields: List[Tuple[bytes, bytes]]) -> None:
        """Looks whether messages are compressed, and says so."""
        field = b"sec-websocket-extensions"
        offers = [value for name, value in self._scope["headers"] if name == field]
        is_said = any(name.lower() == field for name, _ in fields)
        if not offers or is_said or not self._deflate_bytes_min:
            return
        from . import deflate  # few programs need it

        agreed = deflate.agree(b",".join(offers).decode("latin-1"))
        if agreed is not None:
            fields.append((b"Sec-WebSocket-Extensions", agreed.field()))
            self._deflate = deflate.Deflate(agreed)
            self._frames = Frames(self._message_bytes_max, self._deflate, self._pipe.unframe)

    def _change(self) -> None:
        """Something has come. Not from within a task: an application that waits goes on at once."""
        self._take()
        if self._waiting:
            self._news.ring()

    def _resume(self) -> None:
        """There is room again."""
        self._is_full = False
        self._change()

    def _take(self) -> None:
        """Takes what the client has sent, as far as there is room for it."""
        try:
            while not (self._has_ended or self._is_answering or self._is_full):
                event = self._frames.next()
                if event is not None:
                    self._handle(event)
                    self._is_full = self._waiting_bytes > WAITING_BYTES_MAX
                    continue
                data = self._pipe.take()
                if data is None:
                    break
                if not data:
                    self._end(ABNORMAL, "")
                self._is_answered = True
                self._frames.add(data)
        except Fault as fault:
            self._close_soon(fault.code, str(fault))
        except ConnectionError:
            self._end(ABNORMAL, "")

    def _handle(self, event: Event) -> None:
        kind, data, code = event
        if kind in (TEXT, BINARY):
            name = "text" if kind == TEXT else "bytes"
            message: Message = {"type": "websocket.receive", name: data}
            self._waiting.append(message)
            self._waiting_bytes += _size(message)
        elif kind == PING:
            assert isinstance(data, bytes)
            if not self._has_closed:
                self._is_answering = True
                self._spawn(self._answer(data))
        elif kind == CLOSE:
            self._close_soon(NORMAL if code == NO_STATUS else code, "", heard=(code, str(data)))

    async def _answer(self, data: bytes) -> None:
        """Answers a ping, and goes on taking what came behind it."""
        try:
            await self._write_behind(PONG, data)
        except ConnectionError:
            self._end(ABNORMAL, "")
        self._is_answering = False
        self._take()
        if self._waiting:
            self._news.ring_soon()

    def _close_soon(self, code: int, reason: str, heard: Optional[Tuple[int, str]] = None) -> None:
        """Says so in the close frame, also where the application hears of the end (of what was
        `heard`, or the same) and ends before that has left."""
        self._why = self._why or (code, reason)
        self._end(*(heard or (code, reason)))
        self._spawn(self._close(code, reason))

    def _end(self, code: int, reason: str) -> None:
        """Nothing more comes: the application hears of it once."""
        if self._has_ended:
            return
        self._has_ended = True
        self._waiting.append({"type": "websocket.disconnect", "code": code, "reason": reason})
        self._news.ring_soon()
        if not self._ended.done():
            self._ended.set_result(None)

    def _write_now(self, kind: int, data: bytes) -> bytes:
        """Sends a message at once, as far as there is room; what is left of its frame."""
        if self._has_closed:
            raise Cancelled("the connection is closed")
        # In the order in which they leave: what one says may point back to the one before.
        if self._deflate is not None and kind < CLOSE and len(data) >= self._deflate_bytes_min:
            kind, data = kind | COMPRESSED, self._deflate.compress(data)
        whole = frame(kind, data)
        return whole[self._pipe.write_now(whole) :]

    async def _write_behind(self, kind: int, data: bytes, rest: Optional[bytes] = None) -> None:
        """Sends a message behind those that others are sending, or what is left of its frame."""
        self._writer_count += 1
        try:
            # Who has begun a frame is the first here, and goes on without a pause.
            async with self._writing:
                if rest is None:
                    rest = self._write_now(kind, data)
                if rest:
                    await self._pipe.write(rest)
        finally:
            self._writer_count -= 1

    async def _close(self, code: int, reason: str) -> None:
        """Sends a close frame, if none was sent."""
        if self._has_closed or not self._is_accepted:
            return
        if self._why is not None:
            code, reason = self._why
        if code not in CODES:
            code = NORMAL
        self._writer_count += 1
        try:
            async with self._writing:
                if self._has_closed:
                    return
                self._has_closed = True
                await self._pipe.write(close_frame(code, reason))
        except ConnectionError:
            self._end(ABNORMAL, "")
        finally:
            self._writer_count -= 1
        # One that does not answer it is not waited for.
        self._loop.call_later(CLOSE_SECONDS, self._end, ABNORMAL, "")

    async def _finish(self) -> None:
        """The client's close frame is waited for, but not for long; then both sides end."""
        if self._pinger is not None:
            self._pinger.cancel()
        if not self._is_accepted:
            return
        # Nobody takes the messages that come before it.
        self._frames.skip_messages()
        self._waiting_bytes, self._is_full = 0, False
        self._take()
        await asyncio.wait([self._ended], timeout=CLOSE_SECONDS)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()
        self._pipe.end()

    def _wait_for_pong(self) -> None:
        if self._ping_seconds:
            self._pinger = self._loop.call_later(self._ping_seconds, self._ping)

    def _ping(self) -> None:
        if self._has_ended or self._has_closed:
            return
        if not self._is_answered:
            why = "no answer to a ping"
            self._close_soon(GOING_AWAY, why, heard=(ABNORMAL, why))
            return
        self._is_answered = False
        self._spawn(self._write_ping())
        self._wait_for_pong()

    async def _write_ping(self) -> None:
        try:
            await self._write_behind(PING, b"")
        except ConnectionError:
            self._end(ABNORMAL, "")

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)  # the loop alone would forget it
        task.add_done_callback(self._tasks.discard)


def _size(message: Message) -> int:
    return MESSAGE_BYTES_MIN + len(message.get("text") or message.get("bytes") or b"")
