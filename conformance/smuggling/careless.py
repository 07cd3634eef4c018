"""A proxy with one vice at a time, or none: what the corpus must find in it shows that the corpus can find something."""

import re
import socket
import threading

BODY_BYTES_MAX = 1 << 20
QUIET_SECONDS_MAX = 0.3
OF_CONNECTION = [b"connection", b"upgrade", b"expect"]

# What it does that it should not, and a case that shows it.
VICES = {
    "a length counts more than chunks": "a length and chunks",
    "chunks count more than a length": "chunks and a length",
    "the last of two lengths counts": "one length twice",
    "white space around a name is nothing": "a length whose name begins with a space",
    "LF ends a line": "a value with LF and a request",
    "sizes are read as Python does": "a size before a space",
    "bodies of GET are no bodies": "a request as the body of a GET",
    "every second record is lost": "one for one",
}


class Careless:
    """It takes connections until the program ends, and copies what it takes for requests."""

    def __init__(self, vice: str, upstream: int):
        self.vice, self.upstream = vice, upstream
        self.records: list[dict] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            with connection, socket.create_connection(("127.0.0.1", self.upstream)) as upstream:
                # Either may wait for what never comes.
                connection.settimeout(QUIET_SECONDS_MAX), upstream.settimeout(QUIET_SECONDS_MAX)
                try:
                    self.serve(connection, connection.makefile("rb"), upstream)
                except (OSError, ValueError):
                    pass

    def line(self, reader) -> bytes:
        line = reader.readline()
        if not line.isascii() or not line.endswith(b"\n") or not line.endswith(b"\r\n") and "LF" not in self.vice:
            raise ValueError("no line")
        return line

    def serve(self, connection, reader, upstream) -> None:
        while True:
            head, values = self.line(reader), {}
            method, target, _ = head.split(b" ")
            while (line := self.line(reader)).strip():
                name, colon, value = line.partition(b":")
                if not colon:
                    raise ValueError("no field")
                if name != name.strip() and "white space" not in self.vice:
                    raise ValueError("white space")
                values.setdefault(name.strip().lower(), []).append(value.strip())
                head += b"" if name.lower() in OF_CONNECTION else line
            head += b"\r\n" + self.body(reader, method, values)
            upstream.sendall(head)
            answer = upstream.recv(1 << 16)
            if not answer:
                raise ValueError("no answer")
            if "lost" not in self.vice or len(self.records) % 2:
                host = b"".join(values.get(b"host", []))
                self.records.append({"method": method.decode(), "target": target.decode(), "host": host.decode()})
            connection.sendall(answer)
            if b"close" in values.get(b"connection", []):
                return

    def body(self, reader, method: bytes, values: dict) -> bytes:
        lengths, chunked = values.get(b"content-length", []), values.get(b"transfer-encoding") == [b"chunked"]
        if method == b"GET" and "GET" in self.vice:
            return b""
        if len(lengths) > 1 and "last of two" not in self.vice:
            raise ValueError("two lengths")
        if lengths and chunked and "more than" not in self.vice:
            raise ValueError("a length and chunks")
        if chunked and not (lengths and self.vice.startswith("a length")):
            return self.chunks(reader)
        return self.read(reader, int(lengths[-1])) if lengths else b""

    def read(self, reader, size: int) -> bytes:
        if not 0 <= size <= BODY_BYTES_MAX:
            raise ValueError("too much")
        return reader.read(size)

    def chunks(self, reader) -> bytes:
        out = b""
        while True:
            line = self.line(reader)
            if not re.fullmatch(rb"[0-9a-f]+\r\n", line) and "Python" not in self.vice:
                raise ValueError("no size")
            size = int(line, 16)
            out += line + self.read(reader, size) + self.line(reader)
            if size == 0:
                return out
