"""The same answers as the C program of `shared` gives, as a WSGI application."""

import signal


def application(environ, start_response):
    count = environ["QUERY_STRING"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    what = environ["PATH_INFO"]
    if what == "/lines":
        return (b"%0999d\n" % number for number in range(int(count)))
    if what == "/begun":
        return begun()
    if what == "/silent":
        signal.pause()
    if what == "/endless":
        return endless()
    raise ValueError(what)


def begun():
    yield b"begun\n"
    signal.pause()


def endless():
    while True:
        yield bytes(65536)
