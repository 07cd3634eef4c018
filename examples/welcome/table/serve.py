#!/usr/bin/env python3
"""A tea table: what one guest says, all of them hear, over WebSockets (RFC 6455).

A server like any other. hob starts it (`run` of `proxy`), passes it what is asked for below /table/, and takes
WebSockets through, also those of clients that speak HTTP/2 or HTTP/3. Python's standard library is all it needs.
"""

import asyncio
import base64
import hashlib
import signal
import socket
from pathlib import Path

PAGE = (Path(__file__).parent / "table.html").read_bytes()
ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
WORD_BYTES_MAX = 1000

guests: set[asyncio.StreamWriter] = set()


async def serve(reader, writer):
    """One connection: a page, or a place at the table."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request, *lines = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        path = request.split(" ")[1]
        if path == "/table/talk" and "sec-websocket-key" in fields:
            await sit_down(reader, writer, fields["sec-websocket-key"].encode())
        elif path == "/table/":
            answer(writer, "200 OK", PAGE)
        else:
            answer(writer, "404 Not Found", b"<!doctype html><p>There is only <a href=/table/>the table</a>.\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, IndexError):
        pass  # The client is gone, or is none.
    finally:
        writer.close()


def answer(writer, status, body):
    fields = f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close"
    writer.write(f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n".encode() + body)


async def sit_down(reader, writer, key):
    accept = base64.b64encode(hashlib.sha1(key + ACCEPT).digest()).decode()
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
    )
    guests.add(writer)
    try:
        others = len(guests) - 1
        send(writer, TEXT, f"Welcome to the table. Others here: {others}.".encode())
        while True:
            kind, words = await receive(reader)
            if kind == TEXT:
                for guest in guests:
                    send(guest, TEXT, words)
            elif kind == PING:
                send(writer, PONG, words)
            elif kind != PONG:
                send(writer, CLOSE, words[:2])
                return
            await writer.drain()
    finally:
        guests.discard(writer)


async def receive(reader):
    """A whole message of a client: its kind, and what it says. One that is too long, or comes in parts, is its end."""
    first, length = await reader.readexactly(2)
    length &= 0x7F
    if length == 126:
        length = int.from_bytes(await reader.readexactly(2), "big")
    if first & 0x80 == 0 or length > WORD_BYTES_MAX:
        return CLOSE, (1009).to_bytes(2, "big")
    mask = await reader.readexactly(4)
    words = bytes(byte ^ mask[at % 4] for at, byte in enumerate(await reader.readexactly(length)))
    return first & 0x0F, words


def send(writer, kind, words):
    length = bytes([len(words)]) if len(words) < 126 else b"\x7e" + len(words).to_bytes(2, "big")
    writer.write(bytes([0x80 | kind]) + length + words)


async def main():
    # The socket that hob listens at for it is its standard input.
    server = await asyncio.start_unix_server(serve, sock=socket.socket(fileno=0))
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await over.wait()
    server.close()


asyncio.run(main())
