"""A site of hob in a folder of its own, and a client that sees every byte of the answers.

The program is the one that HOB names, else the newest under target/, else `hob` on PATH.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import peer

NATIVE = ("HOB_NATIVE", "HOB_LIBRARY")
ROOT = peer.FOLDER.parent.parent


def program() -> Optional[str]:
    """The hob to test with, if it is there and knows `resident`."""
    named = os.environ.get("HOB")
    built = [ROOT / "target" / kind / "hob" for kind in ("debug", "release")]
    there = sorted(
        (path for path in built if path.is_file()), key=lambda path: -path.stat().st_mtime
    )
    for found in [named] if named else [*map(str, there), shutil.which("hob")]:
        if (
            found
            and subprocess.run(
                [found, "check", "--explain", "resident"], capture_output=True
            ).returncode
            == 0
        ):
            return found
    return None


def visible(folder: Path) -> Path:
    """This folder, or a copy of it: as root the server runs programs as an account without rights,
    which cannot enter root's home."""
    if os.getuid() != 0 or all(part.stat().st_mode & 1 for part in [folder, *folder.parents]):
        return folder
    if folder not in _copies:
        copies = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, copies, ignore_errors=True)
        os.chmod(copies, 0o755)
        _copies[folder] = Path(shutil.copytree(folder, Path(copies) / folder.name))
    return _copies[folder]


_copies: Dict[Path, Path] = {}


def started(verb: str, target: str, python: str = "python3", **variables: str) -> str:
    """Lines of a route that run this folder's package, not the one that the server brings."""
    variables = {
        "PYTHONPATH": str(visible(peer.SOURCES)),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{name: os.environ[name] for name in NATIVE if name in os.environ},
        **variables,
    }
    env = ", ".join(f'{name} = "{value}"' for name, value in variables.items())
    run = f'["{python}", "-m", "hob", "{verb}", "{target}"]'
    return f"resident.run = {run}\nresident.env = {{ {env} }}\n"


class Site:
    """A running server. `routes` is the text of its [[site.route]] tables."""

    def __init__(self, folder: Path, routes: str, environ: Optional[Dict[str, str]] = None) -> None:
        found = program()
        assert found is not None, "asked for by tests that have looked before"
        # One of its own: of a config there is one server.
        handle, name = tempfile.mkstemp(".toml", "hob-", folder)
        os.close(handle)
        config = Path(name)
        config.write_text(f'[[listen]]\naddress = "127.0.0.1:0"\n\n[[site]]\n\n{routes}')
        self.log = (folder / "server.log").open("w+b")
        self.process = subprocess.Popen(
            [found, "serve", "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**os.environ, **(environ or {})},
        )
        assert self.process.stdout is not None
        self.port = 0
        for line in self.process.stdout:
            match = re.search(rb"listening on http://127\.0\.0\.1:(\d+)", line)
            if match:
                self.port = int(match.group(1))
                break
        if not self.port:
            said = self.said()
            self.close()
            raise RuntimeError(f"hob did not start: {said}")
        self._reader = threading.Thread(target=self.process.stdout.read, daemon=True)
        self._reader.start()

    def said(self) -> str:
        """What the server and its programs have logged so far."""
        self.log.flush()
        return Path(self.log.name).read_text("utf-8", "replace")

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(peer.PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        if self.port:
            self._reader.join()
        self.process.stdout.close()
        self.log.close()

    def ask(
        self,
        target: str,
        method: str = "GET",
        headers: Any = (),
        body: Optional[bytes] = None,
        *,
        chunked: bool = False,
    ) -> peer.Answer:
        """One request on a connection of its own."""
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers]
        if chunked:
            lines.append("Transfer-Encoding: chunked")
        elif body is not None:
            lines.append(f"Content-Length: {len(body)}")
        data = "\r\n".join([*lines, "", ""]).encode()
        with socket.create_connection(("127.0.0.1", self.port), peer.PATIENCE_SECONDS) as sock:
            sender = threading.Thread(target=_send, args=(sock, data, body or b"", chunked))
            sender.start()
            got = _received(sock)
            sender.join()
        return parsed(got, method)


def _send(sock: socket.socket, head: bytes, body: bytes, chunked: bool) -> None:
    with contextlib.suppress(OSError):  # an answer that needs no body may come before its end
        sock.sendall(head)
        if not chunked:
            sock.sendall(body)
            return
        for at in range(0, len(body), 10_000):
            piece = body[at : at + 10_000]
            sock.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        sock.sendall(b"0\r\n\r\n")


def _received(sock: socket.socket) -> bytes:
    pieces: List[bytes] = []
    with contextlib.suppress(ConnectionResetError):
        while True:
            piece = sock.recv(1 << 20)
            if not piece:
                break
            pieces.append(piece)
    return b"".join(pieces)


def parsed(data: bytes, method: str) -> peer.Answer:
    """The answers on a connection that has ended: informational ones, then the real one."""
    infos = []
    while True:
        head, blank, data = data.partition(b"\r\n\r\n")
        if not blank:
            return peer.Answer(0, [], b"", [], infos, "no head")
        status = int(head.split(b" ", 2)[1])
        fields = peer.lines(head.partition(b"\r\n")[2])
        if status >= 200:
            break
        infos.append((status, fields))
    known = {name.lower(): value for name, value in fields}
    if method == "HEAD" or status in (204, 304):
        return peer.Answer(status, fields, data, [], infos, None)
    if known.get("transfer-encoding") == "chunked":
        body, trailers, failure = unchunked(data)
        return peer.Answer(status, fields, body, trailers, infos, failure)
    size = int(known["content-length"]) if "content-length" in known else len(data)
    failure = None if len(data) == size else f"{len(data)} bytes of {size}"
    return peer.Answer(status, fields, data, [], infos, failure)


def unchunked(data: bytes) -> Tuple[bytes, List[Tuple[str, str]], Optional[str]]:
    pieces = []
    while True:
        line, end, data = data.partition(b"\r\n")
        if not end:
            return b"".join(pieces), [], "the chunks break off"
        size = int(line.split(b";")[0], 16)
        if size == 0:
            break
        if len(data) < size + 2:
            return b"".join([*pieces, data[:size]]), [], "a chunk breaks off"
        pieces.append(data[:size])
        data = data[size + 2 :]
    trailers = data.partition(b"\r\n\r\n")[0] if data != b"\r\n" else b""
    return b"".join(pieces), peer.lines(trailers), None


@contextlib.contextmanager
def site(folder: Path, routes: str, **more: Any) -> Iterator[Site]:
    made = Site(folder, routes, **more)
    try:
        yield made
    finally:
        made.close()
