"""The tests' program as a WSGI application."""

import os
import threading

import acts

barrier = threading.Barrier(8)


def application(environ, start_response):
    verb, _, rest = environ["PATH_INFO"].lstrip("/").partition("/")
    fields = [("Content-Type", "application/octet-stream")]
    if verb == "pid":
        start_response("200 OK", fields)
        return [str(os.getpid()).encode()]
    if verb == "down":
        start_response("200 OK", [*fields, ("Content-Length", rest)])
        return [acts.pattern(int(rest))]
    if verb == "together":
        barrier.wait(60)
        start_response("200 OK", fields)
        return [b"together"]
    if verb == "raise":
        raise ValueError("told to raise")
    if verb == "kill":
        acts.die()
    start_response("200 OK", fields)
    return STREAMS[verb](environ, rest)


def echo(environ, rest):
    while True:
        piece = environ["wsgi.input"].read(50_000)
        if not piece:
            return
        yield piece


def pieces(environ, rest):
    yield b"first\n"
    acts.wait_for(rest + ".go")
    yield b"second\n"


def endless(environ, rest):
    try:
        while True:
            yield b"x" * 10_000
    finally:
        acts.mark(rest + ".left")


def raise_late(environ, rest):
    yield b"first\n"
    acts.wait_for(rest + ".go")
    raise ValueError("told to raise")


def kill_late(environ, rest):
    yield b"first\n"
    acts.wait_for(rest + ".go")
    acts.die()


STREAMS = {act.__name__: act for act in (echo, pieces, endless, raise_late, kill_late)}
