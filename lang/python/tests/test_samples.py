"""What the README shows runs as it stands, and so do the examples."""

from __future__ import annotations

import hashlib
import re
import tempfile
import unittest
from pathlib import Path
from typing import List

import peer
from peer import variables

EXAMPLES = peer.FOLDER / "examples"


def samples() -> List[str]:
    text = (peer.FOLDER / "README.md").read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class Readme(unittest.TestCase):
    def test_headings_are_those_of_every_language(self) -> None:
        text = (peer.FOLDER / "README.md").read_text("utf-8")
        self.assertEqual(
            re.findall(r"^## (.*)$", text, re.MULTILINE),
            ["Install", "Hello", "Body", "Headers", "State", "Errors", "Carriers", "Reference"],
        )

    def test_every_sample_answers(self) -> None:
        found = samples()
        self.assertGreaterEqual(len(found), 6)
        for sample in found:
            with self.subTest(sample), tempfile.TemporaryDirectory() as folder:
                Path(folder, "sample.py").write_text(sample)
                if "async def application" in sample:
                    words = ["asgi", "sample:application"]
                elif "def application" in sample:
                    words = ["wsgi", "sample:application"]
                else:
                    words = ["loop", "sample.py"]
                with peer.host(*words, folder=folder) as worker:
                    worker.peer.greet(2)
                    for _ in range(3):
                        ident = worker.peer.request(variables("/", "POST"), b"some body")
                        got = worker.peer.answer(ident)
                        self.assertEqual((got.status, got.failure), (200, None))
                        self.assertTrue(got.body.endswith(b"\n"))
                    worker.peer.drain()
                    self.assertEqual(worker.end()[0], 0)


class Examples(unittest.TestCase):
    def test_hello(self) -> None:
        with peer.host("loop", "hello.py", folder=EXAMPLES) as worker:
            worker.peer.greet()
            self.assertEqual(worker.peer.ask(query="name=J%C3%A4n").body.decode(), "Hello, Jän!\n")
            self.assertEqual(worker.peer.ask().body, b"Hello, world!\n")

    def test_form_with_an_upload(self) -> None:
        file = bytes(range(256)) * 1000
        body = (
            b'--xyz\r\nContent-Disposition: form-data; name="title"\r\n\r\n<T>\r\n'
            b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n'
            b"Content-Type: application/octet-stream\r\n\r\n" + file + b"\r\n--xyz--\r\n"
        )
        with peer.host("wsgi", "upload:application", folder=EXAMPLES) as worker:
            worker.peer.greet()
            self.assertIn(b"<form", worker.peer.ask().body)
            environ = variables(
                method="POST",
                CONTENT_TYPE="multipart/form-data; boundary=xyz",
                CONTENT_LENGTH=str(len(body)),
            )
            ident = worker.peer.request(environ, None, length=len(body))
            worker.peer.upload(ident, body)
            digest = hashlib.sha256(file).hexdigest()
            self.assertEqual(
                worker.peer.answer(ident).body.decode(),
                f"<p>&lt;T&gt;: a.bin, 256000 bytes, sha256 {digest}\n",
            )

    def test_counter_goes_on_where_it_was(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            kept = {"COUNTER_FILE": str(Path(folder, "count"))}
            for first in (1, 3):
                with peer.host("loop", "counter.py", folder=EXAMPLES, environ=kept) as worker:
                    worker.peer.greet()
                    for n in (first, first + 1):
                        self.assertEqual(worker.peer.ask().body, b"visit %d\n" % n)
                    worker.peer.drain()
                    self.assertEqual(worker.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
