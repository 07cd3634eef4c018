"""The control: what attacked.d2w does, by a program that pastes what a visitor sends into its statements."""

import html
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

QUOTED = "SELECT id, title FROM part WHERE kind = '{kind}' ORDER BY id"

# By the name of the place; fields are what attacked.d2w calls them.
STATEMENTS = {
    "quoted": QUOTED,
    "like": "SELECT id, title FROM part WHERE title LIKE '%{q}%' ORDER BY id",
    "number": "SELECT id, title FROM part WHERE id = {id}",
    "among": "SELECT id, title FROM part WHERE id IN ({ids}) ORDER BY id",
    "ordered": "SELECT id, title FROM part ORDER BY {sort}",
    "limited": "SELECT id, title FROM part ORDER BY id LIMIT {n}",
    "filtered": "SELECT id, title FROM part WHERE kind = '{kind}' AND title LIKE '%{q}%' ORDER BY id",
    "doubled": QUOTED,
    "built": QUOTED,
    "entered": "SELECT id, title FROM part WHERE kind = '{kind}' AND title = '{title}'",
    "agent": "SELECT id, title FROM part WHERE kind = '{agent}' ORDER BY id",
    "again": QUOTED,
    "window": "SELECT id, title FROM part WHERE kind = 'nut' ORDER BY id LIMIT 20 OFFSET {START_ROW_NUM}",
    "search.sql": "SELECT id, title FROM part WHERE title LIKE '%{q}%' ORDER BY id",
    "one.sql": "SELECT id, title FROM part WHERE id = {id}",
}


def of_sqlite(file: Path, statement: str, kept: str | None) -> list[tuple]:
    with sqlite3.connect(file, isolation_level=None, timeout=30) as database:
        if kept is not None:
            database.execute("INSERT INTO note (word) VALUES (?)", [kept])
        return database.execute(statement).fetchall()


def of_postgres(url: str, statement: str, kept: str | None) -> list[tuple]:
    import psycopg

    with psycopg.connect(url.replace("@/", "@localhost/", 1), autocommit=True) as database:
        if kept is not None:
            database.execute("INSERT INTO note (word) VALUES (%s)", [kept])
        found = database.execute(statement.encode())
        return found.fetchall() if found.description else []


class Pasted:
    """A server of these pages on a port of its own, for as long as a block."""

    def __init__(self, file: Path, url: str | None):
        def ask(database: str, statement: str, kept: str | None) -> list[tuple]:
            if database == "sqlite":
                return of_sqlite(file, statement, kept)
            return of_postgres(url or "", statement, kept)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.answer(urlsplit(self.path).query)

            def do_POST(self) -> None:
                self.answer(self.rfile.read(int(self.headers["Content-Length"] or 0)).decode())

            def answer(self, form: str) -> None:
                _, database, *_, place = urlsplit(self.path).path.split("/")
                fields = {name: values[0] for name, values in parse_qs(form, keep_blank_values=True).items()}
                fields["agent"] = self.headers["User-Agent"] or ""
                usual = {name: "" for name in ("kind", "q", "title")}
                try:
                    statement = STATEMENTS[place].format_map(usual | fields)
                    rows = ask(database, statement, fields["kind"] if place == "again" else None)
                    items = "".join(f"<li>{html.escape(' '.join(map(str, row)))}\n" for row in rows)
                    status, body = 200, f"<ul>{items}</ul>"
                except Exception as error:
                    # Whatever the statement became: its page says so, as such programs do.
                    status, body = 500, f"<p>{type(error).__name__}: {html.escape(str(error))}</p>"
                said = body.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"
