"""The WSGI server: PEP 3333 through a real worker process."""

from __future__ import annotations

import os
import signal
import tempfile
import textwrap
import unittest
from pathlib import Path
from typing import Any, List

import peer
from peer import variables

APP = '''
import io, os, sys, threading, time
from wsgiref.validate import validator

meeting = threading.Barrier(4, timeout=60)
TEXT = [("Content-Type", "text/plain")]

class Closing:
    """Tells on standard output that it was closed."""
    def __init__(self, pieces): self.pieces = iter(pieces)
    def __iter__(self): return self
    def __next__(self): return next(self.pieces)
    def close(self): print("closed")

def ticks():
    while True: yield b"tick"

def failing_late():
    yield b"some"
    raise KeyError("late")

def plain(environ, start):
    path = environ["PATH_INFO"]
    if path == "/hello":
        start("200 OK", TEXT + [("Content-Length", "5")])
        return [b"hello"]
    if path == "/pieces":
        start("200 OK", TEXT)
        return [b"a", b"", b"b", b"c"]
    if path == "/stream":
        start("200 OK", TEXT)
        return Closing([b"one", b"", b"two"])
    if path == "/known":
        start("200 OK", TEXT + [("Content-Length", "6")])
        return Closing([b"one", b"two"])
    if path == "/short":
        start("200 OK", TEXT + [("Content-Length", "10")])
        return Closing([b"five5"])
    if path == "/long":
        start("200 OK", TEXT + [("Content-Length", "3")])
        return Closing([b"five5"])
    if path == "/write":
        write = start("201 Created", TEXT)
        write(b"written ")
        return [b"returned"]
    if path == "/echo":
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])) if environ.get("CONTENT_LENGTH") else b"".join(iter(lambda: environ["wsgi.input"].read(50000), b""))
        start("200 OK", TEXT + [("X-Length", str(len(body)))])
        return [body]
    if path == "/lines":
        source = environ["wsgi.input"]
        first = source.readline(100)
        rest = source.readlines(1 << 20)
        start("200 OK", TEXT)
        return [repr([first, rest]).encode()]
    if path == "/iterate":
        lines = [line for line in environ["wsgi.input"]]
        start("200 OK", TEXT)
        return [repr(lines).encode()]
    if path == "/empty":
        start("204 No Content", [])
        return []
    if path == "/nothing":
        start("200 OK", TEXT)
        return []
    if path == "/never":
        return [b"body"]
    if path == "/raise":
        raise ValueError("before")
    if path == "/exit":
        sys.exit(3)
    if path == "/late":
        start("200 OK", TEXT)
        return failing_late()
    if path == "/again":
        start("200 OK", TEXT)
        try: raise KeyError("found")
        except KeyError: start("500 Oops", TEXT, sys.exc_info())
        return [b"replaced"]
    if path == "/too-late":
        write = start("200 OK", TEXT)
        write(b"gone")
        try: raise KeyError("too late")
        except KeyError: start("500 Oops", TEXT, sys.exc_info())
    if path == "/file":
        start("200 OK", TEXT)
        return environ["wsgi.file_wrapper"](io.BytesIO(b"x" * 300000), 4096)
    if path == "/big":
        start("200 OK", TEXT)
        return (bytes([n]) * 100000 for n in range(30))
    if path == "/for-ever":
        start("200 OK", TEXT)
        return Closing(ticks())
    if path == "/forged":
        start("200 OK", [("A", "b\\nC: d")])
        return [b""]
    if path == "/wrong-status":
        start("OK", TEXT)
        return [b""]
    if path == "/text":
        start("200 OK", TEXT)
        return ["text"]
    if path == "/print":
        print("to standard output")
        print("to errors", file=environ["wsgi.errors"])
        start("200 OK", TEXT)
        return [repr(sys.stdin.read()).encode()]
    if path == "/meet":
        meeting.wait()
        start("200 OK", TEXT)
        return [repr(environ["wsgi.multithread"]).encode()]
    if path == "/hang":
        start("200 OK", TEXT)(b"hanging")
        while True: time.sleep(1000)
    if path == "/environ":
        start("200 OK", TEXT)
        return ["\\n".join(f"{k}={v!r}" for k, v in sorted(environ.items()) if isinstance(v, (str, tuple, bool))).encode()]
    raise LookupError(path)

checked = validator(plain)
number = 5
'''


