"""Clients that send the cases: bytes over HTTP/1.1, fields without any care over HTTP/2 and HTTP/3."""

import socket
import ssl
import sys
from pathlib import Path

from corpus import Case, marker

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "crates" / "hob" / "tests" / "h3"))
import client as h3

SECONDS_MAX = 30

DATA, HEADERS, RESET, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def over_h1(port: int, case: Case) -> None:
    """Sends a case and its marker, and stays until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
        try:
            connection.sendall(case.sent + marker(case.id))
            if case.ends:
                connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
        except (BrokenPipeError, ConnectionResetError):
            return


def integer(value: int, bits: int, flags: int) -> bytes:
    """A number with a prefix of so many bits (RFC 7541 section 5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([flags | value])
    out, value = [flags | most], value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes([*out, value])


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def h2_block(fields) -> bytes:
    """Fields as they are, in no table and no code."""
    texts = lambda text: integer(len(text), 7, 0) + text
    return b"".join(b"\0" + texts(name) + texts(value) for name, value in fields)


def h2_request(stream: int, fields, pieces, trailers) -> bytes:
    frames = [[HEADERS, END_HEADERS, h2_block(fields)], *[[DATA, 0, piece] for piece in pieces]]
    if trailers is not None:
        frames.append([HEADERS, END_HEADERS, h2_block(trailers)])
    frames[-1][1] |= END_STREAM
    return b"".join(frame(kind, flags, stream, payload) for kind, flags, payload in frames)


def marker_fields(id: str) -> list[tuple[bytes, bytes]]:
    usual = {b":method": b"GET", b":scheme": b"https", b":authority": b"h", b":path": b"/app/marker-" + id.encode()}
    return list(usual.items())


def over_h2(port: int, case: Case) -> None:
    """Sends a case and a marker on streams beside each other, and stays until both have ended."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    plain = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        bytes_sent = PREFACE + frame(SETTINGS, 0, 0, b"")
        bytes_sent += h2_request(1, case.fields, case.pieces, case.trailers)
        bytes_sent += h2_request(3, marker_fields(case.id), [], None)
        connection.sendall(bytes_sent)
        held, open_streams = b"", {1, 3}
        while open_streams:
            data = connection.recv(1 << 16)
            if not data:
                return
            held += data
            while len(held) >= 9 and len(held) >= 9 + int.from_bytes(held[:3], "big"):
                size, kind, flags = int.from_bytes(held[:3], "big"), held[3], held[4]
                stream, held = int.from_bytes(held[5:9], "big"), held[9 + size :]
                if kind == SETTINGS and not flags & ACK:
                    connection.sendall(frame(SETTINGS, ACK, 0, b""))
                if kind == RESET or kind in (DATA, HEADERS) and flags & END_STREAM:
                    open_streams.discard(stream)
                if kind == GOAWAY:
                    return


def h3_section(fields) -> bytes:
    """Fields as they are, in no table and no code (RFC 9204 section 4.5.6)."""
    lines = (integer(len(name), 3, 0x20) + name + integer(len(value), 7, 0) + value for name, value in fields)
    return b"\0\0" + b"".join(lines)


def over_h3(port: int, case: Case) -> None:
    """The same on streams of one connection, one after the other."""
    connection = h3.Client(port)
    frames = [h3.frame(HEADERS, h3_section(case.fields)), *[h3.frame(DATA, piece) for piece in case.pieces]]
    if case.trailers is not None:
        frames.append(h3.frame(HEADERS, h3_section(case.trailers)))
    for sent in [b"".join(frames), h3.frame(HEADERS, h3_section(marker_fields(case.id)))]:
        stream = connection.raw(sent)
        connection.until(lambda: stream in connection.ended or stream in connection.reset, SECONDS_MAX)
    connection.end()
