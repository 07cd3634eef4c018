"""Pages of the book that lead from nothing to a running site are followed as a reader would.

Blocks are taken in their order: one whose first lines have `# NAME` is the file NAME, `sh` is run in the
site's folder, and each line of a `text` block stands in what the commands before it have printed.
What needs the network (a virtual environment, packages) is there already.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Iterator, Optional, Tuple

import peer
import served
import test_sites

PAGES = served.ROOT / "docs" / "src" / "how-to"
ADDRESS = "127.0.0.1:8080"
# Lines of a page that are done already, or by the test itself.
DONE = re.compile(r"^(python3 -m venv|venv/bin/pip install|mkdir tea && cd tea$|hob serve) ?.*\n?", re.M)


def blocks(name: str) -> Iterator[Tuple[str, str]]:
    """Language and text of each block of a page."""
    text = (PAGES / name).read_text("utf-8")
    for found in re.finditer(r"^```(\S+)\n(.*?)^```$", text, re.M | re.S):
        yield found.group(1), found.group(2)


def file_name(text: str) -> Optional[str]:
    """The file that a block is, as a comment at its top says."""
    found = re.match(r"(?:#!.*\n)?# ([\w./-]+)\n", text)
    return found.group(1) if found else None


class Reader:
    """Who follows a page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: Optional["subprocess.Popen[bytes]"] = None
        self.port = 0
        self.printed = ""

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(ADDRESS, "127.0.0.1:0"))

    def run(self, script: str) -> None:
        serves = "hob serve" in script
        script = DONE.sub("", script).replace(ADDRESS, f"127.0.0.1:{self.port}")
        program = served.program()
        assert program is not None, "asked for by tests that have looked before"
        words = ["bash", "-euo", "pipefail", "-c", f'hob() {{ "{program}" "$@"; }}\n{script}']
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=4 * peer.PATIENCE_SECONDS,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        self.printed += done.stdout
        if serves:
            # As root the server runs programs as an account that owns nothing here.
            subprocess.run(["chmod", "-R", "a+rwX", str(self.folder)], check=True)
            self.serve(program)

    def environment(self) -> "dict[str, str]":
        own = {"XDG_RUNTIME_DIR": str(self.folder / "run"), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**os.environ, **own}

    def serve(self, program: str) -> None:
        log = (self.folder / "server.log").open("w+b")
        self.server = subprocess.Popen(
            [program, "serve", "--config", "hob.toml"],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        log.close()
        assert self.server.stdout is not None
        for line in self.server.stdout:
            found = re.search(rb"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                break
        said = (self.folder / "server.log").read_text("utf-8", "replace")
        assert self.port, f"hob did not start: {said}"
        self.reader = threading.Thread(target=self.server.stdout.read, daemon=True)
        self.reader.start()

    def close(self) -> None:
        if self.server is None:
            return
        self.server.terminate()
        self.server.wait(peer.PATIENCE_SECONDS)
        assert self.server.stdout is not None
        if self.port:
            self.reader.join()
        self.server.stdout.close()


class Pages(unittest.TestCase):
    def follow(self, page: str, python: Optional[str] = None) -> None:
        if served.program() is None:
            self.skipTest("no hob with `resident` in HOB, target/ or PATH")
        if shutil.which("curl") is None:
            self.skipTest("curl is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        Path(folder.name).chmod(0o755)
        here = Path(folder.name) / "tea"
        (here / "run").mkdir(parents=True, mode=0o700)
        if python is not None:
            (here / "venv").symlink_to(Path(python).parent.parent)
        reader = Reader(here)
        self.addCleanup(reader.close)
        expected = 0
        for language, text in blocks(page):
            name = file_name(text)
            if name is not None:
                reader.write(name, text)
            elif language == "sh":
                reader.run(text)
            elif language == "text":
                for line in text.splitlines():
                    expected += 1
                    self.assertIn(line, reader.printed)
                reader.printed = ""
        self.assertGreaterEqual(expected, 4, "what the page promises was seen")

    def test_django(self) -> None:
        self.follow("django.md", test_sites.environment())

    def test_flask(self) -> None:
        self.follow("flask.md", test_sites.environment())

    def test_fastapi(self) -> None:
        self.follow("fastapi.md", test_sites.environment())

    def test_perl_from_apache(self) -> None:
        self.follow("perl-from-apache.md")

    def test_several_sites(self) -> None:
        self.follow("several-sites.md")


if __name__ == "__main__":
    unittest.main()
