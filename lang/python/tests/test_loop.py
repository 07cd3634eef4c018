"""The plain loop, run by the host, as a program of its own, and as plain CGI."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Tuple

import peer
from peer import variables

PROGRAM = """
import hob

count = 0
for request in hob.requests():
    count += 1
    path = request.path
    if path == "/count":
        request.respond(200, {"Content-Type": "text/plain"}, f"{count}")
    elif path == "/echo":
        request.respond(201, [("Content-Type", "text/plain")], request.body.read())
    elif path == "/pieces":
        request.start(200, {"Content-Type": "text/plain"})
        request.write("ä")
        request.write(b"b")
        request.finish()
    elif path == "/left":
        request.start()
        request.write("left open")
    elif path == "/trailers":
        request.write("body")
        request.finish({"Sum": "4"})
    elif path == "/early":
        request.inform(103, {"Link": "</a.css>"})
        request.respond()
    elif path == "/headers":
        headers = request.headers
        text = [request.method, request.query, headers["x-a"], headers.get("absent", "none"),
                headers["Content-Type"], str(sorted(headers)), str(len(headers)),
                str("X-A" in headers), str(request.length)]
        request.respond(body="\\n".join(text))
    elif path == "/ask":
        request.log("a line", "warning")
        request.trace("a step")
        found = [request.timeout(2.5), request.map_path("/x"), request.noop(),
                 request.callout("WHAT")[0], hob.lifetime(-1)]
        request.respond(body=repr(found))
    elif path == "/fail":
        request.fail("cannot")
    elif path == "/concurrency":
        request.respond(body=str(hob.concurrency()))
    elif path == "/raise":
        raise ValueError("out of the loop")
    elif path == "/child":
        import os
        child = os.fork()
        if not child:
            os._exit(7)
        request.respond(body=str(os.waitpid(child, 0)[1] >> 8))
    elif path == "/bad-status":
        try:
            request.respond(99)
        except ValueError as error:
            request.respond(body=str(error))
