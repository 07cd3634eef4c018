"""WebSocket frames (RFC 6455): bytes in, messages out, and back. Opens nothing, waits for nothing.

No extension is spoken: a frame with a reserved bit is a fault of the client's.
"""

from __future__ import annotations

import codecs
import os
import struct
from typing import List, NamedTuple, Union

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FINAL = 0x80

NORMAL, GOING_AWAY, PROTOCOL_ERROR, NO_STATUS, ABNORMAL = 1000, 1001, 1002, 1005, 1006
NOT_TEXT, TOO_LARGE, INTERNAL, RESTART = 1007, 1009, 1011, 1012
# What a close frame may say (RFC 6455 section 7.4, and the codes registered since).
CODES = frozenset((1000, 1001, 1002, 1003, *range(1007, 1015), *range(3000, 5000)))

CONTROL_BYTES_MAX = 125


class Fault(Exception):
    """What the client sent is no WebSocket; the code says in a close frame what is wrong."""

    def __init__(self, code: int, reason: str) -> None:
        Exception.__init__(self, reason)
        self.code = code


class Event(NamedTuple):
    """A whole message (TEXT: str, BINARY: bytes), PING or PONG with their bytes, or CLOSE."""

    kind: int
    data: Union[str, bytes]
    code: int = 0


class Frames:
    """What one client sends."""

    def __init__(self, message_bytes_max: int) -> None:
        self.message_bytes_max = message_bytes_max
        self._rest = bytearray()
        self._kind = CONTINUATION  # of the message that has begun
        self._parts: List[Union[str, bytes]] = []
        self._size = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._is_closed = False

    def feed(self, data: bytes) -> List[Event]:
        """What these bytes complete. Raises Fault; nothing is to be fed after that, or a close."""
        self._rest += data
        events: List[Event] = []
        while not self._is_closed and self._take(events):
            pass
        return events

    def _take(self, events: List[Event]) -> bool:
        """One frame, if all of it is here."""
        rest = self._rest
        if len(rest) < 2:
            return False
        first, second = rest[0], rest[1]
        kind, is_final = first & 15, first >= FINAL
        size, at = second & 127, 2
        self._check(kind, is_final, first, second, size)
        if size == 126:
            if len(rest) < 4:
                return False
            (size,), at = struct.unpack_from(">H", rest, 2), 4
            if size < 126:
                raise Fault(PROTOCOL_ERROR, "a length that is longer than it need be")
        elif size == 127:
            if len(rest) < 10:
                return False
            (size,), at = struct.unpack_from(">Q", rest, 2), 10
            if size < 65536:
                raise Fault(PROTOCOL_ERROR, "a length that is longer than it need be")
        if kind < CLOSE and self._size + size > self.message_bytes_max:
            raise Fault(TOO_LARGE, f"a message of more than {self.message_bytes_max} bytes")
        end = at + 4 + size
        if len(rest) < end:
            return False
        payload = masked(bytes(rest[at + 4 : end]), bytes(rest[at : at + 4]))
        del rest[:end]
        if kind == CLOSE:
            self._is_closed = True
            events.append(_close(payload))
        elif kind > CLOSE:
            events.append(Event(kind, payload))
        else:
            self._add(kind, is_final, payload, events)
        return True

    def _check(self, kind: int, is_final: bool, first: int, second: int, size: int) -> None:
        if first & 0x70:
            raise Fault(PROTOCOL_ERROR, "a reserved bit, and no extension")
        if second < 128:
            raise Fault(PROTOCOL_ERROR, "a frame without a mask")
        if kind in (CLOSE, PING, PONG):
            if not is_final or size > CONTROL_BYTES_MAX:
                raise Fault(PROTOCOL_ERROR, "a control frame that is long, or a part")
        elif kind not in (CONTINUATION, TEXT, BINARY):
            raise Fault(PROTOCOL_ERROR, f"a frame of kind {kind}")
        elif (kind == CONTINUATION) != (self._kind != CONTINUATION):
            raise Fault(PROTOCOL_ERROR, "a message within another, or the rest of none")

    def _add(self, kind: int, is_final: bool, payload: bytes, events: List[Event]) -> None:
        if kind != CONTINUATION:
            self._kind = kind
        self._size += len(payload)
        if self._kind == TEXT:
            try:
                self._parts.append(self._decoder.decode(payload, is_final))
            except UnicodeDecodeError as error:
                raise Fault(NOT_TEXT, "text that is not UTF-8") from error
        else:
            self._parts.append(payload)
        if is_final:
            empty: Union[str, bytes] = "" if self._kind == TEXT else b""
            whole = self._parts[0] if len(self._parts) == 1 else empty.join(self._parts)  # type: ignore[arg-type]
            events.append(Event(self._kind, whole))
            self._kind, self._size = CONTINUATION, 0
            self._parts = []


def _close(payload: bytes) -> Event:
    if not payload:
        return Event(CLOSE, "", NO_STATUS)
    if len(payload) == 1:
        raise Fault(PROTOCOL_ERROR, "a close frame of one byte")
    code = int.from_bytes(payload[:2], "big")
    if code not in CODES:
        raise Fault(PROTOCOL_ERROR, f"a close frame with the code {code}")
    try:
        return Event(CLOSE, payload[2:].decode(), code)
    except UnicodeDecodeError as error:
        raise Fault(NOT_TEXT, "a reason that is not UTF-8") from error


def masked(payload: bytes, mask: bytes) -> bytes:
    """The payload with the mask on it, or off it again."""
    size = len(payload)
    if not size or mask == b"\0\0\0\0":
        return payload
    pattern = (mask * (size // 4 + 1))[:size]
    both = int.from_bytes(payload, "little") ^ int.from_bytes(pattern, "little")
    return both.to_bytes(size, "little")


def frame(kind: int, payload: bytes, *, mask: bytes = b"") -> bytes:
    """A whole frame; clients mask theirs."""
    size, bit = len(payload), 0x80 if mask else 0
    if size < 126:
        head = bytes((FINAL | kind, bit | size))
    elif size < 65536:
        head = struct.pack(">BBH", FINAL | kind, bit | 126, size)
    else:
        head = struct.pack(">BBQ", FINAL | kind, bit | 127, size)
    return head + mask + masked(payload, mask) if mask else head + payload


def close_frame(code: int, reason: str = "") -> bytes:
    """A close frame; what is too long of a reason is left out."""
    if code == NO_STATUS:
        return frame(CLOSE, b"")
    words = reason.encode("utf-8", "replace")[: CONTROL_BYTES_MAX - 2]
    words = words.decode("utf-8", "ignore").encode()
    return frame(CLOSE, code.to_bytes(2, "big") + words)


def number_of(variable: str, usual: int) -> int:
    """A limit that the environment may set."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else usual
