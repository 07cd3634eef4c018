"""The tests' program as a plain loop."""

import os

import acts
import hob


def serve(request, verb, rest):
    fields = {"Content-Type": "application/octet-stream"}
    if verb == "raise":
        request.fail("told to raise")
    elif verb == "kill":
        acts.die()
    elif verb == "pid":
        request.respond(200, fields, str(os.getpid()))
    elif verb == "down":
        request.respond(200, {**fields, "Content-Length": rest}, acts.pattern(int(rest)))
    else:
        request.start(200, fields)
        STREAMS[verb](request, rest)


def echo(request, rest):
    while True:
        piece = request.body.read(50_000)
        if not piece:
            break
        request.write(piece)
    request.finish()


def pieces(request, rest):
    request.write(b"first\n")
    acts.wait_for(rest + ".go")
    request.write(b"second\n")
    request.finish()


def endless(request, rest):
    while not request.is_cancelled:
        request.write(b"x" * 10_000)
    acts.mark(rest + ".left")


def raise_late(request, rest):
    request.write(b"first\n")
    acts.wait_for(rest + ".go")
    request.fail("told to raise")


def kill_late(request, rest):
    request.write(b"first\n")
    acts.wait_for(rest + ".go")
    acts.die()


STREAMS = {act.__name__: act for act in (echo, pieces, endless, raise_late, kill_late)}

for request in hob.requests():
    verb, _, rest = request.environ["PATH_INFO"].lstrip("/").partition("/")
    serve(request, verb, rest)
