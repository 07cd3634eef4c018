"""A pot of tea that remembers: a WSGI application, whose process stays between requests."""

import os
from itertools import count

cups = count(1)


def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/pour":
        status = "200 OK"
        text = f"{next(cups)} cups poured from this pot, process {os.getpid()}\n"
    else:
        status, text = "404 Not Found", f"There is no {path} here; try /pour\n"
    body = text.encode()
    fields = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start_response(status, fields)
    return [body]
