"""A server of HTTP/3 by aioquic: it answers, or refuses, as the path says.

    python server.py CERTIFICATE KEY

prints its port when it listens.
"""

import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated

REQUEST_REJECTED = 0x10B
INTERNAL_ERROR = 0x102


class Server(QuicConnectionProtocol):
    refused = 0

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.http = None
        self.paths = {}

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if self.http is None:
            return
        for event in self.http.handle_event(event):
            if isinstance(event, HeadersReceived):
                self.paths[event.stream_id] = [dict(event.headers)[b":path"], 0]
            if isinstance(event, DataReceived):
                self.paths[event.stream_id][1] += len(event.data)
            if event.stream_ended:
                self.answer(event.stream_id, *self.paths.pop(event.stream_id))
        self.transmit()

    def answer(self, stream, path, received):
        match path:
            case b"/refuse" if Server.refused < 3:
                Server.refused += 1
                self._quic.reset_stream(stream, REQUEST_REJECTED)
            case b"/reset":
                self._quic.reset_stream(stream, INTERNAL_ERROR)
            case b"/huge":
                self.send(stream, [(b"x-%d" % number, b"y" * 1000) for number in range(80)], b"")
            case b"/lie":
                self.send(stream, [(b"content-length", b"9")], b"x")
            case b"/broken":
                # A frame of HTTP/2, which ends the connection.
                self._quic.send_stream_data(stream, b"\x06\x00", end_stream=True)
            case b"/close":
                self._quic.close(error_code=INTERNAL_ERROR)
            case b"/never":
                pass
            case _:
                self.send(stream, [(b"x-received", str(received).encode())], b"x" * 1000)

    def send(self, stream, more, body):
        self.http.send_headers(stream, [(b":status", b"200"), *more])
        self.http.send_data(stream, body, end_stream=True)


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(sys.argv[1], sys.argv[2])
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    # Whoever started this ends it by closing its input.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
