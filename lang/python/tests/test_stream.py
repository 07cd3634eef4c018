"""The protocol itself: greeting, requests, windows, cancel, drain, callouts, and a server that lies."""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import unittest
from typing import Any, Callable, List, Optional, Tuple

import peer
from peer import block, message, variables

sys.path.insert(0, str(peer.SOURCES))

from hob import stream  # noqa: E402


class Side(threading.Thread):
    """The package's side of a socket pair, in a thread of its own."""

    def __init__(self, sock: socket.socket, program: Callable[[stream.Stream], Any]) -> None:
        super().__init__(daemon=True)
        self._sock, self._program = sock, program
        self.result: Any = None
        self.error: Optional[BaseException] = None
        self.start()

    def run(self) -> None:
        try:
            with self._sock:
                self.result = self._program(stream.Stream(self._sock))
        except BaseException as error:
            self.error = error

    def outcome(self) -> Any:
        self.join(peer.PATIENCE_SECONDS)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def pair(program: Callable[[stream.Stream], Any], **more: Any) -> Tuple[peer.Peer, Side]:
    ours, theirs = socket.socketpair()
    return peer.Peer(ours, **more), Side(theirs, program)


def echo(server: stream.Stream) -> int:
    """Answers with the body until drained; how many requests there were."""
    count = 0
    while True:
        exchange = server.accept()
        if exchange is None:
            return count
        count += 1
        pieces: List[bytes] = []
        while True:
            piece = exchange.take(1 << 30)
            if not piece:
                break
            pieces.append(bytes(piece))
        exchange.answer(200, b"A: b\n", b"".join(pieces))


class Greeting(unittest.TestCase):
    def test_hello_is_answered_with_version_carrier_and_name(self) -> None:
        server, side = pair(echo)
        with server.socket:
            got = server.greet(3)
            self.assertEqual((got.kind, got.small, got.large), ("hello", 1, 1))
            self.assertRegex(got.payload, rb"^hob-python/[0-9.]+$")
            server.drain()
            self.assertEqual(side.outcome(), 0)

    def test_descriptors_offered_with_hello_are_closed(self) -> None:
        server, side = pair(echo)
        read, write = os.pipe()
        with server.socket:
            server.hello(descriptors=[write, write, write])
            os.close(write)
            self.assertEqual(server.take().large, 1)
            self.assertEqual(os.read(read, 1), b"")
            os.close(read)
            server.drain()
            side.outcome()

    def test_hello_and_a_request_in_pieces_of_one_byte(self) -> None:
        server, side = pair(echo)
        payload = struct.pack("<HHIIB3x", 1, 0, 100, 100, 1)
        data = message(1, payload, small=1) + message(2, block(variables()), 1, 0, 7)
        with server.socket:
            for at in range(len(data)):
                server.send(data[at : at + 1])
            self.assertEqual(server.take().kind, "hello")
            self.assertEqual(server.answer(7).status, 200)
            server.drain()
            self.assertEqual(side.outcome(), 1)

    def test_version_other_than_ours_is_refused(self) -> None:
        server, side = pair(echo)
        with server.socket:
            server.hello(version=2)
            self.assertTrue(server.is_ended())
        with self.assertRaisesRegex(stream.Malformed, "version 2"):
            side.outcome()


