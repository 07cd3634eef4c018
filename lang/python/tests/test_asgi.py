"""The ASGI server: lifespan, many requests at a time, streaming both ways, disconnects."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import peer
from peer import variables

APP = """
import asyncio, contextlib, contextvars, json, sys, threading, time, weakref

met = []
variable = contextvars.ContextVar("variable", default="unset")
strongly, weakly, called = [], weakref.WeakKeyDictionary(), []
everybody = asyncio.Event()
done = asyncio.Event()

async def lifespan(scope, receive, send):
    assert (await receive())["type"] == "lifespan.startup"
    scope["state"]["kept"] = "from the start"
    print("starting")
    await send({"type": "lifespan.startup.complete"})
    assert (await receive())["type"] == "lifespan.shutdown"
    print("stopping")
    await send({"type": "lifespan.shutdown.complete"})

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    await globals()["at_" + scope["path"].strip("/").replace("-", "_")](scope, receive, send)

async def start(send, status=200, headers=(), **more):
    await send({"type": "http.response.start", "status": status, "headers": headers, **more})

async def write(send, body=b"", more_body=False):
    await send({"type": "http.response.body", "body": body, "more_body": more_body})

async def at_scope(scope, receive, send):
    def plain(value):
        if isinstance(value, bytes): return value.decode("latin-1")
        if isinstance(value, (list, tuple)): return [plain(one) for one in value]
        if isinstance(value, dict): return {key: plain(one) for key, one in value.items()}
        return value if isinstance(value, (str, int, type(None))) else type(value).__name__
    await start(send, headers=[[b"content-type", b"application/json"]])
    await write(send, json.dumps(plain(scope)).encode())

async def at_meet(scope, receive, send):
    met.append(1)
    if len(met) == 5: everybody.set()
    await everybody.wait()
    await start(send)
    await write(send, b"met")

async def at_background(scope, receive, send):
    await start(send)
    await write(send, b"at once")
    await asyncio.wait_for(done.wait(), 60)
    print("background done")

async def at_release(scope, receive, send):
    done.set()
    await start(send)
    await write(send)

async def at_listen(scope, receive, send):
    await start(send)
    await write(send, b"listening", True)
    seen = [(await receive())["type"], (await receive())["type"]]
    print(seen)
    try: await write(send, b"nobody hears")
    except OSError as error: raise KeyError("because of it") from error

async def at_after_the_end(scope, receive, send):
    await start(send)
    await write(send, b"end")
    await receive()
    print((await receive())["type"])

async def at_flood(scope, receive, send):
    await start(send)
    async def listen():
        while (await receive())["type"] != "http.disconnect": pass
    listening = asyncio.ensure_future(listen())
    try:
        while True: await write(send, b"x" * 100000, True)
    except OSError as error: print("flood over:", error)
    await listening

async def at_upload(scope, receive, send):
    sizes = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            print("left")
            return
        sizes.append(len(message["body"]))
        if not message["more_body"]: break
    await start(send)
    await write(send, b"%d" % sum(sizes))

async def at_nothing(scope, receive, send): pass
async def at_half(scope, receive, send):
    await start(send)
    await write(send, b"half", True)
async def at_body_first(scope, receive, send): await write(send, b"a")
async def at_twice(scope, receive, send):
    await start(send)
    await start(send)
async def at_forged(scope, receive, send): await start(send, headers=[(b"a", b"b\\nc: d")])
async def at_unknown(scope, receive, send): await send({"type": "http.response.what"})
async def at_status(scope, receive, send): await start(send, 99)
async def at_too_much(scope, receive, send):
    await start(send)
    await write(send, b"a")
    await write(send, b"b")
async def at_trace(scope, receive, send):
    task, what = asyncio.current_task(), scope["query_string"].decode()
    found = [what for what, is_found in (
        ("context", variable.get() != "unset"), ("strong", task in strongly), ("weak", task in weakly),
        ("name", task.get_name() == "named"), ("cancel", task._must_cancel)) if is_found]
    if what == "context": variable.set("set")
    if what == "strong": strongly.append(task)
    if what == "weak": weakly[task] = 1
    if what == "name": task.set_name("named")
    if what == "cancel": task.cancel()
    if what == "callback": task.add_done_callback(lambda task: called.append(task.done()))
    if what == "called": found = called
    await start(send)
    await write(send, json.dumps(found).encode())

async def at_wait(scope, receive, send):
    task = asyncio.current_task()
    variable.set("waiting")
    await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.sleep(0.001), 60)
    await start(send)
    is_mine = task is asyncio.current_task() and variable.get() == "waiting"
    await write(send, b"the same" if is_mine else b"another")

async def at_cancel(scope, receive, send):
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    loop.call_soon(task.cancel)
    try: await loop.create_future()
    except asyncio.CancelledError:
        if not scope["query_string"]: raise
    await start(send)
    await write(send, b"went on")

async def at_quit(scope, receive, send): sys.exit(3)

class Awaitable:
    def __init__(self, *words): self.words = words
    def __await__(self): return at_hello(*self.words).__await__()

