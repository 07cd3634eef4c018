"""ASGI over the native part: most requests are answered in _asgi.c, the rest is seen to here."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from typing import Any, Awaitable, Callable, Dict, List, Optional, Set, Tuple

from . import native
from .asgi import Pairs, field_lines, serve_websocket
from .bell import Bell
from .lifespan import VERSIONS, Application, Message, Scope
from .stream import (
    Cancelled,
    Disconnected,
    Malformed,
    checked_status,
    comes_of_leaving,
    print_failure,
)

# So many requests are answered before the loop sees to other things.
REQUESTS_PER_TURN_MAX = 64
# So often it is looked for more before the same.
LOOKS_PER_TURN_MAX = 4
# In place of a request's number: room for more of an answer.
ROOM = -1


class Shared:
    """The native part's connection on an event loop, and the requests that are under way.

    One task, the leader, has _asgi.c run application after application, for as long as none of them
    has to wait. When one does, the task is that request's from then on, and another one leads.

    A request is a Call of _asgi.c, whose `receive` and `send` do at once what needs no waiting. All
    else comes here: whoever waits looks again whenever something has come.
    """

    def __init__(
        self, application: Application, connection: Any, state: Optional[Dict[str, Any]]
    ) -> None:
        self._connection = connection
        self._application = application
        self._websockets: Set[Any] = set()
        self._concurrency: int = connection.concurrency
        self._loop = asyncio.get_running_loop()
        base: Scope = {"type": "http", "asgi": VERSIONS}
        extensions: Dict[str, Any] = {
            "http.response.trailers": {},
            "http.response.early_hint": {},
            "hob": None,
        }
        context = contextvars.copy_context()
        self._turn_words = (self, application, base, extensions, state, context)
        self._leaders: Set[asyncio.Task[None]] = set()
        self._bell = Bell(self._loop)
        #: Who waits for something to come for a request, by its number, or for room.
        self._waiters: Dict[int, List[asyncio.Future[None]]] = {}
        #: What takes what has come for a tunnel.
        self._tunnels: Dict[int, Callable[[], None]] = {}
        self._paused_count = 0
        self._is_full = False
        self._is_draining = False
        self._is_resting = self._is_turning = False
        self._done: asyncio.Future[None] = self._loop.create_future()

    async def run(self) -> None:
        """Until the server drains this worker and the last request is through."""
        number = self._connection.fd
        self._loop.add_reader(number, self._turn)
        self._begin_leader()
        try:
            await self._done
        finally:
            self._loop.remove_reader(number)

    def _turn(self) -> None:
        """Something has come: the leader takes requests up, and who waits looks again."""
        self._is_turning = True
        try:
            if not self._is_awaited():
                self._bell.ring()
                if not (self._is_full or self._is_draining or self._is_awaited()):
                    return  # the leader found nothing more, which is what lets us sleep
            for _ in range(LOOKS_PER_TURN_MAX):
                changed = self._connection.look()
                if changed is None:
                    return
                for number in changed:
                    self._tell(number)
                # What has come may be room, for anybody.
                self._wake(ROOM)
                if self._websockets and self._connection.is_draining:
                    for one in list(self._websockets):
                        one.go_away()
            self._is_resting = True
            self._loop.call_soon(self._rest)
        except (Disconnected, Malformed) as error:
            self._end(error)
        finally:
            self._is_turning = False

    def _is_awaited(self) -> bool:
        """Whether anybody waits for what comes for a request that is under way."""
        return bool(self._waiters or self._tunnels)

    def _tell(self, number: int) -> None:
        """Something has come for a request; 0 is one to be taken up."""
        if number == 0:
            self._bell.ring()
        elif number in self._tunnels:
            self._tunnels[number]()
        else:
            self._wake(number)

    def _wake(self, number: int) -> None:
        """Who waits for something to come for a request looks again."""
        for waiter in self._waiters.pop(number, ()):
            if not waiter.done():
                waiter.set_result(None)

    def _rest_of_turn(self) -> None:
        """Taking requests up may take in what others wait for, and forgets the room they want."""
        if self._is_awaited():
            self._rest_soon()

    def _begin_leader(self) -> None:
        self._is_full = False
        self._leaders.add(asyncio.Task(self._lead(), loop=self._loop))

    async def _lead(self) -> None:
        """Requests, one after the other, until this task is one request's or no more come."""
        task = asyncio.current_task()
        assert task is not None
        serve, words = self._connection.serve, (*self._turn_words, task, REQUESTS_PER_TURN_MAX)
        try:
            while (found := serve(*words)) is None:
                self._rest_of_turn()
                await self._bell
            self._rest_of_turn()
            if found is False:
                self._is_draining = True
            elif found is True:
                self._begin_leader()
            else:
                await self._finish(found)
        except (Disconnected, Malformed) as error:
            self._end(error)
        finally:
            self._leaders.discard(task)
            self._check_end()

    async def _finish(self, paused: Any) -> None:
        """The rest of a request whose application waits."""
        self._paused_count += 1
        if self._paused_count < self._concurrency:
            self._begin_leader()
        else:
            self._is_full = True
        is_told = False
        try:
            await paused
        except BaseException as error:
            is_told = True
            if self.ended(paused.call, error) or isinstance(error, asyncio.CancelledError):
                raise
        finally:
            if not is_told:
                self.ended(paused.call, None)
            self._paused_count -= 1
            self._rest_of_turn()
            if self._is_full and not self._is_draining:
                self._begin_leader()

    async def _change(self, call: Any, *, is_for_room: bool = False) -> None:
        """Waits until something has come for a request, or its answer is over; or for room."""
        waiter = self._loop.create_future()
        number = ROOM if is_for_room else call.exchange.number
        self._waiters.setdefault(number, []).append(waiter)
        self._rest_soon()
        call.is_awaited = True
        await waiter

    def _rest_soon(self) -> None:
        """Calls outside of a turn may have taken in what others wait for, and the bell with it."""
        if not (self._is_resting or self._is_turning):
            self._is_resting = True
            self._loop.call_soon(self._rest)

    def _rest(self) -> None:
        """Before the loop sleeps: what has come meanwhile is looked at, and the bell is on."""
        self._is_resting = False
        self._turn()

    def _check_end(self) -> None:
        if self._is_draining and not self._leaders and not self._done.done():
            self._done.set_result(None)

    def _end(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)

    # These are called by the native part, too.

    async def awaiting(self, awaitable: Awaitable[None]) -> None:
        """A coroutine, where an application has given another thing to be awaited."""
        await awaitable

    async def websocket(self, call: Any, scope: Scope) -> None:
        """A request that asks for a WebSocket."""
        pipe = SharedTunnel(self, call)
        await serve_websocket(self._application, pipe, scope, self._websockets)

    def ended(self, call: Any, error: Optional[BaseException]) -> bool:
        """What an application left undone is done; whether its error is for the loop."""
        exchange = call.exchange
        try:
            if isinstance(error, (Exception, SystemExit)):
                if not (exchange.is_cancelled and comes_of_leaving(error)):
                    many = self._concurrency > 1
                    print_failure(exchange, error, is_one_of_many=many)
                exchange.fail(f"{type(error).__name__}: {error}")
            elif error is None and not exchange.is_over and not exchange.look():
                print("hob: the application ended before its answer was complete", file=sys.stderr)
                exchange.fail("the application ended before its answer was complete")
        finally:
            if not exchange.is_over:
                exchange.fail("the client left" if exchange.is_cancelled else "stopped")
            self._tunnels.pop(exchange.number, None)
            if call.is_awaited:
                self._wake(exchange.number)
        ours = (Exception, SystemExit, asyncio.CancelledError)
        return error is not None and not isinstance(error, ours)

    # What a Call does not do itself.

    async def receive(self, call: Any) -> Message:
        """The next piece of the body; after it, the client's leaving or the answer's end."""
        exchange = call.exchange
        self._rest_soon()
        while not (exchange.is_over or exchange.look()):
            if not call.is_body_over:
                piece = exchange.take_now()
                if piece is not None:
                    call.is_body_over = not piece
                    return {"type": "http.request", "body": piece, "more_body": bool(piece)}
            await self._change(call)
        return {"type": "http.disconnect"}

    async def send(self, call: Any, message: Message) -> None:
        """Start, body or trailers of the answer. Raises an OSError once the client has left."""
        kind, exchange = message["type"], call.exchange
        self._rest_soon()
        if exchange.look():
            raise Cancelled("the client has left")
        if kind == "http.response.body":
            if not exchange.has_begun:
                raise RuntimeError("http.response.body before http.response.start")
            await self.rest(call, message.get("body", b""), bool(message.get("more_body", False)))
        elif kind == "http.response.start":
            if exchange.has_begun:
                raise RuntimeError("a second http.response.start")
            status = checked_status(message["status"])
            exchange.head(status, field_lines(message.get("headers", ())))
            call.has_trailers = bool(message.get("trailers", False))
            call.is_head = call.is_head or status in (204, 304)
        elif kind == "http.response.trailers":
            if not call.has_trailers:
                raise RuntimeError("http.response.trailers that the start did not announce")
            if not exchange.is_over and not message.get("more_trailers", False):
                exchange.end(field_lines(message.get("headers", ())))
        elif kind == "http.response.early_hint":
            if not (exchange.has_begun or exchange.is_over):
                fields = field_lines([(b"Link", link) for link in message["links"]])
                exchange.info(103, fields)
        else:
            raise RuntimeError(f"a message of type {kind!r}, which is not of HTTP")

    async def callout(self, call: Any, text: str) -> Tuple[int, str]:
        """Asks the server, which replies at once."""
        reply: Tuple[int, str] = call.exchange.callout(text)
        self._rest_soon()
        return reply

    async def rest(self, call: Any, body: bytes, is_more: bool) -> None:
        """Sends a piece of the body, however long that takes."""
        exchange = call.exchange
        self._rest_soon()
        if exchange.is_over:
            if call.is_head:
                return
            raise RuntimeError("http.response.body after the end of the answer")
        if not call.is_head:
            data = bytes(body)
            while data:
                count = exchange.write_now(data)
                if exchange.is_cancelled:
                    raise Cancelled("the client has left")
                data = data[count:]
                if not count:
                    await self._change(call, is_for_room=True)
            if is_more and not body:
                exchange.flush()
        if not (is_more or call.has_trailers) or call.is_head:
            exchange.end()
            if call.is_awaited:
                self._wake(exchange.number)


