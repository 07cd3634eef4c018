"""The least that a script forked from a warm Python costs: a loop that answers HTTP, a fork for each
request, a pipe for what it prints, its exit.

    python3 floor.py PORT SCRIPT [MODULE...]

Nothing is given to the script, nothing limited, nothing logged, nothing of what a script may leave
behind is seen to: the child runs the code and is gone with `os._exit`.
"""

import gc
import importlib
import os
import select
import socket
import sys

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n"


def run(code, output):
    """A child: never returns."""
    os.dup2(output, 1)
    try:
        exec(code, {"__name__": "__main__", "__builtins__": __builtins__})
        sys.stdout.flush()
    finally:
        os._exit(0)


def serve(listener, code):
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    clients, outputs = {}, {}
    while True:
        for fd, _ in poll.poll():
            if fd in outputs:
                client, process, pieces = outputs[fd]
                piece = os.read(fd, 65536)
                if piece:
                    pieces.append(piece)
                    continue
                poll.unregister(fd)
                os.close(fd)
                del outputs[fd]
                os.wait4(process, 0)
                head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
                try:
                    client.sendall(HEAD % len(body) + head + b"\r\n\r\n" + body)
                except OSError:
                    # It has left, and shows that when it is read.
                    pass
            elif fd in clients:
                client = clients[fd]
                try:
                    request = client.recv(65536)
                except OSError:
                    request = b""
                if not request:
                    poll.unregister(fd)
                    clients.pop(fd).close()
                    continue
                reading, writing = os.pipe()
                process = os.fork()
                if process == 0:
                    run(code, writing)
                os.close(writing)
                outputs[reading] = (client, process, [])
                poll.register(reading, select.POLLIN)
            else:
                client, _ = listener.accept()
                clients[client.fileno()] = client
                poll.register(client, select.POLLIN)


def main(port, script, *modules):
    for module in modules:
        importlib.import_module(module)
    sys.path[0] = os.path.dirname(script)
    with open(script, "rb") as opened:
        code = compile(opened.read(), script, "exec", dont_inherit=True)
    listener = socket.create_server(("127.0.0.1", int(port)))
    gc.collect()
    gc.freeze()
    gc.disable()
    serve(listener, code)


main(*sys.argv[1:])
