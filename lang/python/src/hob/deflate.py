"""permessage-deflate (RFC 7692): what is agreed on in the handshake, and messages through zlib.

Opens nothing, waits for nothing. A connection holds some 45 KiB for it, because this side asks for
windows of 4 KiB where a client may have them: measured on JSON of 350 bytes, they take 4 percent
more bytes than the largest ones, which take 300 KiB.
"""

from __future__ import annotations

import re
import zlib
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from .frames import NOT_TEXT, TOO_LARGE, Fault

NAME = "permessage-deflate"
WINDOW_BITS = 12  # of both sides, where the client leaves that to us
WINDOW_BITS_MIN, WINDOW_BITS_MAX = 8, 15
# Of one offer; there are four that are understood.
PARAMETERS_MAX = 8
# Level 3 takes 0.7 of the time of level 6 and gives 1.1 times the bytes.
LEVEL, MEMORY = 3, 5
# What every flush ends with; it is left out of messages (RFC 7692 section 7.2.1).
TAIL = b"\0\0\xff\xff"

# A word, or a parameter's value in quotation marks, or what stands between them.
_TOKENS = re.compile(
    r"\s*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|\"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\"|([,;=]))\s*"
)


class Agreed(NamedTuple):
    """How both sides compress."""

    server_keeps_context: bool = True
    client_keeps_context: bool = True
    server_bits: int = WINDOW_BITS
    #: The client may be told only where it says so.
    client_bits: int = WINDOW_BITS_MAX

    def field(self) -> bytes:
        """The value of Sec-WebSocket-Extensions that tells the client."""
        words = [NAME, f"server_max_window_bits={self.server_bits}"]
        if not self.server_keeps_context:
            words.append("server_no_context_takeover")
        if not self.client_keeps_context:
            words.append("client_no_context_takeover")
        if self.client_bits != WINDOW_BITS_MAX:
            words.append(f"client_max_window_bits={self.client_bits}")
        return "; ".join(words).encode()


def agree(offered: str) -> Optional[Agreed]:
    """What becomes of a client's Sec-WebSocket-Extensions; None where nothing suits."""
    for name, parameters in _extensions(offered):
        agreed = _accept(parameters) if name == NAME else None
        if agreed is not None:
            return agreed
    return None


def _extensions(text: str) -> Iterator[Tuple[str, Optional[Dict[str, Optional[str]]]]]:
    """Names and parameters; None where those are malformed or many, or one stands there twice."""
    at, words = 0, []
    while at < len(text):
        found = _TOKENS.match(text, at)
        if found is None:
            return
        words.append((found[1] or found[2], found[3]))
        at = found.end()
    words.append((None, ","))
    one = []
    for word, mark in words:
        if mark != ",":
            one.append(word or mark)
            continue
        if one:
            yield one[0], _parameters(one[1:])
        one = []


def _parameters(words: list[str]) -> Optional[Dict[str, Optional[str]]]:
    found: Dict[str, Optional[str]] = {}
    at, end = 0, len(words)
    while at < end:
        if words[at] != ";" or end - at < 2 or len(found) == PARAMETERS_MAX:
            return None
        name = words[at + 1]
        if name in ";=" or name in found:
            return None
        if end - at < 3 or words[at + 2] != "=":
            found[name], at = None, at + 2
        elif end - at > 3 and words[at + 3] not in ";=":
            found[name], at = words[at + 3], at + 4
        else:
            return None
    return found


def _accept(parameters: Optional[Dict[str, Optional[str]]]) -> Optional[Agreed]:
    """One offer; what is unknown in it, or out of range, declines it (RFC 7692 section 7.1)."""
    if parameters is None:
        return None
    rest = dict(parameters)
    flags = [
        name not in rest for name in ("server_no_context_takeover", "client_no_context_takeover")
    ]
    for name in ("server_no_context_takeover", "client_no_context_takeover"):
        if rest.pop(name, None) is not None:
            return None
    server_bits, client_bits = WINDOW_BITS, WINDOW_BITS_MAX
    if "server_max_window_bits" in rest:
        bits = _bits(rest.pop("server_max_window_bits"))
        # zlib has no window of 256 bytes to compress with.
        if bits is None or bits == WINDOW_BITS_MIN:
            return None
        server_bits = min(bits, WINDOW_BITS)
    if "client_max_window_bits" in rest:
        value = rest.pop("client_max_window_bits")
        bits = WINDOW_BITS_MAX if value is None else _bits(value)
        if bits is None:
            return None
        client_bits = min(bits, WINDOW_BITS)
    return None if rest else Agreed(flags[0], flags[1], server_bits, client_bits)


def _bits(value: Optional[str]) -> Optional[int]:
    known = {str(bits): bits for bits in range(WINDOW_BITS_MIN, WINDOW_BITS_MAX + 1)}
    return known.get(value or "")


class Deflate:
    """The messages of one connection, both ways."""

    def __init__(self, agreed: Agreed) -> None:
        self._agreed = agreed
        self._compressor: Optional[zlib._Compress] = None
        self._decompressor: Optional[zlib._Decompress] = None

    def compress(self, message: bytes) -> bytes:
        """A message as it leaves."""
        compressor = self._compressor
        if compressor is None:
            compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, -self._agreed.server_bits, MEMORY)
            if self._agreed.server_keeps_context:
                self._compressor = compressor
        made = compressor.compress(message) + compressor.flush(zlib.Z_SYNC_FLUSH)
        return made[: -len(TAIL)]

    def expand(self, piece: bytes, is_last: bool, bytes_max: int) -> bytes:
        """A piece of a message that came, no longer than that. Raises Fault."""
        decompressor = self._decompressor
        if decompressor is None:
            # Raw windows of 256 bytes are read with a larger one.
            bits = max(self._agreed.client_bits, WINDOW_BITS_MIN + 1)
            decompressor = self._decompressor = zlib.decompressobj(-bits)
        try:
            made = decompressor.decompress(piece + TAIL if is_last else piece, bytes_max + 1)
        except zlib.error as error:
            raise Fault(NOT_TEXT, "a compressed message that is none") from error
        if len(made) > bytes_max:
            raise Fault(TOO_LARGE, "a message that is too long when it is expanded")
        if decompressor.eof:
            # A last block, which is allowed once and at the end (RFC 7692 section 7.2.3.4). What
            # stands behind it may come with later pieces; zlib adds that to the unused data.
            end = TAIL if is_last else b""
            if decompressor.unused_data not in (end, b"\0" + end):
                raise Fault(NOT_TEXT, "a compressed message that goes on after its end")
            if is_last:
                self._decompressor = None
        elif is_last and not self._agreed.client_keeps_context:
            self._decompressor = None
        return made
