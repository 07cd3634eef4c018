"""A form with a file in it, as a WSGI application: says how large the file is and its digest."""

import hashlib
from email import message_from_bytes
from html import escape

FORM = """<!doctype html>
<title>Upload</title>
<form method="post" enctype="multipart/form-data">
<label>What is it? <input name="title"></label>
<label>File <input type="file" name="file"></label>
<button>Send</button>
</form>
"""
BODY_BYTES_MAX = 10_000_000


def application(environ, start_response):
    if environ["REQUEST_METHOD"] != "POST":
        return page(start_response, "200 OK", FORM)
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > BODY_BYTES_MAX:
        return page(start_response, "413 Content Too Large", "<p>10 MB at most.\n")
    fields = parts(environ["CONTENT_TYPE"], environ["wsgi.input"].read(length))
    name, file = fields.get("file", ("", b""))
    title = fields.get("title", ("", b""))[1].decode("utf-8", "replace")
    text = (
        f"<p>{escape(title)}: {escape(name)}, {len(file)} bytes, "
        f"sha256 {hashlib.sha256(file).hexdigest()}\n"
    )
    return page(start_response, "200 OK", text)


def page(start_response, status, text):
    body = text.encode()
    start_response(
        status,
        [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))],
    )
    return [body]


def parts(content_type, body):
    """The fields of a multipart/form-data body: by name, the file's name and the bytes."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1")
    found = {}
    for part in message_from_bytes(head + body).get_payload():
        name = part.get_param("name", header="content-disposition")
        found[name] = (part.get_filename(""), part.get_payload(decode=True))
    return found
