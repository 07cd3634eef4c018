"""Notes on a wall, as a WSGI application: a GET shows them, a POST adds one."""

from html import escape
from urllib.parse import parse_qs

BODY_BYTES_MAX = 10_000
NOTES_MAX = 100

notes = ["Tea is at four."]

PAGE = """<!doctype html>
<title>Notes</title>
<form method="post"><input name="note" autofocus> <button>Add</button></form>
<ul>
{items}
</ul>
"""


def application(environ, start_response):
    if environ["REQUEST_METHOD"] == "POST":
        body = environ["wsgi.input"].read(BODY_BYTES_MAX).decode("utf-8", "replace")
        notes.extend(parse_qs(body).get("note", []))
        del notes[:-NOTES_MAX]
        start_response("303 See Other", [("Location", environ["SCRIPT_NAME"] or "/")])
        return [b""]
    items = "\n".join(f"<li>{escape(note)}" for note in notes)
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
    return [PAGE.format(items=items).encode()]