class Application(unittest.TestCase):
    """One worker, kept over the requests of a test."""

    target = "app:plain"
    concurrency = 1

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "app.py").write_text(APP)

    def start(self, **windows: Any) -> peer.Worker:
        around = peer.host("wsgi", self.target, folder=self.folder)
        self.worker = around.__enter__()
        self.addCleanup(around.__exit__, None, None, None)
        for name, value in windows.items():
            setattr(self.worker.peer, name, value)
        self.peer = self.worker.peer
        self.peer.greet(self.concurrency)
        return self.worker

    def ended(self) -> List[str]:
        """Drains; standard output and error of a worker that ended well."""
        self.peer.drain()
        code, out, err = self.worker.end()
        self.assertEqual(code, 0, err)
        return [out, err]

    def post(self, path: str, body: bytes, *, known: bool = True) -> peer.Answer:
        more = {"CONTENT_LENGTH": str(len(body))} if known else {}
        environ = variables(path, "POST", CONTENT_TYPE="text/plain", **more)
        ident = self.peer.request(environ, None, length=len(body) if known else None)
        self.peer.upload(ident, body)
        return self.peer.answer(ident)


class Answers(Application):
    def test_every_shape_of_an_answer(self) -> None:
        self.start()
        for path, status, body in (
            ("/hello", 200, b"hello"),
            ("/pieces", 200, b"abc"),
            ("/stream", 200, b"onetwo"),
            ("/known", 200, b"onetwo"),
            ("/long", 200, b"fiv"),
            ("/write", 201, b"written returned"),
            ("/empty", 204, b""),
            ("/nothing", 200, b""),
            ("/file", 200, b"x" * 300000),
            ("/big", 200, b"".join(bytes([n]) * 100000 for n in range(30))),
            ("/again", 500, b"replaced"),
        ):
            with self.subTest(path):
                got = self.peer.ask(path)
                self.assertEqual((got.status, got.failure), (status, None))
                self.assertEqual(got.body, body)
        out, err = self.ended()
        self.assertEqual(out, "closed\n" * 3)
        self.assertIn("more body than the Content-Length", err)

    def test_head_has_the_fields_and_no_body(self) -> None:
        self.start()
        for path in ("/hello", "/pieces", "/stream", "/known", "/short", "/write", "/file", "/big"):
            with self.subTest(path):
                got = self.peer.ask(path, "HEAD")
                self.assertEqual((got.body, got.failure), (b"", None))
                self.assertEqual(got.field("content-type"), "text/plain")
        self.assertEqual(self.ended()[0], "closed\n" * 3)

    def test_pieces_leave_as_they_come(self) -> None:
        self.start()
        ident = self.peer.request(variables("/stream"))
        head, *pieces, end = (self.peer.read() for _ in range(4))
        self.assertEqual((head.kind, head.ident), ("head", ident))
        self.assertEqual(
            [(got.kind, got.payload) for got in pieces], [("data", b"one"), ("data", b"two")]
        )
        self.assertIn((end.kind, end.payload), (("end", b""), ("data", b"")))

    def test_last_byte_of_a_known_length_ends_the_answer(self) -> None:
        self.start()
        self.peer.request(variables("/known"))
        got = [self.peer.read() for _ in range(3)]
        self.assertEqual([(m.kind, m.flags) for m in got], [("head", 0), ("data", 0), ("data", 1)])

    def test_failures_before_the_head_have_a_reason(self) -> None:
        self.start()
        for path, reason in (
            ("/raise", "ValueError: before"),
            ("/exit", "SystemExit: 3"),
            ("/forged", "ValueError: a line end"),
            ("/wrong-status", "ValueError: the application's status is 'OK'"),
            ("/never", "RuntimeError: the application sent a body before"),
            ("/text", "TypeError: "),
        ):
            with self.subTest(path):
                got = self.peer.ask(path)
                self.assertEqual((got.status, got.body), (500, b""))
                self.assertTrue((got.failure or "").startswith(reason), got.failure)
        self.assertEqual(self.peer.ask("/hello").body, b"hello")
        self.assertEqual(self.ended()[1].count("Traceback"), 6)

    def test_failures_after_the_head_break_the_answer(self) -> None:
        self.start()
        for path, sent, reason in (
            ("/late", b"some", "KeyError"),
            ("/too-late", b"gone", "KeyError"),
            ("/short", b"five5", "5 bytes less"),
        ):
            with self.subTest(path):
                got = self.peer.ask(path)
                self.assertEqual((got.status, got.body), (200, sent))
                self.assertIn(reason, got.failure or "")
        self.assertIn("closed\n", self.ended()[0])

    def test_endless_answer_is_closed_when_the_client_leaves(self) -> None:
        self.start()
        ident = self.peer.request(variables("/for-ever"))
        self.peer.take()
        self.peer.cancel(ident)
        while self.peer.take().kind != "end":
            pass
        self.assertEqual(self.peer.ask("/hello").body, b"hello")
        self.assertEqual(self.ended()[0], "closed\n")


