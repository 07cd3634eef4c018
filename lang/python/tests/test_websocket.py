"""WebSockets: frames by themselves, and an ASGI application behind the stream."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Awaitable, Callable, Iterable, List, Optional, Tuple
from unittest import mock

import native
import peer
from peer import variables
from visitor import Compressor, MASK, closing, events_of, sent

sys.path.insert(0, str(peer.SOURCES))

from hob import frames, websocket  # noqa: E402
from hob import native as parts  # noqa: E402
from hob.deflate import Deflate  # noqa: E402
from hob.frames import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Event, Fault, Frames  # noqa: E402

KEY = base64.b64encode(b"0123456789abcdef").decode()


class FrameCases(unittest.TestCase):
    """What Autobahn's cases ask of a server's framing, without extensions."""

    unframe: Any = None

    def fed(self, *pieces: bytes, most: int = 1 << 20) -> List[Event]:
        all_of_them = Frames(most, None, self.unframe)
        return [event for piece in pieces for event in events_of(all_of_them, piece)]

    def refused(self, *pieces: bytes, most: int = 1 << 20) -> int:
        with self.assertRaises(Fault) as caught:
            self.fed(*pieces, most=most)
        return caught.exception.code

    def test_messages_of_every_size_come_whole_in_any_pieces(self) -> None:
        for size in (0, 1, 125, 126, 127, 128, 65535, 65536, 70000):
            text, data = "ä" * (size // 2), os.urandom(size)
            stream = sent(TEXT, text.encode()) + sent(BINARY, data)
            for step in (1, 7, 1000, len(stream)):
                if step == 1 and size > 200:
                    continue
                pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
                self.assertEqual(self.fed(*pieces), [Event(TEXT, text), Event(BINARY, data)])

    def test_fragments_are_one_message_and_control_frames_may_stand_between(self) -> None:
        text = "κόσμε".encode()
        pieces = [
            sent(TEXT, text[:1], final=False),
            sent(PING, b"hey"),
            sent(CONTINUATION, b"", final=False),
        ]
        pieces += [
            sent(CONTINUATION, text[1:5], final=False),
            sent(PONG),
            sent(CONTINUATION, text[5:]),
        ]
        events = [Event(PING, b"hey"), Event(PONG, b""), Event(TEXT, "κόσμε")]
        self.assertEqual(self.fed(*pieces), events)

    def test_faults_of_framing_are_1002(self) -> None:
        for name, stream in {
            "no mask": b"\x81\x01a",
            "reserved bits": sent(TEXT, b"a", bits=0x40),
            "reserved bits of a ping": sent(PING, b"", bits=0x10),
            "a long ping": sent(PING, b"a" * 126),
            "a ping in parts": sent(PING, b"a", final=False),
            "the rest of nothing": sent(CONTINUATION, b"a"),
            "a message within another": sent(TEXT, b"a", final=False) + sent(TEXT, b"b"),
            "a length of two bytes for one": b"\x81\xfe\x00\x7d" + MASK,
            "a length of eight bytes for two": b"\x81\xff" + struct.pack(">Q", 65535) + MASK,
            "a close frame of one byte": sent(CLOSE, b"\x03"),
        }.items():
            self.assertEqual(self.refused(stream), 1002, name)
        for kind in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
            self.assertEqual(self.refused(sent(kind, b"a")), 1002, kind)

    def test_faults_are_told_before_the_rest_of_their_frame_has_come(self) -> None:
        bad = sent(TEXT, b"ok" + b"\xf4\x90" + b"a" * 100_000)
        # Ten bytes of head, four of mask, and so on.
        self.assertEqual(self.fed(bad[:16]), [])
        self.assertEqual(self.refused(bad[:16], bad[16:18]), 1007)

    def test_text_is_utf8(self) -> None:
        for good in ("\ud7ff\ue000\ufffd\U0010ffff", "\0", "\ufffe"):
            self.assertEqual(self.fed(sent(TEXT, good.encode())), [Event(TEXT, good)])
        for bad in (
            b"\xce",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xc0\xaf",
            b"\xff",
            b"\xf8\x88\x80\x80\x80",
        ):
            self.assertEqual(self.refused(sent(TEXT, bad)), 1007, bad)
            self.assertEqual(
                self.refused(sent(TEXT, b"a" + bad, final=False) + sent(CONTINUATION, b"b")),
                1007,
                bad,
            )
            self.assertEqual(self.refused(closing(1000, bad)), 1007, bad)

    def test_close_frames_say_one_of_the_known_codes(self) -> None:
        self.assertEqual(self.fed(sent(CLOSE)), [Event(CLOSE, "", 1005)])
        for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999):
            self.assertEqual(self.fed(closing(code, b"why")), [Event(CLOSE, "why", code)])
        for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535):
            self.assertEqual(self.refused(closing(code)), 1002, code)

    def test_nothing_counts_after_a_close(self) -> None:
        self.assertEqual(
            self.fed(closing(1000) + sent(TEXT, b"a") + b"\xff\xff"), [Event(CLOSE, "", 1000)]
        )

    def test_long_messages_are_refused_by_their_head(self) -> None:
        self.assertEqual(self.refused(sent(BINARY, b"a" * 11)[:6], most=10), 1009)
        parts = sent(BINARY, b"a" * 6, final=False) + sent(CONTINUATION, b"a" * 5)
        self.assertEqual(self.refused(parts, most=10), 1009)
        self.assertEqual(self.fed(sent(BINARY, b"a" * 10), most=10), [Event(BINARY, b"a" * 10)])
        self.assertEqual(self.refused(b"\x82\xff" + b"\xff" * 8), 1009)

    def test_messages_that_are_skipped_are_not_looked_at_but_what_stands_between_is(self) -> None:
        begun = sent(TEXT, b"not \xff text", final=False)
        stream = (
            sent(CONTINUATION, b"\xff")
            + sent(PING, b"a")
            + sent(TEXT, b"\xff" * 200)
            + sent(BINARY)
        )
        stream += (
            sent(BINARY, b"b", final=False)
            + sent(PONG)
            + sent(CONTINUATION, b"c")
            + closing(1000, b"d")
        )
        for step in (1, 7, 1 << 20):
            all_of_them = Frames(1000, None, self.unframe)
            self.assertEqual(list(events_of(all_of_them, begun[:8])), [])
            all_of_them.skip_messages()
            rest = begun[8:] + stream
            pieces = [rest[at : at + step] for at in range(0, len(rest), step)]
            events = [event for piece in pieces for event in events_of(all_of_them, piece)]
            self.assertEqual(events, [Event(PING, b"a"), Event(PONG, b""), Event(CLOSE, "d", 1000)])
        long = sent(TEXT, b"a" * 1001)
        for bad, code in (
            (sent(CONTINUATION), 1002),
            (sent(TEXT, b"a", bits=0x40), 1002),
            (long, 1009),
        ):
            all_of_them = Frames(1000, None, self.unframe)
            all_of_them.skip_messages()
            with self.assertRaises(Fault) as caught:
                list(events_of(all_of_them, bad))
            self.assertEqual(caught.exception.code, code)

    def test_frames_that_leave_are_read_back(self) -> None:
        for size in (0, 125, 126, 65535, 65536):
            data = os.urandom(size)
            self.assertEqual(self.fed(frames.frame(BINARY, data, mask=MASK)), [Event(BINARY, data)])
        self.assertEqual(frames.close_frame(1005), b"\x88\x00")
        self.assertEqual(frames.close_frame(1000, "ä" * 100)[:2], bytes((0x88, 2 + 122)))


class NativeFrameCases(FrameCases):
    """The same with the native part."""

    def setUp(self) -> None:
        environ = native.environment()
        if isinstance(environ, str):
            self.skipTest(environ)
        module = parts._loaded(environ["HOB_NATIVE"], is_named=True)
        self.whole = 0
        self.unframe = lambda rest, most: self.counted(module.unframe(rest, most))

    def counted(self, data: Any) -> Any:
        self.whole += data is not None
        return data

    def test_usual_frames_are_taken_natively(self) -> None:
        usual = sent(TEXT, "ä".encode()) + sent(BINARY, bytes(70_000)) + sent(TEXT)
        expected = [Event(TEXT, "ä"), Event(BINARY, bytes(70_000)), Event(TEXT, "")]
        for step, whole in ((len(usual), 3), (1000, 2)):
            self.whole = 0
            pieces = [usual[at : at + step] for at in range(0, len(usual), step)]
            self.assertEqual(self.fed(*pieces), expected)
            self.assertEqual(self.whole, whole)

    def test_nothing_is_taken_that_is_too_long_or_no_text(self) -> None:
        unframe = self.unframe
        for frame, most in ((sent(TEXT, b"\xff"), 10), (sent(BINARY, b"ab"), 1), (b"\x82\x01a", 9)):
            rest = bytearray(frame)
            self.assertIsNone(unframe(rest, most))
            self.assertEqual(rest, frame)
        with self.assertRaises(TypeError):
            unframe(b"not to be changed", 10)


class Pipe:
    """Stands for a tunnel: what the client sends is given, or put there later."""

    unframe = None

    def __init__(self, pieces: Iterable[bytes] = ()) -> None:
        self.pieces = list(pieces)
        self.change: Callable[[], None] = lambda: None
        self.takes = 0
        self.written = b""
        self.is_closed = asyncio.Event()  # by a frame that says so
        self.is_ended = False

    def put(self, *pieces: bytes) -> None:
        self.pieces += pieces
        asyncio.get_running_loop().call_soon(self.change)

    def open(self, fields: Any, change: Callable[[], None]) -> None:
        self.change = change

    async def refuse(self, status: int, fields: Any, body: bytes) -> None:
        raise AssertionError(f"refused with {status}")

    def take(self) -> Optional[bytes]:
        if not self.pieces:
            return None
        self.takes += 1
        return self.pieces.pop(0)

    def write_now(self, data: bytes) -> int:
        self.written += data
        if data[0] & 15 == CLOSE:
            self.is_closed.set()
        return len(data)

    async def write(self, data: bytes) -> None:
        self.write_now(data)

    def end(self) -> None:
        self.is_ended = True


class FloodCases(unittest.TestCase):
    """What one connection takes and holds of a client that sends more than is wanted."""

    def run_with(
        self, pipe: Pipe, application: Callable[..., Awaitable[None]]
    ) -> Tuple[Awaitable[None], Any]:
        """An application behind that, as a task, and its connection."""
        scope = {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "http_version": "1.1",
            "headers": [(b"sec-websocket-extensions", b"permessage-deflate")],
            "extensions": {"hob": {}},
        }
        one = websocket.WebSocket(pipe, websocket.scope_of(scope))
        return asyncio.ensure_future(one.run(application)), one

    def bombs(self) -> bytes:
        return (
            sent(BINARY, Compressor(keeps_context=False).packed(bytes(1_000_000)), bits=0x40) * 50
        )

    def test_end_from_this_side_leaves_the_rest_packed(self) -> None:
        async def deaf(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "websocket.accept"})
            await is_over.wait()

        async def closes(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "websocket.accept"})
            await has_come.wait()
            await send({"type": "websocket.close"})
            await is_over.wait()

        async def check(application: Any, is_late: bool) -> int:
            nonlocal has_come, is_over
            has_come, is_over = asyncio.Event(), asyncio.Event()
            pipe = Pipe([] if is_late else [self.bombs()])
            task, one = self.run_with(pipe, application)
            while not one._is_accepted or pipe.pieces:
                await asyncio.sleep(0)
            has_come.set()
            if application is deaf:
                one.go_away()
            await pipe.is_closed.wait()
            if is_late:
                pipe.put(self.bombs())
            await asyncio.wait([one._ended])
            is_over.set()
            await task
            self.assertTrue(pipe.is_ended)
            self.assertEqual(pipe.takes, 0 if is_late else 1)
            return expand.call_count

        has_come = is_over = None  # of the loop that runs
        for application, is_late, most in ((deaf, False, 1), (deaf, True, 0), (closes, False, 1)):
            whole = mock.patch.object(Deflate, "expand", autospec=True, side_effect=Deflate.expand)
            seconds = 0.0 if application is closes else 600.0
            with whole as expand, mock.patch.object(websocket, "CLOSE_SECONDS", seconds):
                self.assertEqual(asyncio.run(check(application, is_late)), most)

    def test_application_that_has_ended_leaves_everything_packed(self) -> None:
        async def short(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "websocket.accept"})

        async def check() -> None:
            pipe = Pipe()
            task, _ = self.run_with(pipe, short)
            await pipe.is_closed.wait()
            bombs = self.bombs()
            pipe.put(bombs[:5], bombs[5:], bombs + closing(1000), b"and more")
            await task
            self.assertEqual((pipe.takes, pipe.is_ended), (3, True))

        with (
            mock.patch.object(Deflate, "expand") as expand,
            mock.patch.object(websocket, "CLOSE_SECONDS", 600.0),
        ):
            asyncio.run(check())
        self.assertEqual(expand.call_count, 0)

    def test_messages_of_nothing_stop_the_client_too(self) -> None:
        empty = sent(BINARY, b"\0", bits=0x40)
        for piece, count in (
            (sent(TEXT), 1),
            (sent(BINARY) * 100, 100),
            (sent(TEXT, b"a"), 1),
            (empty * 500, 500),
        ):

            async def waits(scope: Any, receive: Any, send: Any) -> None:
                await send({"type": "websocket.accept"})
                await is_full.wait()
                while (message := await receive())["type"] != "websocket.disconnect":
                    got.append(message)

            async def check() -> None:
                nonlocal is_full
                is_full = asyncio.Event()
                pipe = Pipe([piece] * (10_000 // count) + [closing(1000)])
                task, one = self.run_with(pipe, waits)
                while not pipe.takes:  # then it goes on without a pause while it may
                    await asyncio.sleep(0)
                self.assertLessEqual(len(one._waiting), 257)
                self.assertLessEqual(pipe.takes * count, 257 + count)
                is_full.set()
                await task

            got: List[Any] = []
            is_full: Any = None  # of the loop that runs
            asyncio.run(check())
            self.assertEqual(got.pop(0), {"type": "websocket.connect"})
            self.assertEqual(len(got), 10_000)


APP = """
import asyncio

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return await send({"type": "lifespan.shutdown.complete"})
    assert scope["type"] == "websocket", scope["type"]
    assert (await receive()) == {"type": "websocket.connect"}
    await globals()["at_" + scope["path"].strip("/")](scope, receive, send)

