"""Small requests beside bulk downloads: how long one takes when the server is idle, and beside them.

One connection asks for 1 KiB, waits for the answer, pauses, and asks again. The bulk readers are a
process of their own which throws the bytes away unread (MSG_TRUNC), as fast as it can.
"""
import gc
import os
import select
import signal
import socket
import time

PAUSE_SECS = 0.0005
READ_BYTES = 1 << 20
# Real time priority for the asking process: what it measures is then the server's lateness, and not
# how long the readers on the same CPU kept the answer waiting.
REALTIME_PRIORITY = 10
# A request during which the serving thread waited this long for its CPU says something about the other
# work on the machine, not about the server. Such requests are counted, and shown apart.
LATE_US = 100


class Readers:
    """`count` connections that read `path` again and again, in a process of their own."""

    def __init__(self, address, path, count, cpus):
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(ready)
                os.sched_setaffinity(0, cpus)
                read_for_ever(address, path, count, tell)
            finally:
                os._exit(1)
        os.close(tell)
        with os.fdopen(ready, "rb") as pipe:
            if pipe.read(1) != b"r":
                raise SystemExit(f"the bulk readers could not read {path}")

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def read_for_ever(address, path, count, tell):
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    poll, by_fd, buffer = select.epoll(), {}, bytearray(READ_BYTES)
    size, told = None, False
    for number in range(count):
        reader = socket.socket()
        reader.bind((f"127.0.0.{2 + number % 6}", 0))
        reader.connect(address)
        reader.sendall(request)
        if size is None:
            head = reader.recv(65536, socket.MSG_PEEK).split(b"\r\n\r\n")[0]
            fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
            size = len(head) + 4 + int(fields[b"content-length"])
        reader.setblocking(False)
        by_fd[reader.fileno()] = [reader, size]
        poll.register(reader, select.EPOLLIN)
    os.write(tell, b"r")
    while True:
        for fd, _ in poll.poll(-1, 256):
            entry = by_fd[fd]
            try:
                got = entry[0].recv_into(buffer, READ_BYTES, socket.MSG_TRUNC)
            except BlockingIOError:
                continue
            if got == 0:
                os._exit(2)
            entry[1] -= got
            if entry[1] == 0:
                entry[1] = size
                entry[0].sendall(request)


class Lateness:
    """How long the serving thread was ready to run while other work had its CPU, in microseconds."""

    def __init__(self, server):
        tasks = []
        for pid in server.pids():
            for task in os.listdir(f"/proc/{pid}/task"):
                path = f"/proc/{pid}/task/{task}/schedstat"
                with open(path) as stat:
                    tasks.append((int(stat.read().split()[0]), path))
        # The one that has worked most by now serves.
        self.stat = os.open(max(tasks)[1], os.O_RDONLY)

    def read(self):
        return int(os.pread(self.stat, 100, 0).split()[1]) / 1000

    def close(self):
        os.close(self.stat)


def ask(server, secs, cpus, realtime):
    """Asks for `secs` from the CPUs given. Returns the times of all requests in microseconds, and
    of those during which the serving thread had its CPU (see `LATE_US`)."""
    was = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    request = b"GET /1k.txt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    every, undisturbed = [], []
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    with socket.create_connection(server.address) as asker:
        asker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = bytearray(65536)
        for _ in range(200):
            asker.sendall(request)
            time.sleep(PAUSE_SECS)
            size = asker.recv_into(buffer)
        lateness = Lateness(server)
        if realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REALTIME_PRIORITY))
        gc.disable()
        try:
            begin, deadline = 0, time.perf_counter() + secs
            while begin < deadline:
                time.sleep(PAUSE_SECS)
                late = lateness.read()
                begin = time.perf_counter()
                asker.sendall(request)
                got = 0
                while got < size:
                    count = asker.recv_into(buffer)
                    if count == 0:
                        raise SystemExit("the server closed the asking connection")
                    got += count
                took = (time.perf_counter() - begin) * 1e6
                every.append(took)
                if lateness.read() - late < LATE_US:
                    undisturbed.append(took)
        finally:
            gc.enable()
            lateness.close()
            os.sched_setscheduler(0, policy, param)
            os.sched_setaffinity(0, was)
    return every, undisturbed


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def measure(asked, loaded, secs, count, path, realtime, rounds):
    """`asked` idle and beside `count` readers of `loaded`, in turns. Returns a dict of figures."""
    idle, beside, bulk_bytes, cpu_us = ([], []), ([], []), 0, 0.0
    for _ in range(rounds):
        for into, times in zip(idle, ask(asked, secs / rounds, {1}, realtime)):
            into += times
        readers = Readers(loaded.address, path, count, {1})
        try:
            time.sleep(0.3)
            bytes_before, cpu_before = loopback_bytes(), loaded.cpu_us()
            for into, times in zip(beside, ask(asked, secs / rounds, {1}, realtime)):
                into += times
            bulk_bytes += loopback_bytes() - bytes_before
            cpu_us += loaded.cpu_us() - cpu_before
        finally:
            readers.stop()
        time.sleep(0.3)
    return {
        "idle": [figures(times) for times in idle],
        "beside": [figures(times) for times in beside],
        "disturbed": 1 - len(beside[1]) / len(beside[0]),
        "mb_per_sec": bulk_bytes / secs / 1e6,
        "us_per_4mb": cpu_us / (bulk_bytes / (4 << 20)),
    }


def figures(times):
    ordered = sorted(times)
    return {"p50": percentile(ordered, 0.5), "p99": percentile(ordered, 0.99), "count": len(ordered)}


def loopback_bytes():
    """Bytes that went through the loopback device, all of which is taken for ours."""
    with open("/sys/class/net/lo/statistics/rx_bytes") as text:
        return int(text.read())
