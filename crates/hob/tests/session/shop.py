"""A shop for the tests: what the path says is done, and what was done before is known."""

import os
import signal
import sqlite3
import time
import urllib.parse

import hob

cart = []
database = None


def main():
    for request in hob.requests():
        what, _, rest = request.environ["PATH_INFO"].lstrip("/").partition("/")
        ACTIONS[what](request, rest)
    if os.path.exists("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        mark("stays")
        while True:
            time.sleep(3600)
    mark("left")


def keep(request, body, handle=None, more=()):
    handle = handle or request.environ["HTSession"]
    head = [("Accept-HTSession", handle), *more, ("Content-Type", "text/plain")]
    request.respond(200, head, body)


def mark(name):
    with open(name, "w"):
        pass


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


def add(request, rest):
    cart.append(rest)
    keep(request, ",".join(cart))


def tell(request, rest):
    keep(request, "\n".join(str(request.environ.get(name)) for name in rest.split(",")))


def echo(request, rest):
    keep(request, request.body.read())


def pid(request, rest):
    keep(request, str(os.getpid()))


def leave(request, rest):
    request.respond(200, [("Content-Type", "text/plain")], "bye")


def hold(request, rest):
    mark(rest + ".begun")
    wait_for(rest + ".go")
    add(request, rest)


def leave_held(request, rest):
    mark(rest + ".begun")
    wait_for(rest + ".go")
    leave(request, rest)


def rotate(request, rest):
    keep(request, request.environ["HTSessionNext"], request.environ["HTSessionNext"])


def head(request, rest):
    """Answers with the head that the query has; H in a value is the handle."""
    handle = request.environ["HTSession"]
    fields = urllib.parse.parse_qsl(request.query, keep_blank_values=True)
    fields = [(name, handle if value == "H" else value) for name, value in fields]
    request.respond(200, fields, handle)


def minutes(request, rest):
    keep(request, "", more=[("HTTimeout", rest)])


def kill(request, rest):
    os.kill(os.getpid(), signal.SIGKILL)


def exit_now(request, rest):
    os._exit(3)


def order(request, rest):
    """One row more, in a transaction that is open until `commit`."""
    global database
    if database is None:
        database = sqlite3.connect("shop.db", isolation_level=None)
        database.execute("CREATE TABLE IF NOT EXISTS orders (what TEXT)")
        database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO orders VALUES (?)", (rest,))
    keep(request, "ordered")


def commit(request, rest):
    database.execute("COMMIT")
    leave(request, rest)


def count(request, rest):
    database = sqlite3.connect("shop.db")
    found = database.execute("SELECT count(*) FROM orders").fetchone()[0]
    request.respond(200, [("Content-Type", "text/plain")], str(found))


def move(request, rest):
    handle = request.environ["HTSession"]
    keep(request, "", more=[("Status", "303"), ("Location", f"/shop/{handle}/pid")])


ACTIONS = {
    action.__name__: action
    for action in (
        add,
        tell,
        echo,
        pid,
        leave,
        hold,
        leave_held,
        rotate,
        head,
        minutes,
        kill,
        exit_now,
        order,
        commit,
        count,
        move,
    )
}

main()
