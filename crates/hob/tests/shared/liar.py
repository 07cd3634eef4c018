"""Speaks the protocol over the socket, and breaks it as the path or the environment says."""

import os
import signal
import socket
import struct

HELLO, HEAD, DATA = 33, 34, 35
LAST, CHUNK = 1, 8
server = socket.socket(fileno=int(os.environ["HOB_FD"]))


def send(kind, request=0, payload=b"", flags=0, small=0, large=0, length=None):
    length = len(payload) if length is None else length
    head = struct.pack("<IBBHII", length, kind, flags, small, request, large)
    server.sendall(head + payload)


def read(count):
    read = b""
    while len(read) < count:
        piece = server.recv(count - len(read))
        if not piece:
            raise SystemExit
        read += piece
    return read


def receive():
    length, kind, _, _, request, _ = struct.unpack("<IBBHII", read(16))
    return kind, request, read(length)


def answer(request, path):
    if path == b"/fine":
        send(HEAD, request, b"Content-Type: text/plain\n", small=200)
        send(DATA, request, b"fine", LAST)
        return
    if path == b"/kind":
        send(99, request)
    elif path == b"/length":
        send(HEAD, request, length=1 << 30)
    elif path == b"/heads":
        send(HEAD, request, b"A: b\n", small=200)
        send(HEAD, request, b"A: b\n", small=200)
    elif path == b"/window":
        send(HEAD, request, b"A: b\n", small=200)
        for _ in range(1000):
            send(DATA, request, bytes(65536))
    elif path == b"/chunk":
        send(DATA, request, bytes(8), CHUNK)
    elif path == b"/greeting":
        send(HELLO, small=1, large=1)
    signal.pause()


if "EARLY" in os.environ:
    send(HEAD, 1, small=200)
receive()
send(HELLO, small=9 if "VERSION" in os.environ else 1, large=2 if "CARRIER" in os.environ else 1)
while True:
    kind, request, payload = receive()
    if kind == 2:
        words = payload[144:].split(b"\0")
        answer(request, dict(zip(words[::2], words[1::2]))[b"PATH_INFO"])
    elif kind == 7:
        break