class SharedTunnel:
    """The bytes of a Call that has become a tunnel (websocket.Pipe)."""

    def __init__(self, host: Shared, call: Any) -> None:
        self.unframe = native.unframe
        self._host = host
        self._call = call

    def open(self, fields: Pairs, change: Callable[[], None]) -> None:
        exchange = self._call.exchange
        exchange.tunnel(field_lines(fields))
        self._host._tunnels[exchange.number] = change
        self._host._rest_soon()

    async def refuse(self, status: int, fields: Pairs, body: bytes) -> None:
        self._call.exchange.answer(checked_status(status), field_lines(fields), body)

    def take(self) -> Optional[bytes]:
        exchange = self._call.exchange
        self._host._rest_soon()
        if exchange.is_over or exchange.is_cancelled:
            return b""
        data: Optional[bytes] = exchange.take_now()
        return data

    def write_now(self, data: bytes) -> int:
        exchange = self._call.exchange
        if exchange.is_over:
            raise Cancelled("the client has left")
        count: int = exchange.write_now(data)
        if exchange.is_cancelled:
            raise Cancelled("the client has left")
        return count

    async def write(self, data: bytes) -> None:
        if self._call.exchange.is_over:
            raise Cancelled("the client has left")
        await self._host.rest(self._call, data, True)

    def end(self) -> None:
        if not self._call.exchange.is_over:
            self._call.exchange.end()