class Bodies(Application):
    def test_bodies_small_and_large_come_back(self) -> None:
        self.start()
        for size in (0, 1, 1000, 65536, 65537, 3_000_000):
            body = os.urandom(size)
            for known in (True, False):
                with self.subTest(size=size, known=known):
                    self.assertEqual(self.post("/echo", body, known=known).body, body)

    def test_lines_are_read_like_those_of_a_file(self) -> None:
        self.start()
        body = b"first\nsecond\n\nlast"
        self.assertEqual(
            self.post("/lines", body).body,
            repr([b"first\n", [b"second\n", b"\n", b"last"]]).encode(),
        )
        self.assertEqual(self.post("/iterate", body).body, repr(body.splitlines(True)).encode())

    def test_client_that_leaves_inside_its_body_is_an_error(self) -> None:
        self.start()
        ident = self.peer.request(variables("/echo", "POST", CONTENT_LENGTH="10"), None, length=10)
        self.peer.body(ident, b"half")
        self.peer.cancel(ident)
        self.assertEqual(self.peer.answer(ident).failure, "the client left")
        self.assertEqual(self.peer.ask("/hello").body, b"hello")


class Environ(Application):
    def test_variables_are_strings_with_the_bytes_as_they_came(self) -> None:
        self.start()
        got = self.peer.ask("/environ", query="a=%20", HTTP_X="ö\x7f", REQUEST_SCHEME="https")
        found = got.body.decode()
        for line in (
            "HTTP_X='Ã¶\\x7f'",
            "PATH_INFO='/environ'",
            "QUERY_STRING='a=%20'",
            "SCRIPT_NAME=''",
            "wsgi.url_scheme='https'",
            "wsgi.multithread=False",
            "wsgi.multiprocess=True",
            "wsgi.run_once=False",
            "wsgi.version=(1, 0)",
        ):
            self.assertIn(line + "\n", found + "\n")

    def test_prints_go_to_the_log_and_input_is_empty(self) -> None:
        self.start()
        self.assertEqual(self.peer.ask("/print").body, b"''")
        self.assertEqual(self.ended(), ["to standard output\n", "to errors\n"])


