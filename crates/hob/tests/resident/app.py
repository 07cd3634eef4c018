"""What the tests ask of a WSGI application; the path says what to do."""

import os
import signal
import time


def application(environ, start_response):
    what, _, rest = environ["PATH_INFO"].lstrip("/").partition("/")
    action = ACTIONS[what]
    return action(environ, start_response, rest)


def text(start, answer, status="200 OK"):
    body = answer.encode()
    start(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def mark(name):
    with open(name, "w"):
        pass


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


def tell(environ, start, rest):
    return text(start, "\n".join(f"{name}={environ.get(name)}" for name in rest.split(",")))


def pid(environ, start, rest):
    return text(start, str(os.getpid()))


def echo(environ, start, rest):
    start("200 OK", [("Content-Type", "application/octet-stream")])
    body = environ["wsgi.input"]
    return iter(lambda: body.read(65536), b"")


def endless(environ, start, rest):
    start("200 OK", [("Content-Type", "application/octet-stream")])
    piece = b"x" * 65536
    while True:
        yield piece


def hold(environ, start, rest):
    """Says that it has begun, and answers with its process once it may."""
    mark(rest + ".begun")
    wait_for(rest + ".go")
    return text(start, str(os.getpid()))


def kill(environ, start, rest):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_midway(environ, start, rest):
    start("200 OK", [("Content-Type", "text/plain")])
    yield b"the first half\n"
    wait_for(rest + ".go")
    os.kill(os.getpid(), signal.SIGKILL)


def sleeper_for_ever(environ, start, rest):
    mark(rest + ".begun")
    while True:
        time.sleep(3600)


def fall_silent(environ, start, rest):
    start("200 OK", [("Content-Type", "text/plain")])
    yield b"the first half\n"
    while True:
        time.sleep(3600)


def fail(environ, start, rest):
    raise ValueError("told to fail")


def burn(environ, start, rest):
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass
    return text(start, "burnt")


def nap(environ, start, rest):
    time.sleep(0.05)
    return text(start, "slept")


ACTIONS = {
    action.__name__: action
    for action in (
        tell,
        pid,
        echo,
        endless,
        hold,
        kill,
        kill_midway,
        sleeper_for_ever,
        fall_silent,
        fail,
        burn,
        nap,
    )
}
