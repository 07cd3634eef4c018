"""Lets one task of an event loop wait again and again, without a future for each time."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any, Callable, Generator, List, Optional


class Bell:
    """What a task waits for, as it would for a future: something comes, again and again."""

    _asyncio_future_blocking = False
    _wake: Optional[Callable[[Any], object]] = None
    _is_cancelled = False

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._context = contextvars.copy_context()
        self._others: List[asyncio.Future[None]] = []

    def ring(self) -> None:
        """Has the task go on at once that waits, if one does. Not from within another task."""
        wake, self._wake = self._wake, None
        if wake is not None:
            self._context.run(wake, self)
        while self._others:
            other = self._others.pop()
            if not other.done():
                other.set_result(None)

    def ring_soon(self) -> None:
        """The same, from anywhere."""
        self._loop.call_soon(self.ring)

    def __await__(self) -> Generator[Any, None, None]:
        if self._wake is not None:
            # Tasks besides the first have a future each.
            other = self._loop.create_future()
            self._others.append(other)
            yield from other
            return
        self._asyncio_future_blocking = True
        yield self
        self.result()

    # What a task asks of a future.

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of who waits."""
        return self._loop

    def add_done_callback(self, wake: Callable[[Any], object], *, context: Any) -> None:
        """Remembers who waits."""
        self._wake, self._context = wake, context

    def cancel(self, msg: Optional[str] = None) -> bool:
        """Who waits is told so soon."""
        self._is_cancelled = True
        self.ring_soon()
        return True

    def result(self) -> None:
        """There is nothing to tell, unless that it is over."""
        if self._is_cancelled:
            self._is_cancelled = False
            raise asyncio.CancelledError
