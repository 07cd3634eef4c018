"""A server behind `proxy`: writes each POST down for good before it answers, and sends back what
comes through tunnels."""

import os
import socket
import sys
import threading

LOG = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def serve(connection):
    reader = connection.makefile("rb")
    while line := reader.readline():
        method, target, _ = line.split()
        fields = {}
        while (field := reader.readline()) not in (b"\r\n", b""):
            name, value = field.split(b":", 1)
            fields[name.lower()] = value.strip()
        reader.read(int(fields.get(b"content-length", 0)))
        if method == b"POST":
            os.write(LOG, target + b"\n")
            os.fsync(LOG)
        if b"upgrade" in fields:
            connection.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\n"
                b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
            while data := reader.read1():
                connection.sendall(data)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")


def serve_to_its_end(connection):
    with connection:
        try:
            serve(connection)
        except OSError:
            pass  # the other side has gone


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen(1024)
print("ready", flush=True)
while True:
    accepted = listener.accept()[0]
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve_to_its_end, args=(accepted,), daemon=True).start()