async def at_echo(scope, receive, send):
    wanted = scope["subprotocols"][:1] or [None]
    await send({"type": "websocket.accept", "subprotocol": wanted[0], "headers": [(b"x-a", b"b")]})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            print("disconnect", message["code"], message["reason"])
            try: await send({"type": "websocket.send", "text": "nobody hears"})
            except OSError: print("an OSError")
            return
        message["type"] = "websocket.send"
        await send(message)

async def at_scope(scope, receive, send):
    await send({"type": "websocket.accept"})
    seen = [scope[name] for name in ("scheme", "http_version", "path", "query_string", "subprotocols")]
    await send({"type": "websocket.send", "text": repr(seen) + repr("method" in scope)})

async def at_no(scope, receive, send):
    await send({"type": "websocket.close"})
    print((await receive())["type"])

async def at_denied(scope, receive, send):
    await send({"type": "websocket.http.response.start", "status": 401, "headers": [(b"x-why", b"who")]})
    await send({"type": "websocket.http.response.body", "body": b"who ", "more_body": True})
    await send({"type": "websocket.http.response.body", "body": b"are you"})

async def at_closes(scope, receive, send):
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 4001, "reason": "enough"})
    print((await receive())["type"])

async def at_raises(scope, receive, send):
    await send({"type": "websocket.accept"})
    raise KeyError("in the middle")

