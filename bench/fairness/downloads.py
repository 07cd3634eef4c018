"""Equal downloads side by side: who got how many bytes when, and who was finished when.

The client reads without copying (MSG_TRUNC), takes ready connections in the order the kernel gives
them and at most 64 KiB of each at a time, so that its own order adds as little as possible.
"""
import gc
import resource
import select
import socket
import time

SOURCES = [f"127.0.0.{number}" for number in range(2, 8)]
READ_BYTES = 64 << 10


def jain(values):
    """(sum x)^2 / (n * sum x^2): 1 when all are equal, 1/n when one has everything."""
    square = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * square) if square else 0.0


class Download:
    def __init__(self, address, source, path):
        self.socket = socket.socket()
        self.socket.bind((source, 0))
        self.socket.connect(address)
        self.name = self.socket.getsockname()
        self.request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        self.bytes = 0          # of all answers, heads included
        self.left = 0           # of the answer under way
        self.done_at = []

    def ask(self):
        self.socket.sendall(self.request)


def answer_bytes(address, path):
    """Size of head and body of the answer to one request; every answer has the same."""
    download = Download(address, SOURCES[0], path)
    download.ask()
    data = b""
    while b"\r\n\r\n" not in data:
        data += download.socket.recv(4096)
    head = data.split(b"\r\n\r\n")[0]
    download.socket.close()
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise SystemExit(f"{path} was answered {head[:80]!r}, not with 200")
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    return len(head) + 4 + int(fields[b"content-length"])


class Crowd:
    """Connections that ask at the same time, for the same file."""

    def __init__(self, address, path, count):
        self.size = answer_bytes(address, path)
        self.all = [Download(address, SOURCES[i % len(SOURCES)], path) for i in range(count)]
        self.buffer = bytearray(READ_BYTES)
        self.poll = select.epoll()
        self.by_fd = {}
        for download in self.all:
            download.socket.setblocking(False)
            self.by_fd[download.socket.fileno()] = download
            self.poll.register(download.socket, select.EPOLLIN)

    def run(self, secs, again, at_half=None):
        """Reads until all have finished, or for `secs` when each asks `again` and again.

        `at_half` is called once when half the bytes of one answer each have come. Returns the time.
        """
        half = self.size * len(self.all) // 2
        total, unfinished = 0, len(self.all)
        gc.disable()
        begin = time.perf_counter()
        deadline = begin + secs
        for download in self.all:
            download.left = self.size
            download.ask()
        while unfinished and time.perf_counter() < deadline:
            for fd, _ in self.poll.poll(1, 256):
                download = self.by_fd[fd]
                try:
                    count = download.socket.recv_into(self.buffer, READ_BYTES, socket.MSG_TRUNC)
                except BlockingIOError:
                    continue
                if count == 0:
                    raise SystemExit("the server closed a connection in the middle of an answer")
                download.bytes += count
                download.left -= count
                total += count
                if download.left == 0:
                    download.done_at.append(time.perf_counter() - begin)
                    if again:
                        download.left = self.size
                        download.ask()
                    else:
                        unfinished -= 1
            if at_half and total >= half:
                at_half()
                at_half = None
        gc.enable()
        if unfinished and not again:
            raise SystemExit(f"{unfinished} downloads did not end within {secs} s")
        return time.perf_counter() - begin

    def close(self):
        for download in self.all:
            download.socket.close()
        self.poll.close()


def settled_threads(server, count):
    """Threads of all connections, once the server has accepted the last."""
    threads = {}
    for _ in range(100):
        threads = server.threads_of_connections()
        if len(threads) >= count:
            break
        time.sleep(0.02)
    return threads


def groups(crowd, threads):
    """Lists of downloads by server thread; one list when threads are not known."""
    found = {}
    for download in crowd.all:
        found.setdefault(threads.get(download.name), []).append(download)
    return list(found.values())


def measure(server, path, count, secs):
    """One answer each, then `secs` of one after another. Returns a dict of figures."""
    raise_descriptor_limit()
    crowd = Crowd(server.address, path, count)
    threads = groups(crowd, settled_threads(server, count))
    halves = {}

    def at_half():
        halves.update((download, download.bytes) for download in crowd.all)

    once = crowd.run(60, again=False, at_half=at_half)
    figures = {
        "threads": sorted(map(len, threads)),
        "status": server.status().get("connections_by_thread"),
        "once_secs": once,
        "half": jain(list(halves.values())),
        "half_within": [jain([halves[d] for d in group]) for group in threads],
        "done": jain([download.done_at[0] for download in crowd.all]),
        "first_done": min(download.done_at[0] for download in crowd.all),
    }
    for download in crowd.all:
        download.bytes = 0
    before = server.cpu_us()
    took = crowd.run(secs, again=True)
    sums = [sum(d.bytes for d in group) / len(group) for group in threads]
    total = sum(download.bytes for download in crowd.all)
    figures |= {
        "secs": took,
        "mb_per_sec": total / took / 1e6,
        "least": min(d.bytes for d in crowd.all) * count / total,
        "most": max(d.bytes for d in crowd.all) * count / total,
        "all": jain([download.bytes for download in crowd.all]),
        "within": [jain([d.bytes for d in group]) for group in threads],
        "across": jain(sums),
        "sources": jain([sum(d.bytes for d in crowd.all[i::6]) / len(crowd.all[i::6]) for i in range(6)]),
        "us_per_4mb": (server.cpu_us() - before) / (total / (4 << 20)),
    }
    crowd.close()
    return figures


def raise_descriptor_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
