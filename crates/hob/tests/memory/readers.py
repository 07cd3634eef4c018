#!/usr/bin/env python3
"""Many clients that ask for a large file and take nothing of it but its begin.

    readers.py PROTOCOL PORT COUNT PATH

PROTOCOL is h1, tls, h2 (over TLS) or h3. It prints "begun" when each has some of its answer, and lets all go
when its input ends. HTTP/3 needs aioquic (`h3/client.py`).
"""

import socket
import ssl
import sys
from pathlib import Path

# A request for the path, as HTTP/2 has it: its preface, empty SETTINGS, and HEADERS with literal fields.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def headers(path: str) -> bytes:
    fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
    block = b"".join(
        bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in fields
    )
    return len(block).to_bytes(3, "big") + bytes([1, 5, 0, 0, 0, 1]) + block


def terms_of(protocol: str) -> ssl.SSLContext:
    terms = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    terms.check_hostname = False
    terms.verify_mode = ssl.CERT_NONE
    terms.set_alpn_protocols(["h2" if protocol == "h2" else "http/1.1"])
    return terms


def read_slowly(protocol: str, port: int, path: str, terms: ssl.SSLContext) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port))
    if protocol != "h1":
        line = terms.wrap_socket(line, server_hostname="localhost")
    if protocol == "h2":
        line.sendall(PREFACE + headers(path))
    else:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    begin = b""
    # The zeros of the file have begun.
    while bytes(64) not in begin:
        begin += line.recv(1024)
    return line


def read_slowly_h3(port: int, path: str):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "h3"))
    from client import Client

    client = Client(port, max_stream_data=100_000)
    client.quic._write_stream_limits = lambda **of: None
    stream = client.ask(path)
    client.until(lambda: len(client.body(stream)) > 90_000)
    return client


def main() -> None:
    protocol, port, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    if protocol == "h3":
        held = [read_slowly_h3(port, path) for _ in range(count)]
    else:
        terms = terms_of(protocol)
        held = [read_slowly(protocol, port, path, terms) for _ in range(count)]
    print("begun", flush=True)
    sys.stdin.read()
    for client in held if protocol == "h3" else []:
        client.end()


main()
