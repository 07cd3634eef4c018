"""Compression of WebSockets (permessage-deflate, RFC 7692): what is agreed on, packed and opened."""

from __future__ import annotations

import json
import sys
import unittest
import zlib
from typing import Any, List

import peer
from visitor import Compressor, events_of, sent

sys.path.insert(0, str(peer.SOURCES))

from hob import deflate  # noqa: E402
from hob.deflate import Agreed, Deflate  # noqa: E402
from hob.frames import BINARY, CONTINUATION, PING, TEXT, Event, Fault, Frames  # noqa: E402


class CompressionCases(unittest.TestCase):
    def fed(
        self, stream: bytes, agreed: Agreed, most: int = 1 << 20, step: int = 1 << 20
    ) -> List[Event]:
        all_of_them = Frames(most, Deflate(agreed))
        pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
        return [event for piece in pieces for event in events_of(all_of_them, piece)]

    def test_offers_are_answered_by_what_both_can(self) -> None:
        usual = "permessage-deflate; server_max_window_bits=12"
        for offer, answer in {
            "permessage-deflate": usual,
            "permessage-deflate; client_max_window_bits": usual + "; client_max_window_bits=12",
            "permessage-deflate; client_max_window_bits=15": usual + "; client_max_window_bits=12",
            "permessage-deflate;client_max_window_bits=8": usual + "; client_max_window_bits=8",
            'permessage-deflate; server_max_window_bits="9"': "permessage-deflate; server_max_window_bits=9",
            "permessage-deflate; server_max_window_bits=15": usual,
            "permessage-deflate; server_no_context_takeover": usual
            + "; server_no_context_takeover",
            "permessage-deflate; client_no_context_takeover ": usual
            + "; client_no_context_takeover",
            "x-webkit-deflate-frame, permessage-deflate": usual,
            "permessage-deflate; server_max_window_bits=8, permessage-deflate": usual,
            'permessage-bzip2; a="b"; c ,, permessage-deflate': usual,
        }.items():
            agreed = deflate.agree(offer)
            self.assertEqual(agreed and agreed.field(), answer.encode(), offer)

    def test_offers_that_nobody_understands_are_declined(self) -> None:
        name = "permessage-deflate"
        for wrong in (
            "",
            "permessage-bzip2",
            f"{name}; server_max_window_bits",
            f"{name}; server_max_window_bits=7",
            f"{name}; server_max_window_bits=16",
            f"{name}; server_max_window_bits=08",
            f"{name}; server_max_window_bits=8",
            f"{name}; client_max_window_bits=0",
            f"{name}; client_max_window_bits=",
            f"{name}; server_no_context_takeover=1",
            f"{name}; client_no_context_takeover; client_no_context_takeover",
            f"{name}; mux",
            f"{name}; ;",
            f"{name} x",
            f"{name}=1",
            f'{name}; a="',
            "\0",
        ):
            self.assertIsNone(deflate.agree(wrong), wrong)

    def test_offer_of_many_parameters_is_declined_unread(self) -> None:
        class Words(list):  # type: ignore[type-arg]
            looked_at = 0

            def __getitem__(self, at: Any) -> Any:
                found = list.__getitem__(self, at)
                Words.looked_at += len(found) if isinstance(at, slice) else 1
                return found

        eight = {f"a{at}": "b" for at in range(8)}
        few = "".join(f"; {name}={value}" for name, value in eight.items())
        many = few + "".join(f";c{at}" for at in range(10_000))
        offers = list(deflate._extensions(f"x{few}, y{many}, z; c; d=e"))
        self.assertEqual(offers, [("x", eight), ("y", None), ("z", {"c": None, "d": "e"})])
        words = Words(
            [";", "a", "=", "b"] + [word for at in range(10_000) for word in (";", f"c{at}")]
        )
        self.assertIsNone(deflate._parameters(words))
        self.assertLess(Words.looked_at, 100)
        self.assertIsNotNone(deflate.agree(f"permessage-deflate{many}, permessage-deflate"))

    def test_compressed_messages_come_whole_in_any_pieces(self) -> None:
        text = "κόσμε " * 500
        for bits, keeps in ((15, True), (12, False), (9, True)):
            agreed = Agreed(client_keeps_context=keeps, client_bits=bits)
            client = Compressor(bits, keeps)
            first, second = client.packed(text.encode()), client.packed(text.encode())
            stream = sent(TEXT, first, bits=0x40)
            stream += sent(TEXT, second[:3], bits=0x40, final=False) + sent(PING, b"a")
            stream += sent(CONTINUATION, b"", final=False) + sent(CONTINUATION, second[3:])
            # One that is not compressed, and one of nothing.
            stream += sent(BINARY, b"plain") + sent(BINARY, b"\0", bits=0x40)
            expected = [Event(TEXT, text), Event(PING, b"a"), Event(TEXT, text)]
            expected += [Event(BINARY, b"plain"), Event(BINARY, b"")]
            for step in (1, 3, 1 << 20):
                self.assertEqual(self.fed(stream, agreed, step=step), expected)

    def test_messages_that_leave_are_read_back(self) -> None:
        message = json.dumps([{"name": "a", "number": number} for number in range(100)]).encode()
        for agreed in (Agreed(), Agreed(server_keeps_context=False), Agreed(server_bits=9)):
            ours, client = Deflate(agreed), Compressor()
            sizes = []
            for _ in range(3):
                packed = ours.compress(message)
                sizes.append(len(packed))
                if not agreed.server_keeps_context:
                    client = Compressor()
                self.assertEqual(client.opened(packed), message)
            self.assertLess(sizes[0], len(message) / 2)
            self.assertEqual(
                sizes[2] < sizes[0] / 2, agreed.server_keeps_context and agreed.server_bits == 12
            )

    def test_message_that_grows_too_long_is_1009(self) -> None:
        bomb = Compressor().packed(bytes(200_000_000))
        self.assertLess(len(bomb), 200_000)
        for stream in (sent(BINARY, bomb, bits=0x40), sent(TEXT, bomb, bits=0x40)[:5000]):
            with self.assertRaises(Fault) as caught:
                self.fed(stream, Agreed(), most=1 << 20)
            self.assertEqual(caught.exception.code, 1009)
        exact = sent(BINARY, Compressor().packed(bytes(1000)), bits=0x40)
        self.assertEqual(self.fed(exact, Agreed(), most=1000), [Event(BINARY, bytes(1000))])
        with self.assertRaises(Fault):
            self.fed(exact, Agreed(), most=999)

    def test_many_messages_of_few_bytes_are_made_one_by_one(self) -> None:
        one = sent(BINARY, Compressor(keeps_context=False).packed(bytes(1_000_000)), bits=0x40)
        events = events_of(
            Frames(1 << 20, Deflate(Agreed(client_keeps_context=False))), one * 50
        )
        self.assertEqual(next(events), Event(BINARY, bytes(1_000_000)))

    def test_last_block_may_end_before_the_message_does(self) -> None:
        ended = zlib.compressobj(9, zlib.DEFLATED, -15)
        last = ended.compress(b"ended") + ended.flush()
        next_one = sent(TEXT, Compressor().packed(b"some text"), bits=0x40)
        final = sent(CONTINUATION)
        for name, stream in {
            "in one frame": sent(TEXT, last, bits=0x40),
            "with a block of nothing": sent(TEXT, last + b"\0", bits=0x40),
            "and an empty frame": sent(TEXT, last, bits=0x40, final=False) + final,
            "and that in a frame": sent(TEXT, last, bits=0x40, final=False)
            + sent(CONTINUATION, b"\0"),
            "with that and an empty frame": sent(TEXT, last + b"\0", bits=0x40, final=False)
            + final,
            "and empty frames": sent(TEXT, last, bits=0x40, final=False)
            + sent(CONTINUATION, final=False) * 3
            + final,
        }.items():
            expected = [Event(TEXT, "ended"), Event(TEXT, "some text")]
            for step in (1, 2, 3, 7, 1 << 20):
                self.assertEqual(
                    self.fed(stream + next_one, Agreed(), step=step), expected, (name, step)
                )
            self.assertEqual(self.fed(stream, Agreed(), most=5 + len(last)), expected[:1])
        for more in (b"\1", b"\0\0", b"\0\0\0\xff\xff", last):
            parts = [sent(TEXT, last, bits=0x40, final=False)]
            parts += [sent(CONTINUATION, more[at : at + 1], final=False) for at in range(len(more))]
            for stream in (sent(TEXT, last + more, bits=0x40), b"".join(parts)):
                for step in (1, 3, 1 << 20):
                    with self.assertRaises(Fault) as caught:
                        self.fed(stream, Agreed(), step=step)
                    self.assertEqual(caught.exception.code, 1007)

    def test_faults_of_compression(self) -> None:
        good = Compressor().packed(b"some text")
        ended = zlib.compressobj(9, zlib.DEFLATED, -15)
        last = ended.compress(b"ended") + ended.flush()
        # A last block is allowed, and a block of nothing behind it (RFC 7692 section 7.2.3.4).
        for end in (b"", b"\0"):
            stream = sent(TEXT, last + end, bits=0x40) + sent(TEXT, good, bits=0x40)
            self.assertEqual(
                self.fed(stream, Agreed()), [Event(TEXT, "ended"), Event(TEXT, "some text")]
            )
        for name, stream, code in (
            ("no deflate", sent(BINARY, b"\xff\xff\xff", bits=0x40), 1007),
            ("more behind the last block", sent(TEXT, last + b"\0more", bits=0x40), 1007),
            ("last blocks without end", sent(TEXT, b"\x03\0" * 1000, bits=0x40), 1007),
            ("text that is none", sent(TEXT, Compressor().packed(b"\xff"), bits=0x40), 1007),
            (
                "the bit on a rest",
                sent(TEXT, b"", final=False) + sent(CONTINUATION, good, bits=0x40),
                1002,
            ),
            ("the bit on a ping", sent(PING, b"", bits=0x40), 1002),
            ("another bit", sent(TEXT, good, bits=0x60), 1002),
        ):
            with self.assertRaises(Fault, msg=name) as caught:
                self.fed(stream, Agreed())
            self.assertEqual(caught.exception.code, code, name)


if __name__ == "__main__":
    unittest.main()
