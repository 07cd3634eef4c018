"""The native part over libhob: it is used when it is there, and cannot be misused into a crash.

What it answers is tested by the tests of every other file, which `check` runs a second time with it.
"""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

import native
import peer
from peer import variables

PROGRAM = """
import gc, sys
import hob
from hob import loop

kept = []

def errors(*calls):
    found = []
    for call in calls:
        try:
            call()
            found.append("nothing")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return "\\n".join(found)

for request in hob.requests():
    exchange = request._exchange
    if request.path == "/who":
        request.respond(body=type(loop.connection()).__module__)
    elif request.path == "/after":
        exchange.answer(200, b"", b"answered")
        kept.append(errors(
            lambda: exchange.answer(200, b"", b""),
            lambda: exchange.head(200, b""),
            lambda: exchange.write(b"x"),
            lambda: exchange.environ,
            lambda: exchange.callout("NOOP:"),
            lambda: exchange.tell("LOG: info late"),
            lambda: exchange.info(103),
            lambda: exchange.flush(),
            lambda: exchange.end(),
            lambda: exchange.fail("late"),
            lambda: exchange.take(5),
            lambda: exchange.take_into(bytearray(5)),
        ))
    elif request.path == "/kept":
        request.respond(body=kept.pop())
    elif request.path == "/wrong":
        text = errors(
            lambda: type(exchange)(),
            lambda: exchange.answer("200", b"", b""),
            lambda: exchange.answer(200, "text", b""),
            lambda: exchange.answer(200, b"", "text"),
            lambda: exchange.answer(200, b"", bytearray(b"x")),
            lambda: exchange.answer(99, b"", b""),
            lambda: exchange.head(200, b"x" * 70000),
            lambda: exchange.write(b"x"),
            lambda: exchange.end(),
            lambda: exchange.callout("a\\0b"),
            lambda: exchange.environ_on([]),
            lambda: exchange.take("x"),
            lambda: exchange.take_into(b"not to be changed"),
            lambda: exchange.take_into(5),
        )
        request.respond(body=text)
    elif request.path == "/drop":
        del exchange, request
        gc.collect()
    elif request.path == "/memory":
        with open("/proc/self/statm") as file:
            request.respond(body=file.read().split()[1])
    else:
        request.respond(200, {"X-Names": str(len(request.environ))}, request.body.read())
"""