async def at_early(scope, receive, send): raise KeyError("before")
async def at_nothing(scope, receive, send): pass

async def at_flood(scope, receive, send):
    await send({"type": "websocket.accept"})
    count = 0
    try:
        while True:
            await send({"type": "websocket.send", "bytes": b"x" * 50000})
            count += 1
    except OSError: print("flood over")

async def at_ticks(scope, receive, send):
    await send({"type": "websocket.accept"})
    ticks = 0
    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)
    task = asyncio.ensure_future(tick())
    for _ in range(20000):
        await receive()
    await send({"type": "websocket.send", "text": str(ticks)})
    task.cancel()

async def at_deaf(scope, receive, send):
    await send({"type": "websocket.accept"})
    await asyncio.sleep(3600)
"""


class Connection:
    """The client's side of one WebSocket, as the server's messages carry it."""

    def __init__(self, worker: peer.Peer, path: str, **more: Any) -> None:
        fields = {
            "HOB_TUNNEL": "websocket",
            "HTTP_CONNECTION": "upgrade",
            "HTTP_UPGRADE": "websocket",
            "HTTP_SEC_WEBSOCKET_VERSION": "13",
            "HTTP_SEC_WEBSOCKET_KEY": KEY,
            **more,
        }
        self.worker = worker
        self.rest = b""
        environ = variables(
            path, **{name: value for name, value in fields.items() if value is not None}
        )
        body = None if environ["REQUEST_METHOD"] == "CONNECT" else b""
        self.ident = worker.request(environ, body)
        self.room = worker.data_window
        self.is_over = False

    def opened(self) -> List[Tuple[str, str]]:
        head = self.worker.take(self.ident)
        assert (head.kind, head.small, head.flags) == ("head", 101, 2), head
        return peer.lines(head.payload)

    def say(self, data: bytes) -> None:
        self.worker.body(self.ident, data)

    def more(self) -> None:
        got = self.worker.take(self.ident)
        if got.kind == "data":
            self.rest += got.payload
            self.worker.window(self.ident, len(got.payload))
        assert got.kind in ("data", "end", "window"), got
        self.is_over |= got.kind == "end" or bool(got.flags & 1)

    def frame(self, bits: int = 0) -> Tuple[int, bytes]:
        """The next frame of the server's, which has no mask, and these reserved bits."""
        while True:
            if len(self.rest) >= 2:
                size, at = self.rest[1], 2
                assert size < 128, "a mask"
                if size >= 126:
                    wide = 2 if size == 126 else 8
                    size, at = int.from_bytes(self.rest[2 : 2 + wide], "big"), 2 + wide
                if len(self.rest) >= at + size:
                    first, payload = self.rest[0], self.rest[at : at + size]
                    assert first & 0xF0 == 0x80 | bits, "a part, or other reserved bits"
                    self.rest = self.rest[at + size :]
                    return first & 15, payload
            assert not self.is_over, "the end of the tunnel"
            self.more()

    def ended(self) -> None:
        while not self.is_over:
            self.more()


