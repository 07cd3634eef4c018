#!/usr/bin/env python3
"""Answers the shared cases (lang/probe) as a CGI script, which knows nothing of what runs it."""

import os
import sys

TEXT = b"Content-Type: text/plain\r\n"
BYTES = b"Content-Type: application/octet-stream\r\n"
PATTERN = b"0123456789abcdef"
out = sys.stdout.buffer


def main():
    page, *words = os.environ["PATH_INFO"].split("/")[1:]
    if page in PLAIN:
        out.write(PLAIN[page])
    elif page == "environ":
        out.write(TEXT + b"\r\n" + b"".join(shown()))
    elif page == "echo":
        echo(words)
    elif page == "count":
        out.write(TEXT + b"\r\n%d\n" % sum(map(len, pieces())))
    elif page == "status" and words[0] in ("204", "304"):
        out.write(f"Status: {words[0]}\r\n\r\n".encode())
    elif page == "status":
        out.write(f"Status: {words[0]}\r\n".encode() + TEXT + f"\r\nstatus {words[0]}\n".encode())
    elif page == "size":
        out.write(BYTES + f"Content-Length: {words[0]}\r\n\r\n".encode() + pattern(int(words[0])))
    elif page == "stream":
        total, piece = map(int, words)
        whole = pattern(total)
        one_by_one(BYTES, (whole[at : at + piece] for at in range(0, total, piece)))
    elif page == "slow":
        one_by_one(TEXT, (b"line %d\n" % n for n in range(1, int(words[0]) + 1)))
    elif page == "fail":
        fail(words[0])
    else:
        out.write(b"Status: 404\r\n" + TEXT + b"\r\nno such case\n")


def shown():
    for name in os.environb[b"HTTP_X_SHOW"].split(b","):
        value = os.environb.get(name)
        yield name + (b" is not set\n" if value is None else b"=" + value + b"\n")


def echo(words):
    kind = b"Content-Type: %s\r\n" % os.environb.get(b"CONTENT_TYPE", b"text/plain")
    if words == ["stream"]:
        one_by_one(kind, pieces())
    else:
        out.write(kind + b"\r\n" + sys.stdin.buffer.read())


def one_by_one(fields, answer):
    out.write(fields + b"\r\n")
    for piece in answer:
        out.write(piece)
        out.flush()


def fail(when):
    if when == "after":
        one_by_one(TEXT, [b"some"])
    raise RuntimeError("as asked")


def pieces():
    return iter(lambda: sys.stdin.buffer.read1(65536), b"")


def pattern(size):
    return (PATTERN * (size // 16 + 1))[:size]


PLAIN = {
    "hello": b"Content-Length: 12\r\n" + TEXT + b"\r\nHello world\n",
    "empty": TEXT + b"\r\n",
    "ignore": TEXT + b"\r\nignored\n",
    "redirect": b"Status: 302\r\nLocation: https://example.invalid/there\r\n\r\n",
    "fields": b"Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; HttpOnly\r\nX-Empty:\r\nX-Long: "
    + b"l" * 4000
    + "\r\nX-Bytes: äöü\r\n".encode()
    + TEXT
    + b"\r\nfields\n",
    "type": b"Content-Type: image/svg+xml\r\n\r\n<svg/>",
}

main()
