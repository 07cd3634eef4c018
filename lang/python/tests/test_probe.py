"""Every shared case (lang/probe/cases.json) over the stream, for each interface."""

from __future__ import annotations

import json
import unittest
from typing import Any, Dict, List, Set, Tuple
from urllib.parse import unquote_to_bytes

import peer

PROBE = peer.FOLDER / "probe"
CASES = json.loads((peer.FOLDER.parent / "probe" / "cases.json").read_text("utf-8"))["cases"]
EVERYTHING = {"trailers", "infos", "broken", "callouts"}


def body_of(body: Any) -> bytes:
    """A body of the list as bytes."""
    if isinstance(body, str):
        return body.encode()
    if "hex" in body:
        return bytes.fromhex(body["hex"])
    text = body["repeat"].encode()
    return (text * (body["bytes"] // len(text) + 1))[: body["bytes"]]


def environ_of(request: Dict[str, Any]) -> Dict[str, Any]:
    """The variables that the server makes of a request."""
    path, query = request["path"], request.get("query", "")
    environ = peer.variables(path, request["method"], query)
    environ["PATH_INFO"] = unquote_to_bytes(path)
    environ["SCRIPT_NAME"] = ""
    for name, value in request.get("headers", ()):
        variable = name.upper().replace("-", "_")
        if variable == "CONTENT_TYPE":
            environ[variable] = value
        elif variable != "PROXY":
            environ["HTTP_" + variable] = value
    if "body" in request and not request.get("chunked"):
        environ["CONTENT_LENGTH"] = str(len(body_of(request["body"])))
    return environ


def ask(server: peer.Peer, request: Dict[str, Any]) -> Tuple[peer.Answer, List[bytes]]:
    """A case's answer, and the questions that came before it."""
    if "body" not in request:
        ident = server.request(environ_of(request))
    else:
        body = body_of(request["body"])
        length = None if request.get("chunked") else len(body)
        ident = server.request(environ_of(request), None, length=length)
        both_ways(server, ident, body)
    questions: List[bytes] = []
    while True:
        got = server.take(ident)
        if got.kind != "callout":
            server.kept.insert(0, got)
            return server.answer(ident), questions
        questions.append(got.payload)
        if not got.flags & 4:
            known = got.payload.split(b":")[0] in (b"NOOP", b"TIMEOUT", b"MAP-PATH")
            server.reply(got, "200 done" if known else "400 unknown callout")


def both_ways(server: peer.Peer, ident: int, body: bytes) -> None:
    """Uploads while taking what comes back, so that neither side waits for the other."""
    at, room = 0, server.body_window
    while at < len(body) or not body:
        while not room:
            got = server.read()
            if got.kind == "window":
                room += got.large
                continue
            if got.kind == "data" and not got.flags & 1:
                server.window(ident, len(got.payload))
                got = got._replace(large=1)
            server.kept.append(got)
            if got.flags & 1:
                return
        step = min(16384, room, len(body) - at)
        server.body(ident, body[at : at + step], last=at + step == len(body))
        at, room = at + step, room - step
        if not body:
            return


class Cases(unittest.TestCase):
    def run_cases(self, has: Set[str], *words: str, **more: Any) -> None:
        for concurrency in (1, 4):
            with peer.host(*words, folder=PROBE, **more) as worker:
                worker.peer.greet(concurrency)
                for case in CASES:
                    if set(case.get("needs", ())) <= has:
                        with self.subTest(case["name"], concurrency=concurrency):
                            self.check(case, *ask(worker.peer, case["request"]))
                worker.peer.drain()
                self.assertEqual(worker.end()[0], 0)

    def check(self, case: Dict[str, Any], got: peer.Answer, questions: List[bytes]) -> None:
        expected = case["answer"]
        self.assertEqual(got.status, expected["status"])
        broken = expected.get("broken", expected["status"] == 500 and "body" not in expected)
        self.assertEqual(got.failure is not None, broken, got.failure)
        names = {name.lower() for name, _ in expected.get("headers", ())}
        found = [(n.lower(), v.encode("latin-1")) for n, v in got.fields if n.lower() in names]
        wanted = [(n.lower(), v.encode()) for n, v in expected.get("headers", ())]
        if case["name"] == "hello" or "content-length" not in names:
            self.assertEqual(sorted(found), sorted(wanted))
            self.assertEqual(
                [v for n, v in found if n == "set-cookie"],
                [v for n, v in wanted if n == "set-cookie"],
            )
        if "body" in expected:
            self.assertTrue(
                got.body == body_of(expected["body"]), f"{len(got.body)} bytes: {got.body[:99]!r}"
            )
        self.assertEqual(got.trailers, [tuple(pair) for pair in expected.get("trailers", ())])
        infos = [
            (status, [tuple(pair) for pair in pairs]) for status, pairs in expected.get("infos", ())
        ]
        self.assertEqual(got.infos, infos)
        if case["name"] == "callout-log":
            self.assertEqual(questions, [b"LOG: info probe", b"TRACE: probe"])

    def test_loop(self) -> None:
        self.run_cases(EVERYTHING, "loop", "probe_loop.py")

    def test_wsgi(self) -> None:
        self.run_cases(EVERYTHING - {"trailers"}, "wsgi", "probe_wsgi:application")

    def test_asgi(self) -> None:
        self.run_cases(EVERYTHING, "asgi", "probe_asgi:application")


if __name__ == "__main__":
    unittest.main()
