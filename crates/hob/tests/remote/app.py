"""What the tests ask of a program, as CGI script and as WSGI application; the path says what to do."""

import os
import sys
import time


def answer(variables, body):
    """Status, fields and pieces of a body."""
    action = variables["PATH_INFO"].partition("/")[2].partition("/")
    status, given, pieces = ACTIONS[action[0]](variables, body, action[2])
    # Whether hob sees the end in time to tell a length is up to the machine.
    if isinstance(pieces, list) and pieces and not any(name == "Content-Length" for name, _ in given):
        given.append(("Content-Length", str(sum(map(len, pieces)))))
    return status, given, pieces


def tell(variables, body, rest):
    names = sorted(name for name in variables if name.isupper() and name not in ("UNIQUE_ID", "PATH", "LC_CTYPE"))
    lines = "".join(f"{name}={variables[name]}\n" for name in names if isinstance(variables[name], str))
    return "200 OK", [("Content-Type", "text/plain")], [lines.encode("utf-8", "surrogateescape")]


def echo(variables, body, rest):
    return "200 OK", [("Content-Type", "application/octet-stream")], [body.read()]


def fields(variables, body, rest):
    given = [("Content-Type", "text/plain"), ("ETag", '"a"'), ("X-cAsE", "1"), ("Set-Cookie", "a=b"), ("Set-Cookie", "c=d")]
    return "200 OK", given, [b"0123456789" * 200]


def missing(variables, body, rest):
    return "404 Not Found", [("Content-Type", "text/plain"), ("X-Own", "yes")], [b"not here\n"]


def silent(variables, body, rest):
    return "404 Not Found", [("Content-Type", "text/plain")], []


def inside(variables, body, rest):
    return "200 OK", [("X-Accel-Redirect", "/app/tell/again?x=y"), ("Set-Cookie", "z=1")], []


def place(variables, body, rest):
    if "wsgi.input" in variables:
        return inside(variables, body, rest)
    return None, [("Location", "/app/tell/place?x=y")], []


def file(variables, body, rest):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files", rest)
    return "200 OK", [("X-Sendfile", path), ("Content-Type", "text/x-own")], []


def none(variables, body, rest):
    return "204 No Content", [("X-Own", "yes")], []


def short(variables, body, rest):
    return "200 OK", [("Content-Type", "text/plain"), ("Content-Length", "10000000")], [b"x" * 5000000]


def endless(variables, body, rest):
    def pieces():
        while True:
            yield b"x" * 65536

    return "200 OK", [("Content-Type", "application/octet-stream")], pieces()


def slow(variables, body, rest):
    time.sleep(0.02)
    return "200 OK", [("Content-Type", "text/plain")], [b"slow\n"]


def fail(variables, body, rest):
    sys.stderr.write("this is said on standard error\n")
    sys.stderr.flush()
    os._exit(3)


ACTIONS = {
    "tell": tell,
    "echo": echo,
    "fields": fields,
    "missing": missing,
    "silent": silent,
    "inside": inside,
    "place": place,
    "file": file,
    "none": none,
    "short": short,
    "endless": endless,
    "slow": slow,
    "fail": fail,
}


def application(environ, start_response):
    status, given, pieces = answer(environ, environ["wsgi.input"])
    start_response(status, given)
    return pieces


if __name__ == "__main__":
    status, given, pieces = answer(dict(os.environ), sys.stdin.buffer)
    out = sys.stdout.buffer
    lines = "".join(f"{name}: {value}\r\n" for name, value in given)
    status = f"Status: {status}\r\n" if status else ""
    out.write(f"{status}{lines}\r\n".encode())
    for piece in pieces:
        out.write(piece)
    out.flush()
