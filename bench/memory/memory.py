#!/usr/bin/env python3
"""Memory of the server: per idle connection, behind slow readers, through long downloads, per idle WebSocket that
it passes on.

    bench/memory/memory.py --hob target/release/hob [--count 1000] [--gigabytes 10] [--only idle|slow|load|proxied|websockets]

The client is built from client/ (Go). Memory is what belongs to the processes of hob (Pss of keeper and server),
without the page cache and what the kernel holds for sockets.
"""
import argparse
import asyncio
import contextlib
import multiprocessing
import pathlib
import re
import resource
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PROTOCOLS = ["h1", "tls", "h2", "h3"]
CONFIG = """
threads = 2
[limits]
connections = 30000
idle = "1h"
write_progress = "1h"
handshakes = 4096
[[listen]]
address = "127.0.0.1:{clear}"
[[listen]]
address = "127.0.0.1:{secure}"
tls = true
[[site]]
root = "site"
{routes}"""
SOCKETS = """
[[site.route]]
path = "/socket"
proxy = {{ to = "http://127.0.0.1:{port}", connections = 20000 }}
"""
PASSED_ON = """
[[site.route]]
path = "/large"
proxy = "http://127.0.0.1:{port}"
"""
# A binary message of 64 KiB, as its length is said in both directions; a client's key is of zeros.
SIZE = 64 * 1024
TO_CLIENT = b"\x82\x7f" + SIZE.to_bytes(8, "big") + b"x" * SIZE
TO_SERVER = b"\x82\xff" + SIZE.to_bytes(8, "big") + bytes(4) + b"x" * SIZE


class Hob:
    """A server of its own folder, with a small file and a large one."""

    def __init__(self, program, gigabytes, routes=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hob-memory-"))
        site = self.folder / "site"
        site.mkdir()
        (site / "small").write_bytes(b"x" * 512)
        with open(site / "large", "wb") as file:
            file.truncate(int(gigabytes * 1e9))
        self.clear, self.secure = free_port(), free_port()
        config = CONFIG.format(clear=self.clear, secure=self.secure, routes=routes)
        (self.folder / "hob.toml").write_text(config)
        for path in [self.folder, site]:
            path.chmod(0o755)
        self.process = subprocess.Popen([program, "serve", "--config", "hob.toml"], cwd=self.folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(2):
            self.process.stdout.readline()

    def address(self, protocol):
        return f"127.0.0.1:{self.clear if protocol == 'h1' else self.secure}"

    def memory(self):
        """Bytes of all its processes."""
        waiting, total = [self.process.pid], 0
        while waiting:
            pid = waiting.pop()
            try:
                rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                for tasks in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    waiting += map(int, (tasks / "children").read_text().split())
            except OSError:
                continue
            total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.M)[1]) * 1024
        return total

    def settled(self):
        """The same once it no longer changes: an answer's end frees what it had."""
        before = self.memory()
        while True:
            time.sleep(1)
            now = self.memory()
            if abs(now - before) < 64 * 1024:
                return now
            before = now

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


class Peak:
    """The most memory a server has while something runs."""

    def __init__(self, hob):
        self.hob, self.bytes, self.is_over = hob, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.is_over.wait(0.2):
            self.bytes = max(self.bytes, self.hob.memory())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def hold(client, hob, what, protocol, count, path):
    command = [client, what, protocol, hob.address(protocol), str(count), path]
    held = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if held.stdout.readline() != "ready\n":
        raise SystemExit(f"{protocol}: the client could not open its connections")
    return held


def let_go(held):
    held.stdin.close()
    held.wait()


def idle(client, options):
    print(f"{options.count} idle connections, each after one request\n")
    print("| protocol | before | with them | each | after they left |\n| --- | --- | --- | --- | --- |")
    for protocol in PROTOCOLS:
        hob = Hob(options.hob, 0.001)
        # Code, caches and threads' buffers are there before.
        let_go(hold(client, hob, "idle", protocol, 20, "/small"))
        before = hob.settled()
        held = hold(client, hob, "idle", protocol, options.count, "/small")
        during = hob.settled()
        let_go(held)
        after = hob.settled()
        each = (during - before) / options.count
        print(f"| {protocol} | {mib(before)} | {mib(during)} | {each / 1024:.2f} KiB | {mib(after)} |", flush=True)
        hob.stop()


