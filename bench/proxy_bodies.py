"""What long bodies of requests and tunnels cost that are passed on, in the clear on both sides.

    python3 bench/proxy_bodies.py ROUNDS HOB [HOB ...]

Builds of hob beside each other, one thread each, rounds interleaved: CPU time of the server process
alone (schedstat), and behind it what of that was the kernel's (in ticks of 10 ms), in microseconds
for each MiB that went through, or for each message; medians. The client and the other server are
processes of their own, over loopback.
"""
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
CONFIG = """threads = 1
control = "{place}/run/control.sock"
[[listen]]
address = "127.0.0.1:{port}"
[[site]]
[[site.route]]
path = "/*"
body = "1GiB"
proxy = "http://127.0.0.1:{behind}"
"""
OPEN = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
PIECE = bytes(256 * 1024)


def head_of(stream):
    lines = []
    while (line := stream.readline()) not in (b"\r\n", b""):
        lines.append(line.strip().lower())
    return lines


def skip(stream, left):
    room = memoryview(bytearray(MIB))
    while left:
        count = stream.readinto1(room[:min(left, MIB)])
        if not count:
            raise EOFError
        left -= count


def answer(conn):
    """Bodies are taken, tunnels do what their first line says."""
    stream = conn.makefile("rb", MIB)
    while lines := head_of(stream):
        if b"upgrade: websocket" in lines:
            conn.sendall(OPEN)
            what, size = stream.readline().split()
            size = int(size)
            if what == b"take":
                skip(stream, size)
                conn.sendall(b"taken\n")
            elif what == b"give":
                for _ in range(size // len(PIECE)):
                    conn.sendall(PIECE)
            else:
                while line := stream.readline():
                    conn.sendall(line)
            return
        length = [line for line in lines if line.startswith(b"content-length:")]
        skip(stream, int(length[0].split()[1]) if length else 0)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def serve_behind(listener):
    while True:
        conn, _ = listener.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if os.fork() == 0:
            try:
                answer(conn)
            finally:
                os._exit(0)
        conn.close()


def connect(port):
    conn = socket.create_connection(("127.0.0.1", port))
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return conn, conn.makefile("rb", MIB)


def upload(port, size, count):
    conn, stream = connect(port)
    for _ in range(count):
        conn.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // len(PIECE)):
            conn.sendall(PIECE)
        assert b" 200 " in stream.readline()
        head_of(stream)


def tunnel(port):
    conn, stream = connect(port)
    conn.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert b" 101 " in stream.readline()
    head_of(stream)
    return conn, stream


def take(port, size, _):
    conn, stream = tunnel(port)
    conn.sendall(b"take %d\n" % size)
    for _ in range(size // len(PIECE)):
        conn.sendall(PIECE)
    assert stream.readline() == b"taken\n"


def give(port, size, _):
    conn, stream = tunnel(port)
    conn.sendall(b"give %d\n" % size)
    skip(stream, size)


def echo(port, size, count):
    conn, stream = tunnel(port)
    conn.sendall(b"echo 0\n")
    line = bytes(size - 1).replace(b"\0", b"x") + b"\n"
    for _ in range(count):
        conn.sendall(line)
        assert stream.readline() == line


# What is done, with how many bytes, how often; and what it is counted by.
WORK = [
    ("bodies of 4 MiB", upload, 4 * MIB, 40, "MiB"),
    ("bodies of 256 KiB", upload, 256 * 1024, 200, "MiB"),
    ("tunnel to the other server", take, 256 * MIB, 1, "MiB"),
    ("tunnel to the client", give, 256 * MIB, 1, "MiB"),
    ("messages of 100 bytes, there and back", echo, 100, 5000, "message"),
    ("messages of 16 KiB, there and back", echo, 16 * 1024, 2000, "message"),
]


def cpu_us(pid):
    """All of it, and the kernel's."""
    tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    stats = [(task / "stat").read_text().rsplit(")", 1)[1].split() for task in tasks]
    total = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1000
    return total, sum(int(stat[12]) for stat in stats) * 10000


def main():
    rounds, builds = int(sys.argv[1]), sys.argv[2:]
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    behind = multiprocessing.Process(target=serve_behind, args=(listener,), daemon=True)
    behind.start()
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-proxy-bodies-"))
    place.chmod(0o755)
    found = {(build, work[0]): [] for build in builds for work in WORK}
    for _ in range(rounds):
        for build in random.sample(builds, len(builds)):
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            config = place / "hob.toml"
            config.write_text(CONFIG.format(place=place, port=port, behind=listener.getsockname()[1]))
            hob = subprocess.Popen([build, "serve", "--config", config], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            status = [build, "status", "--json", "--config", config]
            while (told := subprocess.run(status, capture_output=True, text=True)).returncode:
                time.sleep(0.05)
            pid = json.loads(told.stdout)["server"]["pid"]
            for name, does, size, count, unit in WORK:
                before = cpu_us(pid)
                does(port, size, count)
                units = size * count / MIB if unit == "MiB" else count
                took = zip(before, cpu_us(pid))
                found[build, name].append([(then - now) / units for now, then in took])
            hob.terminate()
            hob.wait()
    print("| work | " + " | ".join(f"{build}, us" for build in builds) + " | last to first |")
    print("| --- " * (len(builds) + 2) + "|")
    for name, *_, unit in WORK:
        costs = [[statistics.median(one) for one in zip(*found[build, name])] for build in builds]
        shown = " | ".join(f"{total:.0f} ({kernel:.0f})" for total, kernel in costs)
        ratios = [last / first for first, last in zip(costs[0], costs[-1])]
        print(f"| {name}, each {unit} | {shown} | {ratios[0]:.2f} ({ratios[1]:.2f}) |")
    shutil.rmtree(place)
    behind.terminate()


main()