class Requests(unittest.TestCase):
    def serve(self, program: Callable[[stream.Stream], Any], **more: Any) -> peer.Peer:
        server, self.side = pair(program, **more)
        self.addCleanup(server.socket.close)
        server.greet()
        return server

    def test_small_answer_is_one_write_of_head_and_data(self) -> None:
        server = self.serve(echo)
        ident = server.request(variables(), b"abc")
        first = server.socket.recv(65536)
        self.assertEqual(
            first, message(34, b"A: b\n", 0, 200, ident) + message(35, b"abc", 1, 0, ident)
        )

    def test_empty_answer_is_a_head_alone(self) -> None:
        server = self.serve(echo)
        ident = server.request(variables())
        self.assertEqual(server.socket.recv(65536), message(34, b"A: b\n", 1, 200, ident))

    def test_several_requests_in_one_read_are_answered_in_order(self) -> None:
        server = self.serve(echo)
        server.send(b"".join(message(2, block(variables()), 1, 0, n) for n in range(1, 51)))
        for n in range(1, 51):
            self.assertEqual(server.read().ident, n)
        server.drain()
        self.assertEqual(self.side.outcome(), 50)

    def test_number_is_used_again_after_the_answer(self) -> None:
        server = self.serve(echo)
        for body in (b"one", b"two"):
            self.assertEqual(server.answer(server.request(variables(), body, ident=5)).body, body)

    def test_body_in_pieces_of_any_size_arrives_whole(self) -> None:
        server = self.serve(echo, data_window=1 << 30)
        body = bytes(range(256)) * 4096
        for piece in (1000, 16384, 65536):
            ident = server.request(variables(method="POST"), None)
            server.upload(ident, body, piece)
            self.assertEqual(server.answer(ident).body, body)

    def test_body_ended_by_an_empty_last_piece(self) -> None:
        server = self.serve(echo)
        ident = server.request(variables(), None)
        server.body(ident, b"abc")
        server.body(ident, b"", last=True)
        self.assertEqual(server.answer(ident).body, b"abc")

    def test_upload_waits_for_a_program_that_does_not_read(self) -> None:
        def program(server: stream.Stream) -> None:
            for _ in range(2):
                exchange = server.accept()
                assert exchange is not None
                exchange.answer(200, b"", b"unread")

        server = self.serve(program)
        ident = server.request(variables(), None)
        server.body(ident, bytes(65536))
        self.assertEqual(server.answer(ident).body, b"unread")
        server.body(ident, b"late", last=True)  # thrown away: the request is over
        self.assertEqual(server.answer(server.request(variables())).body, b"unread")

    def test_answer_never_exceeds_the_window(self) -> None:
        body = os.urandom(300_000)

        def program(server: stream.Stream) -> None:
            exchange = server.accept()
            assert exchange is not None
            exchange.answer(200, b"", body)

        for window in (1, 7000, 65536, 100_000, 400_000):
            server = self.serve(program, data_window=window)
            if window == 1:
                ident = server.request(variables())
                self.assertEqual(server.take().kind, "head")
                self.assertEqual(server.take().payload, body[:1])
                server.window(ident, 400_000)
                rest = b"".join(iter(lambda: self.payload(server), b""))
                self.assertEqual(rest, body[1:])
            else:
                self.assertEqual(server.ask().body, body)

    def payload(self, server: peer.Peer) -> bytes:
        if self.side_is_last:
            return b""
        got = server.take()
        self.side_is_last = bool(got.flags & 1)
        return got.payload

    side_is_last = False

    def test_cancel_ends_the_wait_for_a_window(self) -> None:
        def program(server: stream.Stream) -> bool:
            exchange = server.accept()
            assert exchange is not None
            exchange.head(200, b"")
            exchange.write(bytes(1_000_000))
            exchange.end()
            return exchange.is_cancelled

        server = self.serve(program)
        ident = server.request(variables())
        room = 262144
        self.assertEqual(server.take().kind, "head")
        while room:
            room -= len(server.take().payload)
        server.cancel(ident)
        got = server.take()
        self.assertEqual((got.kind, got.flags), ("end", 1))
        self.assertTrue(self.side.outcome())

    def test_cancel_ends_the_wait_for_a_body(self) -> None:
        def program(server: stream.Stream) -> None:
            exchange = server.accept()
            assert exchange is not None
            try:
                while exchange.take(10):
                    pass
            finally:
                exchange.fail("stopped")

        server = self.serve(program)
        ident = server.request(variables(), None)
        server.body(ident, b"some")
        server.cancel(ident)
        self.assertEqual(server.answer(ident).failure, "stopped")
        with self.assertRaises(stream.Cancelled):
            self.side.outcome()

    def test_nothing_of_a_body_is_waited_for_after_the_answer(self) -> None:
        def program(server: stream.Stream) -> None:
            exchange = server.accept()
            assert exchange is not None
            exchange.answer(204, b"", b"")
            exchange.take(10)

        server = self.serve(program)
        ident = server.request(variables(), None)
        self.assertEqual(server.answer(ident).status, 204)
        with self.assertRaises(stream.Cancelled):
            self.side.outcome()

    def test_long_answer_notices_that_its_client_left(self) -> None:
        def program(server: stream.Stream) -> None:
            exchange = server.accept()
            assert exchange is not None
            exchange.head(200, b"")
            while not exchange.is_cancelled:
                exchange.write(b"tick")
            exchange.end()

        server = self.serve(program, data_window=1 << 31)
        ident = server.request(variables())
        server.take()
        server.cancel(ident)
        while server.take().kind != "end":
            pass
        self.side.outcome()

    def test_drain_ends_the_loop_after_what_has_begun(self) -> None:
        server = self.serve(echo)
        ident = server.request(variables(), None)
        server.drain()
        server.body(ident, b"last", last=True)
        self.assertEqual(server.answer(ident).body, b"last")
        self.assertEqual(self.side.outcome(), 1)

    def test_end_of_the_server_ends_the_wait(self) -> None:
        server = self.serve(echo)
        server.socket.close()
        with self.assertRaises(stream.Disconnected):
            self.side.outcome()

    def test_end_of_the_server_ends_a_write(self) -> None:
        def program(server: stream.Stream) -> None:
            exchange = server.accept()
            assert exchange is not None
            exchange.head(200, b"")
            while True:
                exchange.write(bytes(50_000))

        server = self.serve(program)
        server.request(variables())
        server.take()
        server.socket.close()
        with self.assertRaises(stream.Disconnected):
            self.side.outcome()

    def test_callouts_come_back_to_whom_they_belong(self) -> None:
        def program(server: stream.Stream) -> Any:
            exchange = server.accept()
            assert exchange is not None
            exchange.tell("LOG: info hello")
            own = exchange.callout("MAP-PATH: /a")
            workers = server.callout("LIFETIME: -1")
            exchange.answer(200, b"", b"")
            return own, workers

        server = self.serve(program)
        ident = server.request(variables())
        log = server.take()
        self.assertEqual(
            (log.kind, log.flags, log.ident, log.payload), ("callout", 4, ident, b"LOG: info hello")
        )
        question = server.take()
        self.assertEqual(
            (question.flags, question.ident, question.payload), (0, ident, b"MAP-PATH: /a")
        )
        server.reply(question, "200 /srv/a")
        question = server.take()
        self.assertEqual((question.ident, question.payload), (0, b"LIFETIME: -1"))
        server.reply(question, "200")
        server.answer(ident)
        self.assertEqual(self.side.outcome(), ((200, "/srv/a"), (200, "")))

    def test_information_and_trailers_have_messages_of_their_own(self) -> None:
        def program(server: stream.Stream) -> None:
            exchange = server.accept()
            assert exchange is not None
            exchange.info(103, b"Link: </a.css>\n")
            exchange.head(200, b"Trailer: sum\n")
            exchange.write(b"abc")
            exchange.end(b"Sum: 3\n")

        got = self.serve(program).ask()
        self.assertEqual(got.infos, [(103, [("Link", "</a.css>")])])
        self.assertEqual((got.status, got.body, got.trailers), (200, b"abc", [("Sum", "3")]))

    def test_every_thread_gets_requests_and_its_own_windows(self) -> None:
        meeting = threading.Barrier(4, timeout=peer.PATIENCE_SECONDS)

        def one(server: stream.Stream) -> None:
            while True:
                exchange = server.accept()
                if exchange is None:
                    return
                meeting.wait()  # so all four are inside at the same time
                body = bytearray()
                while True:
                    piece = exchange.take(5000)
                    if not piece:
                        break
                    body += piece
                exchange.answer(200, b"", bytes(body))

        def program(server: stream.Stream) -> None:
            threads = [threading.Thread(target=one, args=(server,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        server = self.serve(program, data_window=30_000)
        for _ in range(5):
            bodies = {n: os.urandom(100_000 + n) for n in range(1, 5)}
            for n in bodies:
                server.request(variables(), None, ident=n)
            for n, body in bodies.items():
                server.upload(n, body)
            for n, body in bodies.items():
                self.assertEqual(server.answer(n).body, body)
        server.drain()
        self.side.outcome()


class Lies(unittest.TestCase):
    """Whatever arrives, the package says what was wrong and stops; it never hangs or guesses."""

    def refused(self, *messages: bytes, greet: bool = True) -> str:
        server, side = pair(echo)
        with server.socket:
            if greet:
                server.greet()
            server.send(b"".join(messages))
            side.join(peer.PATIENCE_SECONDS)
        self.assertIsInstance(side.error, stream.Malformed)
        return str(side.error)

    def test_request_before_hello(self) -> None:
        self.assertIn("before hello", self.refused(message(2, block({}), 1, 0, 1), greet=False))

    def test_second_hello(self) -> None:
        self.assertIn("second hello", self.refused(message(1, bytes(16), small=1)))

    def test_hello_of_a_wrong_size(self) -> None:
        self.assertIn("hello of 3", self.refused(message(1, b"abc", small=1), greet=False))

    def test_kind_that_does_not_exist(self) -> None:
        for kind in (0, 8, 33, 200):
            self.assertIn(f"kind {kind}", self.refused(message(kind, b"", 0, 0, 1)))

    def test_payload_longer_than_allowed(self) -> None:
        for kind, size in ((2, 131073), (3, 65537), (5, 1 << 31)):
            head = struct.pack("<IBBHII", size, kind, 0, 0, 1, 0)
            self.assertIn(f"with {size} bytes", self.refused(head))

    def test_block_whose_lengths_do_not_agree(self) -> None:
        good = block(variables())
        count = struct.unpack_from("<H", good, 4)[0]
        for bad in (
            b"",
            good[:143],
            good[:-1],
            good + b"A\0b\0",
            struct.pack("<IHHQ", len(good), count, 15, 0) + good[16:],
        ):
            self.assertIn("request block", self.refused(message(2, bad, 1, 0, 1)))

    def test_block_with_another_number_of_variables(self) -> None:
        good = block(variables())
        bad = struct.pack("<IHHQ", len(good), 3, 16, 0) + good[16:]

        def program(server: stream.Stream) -> Any:
            exchange = server.accept()
            assert exchange is not None
            return exchange.environ

        server, side = pair(program)
        with server.socket:
            server.greet()
            server.send(message(2, bad, 1, 0, 1))
            with self.assertRaisesRegex(stream.Malformed, "3 variables"):
                side.outcome()

    def test_number_zero_or_taken(self) -> None:
        self.assertIn("number 0", self.refused(message(2, block(variables()), 1, 0, 0)))
        twice = message(2, block(variables()), 0, 0, 4)
        self.assertIn("number 4", self.refused(twice, twice))

    def test_body_after_its_end(self) -> None:
        head = message(2, block(variables()), 0, 0, 4)
        self.assertIn(
            "after the end",
            self.refused(head, message(3, b"a", 1, 0, 4), message(3, b"a", 1, 0, 4)),
        )

    def test_reply_without_a_code(self) -> None:
        self.assertIn("reply", self.refused(message(6, b"what", 0, 1, 0)))

    def test_every_byte_flipped_and_every_length_cut_ends_or_serves(self) -> None:
        good = message(2, block(variables()), 0, 0, 4) + message(3, b"abc", 1, 0, 4)
        for at in range(len(good)):
            for data in (good[:at], good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]):
                server, side = pair(echo)
                with server.socket:
                    server.greet()
                    server.send(data)
                    server.socket.shutdown(socket.SHUT_WR)
                    side.join(peer.PATIENCE_SECONDS)
                self.assertIsInstance(side.error, (stream.Malformed, stream.Disconnected))


class Misuse(unittest.TestCase):
    """What a program does wrong is its own error, and the stream stays whole."""

    def run_program(self, program: Callable[[stream.Exchange], Any]) -> peer.Answer:
        def around(server: stream.Stream) -> None:
            exchange = server.accept()
            assert exchange is not None
            program(exchange)

        server, side = pair(around)
        with server.socket:
            server.greet()
            got = server.ask()
            side.outcome()
            return got

    def test_second_head_and_bytes_after_the_end(self) -> None:
        def program(exchange: stream.Exchange) -> None:
            exchange.head(200, b"")
            with self.assertRaises(RuntimeError):
                exchange.head(200, b"")
            exchange.write(b"a", last=True)
            with self.assertRaises(RuntimeError):
                exchange.write(b"b")
            with self.assertRaises(RuntimeError):
                exchange.answer(200, b"", b"")
            exchange.end()
            exchange.fail("late")

        self.assertEqual(self.run_program(program).body, b"a")

    def test_bytes_or_end_without_a_head(self) -> None:
        def program(exchange: stream.Exchange) -> None:
            with self.assertRaises(RuntimeError):
                exchange.write(b"a")
            with self.assertRaises(RuntimeError):
                exchange.end()
            exchange.answer(204, b"", b"")

        self.assertEqual(self.run_program(program).status, 204)

    def test_fields_that_do_not_fit_or_forge_a_line(self) -> None:
        def program(exchange: stream.Exchange) -> None:
            with self.assertRaisesRegex(ValueError, "70000"):
                exchange.answer(200, bytes(70000), b"body")
            for value in ("a\nB: c", "a\r", "a\0"):
                with self.assertRaises(ValueError):
                    stream.field_lines([("A", value)])
            exchange.fail("gave up")

        self.assertEqual(self.run_program(program).failure, "gave up")


if __name__ == "__main__":
    unittest.main()
