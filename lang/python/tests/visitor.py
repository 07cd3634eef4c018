"""The client's side of a WebSocket: frames written by hand, and compression by zlib alone."""

from __future__ import annotations

import struct
import sys
import zlib
from typing import Iterator

import peer

sys.path.insert(0, str(peer.SOURCES))

from hob.frames import CLOSE, Event, Frames  # noqa: E402

MASK = b"\x11\x22\x33\x44"


def sent(kind: int, payload: bytes = b"", *, final: bool = True, bits: int = 0) -> bytes:
    """A frame as a client sends it, written by hand."""
    size = len(payload)
    first = (0x80 if final else 0) | bits | kind
    if size < 126:
        head = bytes((first, 0x80 | size))
    elif size < 65536:
        head = bytes((first, 0x80 | 126)) + struct.pack(">H", size)
    else:
        head = bytes((first, 0x80 | 127)) + struct.pack(">Q", size)
    masked = bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))
    return head + MASK + masked


def events_of(frames: Frames, data: bytes) -> Iterator[Event]:
    """What these bytes complete, one by one as it is asked for."""
    frames.add(data)
    while (event := frames.next()) is not None:
        yield event


def closing(code: int, reason: bytes = b"") -> bytes:
    return sent(CLOSE, struct.pack(">H", code) + reason)


class Compressor:
    """A client's side of compression, by zlib alone."""

    def __init__(self, bits: int = 15, keeps_context: bool = True) -> None:
        self.bits, self.keeps_context = bits, keeps_context
        self.end()
        self.reader = zlib.decompressobj(-15)

    def end(self) -> None:
        self.writer = zlib.compressobj(9, zlib.DEFLATED, -self.bits)

    def packed(self, data: bytes) -> bytes:
        made = self.writer.compress(data) + self.writer.flush(zlib.Z_SYNC_FLUSH)
        if not self.keeps_context:
            self.end()
        return made[:-4]

    def opened(self, data: bytes) -> bytes:
        return self.reader.decompress(data + b"\0\0\xff\xff")