def awaitable(scope, receive, send):
    if scope["type"] == "lifespan": return lifespan(scope, receive, send)
    return Awaitable(scope, receive, send)

async def at_hello(scope, receive, send):
    await start(send)
    await write(send, b"hello")

async def no_lifespan(scope, receive, send):
    assert scope["type"] == "http", "only http"
    await at_hello(scope, receive, send)

async def failing(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})
"""


class Application(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "app.py").write_text(APP)

    def start(self, name: str = "application", **windows: Any) -> peer.Peer:
        around = peer.host("asgi", f"app:{name}", folder=self.folder)
        self.worker = around.__enter__()
        self.addCleanup(around.__exit__, None, None, None)
        for key, value in windows.items():
            setattr(self.worker.peer, key, value)
        self.worker.peer.greet(16)
        return self.worker.peer

    def ended(self, errors: str = "") -> str:
        """Drains; what was printed between start and end."""
        self.worker.peer.drain()
        code, out, err = self.worker.end()
        self.assertEqual(code, 0, err)
        self.assertEqual(err, errors) if not errors else self.assertIn(errors, err)
        lines = out.splitlines()
        self.assertEqual((lines[0], lines[-1]), ("starting", "stopping"))
        return "\n".join(lines[1:-1])


class Requests(Application):
    def test_scope_has_everything_of_the_request(self) -> None:
        server = self.start()
        got = server.answer(
            server.request(
                variables(
                    "/scope",
                    "POST",
                    "a=%20b",
                    SCRIPT_NAME="/ä",
                    REQUEST_URI="/%C3%A4/scope?a=%20b",
                    SERVER_PROTOCOL="HTTP/2.0",
                    REQUEST_SCHEME="https",
                    CONTENT_TYPE="text/css",
                    HTTP_X_TWO="ö",
                )
            )
        )
        # The path is below a mount: the application of this test looks at its end alone.
        self.assertEqual(got.status, 500)
        got = server.ask("/scope", "POST", "a=%20b", CONTENT_TYPE="text/css", HTTP_X_TWO="ö")
        scope = json.loads(got.body)
        self.assertEqual(
            scope,
            {
                "type": "http",
                "asgi": {"version": "3.0", "spec_version": "2.4"},
                "http_version": "1.1",
                "method": "POST",
                "scheme": "http",
                "path": "/scope",
                "raw_path": "/scope",
                "query_string": "a=%20b",
                "root_path": "",
                "headers": [
                    ["host", "localhost:8080"],
                    ["user-agent", "peer"],
                    ["accept", "*/*"],
                    ["content-type", "text/css"],
                    ["x-two", "Ã¶"],
                ],
                "client": ["127.0.0.1", 40000],
                "server": ["localhost", 8080],
                "extensions": {
                    "http.response.trailers": {},
                    "http.response.early_hint": {},
                    "hob": {"exchange": "Call"},
                },
                "state": {"kept": "from the start"},
            },
        )

    def test_requests_run_at_the_same_time(self) -> None:
        server = self.start()
        idents = [server.request(variables("/meet")) for _ in range(5)]
        for ident in idents:
            self.assertEqual(server.answer(ident).body, b"met")
        self.assertEqual(self.ended(), "")

    def test_each_request_has_a_context_and_a_task_without_traces_of_others(self) -> None:
        server = self.start()
        for trace in ("context", "strong", "weak", "name", "cancel", "callback", "cancel", "none"):
            with self.subTest(trace):
                self.assertEqual(server.ask("/trace", query=trace).body, b"[]")
                self.assertEqual(server.ask("/wait").body, b"the same")
        self.assertEqual(server.ask("/trace", query="called").body, b"[true]")
        self.assertEqual(self.ended(), "")

    def test_request_that_waits_can_be_cancelled_and_is_the_only_one(self) -> None:
        server = self.start()
        for _ in range(2):
            self.assertEqual(server.ask("/cancel", query="caught").body, b"went on")
            self.assertEqual(server.ask("/cancel").failure, "stopped")
            self.assertEqual(server.ask("/trace").body, b"[]")
        self.assertEqual(self.ended(), "")

    def test_application_may_give_anything_that_can_be_awaited(self) -> None:
        server = self.start("awaitable")
        for _ in range(3):
            self.assertEqual(server.ask("/any").body, b"hello")
        self.assertEqual(self.ended(), "")

    def test_many_requests_at_once_are_all_answered(self) -> None:
        server = self.start()
        for path, body in (("/hello", b"hello"), ("/wait", b"the same")):
            idents = [server.request(variables(path)) for _ in range(300)]
            for ident in idents:
                self.assertEqual(server.answer(ident).body, body)
        self.assertEqual(self.ended(), "")

    def test_work_after_the_answer_goes_on_and_drain_waits_for_it(self) -> None:
        server = self.start()
        self.assertEqual(server.ask("/background").body, b"at once")
        self.assertEqual(server.ask("/hello").body, b"hello")
        self.assertEqual(server.ask("/release").status, 200)
        self.assertEqual(self.ended(), "background done")

    def test_client_that_leaves_is_a_disconnect(self) -> None:
        server = self.start()
        ident = server.request(variables("/listen"))
        self.assertEqual(server.take().kind, "head")
        self.assertEqual(server.take().payload, b"listening")
        server.cancel(ident)
        self.assertEqual(server.take().kind, "end")
        self.assertEqual(self.ended(), "['http.request', 'http.disconnect']")

    def test_end_of_the_answer_is_a_disconnect_too(self) -> None:
        server = self.start()
        self.assertEqual(server.ask("/after-the-end").body, b"end")
        self.assertEqual(self.ended(), "http.disconnect")

    def test_slow_client_stops_the_application_and_its_leaving_lets_it_go(self) -> None:
        server = self.start(data_window=250_000)
        ident = server.request(variables("/flood"))
        self.assertEqual(server.take().kind, "head")
        room = 250_000
        while room:
            room -= len(server.take().payload)
        self.assertEqual(server.ask("/hello").body, b"hello")  # and others are served meanwhile
        server.cancel(ident)
        server.answer(ident)
        self.assertEqual(self.ended(), "flood over: the client has left")

    def test_uploads_of_any_size_arrive(self) -> None:
        server = self.start()
        for size in (0, 1, 65536, 65537, 2_000_000):
            ident = server.request(variables("/upload", "POST"), None)
            server.upload(ident, os.urandom(size))
            self.assertEqual(server.answer(ident).body, b"%d" % size)

    def test_upload_that_breaks_off_is_a_disconnect(self) -> None:
        server = self.start()
        ident = server.request(variables("/upload", "POST"), None)
        server.body(ident, b"half")
        server.cancel(ident)
        self.assertEqual(server.answer(ident).failure, "the client left")
        self.assertEqual(self.ended(), "left")

    def test_number_is_used_again_after_the_answer(self) -> None:
        server = self.start()
        for _ in range(3):
            self.assertEqual(
                server.answer(server.request(variables("/hello"), ident=9)).body, b"hello"
            )

    def test_mistakes_of_the_application_fail_its_request_alone(self) -> None:
        server = self.start()
        for path, status, reason in (
            ("/nothing", 500, "the application ended before its answer was complete"),
            ("/half", 200, "the application ended before its answer was complete"),
            ("/body-first", 500, "RuntimeError: http.response.body before"),
            ("/twice", 500, "RuntimeError: a second"),
            ("/forged", 500, "ValueError: a line end"),
            ("/unknown", 500, "RuntimeError: a message of type 'http.response.what'"),
            ("/status", 500, "ValueError: status 99"),
            ("/absent", 500, "KeyError"),
            ("/quit", 500, "SystemExit: 3"),
        ):
            with self.subTest(path):
                got = server.ask(path)
                self.assertEqual(got.status, status)
                self.assertTrue((got.failure or "").startswith(reason), got.failure)
        self.assertEqual(server.ask("/too-much").body, b"a")
        self.assertEqual(server.ask("/hello").body, b"hello")
        self.assertEqual(self.ended("RuntimeError: http.response.body after the end"), "")


class Life(Application):
    def test_application_without_lifespan_is_served(self) -> None:
        server = self.start("no_lifespan")
        self.assertEqual(server.ask("/hello").body, b"hello")
        server.drain()
        code, _, err = self.worker.end()
        self.assertEqual((code, err), (0, "hob: no lifespan: AssertionError: only http\n"))

    def test_start_that_fails_is_said_and_ends_with_1(self) -> None:
        with peer.host("asgi", "app:failing", folder=self.folder) as worker:
            worker.peer.hello()
            self.assertTrue(worker.peer.is_ended())
            code, _, err = worker.end()
        self.assertEqual((code, err), (1, "hob: the application's start failed: no database\n"))

    def test_drain_lets_requests_finish(self) -> None:
        server = self.start()
        ident = server.request(variables("/upload", "POST"), None)
        server.drain()
        server.body(ident, b"last", last=True)
        self.assertEqual(server.answer(ident).body, b"4")
        self.assertEqual(self.worker.end()[0], 0)

    def test_end_of_the_server_ends_the_process_at_once(self) -> None:
        server = self.start()
        ident = server.request(variables("/listen"))
        server.take(ident)
        server.socket.close()
        self.assertEqual(self.worker.end()[0], 0)

    def test_message_that_does_not_exist_ends_the_process(self) -> None:
        server = self.start()
        server.send(peer.message(99, b"", 0, 0, 1))
        code, _, err = self.worker.end()
        self.assertEqual(code, 1)
        self.assertIn("the server does not speak as agreed: ", err)

    def test_without_a_server_it_says_so(self) -> None:
        worker = peer.Worker(
            ["env", "-u", "HOB_FD", sys.executable, "-m", "hob", "asgi", "app:application"],
            folder=self.folder,
        )
        self.addCleanup(worker.close)
        code, _, err = worker.end()
        self.assertEqual(code, 1)
        self.assertIn("HOB_FD is not set", err)


if __name__ == "__main__":
    unittest.main()
