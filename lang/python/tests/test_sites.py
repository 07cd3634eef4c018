"""Other people's frameworks through the real server: a Django site, a Starlette application."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import http.cookiejar
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Dict, List, Optional

import peer
import served

SITES = served.visible(Path(__file__).resolve().parent / "sites")
PACKAGES = [
    "django>=4.2,<6",
    "flask<4",
    "fastapi<1",
    "starlette>=0.37,<2",
    "python-multipart<1",
    "anyio<5",
    "uvloop<1",
    "websockets>=13,<17",
]


def environment() -> str:
    """The Python of a virtual environment with the frameworks; raises SkipTest in words."""
    named = os.environ.get("HOB_TEST_VENV")
    folder = Path(named) if named else Path(tempfile.gettempdir()) / f"hob-sites-{os.getuid()}"
    python = folder / "bin" / "python3"
    if python.exists() and _imports(python):
        return str(python)
    # As root the server runs programs as an account that cannot enter root's home.
    base = "/usr/bin/python3" if os.getuid() == 0 else sys.executable
    done = subprocess.run([base, "-m", "venv", str(folder)], capture_output=True)
    if done.returncode:
        raise unittest.SkipTest("python3 -m venv makes no virtual environment here")
    done = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise unittest.SkipTest(f"PyPI is not reachable: {done.stderr.strip().splitlines()[-1:]}")
    folder.chmod(0o755)
    return str(python)


def _imports(python: Path) -> bool:
    words = [str(python), "-c", "import django, flask, fastapi, starlette, python_multipart, uvloop, websockets"]
    return subprocess.run(words, capture_output=True).returncode == 0


class Frameworks(unittest.TestCase):
    python = ""

    @classmethod
    def setUpClass(cls) -> None:
        if served.program() is None:
            raise unittest.SkipTest("no hob with `resident` in HOB, target/ or PATH")
        cls.python = environment()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o777)

    def serve(self, routes: str, **more: Any) -> served.Site:
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        return stack.enter_context(served.site(self.folder, routes, **more))


class Browser:
    """Keeps cookies and fills in forms."""

    def __init__(self, site: served.Site) -> None:
        self.base = f"http://127.0.0.1:{site.port}"
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)

    def get(self, path: str, fields: Optional[Dict[str, str]] = None) -> str:
        """A page; with fields, what follows a form sent there with its token."""
        data = None
        if fields is not None:
            found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(path))
            assert found is not None, "a form without a token"
            data = urllib.parse.urlencode(
                {"csrfmiddlewaretoken": found.group(1), **fields}
            ).encode()
        request = urllib.request.Request(self.base + path, data, {"Referer": self.base + path})
        with self._opener.open(request, timeout=peer.PATIENCE_SECONDS) as answer:
            return str(answer.read().decode("utf-8"))

    def status(self, path: str, data: Optional[bytes] = None) -> int:
        try:
            with self._opener.open(self.base + path, data, timeout=peer.PATIENCE_SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


class Django(Frameworks):
    fresh: "tempfile.TemporaryDirectory[str]"

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.fresh = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.fresh.cleanup)
        cls.manage("migrate", "--run-syncdb", "-v0")
        cls.manage("collectstatic", "--noinput", "-v0")
        password = {"DJANGO_SUPERUSER_PASSWORD": "kettle"}
        cls.manage("createsuperuser", "--noinput", "--username=ann", "--email=", **password)

    @classmethod
    def manage(cls, *words: str, **environ: str) -> None:
        django = {
            "DJANGO_SETTINGS_MODULE": "guestbook.settings",
            "GUESTBOOK_FOLDER": cls.fresh.name,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [cls.python, "-m", "django", *words],
            cwd=SITES,
            env={**os.environ, **django, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout

    def setUp(self) -> None:
        super().setUp()
        shutil.copytree(self.fresh.name, self.folder, dirs_exist_ok=True)
        self.large = os.urandom(3_000_000)
        (self.folder / "large.bin").write_bytes(self.large)
        for path in [self.folder, *self.folder.rglob("*")]:
            path.chmod(0o777 if path.is_dir() else 0o666)
        program = served.started(
            "wsgi", "guestbook.wsgi:application", self.python, GUESTBOOK_FOLDER=str(self.folder)
        )
        self.site = self.serve(
            f"""
[[site.route]]
path = "/static/*"
files = {{ root = "{self.folder}/static" }}

