"""The shared cases and the examples through the real server, in every way it runs Python."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Dict, List, Set

import peer
import served

from test_probe import CASES, EVERYTHING, body_of

PROBE = served.visible(peer.FOLDER / "probe")


@unittest.skipIf(served.program() is None, "no hob with `resident` in HOB, target/ or PATH")
class Served(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o755)

    def site(self, routes: str, **more: Any) -> served.Site:
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        return stack.enter_context(served.site(self.folder, routes, **more))


class Cases(Served):
    def run_cases(self, has: Set[str], routes: str, mount: str = "/probe") -> None:
        site = self.site(routes)
        for case in CASES:
            if set(case.get("needs", ())) <= has:
                with self.subTest(case["name"]):
                    self.check(case, self.ask(site, mount, case["request"]))

    def ask(self, site: served.Site, mount: str, request: Dict[str, Any]) -> peer.Answer:
        target = mount + request["path"] + ("?" + request["query"] if "query" in request else "")
        body = body_of(request["body"]) if "body" in request else None
        return site.ask(
            target,
            request["method"],
            request.get("headers", ()),
            body,
            chunked=bool(request.get("chunked")),
        )

    def check(self, case: Dict[str, Any], got: peer.Answer) -> None:
        expected = case["answer"]
        if expected.get("broken") and got.status == 500:
            return  # nothing of it had left when it failed
        self.assertEqual(got.status, expected["status"])
        self.assertEqual(got.failure is not None, bool(expected.get("broken")), got.failure)
        names = {name.lower() for name, _ in expected.get("headers", ())}
        found = [(n.lower(), v.encode("latin-1")) for n, v in got.fields if n.lower() in names]
        wanted = [(n.lower(), v.encode()) for n, v in expected.get("headers", ())]
        self.assertEqual(sorted(found), sorted(wanted))
        cookies = [value for name, value in wanted if name == "set-cookie"]
        self.assertEqual([value for name, value in found if name == "set-cookie"], cookies)
        if "body" in expected:
            body = body_of(expected["body"])
            if expected.get("broken"):
                self.assertTrue(body.startswith(got.body), got.body[:99])
            else:
                self.assertTrue(got.body == body, f"{len(got.body)} bytes: {got.body[:99]!r}")
        trailers = [(name.lower(), value) for name, value in got.trailers]
        self.assertEqual(trailers, [(n.lower(), v) for n, v in expected.get("trailers", ())])
        infos = [(status, [tuple(p) for p in pairs]) for status, pairs in expected.get("infos", ())]
        self.assertEqual(got.infos, infos)

    def route(self, program: str) -> str:
        return (
            '[[site.route]]\npath = "/probe/*"\nbody = "10MiB"\n'
            f'{program}resident.dir = "{PROBE}"\n'
            "resident.workers = { max = 2, concurrency = 4 }\n"
        )

    def test_loop(self) -> None:
        self.run_cases(EVERYTHING, self.route(served.started("loop", "probe_loop.py")))

    def test_wsgi(self) -> None:
        has = EVERYTHING - {"trailers"}
        self.run_cases(has, self.route(served.started("wsgi", "probe_wsgi:application")))

    def test_asgi(self) -> None:
        self.run_cases(EVERYTHING, self.route(served.started("asgi", "probe_asgi:application")))

    def test_hosts_that_the_server_brings(self) -> None:
        for what, has in (
            (f'python = "{PROBE}/probe_loop.py"', EVERYTHING),
            ('wsgi = "probe_wsgi:application"', EVERYTHING - {"trailers"}),
            ('asgi = "probe_asgi:application"', EVERYTHING),
        ):
            with self.subTest(what):
                self.run_cases(has, self.route(f"resident.{what}\n"))

    def test_loop_as_plain_cgi(self) -> None:
        has = EVERYTHING - {"trailers", "infos", "callouts", "broken"}
        self.run_cases(
            has,
            '[[site.route]]\npath = "/probe/*"\nbody = "10MiB"\n'
            f'cgi = {{ script = "{PROBE}/probe_loop.py", interpreters = {{ ".py" = "python3" }}, '
            f'env = {{ PYTHONPATH = "{served.visible(peer.SOURCES)}", PYTHONDONTWRITEBYTECODE = "1" }} }}\n',
        )


class Examples(Served):
    def test_examples_as_their_config_has_them(self) -> None:
        text = (peer.FOLDER / "examples" / "hob.toml").read_text()
        routes = text[text.index("[[site]]") + len("[[site]]") :]
        for name in ("hello.py", "upload.py", "counter.py"):
            (self.folder / name).write_text((peer.FOLDER / "examples" / name).read_text())
        site = self.site(routes)
        self.assertEqual(site.ask("/hello?name=Ann").body, b"Hello, Ann!\n")
        self.assertIn(b"<form", site.ask("/upload").body)
        for n in range(1, 4):
            self.assertEqual(site.ask("/counter").body, b"visit %d\n" % n)

    def test_many_at_a_time(self) -> None:
        (self.folder / "app.py").write_text(
            "import threading\n"
            "gate = threading.Barrier(8, timeout=60)\n"
            "def application(environ, start):\n"
            "    gate.wait()\n"
            "    start('200 OK', [('Content-Type', 'text/plain')])\n"
            "    return [b'together']\n"
        )
        site = self.site(
            '[[site.route]]\npath = "/*"\n'
            'resident = { wsgi = "app:application", workers = { max = 1, concurrency = 8 } }\n'
        )
        found: List[bytes] = []
        threads = [
            threading.Thread(target=lambda: found.append(site.ask("/").body)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [b"together"] * 8)


if __name__ == "__main__":
    unittest.main()
