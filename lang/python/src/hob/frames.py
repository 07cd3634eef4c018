"""WebSocket frames (RFC 6455): bytes in, messages out, and back. Opens nothing, waits for nothing.

The one extension there may be is compression (deflate.py); any other reserved bit is a fault of
the client's.
"""

from __future__ import annotations

import codecs
import io
import os
import struct
from typing import Callable, List, NamedTuple, Optional, Protocol, Union

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FINAL, COMPRESSED = 0x80, 0x40

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


class Expands(Protocol):
    """Who makes messages of compressed ones (deflate.Deflate)."""

    def expand(self, piece: bytes, is_last: bool, bytes_max: int) -> bytes:
        """What that piece of a message gives; Fault where it is longer than that, or none."""
        ...


#: Takes a message that is one whole frame, and usual, off what has come; None for all else.
Unframe = Callable[[bytearray, int], Union[str, bytes, None]]


class Frames:
    """What one client sends. A message's bytes are looked at as they come: what is no text, or too
    long, is refused before the rest of its frame is there."""

    def __init__(
        self,
        message_bytes_max: int,
        extension: Optional[Expands] = None,
        unframe: Optional[Unframe] = None,
    ) -> None:
        self.message_bytes_max = message_bytes_max
        self._extension = extension
        self._unframe = unframe
        self._rest = bytearray()
        self._kind = CONTINUATION  # of the message that has begun
        self._is_compressed = False
        self._text = io.StringIO()
        self._bytes = bytearray()
        self._wire_bytes = self._message_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        # Of a message's frame that has begun.
        self._left, self._mask = -1, b""
        self._is_final = False
        self._is_closed = False
        self._skips_messages = False

    def add(self, data: bytes) -> None:
        """Bytes that have come."""
        self._rest += data

    def next(self) -> Optional[Event]:
        """The next of what is here, if it is whole: a few compressed bytes may be many messages.
        Raises Fault; nothing is to be asked for after that, or a close."""
        if self._unframe is not None and self._left < 0 and not self._kind:
            data = self._unframe(self._rest, self.message_bytes_max)
            if data is not None:
                return Event(TEXT if type(data) is str else BINARY, data)
        events: List[Event] = []
        while not self._is_closed and self._take(events):
            if events:
                return events.pop()
        return None

    def skip_messages(self) -> None:
        """From here on only PING, PONG and CLOSE are told; what messages hold is not looked at."""
        self._skips_messages = True
        self._unframe = None

    def _take(self, events: List[Event]) -> bool:
        """What is here of a message's frame, or all of a control frame."""
        rest = self._rest
        if self._left >= 0:
            return bool(rest) and self._take_piece(events)
        if len(rest) < 2:
            return False
        first, second = rest[0], rest[1]
        kind = first & 15
        size, at = second & 127, 2
        self._check(kind, first, second, size)
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
        if kind < CLOSE and self._wire_bytes + size > self.message_bytes_max:
            raise Fault(TOO_LARGE, f"a message of more than {self.message_bytes_max} bytes")
        start = at + 4
        if len(rest) < (start if kind < CLOSE else start + size):
            return False
        mask = bytes(rest[at:start])
        if kind < CLOSE:
            if kind != CONTINUATION:
                self._kind, self._is_compressed = kind, bool(first & COMPRESSED)
            self._left, self._mask, self._is_final = size, mask, first >= FINAL
            self._wire_bytes += size
            del rest[:start]
            return self._take_piece(events)
        payload = masked(bytes(rest[start : start + size]), mask)
        del rest[: start + size]
        if kind == CLOSE:
            self._is_closed, self._unframe = True, None
            events.append(_close(payload))
        else:
            events.append(Event(kind, payload))
        return True

    def _take_piece(self, events: List[Event]) -> bool:
        """What is here of a message's frame."""
        rest = self._rest
        count = min(self._left, len(rest))
        if self._skips_messages:
            self._skip(count)
            return True
        payload = masked(bytes(rest[:count]), self._mask)
        del rest[:count]
        turn = count % 4
        self._mask = self._mask[turn:] + self._mask[:turn]
        self._left -= count
        if not self._left:
            self._left = -1
            self._add(payload, self._is_final, events)
        elif payload:
            self._add(payload, False, events)
        return True

    def _skip(self, count: int) -> None:
        del self._rest[:count]
        self._left -= count
        if self._left:
            return
        self._left = -1
        if self._is_final:
            self._kind, self._wire_bytes = CONTINUATION, 0

    def _check(self, kind: int, first: int, second: int, size: int) -> None:
        is_begin = kind in (TEXT, BINARY)
        known = COMPRESSED if is_begin and self._extension is not None else 0
        if first & 0x70 & ~known:
            raise Fault(PROTOCOL_ERROR, "a reserved bit, and no extension")
        if second < 128:
            raise Fault(PROTOCOL_ERROR, "a frame without a mask")
        if kind in (CLOSE, PING, PONG):
            if first < FINAL or size > CONTROL_BYTES_MAX:
                raise Fault(PROTOCOL_ERROR, "a control frame that is long, or a part")
        elif kind != CONTINUATION and not is_begin:
            raise Fault(PROTOCOL_ERROR, f"a frame of kind {kind}")
        elif (kind == CONTINUATION) != (self._kind != CONTINUATION):
            raise Fault(PROTOCOL_ERROR, "a message within another, or the rest of none")

    def _add(self, payload: bytes, is_last: bool, events: List[Event]) -> None:
        if self._is_compressed and self._extension is not None:
            room = self.message_bytes_max - self._message_bytes
            payload = self._extension.expand(payload, is_last, room)
        self._message_bytes += len(payload)
        is_whole = is_last and self._message_bytes == len(payload)
        if self._kind == TEXT:
            try:
                text = self._decoder.decode(payload, is_last)
            except UnicodeDecodeError as error:
                raise Fault(NOT_TEXT, "text that is not UTF-8") from error
            if not is_whole:
                self._text.write(text)
        elif not is_whole:
            self._bytes += payload
        if not is_last:
            return
        if self._kind == TEXT:
            events.append(Event(TEXT, text if is_whole else self._text.getvalue()))
        else:
            events.append(Event(BINARY, payload if is_whole else bytes(self._bytes)))
        if not is_whole:
            self._text, self._bytes = io.StringIO(), bytearray()
        self._kind = CONTINUATION
        self._wire_bytes = self._message_bytes = 0


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
    """A whole frame, whose kind may have COMPRESSED; clients mask theirs."""
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
