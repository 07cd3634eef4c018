"""Speaks the stream protocol by itself, and passes what the path says, right or wrong."""

import os
import socket
import struct

server = socket.socket(fileno=int(os.environ["HOB_FD"]))
HEAD, DATA, END, FILE = 34, 35, 36, 40
LAST, FILES = 1, 32
message_head = struct.Struct("<IBBHII")


def take(count):
    data = b""
    while len(data) < count:
        piece = server.recv(count - len(data))
        if not piece:
            raise SystemExit
        data += piece
    return data


def receive():
    length, kind, flags, small, ident, large = message_head.unpack(take(16))
    return kind, ident, take(length)


held = b""


def hold(kind, ident, payload, small):
    """A message that leaves together with the next one."""
    global held
    held = message_head.pack(len(payload), kind, 0, small, ident, 0) + payload


def send(kind, ident, payload=b"", flags=0, small=0, large=0, files=()):
    global held
    data = held + message_head.pack(len(payload), kind, flags, small, ident, large) + payload
    held = b""
    if files:
        socket.send_fds(server, [data], files)
    else:
        server.sendall(data)


def pass_on(ident, fd, length=10, offset=0, flags=LAST):
    send(FILE, ident, struct.pack("<QQ", offset, length), flags, files=[fd])
    os.close(fd)


def opened(path, flags=os.O_RDONLY):
    return os.open(path, flags)


def wrong(what):
    if what == "pipe":
        return os.pipe()[0]
    if what == "socket":
        return socket.socketpair()[0].detach()
    if what == "folder":
        return opened(".")
    if what == "proc":
        return opened("/proc/self/status")
    if what == "device":
        return opened("/dev/zero")
    if what == "unreadable":
        return opened("data", os.O_WRONLY)
    assert what == "place"
    return opened("data", os.O_PATH)


def answer(ident, path):
    _, what, *rest = path.split("/")
    hold(HEAD, ident, b"Content-Type: text/plain\n", small=200)
    if what == "pid":
        send(DATA, ident, str(os.getpid()).encode(), LAST)
    elif what == "file":
        pass_on(ident, opened("data"))
    elif what == "beyond":
        pass_on(ident, opened("data"), offset=os.path.getsize("data") - 9)
    elif what == "nothing":
        pass_on(ident, opened("data"), length=0)
    elif what == "later":
        send(DATA, ident, b"the first half\n")
        while not os.path.exists("later.go"):
            pass
        pass_on(ident, wrong("pipe"))
    elif what == "missing":
        send(FILE, ident, struct.pack("<QQ", 0, 10), LAST)
    elif what == "flood":
        size = os.path.getsize("huge")
        for _ in range(20):
            pass_on(ident, opened("huge"), length=size, flags=0)
    elif what == "heap":
        send(DATA, ident, b"x", LAST, files=[opened("data") for _ in range(20)])
    else:
        pass_on(ident, wrong(what))


receive()
send(33, 0, b"passes/1", FILES if os.environ.get("PASSES") else 0, 1, 1)
while True:
    kind, ident, payload = receive()
    if kind == 2:
        words = payload[144:].split(b"\0")
        answer(ident, dict(zip(words[::2], words[1::2]))[b"PATH_INFO"].decode())