print("after the loop")
"""


class Loop(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "program.py").write_text(PROGRAM)

    def start(self, *, by_host: bool = True, concurrency: int = 1) -> peer.Peer:
        if by_host:
            command = [sys.executable, "-m", "hob", "loop", "program.py"]
        else:
            command = [sys.executable, "program.py"]
        self.worker = peer.Worker(command, folder=self.folder)
        self.addCleanup(self.worker.close)
        self.worker.peer.greet(concurrency)
        return self.worker.peer

    def ended(self) -> Tuple[int, str, str]:
        self.worker.peer.drain()
        return self.worker.end()

    def test_state_is_kept_from_request_to_request(self) -> None:
        for by_host in (True, False):
            with self.subTest(by_host=by_host):
                server = self.start(by_host=by_host)
                for n in range(1, 4):
                    got = server.ask("/count")
                    self.assertEqual(
                        (got.body, got.fields), (b"%d" % n, [("Content-Type", "text/plain")])
                    )
                self.assertEqual(self.ended(), (0, "after the loop\n", ""))

    def test_answers_of_every_shape(self) -> None:
        server = self.start()
        for path, status, body in (
            ("/pieces", 200, "äb".encode()),
            ("/left", 200, b"left open"),
            ("/early", 200, b""),
            ("/child", 200, b"7"),
            ("/bad-status", 200, b"status 99: an answer has 200 to 599"),
            ("/concurrency", 200, b"1"),
        ):
            with self.subTest(path):
                got = server.ask(path)
                self.assertEqual((got.status, got.body, got.failure), (status, body, None))
        self.assertEqual(server.ask("/trailers").trailers, [("Sum", "4")])
        self.assertEqual(server.ask("/early").infos, [(103, [("Link", "</a.css>")])])
        ident = server.request(variables("/echo"), b"a body")
        got = server.answer(ident)
        self.assertEqual((got.status, got.body), (201, b"a body"))
        self.assertEqual(server.ask("/left", "HEAD").body, b"")
        self.assertEqual(server.ask("/count", "HEAD").field("content-length"), "2")

    def test_request_is_seen_with_its_fields(self) -> None:
        server = self.start()
        got = server.ask("/headers", query="a=b", HTTP_X_A="one", CONTENT_TYPE="text/css")
        self.assertEqual(
            got.body.decode().split("\n"),
            [
                "GET",
                "a=b",
                "one",
                "none",
                "text/css",
                "['Accept', 'Content-Type', 'Host', 'User-Agent', 'X-A']",
                "5",
                "True",
                "0",
            ],
        )

    def test_questions_to_the_server(self) -> None:
        server = self.start()
        ident = server.request(variables("/ask"))
        self.assertEqual(server.take().payload, b"LOG: warning a line")
        self.assertEqual(server.take().payload, b"TRACE: a step")
        for question, reply in (
            (b"TIMEOUT: 2.5", "200"),
            (b"MAP-PATH: /x", "200 /srv/x"),
            (b"NOOP:", "200 done"),
            (b"WHAT", "400 unknown callout"),
            (b"LIFETIME: -1", "200"),
        ):
            got = server.take()
            self.assertEqual(got.payload, question)
            server.reply(got, reply)
        self.assertEqual(
            server.answer(ident).body.decode(),
            "[(200, ''), (200, '/srv/x'), (200, 'done'), 400, (200, '')]",
        )

    def test_request_without_an_answer_fails(self) -> None:
        server = self.start()
        self.assertEqual(server.ask("/fail").failure, "cannot")
        ident = server.request(variables("/unknown"))
        self.assertEqual(
            server.answer(ident).failure, "the program left the request without an answer"
        )

    def test_exception_out_of_the_loop_ends_the_program(self) -> None:
        server = self.start()
        server.request(variables("/raise"))
        while not server.is_ended():
            pass  # libhob says before that the request failed
        code, _, err = self.worker.end()
        self.assertEqual(code, 1)
        self.assertIn("ValueError: out of the loop", err)

    def test_end_of_the_server_ends_the_loop(self) -> None:
        self.start().socket.close()
        self.assertEqual(self.worker.end(), (0, "after the loop\n", ""))

    def test_program_without_a_file_says_so(self) -> None:
        with peer.host("loop", "absent.py", folder=self.folder) as worker:
            code, _, err = worker.end()
        self.assertEqual(code, 1)
        self.assertIn("no file 'absent.py'", err)

    def test_verb_that_does_not_exist_shows_the_usage(self) -> None:
        with peer.host("php", "x", folder=self.folder) as worker:
            code, _, err = worker.end()
        self.assertEqual(code, 2)
        self.assertIn("usage: hob wsgi MODULE:NAME", err)


class PlainCgi(unittest.TestCase):
    setUp = Loop.setUp

    def cgi(self, path: str, body: bytes = b"", **more: str) -> Tuple[bytes, str]:
        environ = {
            **os.environ,
            "PYTHONPATH": str(peer.SOURCES),
            "REQUEST_METHOD": "POST" if body else "GET",
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "CONTENT_LENGTH": str(len(body)) if body else "",
            **more,
        }
        done = subprocess.run(
            [sys.executable, "-W", "error", "program.py"],
            cwd=self.folder,
            env=environ,
            input=body + b"not part of it",
            capture_output=True,
            timeout=peer.PATIENCE_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr.decode()

    def test_one_request_from_the_environment(self) -> None:
        out, err = self.cgi("/count")
        self.assertEqual(out, b"Status: 200\nContent-Type: text/plain\n\n1")
        self.assertEqual(err, "after the loop\n")

    def test_body_from_standard_input(self) -> None:
        self.assertEqual(
            self.cgi("/echo", b"a body")[0], b"Status: 201\nContent-Type: text/plain\n\na body"
        )

    def test_what_cgi_does_not_have(self) -> None:
        self.assertEqual(self.cgi("/trailers")[0], b"Status: 200\n\nbody")
        self.assertEqual(self.cgi("/early")[0], b"Status: 200\n\n")
        out, err = self.cgi("/ask")
        self.assertIn(b"(501, ", out)
        self.assertIn("a line\n", err)
        out, err = self.cgi("/fail")
        self.assertTrue(out.startswith(b"Status: 500\n"))
        self.assertIn("hob: cannot\n", err)


if __name__ == "__main__":
    unittest.main()
