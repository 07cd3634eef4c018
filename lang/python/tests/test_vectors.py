"""The shared vectors (lang/probe/vectors): every message and block, byte for byte."""

from __future__ import annotations

import json
import struct
import sys
import unittest
from typing import Any, Dict, List

import peer

sys.path.insert(0, str(peer.SOURCES))

from hob import stream  # noqa: E402

VECTORS = peer.FOLDER.parent / "probe" / "vectors"


def vectors(name: str) -> List[Dict[str, Any]]:
    found: List[Dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))[
        "vectors"
    ]
    return found


class Heard(stream.Channel[stream.Incoming]):
    """A channel that has been greeted, with the request 1 begun."""

    data_window = 1000

    def begun(self, ident: int, block: bytes, is_whole: bool) -> stream.Incoming:
        return stream.Incoming(self, ident, block, is_whole)

    def changed(self, exchange: stream.Incoming) -> None:
        self.change = exchange

    def fed(self, data: bytes) -> "Heard":
        self.feed(data)
        return self


class Vectors(unittest.TestCase):
    def test_messages_of_the_server_are_understood(self) -> None:
        for vector in vectors("messages"):
            if vector["from"] != "server":
                continue
            with self.subTest(vector["name"]):
                data = bytes.fromhex(vector["bytes"])
                payload = bytes.fromhex(vector["payload"])
                channel = Heard()
                if vector["word"] != "hello":
                    channel.is_greeted = True
                if vector["word"] not in ("hello", "request") and vector["request"]:
                    channel.exchanges[vector["request"]] = channel.begun(
                        vector["request"], peer.block({}), False
                    )
                for at in range(len(data)):
                    channel.feed(data[at : at + 1])
                exchange = channel.exchanges.get(vector["request"])
                if vector["word"] == "hello":
                    found = (channel.concurrency, channel.data_window, channel.body_window)
                    number = struct.unpack_from("<HHII", payload)
                    self.assertEqual(found, (number[0], number[2], number[3]))
                elif vector["word"] == "request":
                    assert exchange is not None
                    self.assertEqual(exchange.block, payload)
                    self.assertEqual(exchange.is_whole, bool(vector["flags"] & 1))
                elif vector["word"] == "body":
                    assert exchange is not None
                    self.assertEqual(b"".join(exchange.pieces or ()), payload)
                    self.assertEqual(exchange.is_whole, bool(vector["flags"] & 1))
                elif vector["word"] == "cancel":
                    assert exchange is not None
                    self.assertTrue(exchange.is_cancelled)
                elif vector["word"] == "window":
                    assert exchange is not None
                    self.assertEqual(exchange.granted, 1000 + vector["large"])
                elif vector["word"] == "reply":
                    replies = channel.replies if exchange is None else exchange.replies
                    assert replies is not None
                    code, text = replies[vector["small"]]
                    self.assertEqual(f"{code} {text}".strip(), payload.decode().strip())
                else:
                    self.assertTrue(channel.is_draining)

    def test_messages_of_a_worker_are_made_of_the_same_bytes(self) -> None:
        for vector in vectors("messages"):
            if vector["from"] == "worker" and not vector["flags"] & 8:
                with self.subTest(vector["name"]):
                    payload = bytes.fromhex(vector["payload"])
                    made = stream.pack(
                        len(payload),
                        vector["kind"],
                        vector["flags"],
                        vector["small"],
                        vector["request"],
                        vector["large"],
                    )
                    self.assertEqual((made + payload).hex(), vector["bytes"])

    def test_blocks_give_their_variables(self) -> None:
        for vector in vectors("blocks"):
            with self.subTest(vector["name"]):
                request = stream.Incoming(Heard(), 1, bytes.fromhex(vector["bytes"]), True)
                pairs = [[bytes.fromhex(one) for one in pair] for pair in vector["variables"]]
                words = request.variables
                self.assertEqual([words[at : at + 2] for at in range(0, len(words), 2)], pairs)
                expected = {
                    name.decode("latin-1"): value.decode("latin-1") for name, value in pairs
                }
                self.assertEqual(request.environ, expected)
                self.assertEqual(request.length, vector["content_length"])

    def test_what_must_be_refused_is_refused_at_once(self) -> None:
        for vector in vectors("malformed"):
            if vector["from"] == "server":
                with self.subTest(vector["name"]):
                    channel = Heard()
                    channel.is_greeted = True
                    with self.assertRaises(stream.Malformed):
                        channel.feed(bytes.fromhex(vector["bytes"]))


if __name__ == "__main__":
    unittest.main()
