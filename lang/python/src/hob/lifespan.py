"""What an ASGI application is, and its own start and end."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Awaitable, Callable, Dict, Optional

Scope = Dict[str, Any]
Message = Dict[str, Any]
Application = Callable[[Scope, Callable[..., Any], Callable[..., Any]], Awaitable[None]]

VERSIONS = {"version": "3.0", "spec_version": "2.4"}


class StartFailed(Exception):
    """The application said that it cannot start."""


class Lifespan:
    """The application's own start and end."""

    def __init__(self, application: Application) -> None:
        self._application = application
        #: What the application keeps for its requests; None when it knows no lifespan.
        self.state: Optional[Dict[str, Any]] = {}
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        self._answers: asyncio.Queue[Message] = asyncio.Queue()
        self._task: Optional[asyncio.Task[None]] = None

    async def start(self) -> None:
        """Runs the start; an application without one is fine, one that fails is not."""
        self._task = asyncio.ensure_future(self._run())
        answer = await self._ask("lifespan.startup")
        if answer["type"] == "lifespan.startup.failed":
            raise StartFailed(answer.get("message") or "the application gave no reason")
        if answer["type"] == "none":
            self.state = None

    async def end(self) -> None:
        """Runs the end, if there was a start."""
        if self._task is None or self._task.done():
            return
        answer = await self._ask("lifespan.shutdown")
        if answer["type"] == "lifespan.shutdown.failed":
            print(f"hob: the application's end failed: {answer.get('message')}", file=sys.stderr)
        await self._task

    async def _ask(self, kind: str) -> Message:
        self._events.put_nowait({"type": kind})
        return await self._answers.get()

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": VERSIONS, "state": self.state}
        try:
            await self._application(scope, self._events.get, self._answers.put)
        except Exception as error:
            if self._answers.empty():
                print(f"hob: no lifespan: {type(error).__name__}: {error}", file=sys.stderr)
        self._answers.put_nowait({"type": "none"})