class Validated(Application):
    """Everything that obeys the specification, between wsgiref's two guards."""

    target = "app:checked"

    def test_validator_finds_nothing(self) -> None:
        self.start()
        for method in ("GET", "HEAD"):
            for path in ("/hello", "/pieces", "/stream", "/known", "/write", "/file", "/again"):
                with self.subTest(method + path):
                    got = self.peer.ask(path, method)
                    self.assertIsNone(got.failure)
        self.assertIsNone(self.peer.ask("/empty").failure)
        self.assertEqual(self.post("/echo", b"body").body, b"body")
        self.assertEqual(self.post("/echo", b"body" * 50000, known=False).body, b"body" * 50000)
        self.assertEqual(self.post("/lines", b"a\nb\n").body, b"[b'a\\n', [b'b\\n']]")
        self.assertEqual(self.post("/iterate", b"a\nb").body, b"[b'a\\n', b'b']")
        self.assertNotIn("Assertion", self.ended()[1])


class Threads(Application):
    concurrency = 4

    def test_as_many_requests_at_a_time_as_the_server_says(self) -> None:
        self.start()
        for _ in range(3):
            idents = [self.peer.request(variables("/meet")) for _ in range(4)]
            for ident in idents:
                self.assertEqual(self.peer.answer(ident).body, b"True")
        self.ended()

    def test_many_requests_over_few_threads(self) -> None:
        self.start()
        bodies = {}
        for n in range(200):
            body = b"%d" % n * 10
            bodies[self.peer.request(variables("/echo", CONTENT_LENGTH=str(len(body))), body)] = (
                body
            )
        for ident, body in bodies.items():
            self.assertEqual(self.peer.answer(ident).body, body)
        self.ended()

    def test_end_of_the_server_ends_the_process_at_once(self) -> None:
        self.start()
        ident = self.peer.request(variables("/hang"))
        self.peer.take(ident)
        self.peer.socket.close()
        code, _, err = self.worker.end()
        self.assertEqual((code, err), (0, ""))


class Start(Application):
    def failure(self, target: str, **files: str) -> str:
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(textwrap.dedent(text))
        with peer.host("wsgi", target, folder=self.folder) as worker:
            worker.peer.hello()
            self.assertTrue(worker.peer.is_ended())
            code, out, err = worker.end()
        self.assertEqual((code, out), (1, ""))
        return err

    def test_program_that_cannot_be_loaded_says_why(self) -> None:
        self.assertIn("ModuleNotFoundError: No module named 'absent'", self.failure("absent:app"))
        self.assertIn("SyntaxError", self.failure("bad:app", bad="def :"))
        self.assertIn("ZeroDivisionError", self.failure("zero:app", zero="1/0"))
        self.assertIn("module 'app' has no 'absent'", self.failure("app:absent"))
        self.assertIn("'app:number' is a int", self.failure("app:number"))
        self.assertIn("'app' is not MODULE:NAME", self.failure("app"))

    def test_sigterm_writes_every_stack_before_the_end(self) -> None:
        self.concurrency = 2
        self.start()
        ident = self.peer.request(variables("/hang"))
        self.peer.take(ident)
        self.worker.process.send_signal(signal.SIGTERM)
        code, _, err = self.worker.end()
        self.assertEqual(code, -signal.SIGTERM)
        self.assertIn("app.py", err)
        self.assertEqual(err.count("most recent call first"), 2)


class PlainCgi(Application):
    def test_same_program_answers_one_cgi_request(self) -> None:
        import subprocess
        import sys

        environ = {
            **os.environ,
            "PYTHONPATH": str(peer.SOURCES),
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/echo",
            "SCRIPT_NAME": "",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_LENGTH": "4",
        }
        environ.pop("HOB_FD", None)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "hob", "wsgi", "app:checked"],
            cwd=self.folder,
            env=environ,
            input=b"bodymore",
            capture_output=True,
            timeout=peer.PATIENCE_SECONDS,
        )
        self.assertEqual(
            (done.returncode, done.stdout),
            (0, b"Status: 200\nContent-Type: text/plain\nX-Length: 4\n\nbody"),
            done.stderr,
        )


if __name__ == "__main__":
    unittest.main()