class Application(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        (Path(folder.name) / "app.py").write_text(APP)
        self.folder = folder.name

    def start(self, **environ: str) -> peer.Peer:
        around = peer.host("asgi", "app:application", folder=self.folder, environ=environ)
        self.worker = around.__enter__()
        self.addCleanup(around.__exit__, None, None, None)
        self.worker.peer.greet(16)
        return self.worker.peer

    def printed(self) -> str:
        self.worker.peer.drain()
        code, out, err = self.worker.end()
        self.assertEqual((code, err), (0, ""))
        return out

    def test_messages_go_both_ways(self) -> None:
        one = Connection(self.start(), "/echo", HTTP_SEC_WEBSOCKET_PROTOCOL="chat, other")
        accept = base64.b64encode(
            hashlib.sha1(KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        )
        fields = dict(one.opened())
        self.assertEqual(fields["Sec-WebSocket-Accept"], accept.decode())
        self.assertEqual((fields["Sec-WebSocket-Protocol"], fields["x-a"]), ("chat", "b"))
        one.say(sent(TEXT, "ä".encode()) + sent(BINARY, b"\xff"))
        self.assertEqual([one.frame(), one.frame()], [(TEXT, "ä".encode()), (BINARY, b"\xff")])
        one.say(sent(PING, b"there?"))
        self.assertEqual(one.frame(), (PONG, b"there?"))
        large = os.urandom(1_000_000)
        self.worker.peer.body_window = 1 << 30  # counted by hand below
        stream, at, room = sent(BINARY, large), 0, 65536
        while at < len(stream):
            if room == 0:
                got = self.worker.peer.take(one.ident)
                self.assertEqual(got.kind, "window")
                room += got.large
            step = min(room, 30000, len(stream) - at)
            one.say(stream[at : at + step])
            at, room = at + step, room - step
        self.assertEqual(one.frame(), (BINARY, large))
        one.say(closing(4000, b"done"))
        self.assertEqual(one.frame(), (CLOSE, b"\x0f\xa0"))
        one.ended()
        self.assertIn("disconnect 4000 done\nan OSError\n", self.printed())

    def test_over_connect_there_is_no_key(self) -> None:
        more = {
            "REQUEST_METHOD": "CONNECT",
            "SERVER_PROTOCOL": "HTTP/2.0",
            "HTTP_SEC_WEBSOCKET_KEY": None,
        }
        one = Connection(self.start(), "/scope", REQUEST_SCHEME="https", QUERY_STRING="a=b", **more)
        self.assertEqual(one.opened(), [])
        expected = "['wss', '2', '/scope', b'a=b', []]False"
        self.assertEqual(one.frame(), (TEXT, expected.encode()))
        self.assertEqual(one.frame(), (CLOSE, b"\x03\xe8"))
        one.say(closing(1000))
        one.ended()
        self.printed()

    def test_handshakes_that_are_none(self) -> None:
        worker = self.start()
        for more, status in [
            ({"HTTP_SEC_WEBSOCKET_VERSION": "8"}, 426),
            ({"HTTP_SEC_WEBSOCKET_VERSION": None}, 426),
            ({"HTTP_SEC_WEBSOCKET_KEY": None}, 400),
            ({"HTTP_SEC_WEBSOCKET_KEY": "short"}, 400),
            ({"REQUEST_METHOD": "PUT"}, 400),
        ]:
            answer = worker.answer(Connection(worker, "/echo", **more).ident)
            self.assertEqual(
                (answer.status, answer.field("sec-websocket-version")), (status, "13"), more
            )

    def test_application_may_refuse(self) -> None:
        worker = self.start()
        self.assertEqual(worker.answer(Connection(worker, "/no").ident).status, 403)
        answer = worker.answer(Connection(worker, "/denied").ident)
        self.assertEqual(
            (answer.status, answer.field("x-why"), answer.body), (401, "who", b"who are you")
        )
        self.assertIn("websocket.disconnect\n", self.printed())

    def test_application_may_close(self) -> None:
        one = Connection(self.start(), "/closes")
        one.opened()
        self.assertEqual(one.frame(), (CLOSE, struct.pack(">H", 4001) + b"enough"))
        one.say(closing(4001))
        one.ended()
        self.assertIn("websocket.disconnect\n", self.printed())

    def test_error_of_the_application_is_1011_or_500(self) -> None:
        worker = self.start()
        one = Connection(worker, "/raises")
        one.opened()
        self.assertEqual(one.frame(), (CLOSE, b"\x03\xf3"))
        one.say(closing(1011))
        one.ended()
        for path in ("/early", "/nothing"):
            self.assertEqual(worker.answer(Connection(worker, path).ident).status, 500)
        self.worker.peer.drain()
        self.assertIn("KeyError: 'in the middle'", self.worker.end()[2])

    def test_faults_close_with_their_code(self) -> None:
        worker = self.start(HOB_WEBSOCKET_MESSAGE_MAX="1000")
        for data, code in [
            (b"\x81\x01a", 1002),
            (sent(TEXT, b"\xff"), 1007),
            (sent(TEXT, b"a" * 1001), 1009),
        ]:
            one = Connection(worker, "/echo")
            one.opened()
            one.say(data)
            kind, payload = one.frame()
            self.assertEqual((kind, payload[:2]), (CLOSE, code.to_bytes(2, "big")))
            one.ended()
        self.assertIn("disconnect 1009", self.printed())

    def test_messages_are_compressed_where_the_client_offers_that(self) -> None:
        offer = "permessage-deflate; client_max_window_bits, permessage-bzip2"
        worker = self.start()
        one = Connection(worker, "/echo", HTTP_SEC_WEBSOCKET_EXTENSIONS=offer)
        expected = "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12"
        self.assertEqual(dict(one.opened())["Sec-WebSocket-Extensions"], expected)
        client = Compressor(12)
        text = b"a text that says the same again and again; " * 20
        for _ in range(3):
            one.say(sent(TEXT, client.packed(text), bits=0x40))
            kind, payload = one.frame(bits=0x40)
            self.assertEqual((kind, client.opened(payload)), (TEXT, text))
            self.assertLess(len(payload), 100)
        # What is short is not worth it.
        one.say(sent(TEXT, client.packed(b"short"), bits=0x40))
        self.assertEqual(one.frame(), (TEXT, b"short"))
        one.say(sent(BINARY, Compressor(12).packed(bytes(20_000_000)), bits=0x40))
        self.assertEqual(one.frame()[1][:2], b"\x03\xf1")
        one.ended()

    def test_compression_can_be_switched_off(self) -> None:
        one = Connection(
            self.start(HOB_WEBSOCKET_DEFLATE="0"),
            "/echo",
            HTTP_SEC_WEBSOCKET_EXTENSIONS="permessage-deflate",
        )
        self.assertNotIn("Sec-WebSocket-Extensions", dict(one.opened()))
        one.say(sent(TEXT, b"a" * 1000))
        self.assertEqual(one.frame(), (TEXT, b"a" * 1000))

    def test_client_that_leaves_is_a_disconnect(self) -> None:
        worker = self.start()
        for leave in (
            lambda one: worker.cancel(one.ident),
            lambda one: worker.body(one.ident, b"", last=True),
        ):
            one = Connection(worker, "/echo")
            one.opened()
            leave(one)
            one.ended()
        self.assertEqual(self.printed().count("disconnect 1006 \nan OSError\n"), 2)

    def test_slow_client_stops_the_application(self) -> None:
        worker = self.start()
        one = Connection(worker, "/flood")
        one.opened()
        came = 0
        while came < worker.data_window:
            came += len(worker.take(one.ident).payload)
        self.assertEqual(came, worker.data_window)
        # Another connection is served all the same.
        other = Connection(worker, "/echo")
        other.opened()
        other.say(sent(TEXT, b"a"))
        self.assertEqual(other.frame(), (TEXT, b"a"))
        worker.cancel(one.ident)
        one.is_over = False
        while not one.is_over:
            one.is_over = worker.take(one.ident).kind == "end"
        other.say(closing(1000))
        self.assertEqual(other.frame()[0], CLOSE)
        self.assertIn("flood over\n", self.printed())

    def test_application_that_takes_nothing_stops_the_client_and_is_told_of_pings(self) -> None:
        worker = self.start()
        one = Connection(worker, "/deaf")
        one.opened()
        one.say(sent(PING, b"a"))
        self.assertEqual(one.frame(), (PONG, b"a"))
        other = Connection(worker, "/echo")
        other.opened()
        room, message, total = worker.body_window, sent(BINARY, b"x" * 1000), 0
        # It grants room for what it holds, and no more after that.
        while total < 10 * worker.body_window:
            while room >= len(message):
                one.say(message)
                total += len(message)
                room -= len(message)
            for _ in range(3):  # by their answers it has had the time
                other.say(sent(TEXT, b"a"))
                self.assertEqual(other.frame(), (TEXT, b"a"))
            granted = [got.large for got in worker.kept if got.ident == one.ident]
            worker.kept = [got for got in worker.kept if got.ident != one.ident]
            if not granted:
                break
            room += sum(granted)
        self.assertLess(total, 4 * worker.body_window)

    def test_client_that_sends_much_leaves_others_their_turn(self) -> None:
        worker = self.start()
        one = Connection(worker, "/ticks")
        one.opened()
        messages, room = sent(TEXT, b"a" * 20) * 100, worker.body_window
        for _ in range(200):
            while room < len(messages):
                got = worker.take(one.ident)
                self.assertEqual(got.kind, "window")
                room += got.large
            one.say(messages)
            room -= len(messages)
        # No more than 64 KiB, with 256 for each message, are taken five times without a pause.
        self.assertGreaterEqual(int(one.frame()[1]), 20000 * 276 // (5 * 66000))

    def test_drain_asks_clients_to_come_again(self) -> None:
        worker = self.start()
        one = Connection(worker, "/echo")
        one.opened()
        worker.drain()
        self.assertEqual(one.frame(), (CLOSE, b"\x03\xf4"))
        one.say(closing(1012))
        one.ended()
        code, out, err = self.worker.end()
        self.assertEqual((code, err), (0, ""))
        self.assertIn("disconnect 1012", out)

    def test_silent_client_is_asked_and_given_up(self) -> None:
        one = Connection(self.start(HOB_WEBSOCKET_PING="1"), "/echo")
        one.opened()
        self.assertEqual(one.frame(), (PING, b""))
        one.say(sent(PONG))
        self.assertEqual(one.frame(), (PING, b""))
        self.assertEqual(one.frame(), (CLOSE, b"\x03\xe9no answer to a ping"))


if __name__ == "__main__":
    unittest.main()