def slow(client, options):
    print(f"{options.count} readers of a byte a second for 30 s, of a file of {options.gigabytes} GB\n")
    print("| protocol | before | at most | each | at the end |\n| --- | --- | --- | --- | --- |")
    for protocol in PROTOCOLS:
        hob = Hob(options.hob, options.gigabytes)
        let_go(hold(client, hob, "slow", protocol, 20, "/large"))
        before = hob.settled()
        with Peak(hob) as peak:
            held = hold(client, hob, "slow", protocol, options.count, "/large")
            time.sleep(30)
        end = hob.memory()
        let_go(held)
        each = (peak.bytes - before) / options.count
        print(f"| {protocol} | {mib(before)} | {mib(peak.bytes)} | {each / 1024:.1f} KiB | {mib(end)} |", flush=True)
        hob.stop()


def load(client, options, serve=None, how="of a file"):
    print(f"a download of {options.gigabytes} GB, {how}\n")
    print("| protocol | before | at most | grown | seconds |\n| --- | --- | --- | --- | --- |")
    for protocol in PROTOCOLS:
        hob = serve() if serve else Hob(options.hob, options.gigabytes)
        let_go(hold(client, hob, "idle", protocol, 20, "/small"))
        before, begun = hob.settled(), time.monotonic()
        with Peak(hob) as peak:
            command = [client, "load", protocol, hob.address(protocol), "1", "/large"]
            told = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
        if told.strip() != str(int(options.gigabytes * 1e9)):
            raise SystemExit(f"{protocol}: the download ended after {told.strip() or 'no'} bytes")
        seconds = time.monotonic() - begun
        print(f"| {protocol} | {mib(before)} | {mib(peak.bytes)} | {mib(peak.bytes - before)} | {seconds:.0f} |",
              flush=True)
        hob.stop()


def proxied(client, options):
    """What one hob has, passed on by another one."""
    behind = Hob(options.hob, options.gigabytes)
    routes = PASSED_ON.format(port=behind.clear)
    load(client, options, lambda: Hob(options.hob, 0.001, routes), "passed on to a client")
    behind.stop()


def websockets(_, options):
    print(f"{options.count} idle WebSockets, passed on to another server, each after 64 KiB both ways\n")
    print("| client | before | with them | each | after they left |\n| --- | --- | --- | --- | --- |")
    for protocol in [protocol for protocol in PROTOCOLS if protocol in ["h1", "tls"]]:
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        echo = multiprocessing.Process(target=lambda: asyncio.run(answer_all(listener)))
        echo.start()
        hob = Hob(options.hob, 0.001, SOCKETS.format(port=listener.getsockname()[1]))
        asyncio.run(with_sockets(hob, protocol, 20, lambda: None))
        before = hob.settled()
        during = asyncio.run(with_sockets(hob, protocol, options.count, hob.settled))
        after = hob.settled()
        each = (during - before) / options.count
        print(f"| {protocol} | {mib(before)} | {mib(during)} | {each / 1024:.2f} KiB | {mib(after)} |", flush=True)
        hob.stop()
        echo.terminate()
        echo.join()


async def answer_all(listener):
    """A server of WebSockets: to a message of this size it says one."""
    async def one(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
        await reader.readexactly(len(TO_SERVER))
        writer.write(TO_CLIENT)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()

    await (await asyncio.start_server(one, sock=listener, backlog=4096)).serve_forever()


async def with_sockets(hob, protocol, count, act):
    """What `act` says while there are so many."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = hob.address(protocol).split(":")
    few = asyncio.Semaphore(100)

    async def one():
        async with few:
            reader, writer = await asyncio.open_connection(host, port, ssl=context if protocol == "tls" else None)
            writer.write(b"GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                         b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 101 " not in head:
                raise SystemExit(f"{protocol}: no WebSocket: {head.decode()}")
            writer.write(TO_SERVER)
            await reader.readexactly(len(TO_CLIENT))
            return reader, writer

    held = await asyncio.gather(*(one() for _ in range(count)))
    told = await asyncio.to_thread(act)
    for _, writer in held:
        writer.transport.abort()
    return told


def mib(count):
    return f"{count / (1 << 20):.1f} MiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hob", default="target/release/hob")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--only", choices=["idle", "slow", "load", "proxied", "websockets"])
    parser.add_argument("--protocol", choices=PROTOCOLS, action="append")
    options = parser.parse_args()
    options.hob = str(pathlib.Path(options.hob).resolve())
    if options.protocol:
        PROTOCOLS[:] = options.protocol
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        client = f"{folder}/client"
        subprocess.run(["go", "build", "-o", client, "."], cwd=HERE / "client", check=True)
        for name, table in [("idle", idle), ("slow", slow), ("load", load), ("proxied", proxied), ("websockets", websockets)]:
            if options.only in (None, name):
                table(client, options)
                print()


if __name__ == "__main__":
    main()