class Native(unittest.TestCase):
    def setUp(self) -> None:
        environ = native.environment()
        if isinstance(environ, str):
            self.skipTest(environ)
        self.environ: Dict[str, str] = environ
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "program.py").write_text(PROGRAM)

    def start(self, *words: str, **environ: str) -> peer.Peer:
        around = peer.host(
            *(words or ("loop", "program.py")),
            folder=self.folder,
            environ={**self.environ, **environ},
        )
        self.worker = around.__enter__()
        self.addCleanup(around.__exit__, None, None, None)
        self.hello = self.worker.peer.greet()
        return self.worker.peer

    def ended(self) -> str:
        self.worker.peer.drain()
        code, _, err = self.worker.end()
        self.assertEqual(code, 0, err)
        return err

    def test_it_is_used_when_it_is_there(self) -> None:
        server = self.start()
        self.assertRegex(self.hello.payload, rb"^libhob/")
        self.assertEqual(server.ask("/who").body, b"hob._native")
        self.assertEqual(self.ended(), "")

    def test_without_it_the_stream_does_the_same(self) -> None:
        for environ, said in (
            ({"HOB_NATIVE": "off"}, ""),
            ({"HOB_NATIVE": "/absent/_native.abi3.so"}, "going on without it"),
            ({"HOB_LIBRARY": "/absent/libhob.so"}, "going on without it"),
        ):
            with self.subTest(environ):
                server = self.start(**environ)
                self.assertRegex(self.hello.payload, rb"^hob-python/")
                self.assertEqual(server.ask("/who").body, b"hob.stream")
                self.assertIn(said, self.ended())

    def test_calls_after_the_end_are_refused_or_do_nothing(self) -> None:
        server = self.start()
        self.assertEqual(server.ask("/after").body, b"answered")
        late = "RuntimeError: this request has its answer already"
        self.assertEqual(
            server.ask("/kept").body.decode().split("\n"), [late] * 7 + ["nothing"] * 5
        )
        self.assertEqual(self.ended(), "")

    def test_wrong_arguments_are_errors(self) -> None:
        found = self.start().ask("/wrong").body.decode().split("\n")
        kinds = [line.split(":")[0] for line in found]
        self.assertEqual(
            kinds,
            ["TypeError"] * 5
            + ["RuntimeError", "ValueError", "RuntimeError", "RuntimeError", "ValueError"]
            + ["TypeError", "TypeError", "BufferError", "TypeError"],
            found,
        )
        self.assertEqual(self.ended(), "")

    def test_request_that_is_dropped_fails(self) -> None:
        server = self.start()
        got = server.ask("/drop")
        self.assertIn("left the request without an answer", got.failure or "")

    def test_memory_stays_flat(self) -> None:
        server = self.start()

        def some(count: int) -> int:
            for n in range(count):
                more: Dict[str, Any] = {f"HTTP_X_{n}": "a", "HTTP_LONG" + "G" * 100: "b"}
                ident = server.request(variables("/echo", **more), b"x" * 3000)
                self.assertEqual(len(server.answer(ident).body), 3000)
            return int(server.ask("/memory").body)

        before = some(1500)  # more names than are remembered
        self.assertLess(some(3000) - before, 100)  # pages
        self.assertEqual(self.ended(), "")

    def test_memory_stays_flat_under_wsgi(self) -> None:
        (self.folder / "app.py").write_text(
            "def application(environ, start):\n"
            "    start('200 OK', [('Content-Type', 'text/plain')])\n"
            "    if environ['PATH_INFO'] == '/memory':\n"
            "        with open('/proc/self/statm') as file:\n"
            "            return [file.read().split()[1].encode()]\n"
            "    if environ['PATH_INFO'] == '/raise':\n"
            "        start('200 OK', [])\n"
            "    return iter([environ['wsgi.input'].read()] * 3)\n"
        )
        server = self.start("wsgi", "app:application")

        def some(count: int) -> int:
            for n in range(count):
                ident = server.request(variables("/echo", HTTP_X="y" * (n % 100)), b"x" * 3000)
                self.assertEqual(len(server.answer(ident).body), 9000)
                self.assertEqual(server.ask("/memory").status, 200)
                if n < 20:  # each leaves a traceback in a pipe that nobody reads yet
                    self.assertIn("without exc_info", server.ask("/raise").failure or "")
            return int(server.ask("/memory").body)

        before = some(200)
        self.assertLess(some(600) - before, 100)  # pages

    def test_memory_stays_flat_under_asgi(self) -> None:
        (self.folder / "app.py").write_text(
            "import asyncio\n"
            "async def application(scope, receive, send):\n"
            "    assert scope['type'] == 'http'\n"
            "    body = b'x' * 3000\n"
            "    if scope['path'] == '/wait': await asyncio.sleep(0)\n"
            "    if scope['path'] == '/trace': application.task = asyncio.current_task()\n"
            "    if scope['path'] == '/raise': raise KeyError(scope['path'])\n"
            "    if scope['path'] == '/memory':\n"
            "        with open('/proc/self/statm') as file: body = file.read().split()[1].encode()\n"
            "    await receive()\n"
            "    await send({'type': 'http.response.start', 'status': 200, 'headers': [[b'a', b'b']]})\n"
            "    await send({'type': 'http.response.body', 'body': body})\n"
        )
        server = self.start("asgi", "app:application")

        def some(count: int) -> int:
            for n in range(count):
                for path in ("/", "/wait", "/trace"):
                    more: Dict[str, Any] = {
                        f"HTTP_X_{n}": "a",
                        "HTTP_LONG" + "G" * 100: "b" * (n % 7),
                    }
                    self.assertEqual(len(server.ask(path, **(more if n % 2 else {})).body), 3000)
                if n < 20:  # each leaves a traceback in a pipe that nobody reads yet
                    self.assertEqual(server.ask("/raise").failure, "KeyError: '/raise'")
            return int(server.ask("/memory").body)

        before = some(1500)
        self.assertLess(some(1500) - before, 100)  # pages

    def test_only_what_differs_is_another_in_the_next_environ_and_scope(self) -> None:
        (self.folder / "app.py").write_text(
            "import json\n"
            "def wsgi(environ, start):\n"
            "    start('200 OK', [])\n"
            "    return [json.dumps({k: v for k, v in environ.items() if k[:2] in ('HT', 'PA', 'QU')}).encode()]\n"
            "async def asgi(scope, receive, send):\n"
            "    assert scope['type'] == 'http', 'no'\n"
            "    fields = {n.decode(): v.decode() for n, v in scope['headers']}\n"
            "    found = [scope['path'], scope['query_string'].decode(), scope['client'][1], fields]\n"
            "    scope['headers'].clear(); scope['path'] = None; scope['extensions'].clear()\n"
            "    await send({'type': 'http.response.start', 'status': 200})\n"
            "    await send({'type': 'http.response.body', 'body': json.dumps(found).encode()})\n"
        )
        # Values that are longer, shorter, the same, hold what others begin or end with; other names.
        rounds: List[Dict[str, str]] = [
            {"HTTP_A": "one", "HTTP_B": "two"},
            {"HTTP_A": "one", "HTTP_B": "two"},
            {"HTTP_A": "oneone", "HTTP_B": "two"},
            {"HTTP_A": "", "HTTP_B": "two"},
            {"HTTP_A": "o", "HTTP_B": "tw"},
            {"HTTP_A": "tw", "HTTP_B": "o"},
            {"HTTP_A": "two", "HTTP_B": "o"},
            {"HTTP_A": "two"},
            {"HTTP_A": "two", "HTTP_AB": "o"},
            {"HTTP_A": "two", "HTTP_B": "o", "REMOTE_PORT": "7"},
            {"HTTP_A": "two", "HTTP_B": "o", "REMOTE_PORT": "70"},
            {f"HTTP_N{n}": "x" for n in range(150)},
            {f"HTTP_N{n}": "y" for n in range(150)},
        ]
        for kind in ("wsgi", "asgi"):
            server = self.start(kind, f"app:{kind}")
            for path in ("/a", "/ab", "/b"):
                for n, more in enumerate(rounds):
                    query = "q" * (n % 3)
                    found = json.loads(server.ask(path, "GET", query, **more).body)
                    wanted = dict(variables(path, "GET", query, **more))
                    fields = {k: v for k, v in wanted.items() if k[:5] == "HTTP_"}
                    if kind == "wsgi":
                        self.assertEqual(
                            (found.pop("PATH_INFO"), found.pop("QUERY_STRING")), (path, query)
                        )
                        self.assertEqual(found, fields)
                    else:
                        names = {k[5:].lower().replace("_", "-"): v for k, v in fields.items()}
                        port = int(wanted["REMOTE_PORT"])
                        self.assertEqual(found, [path, query, port, names])
            no_lifespan = "hob: no lifespan: AssertionError: no\n"
            self.assertEqual(self.ended(), "" if kind == "wsgi" else no_lifespan)


if __name__ == "__main__":
    unittest.main()