[[site.route]]
path = "/*"
body = "10MiB"
{program}
resident.dir = "{SITES}"
resident.workers = {{ max = 2, concurrency = 4 }}
"""
        )

    def test_guest_book_with_admin_forms_sessions_and_static_files(self) -> None:
        browser = Browser(self.site)
        self.assertIn("visit 1", browser.get("/"))
        self.assertIn(
            "<b>Bert</b>: &lt;tea&gt; ä", browser.get("/", {"name": "Bert", "text": "<tea> ä"})
        )
        self.assertIn("visit 4", browser.get("/"))
        self.assertIn("visit 1", Browser(self.site).get("/"))
        self.assertEqual(browser.status("/", b"name=x&text=y"), 403)  # without its token

        self.assertIn("id_username", browser.get("/admin/"))
        wrong = browser.get("/admin/login/?next=/admin/", {"username": "ann", "password": "pot"})
        self.assertIn("Please enter the correct username and password", wrong)
        page = browser.get("/admin/login/?next=/admin/", {"username": "ann", "password": "kettle"})
        self.assertIn("Site administration", page)
        listed = browser.get("/admin/guestbook/entry/add/", {"name": "Carl", "text": "by admin"})
        self.assertIn("was added successfully", listed)
        self.assertIn("<b>Carl</b>: by admin", browser.get("/"))

        style = re.search(r'href="(/static/admin/css/base[^"]*\.css)"', page)
        assert style is not None
        self.assertEqual(
            browser.get(style.group(1)), (self.folder / style.group(1)[1:]).read_text("utf-8")
        )

    def test_streams_files_and_errors(self) -> None:
        count = self.site.ask("/count")
        self.assertEqual(count.body, "".join(f"{n}\n" for n in range(1, 10001)).encode())
        self.assertIsNone(count.failure)
        file = self.site.ask("/file")
        self.assertTrue(file.body == self.large)
        self.assertEqual(file.field("content-length"), "3000000")
        self.assertEqual(self.site.ask("/absent").status, 404)
        self.assertEqual(self.site.ask("/broken").status, 500)
        head = self.site.ask("/file", "HEAD")
        self.assertEqual((head.status, head.body), (200, b""))

    def test_many_guests_write_at_a_time(self) -> None:
        def guest(n: int) -> None:
            browser = Browser(self.site)
            for at in range(3):
                browser.get("/", {"name": f"guest {n}", "text": f"line {at}"})

        threads = [threading.Thread(target=guest, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        page = Browser(self.site).get("/")
        for n in range(6):
            self.assertEqual(page.count(f"<b>guest {n}</b>"), 3)


class Starlette(Frameworks):
    def setUp(self) -> None:
        super().setUp()
        self.site = self.serve(
            f"""
[[site.route]]
path = "/feed/*"
body = "10MiB"
{served.started("asgi", "feed:application", self.python)}
resident.dir = "{SITES}"
resident.workers = {{ max = 1, concurrency = 32 }}
"""
        )

    def test_answers_streams_forms_and_errors(self) -> None:
        site = self.site
        got = site.ask("/feed/?a=%C3%A4", headers=[("User-Agent", "test")])
        self.assertEqual(
            json.loads(got.body), {"path": "/feed/", "query": {"a": "ä"}, "agent": "test"}
        )
        body = os.urandom(2_000_000)
        digest = hashlib.sha256(body).hexdigest().encode()
        self.assertEqual(site.ask("/feed/digest", "POST", (), body).body, digest)
        self.assertEqual(site.ask("/feed/digest", "POST", (), body, chunked=True).body, digest)
        self.assertTrue(site.ask("/feed/echo", "POST", (), body).body == body)
        count = site.ask("/feed/count")
        self.assertEqual(count.body, "".join(f"{n}\n" for n in range(1, 10001)).encode())
        form = (
            b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\nT\r\n'
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
            + b"abc" * 1000
            + b"\r\n--x--\r\n"
        )
        fields = [("Content-Type", "multipart/form-data; boundary=x")]
        got = site.ask("/feed/form", "POST", fields, form)
        self.assertEqual(json.loads(got.body), {"title": "T", "name": "f", "size": 3000})
        self.assertEqual(site.ask("/feed/absent").status, 404)
        self.assertEqual(site.ask("/feed/broken").status, 500)
        self.assertEqual(site.ask("/feed/count", "HEAD").body, b"")

    def test_the_faster_loop_is_taken_where_it_is_installed(self) -> None:
        self.assertEqual(self.site.ask("/feed/loop").body, b"uvloop")

    def test_websocket_is_talked_to(self) -> None:
        client = """
import sys
from websockets.sync.client import connect
with connect(sys.argv[1], proxy=None) as socket:
    for text in ("one", "two"):
        socket.send(text)
        print(socket.recv())
"""
        path = "/feed/talk"
        words = [self.python, "-c", client, f"ws://127.0.0.1:{self.site.port}{path}"]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=peer.PATIENCE_SECONDS
        )
        said = [json.loads(line) for line in done.stdout.splitlines()]
        expected = [{"path": path, "said": word} for word in ("one", "two")]
        self.assertEqual(said, expected, done.stderr)

    def test_background_task_runs_after_its_answer(self) -> None:
        self.assertEqual(self.site.ask("/feed/note").body, b"noted")
        self.assertEqual(self.site.ask("/feed/notes").body, b"written after the answer")

    def test_many_requests_are_inside_at_the_same_time(self) -> None:
        found: List[bytes] = []
        threads = [
            threading.Thread(target=lambda: found.append(self.site.ask("/feed/meet?n=20").body))
            for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [b"met"] * 20)

    def test_client_that_leaves_a_stream_does_no_harm(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, peer.PATIENCE_SECONDS)
        connection.request("GET", "/feed/count")
        with connection.getresponse() as answer:
            self.assertEqual(answer.read(2), b"1\n")
        connection.close()
        self.assertEqual(self.site.ask("/feed/").status, 200)


if __name__ == "__main__":
    unittest.main()
