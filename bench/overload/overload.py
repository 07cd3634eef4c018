#!/usr/bin/env python3
"""Twice as many requests as the workers can answer: who gets what, and when? See README.md.

usage: overload.py --hob BINARY [--secs S] [--rounds N] [--out FILE]
"""
import argparse
import collections
import datetime
import gc
import os
import pathlib
import platform
import random
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fairness"))
import servers  # noqa: E402

WORKERS, NAP_MS, WAIT_MS, REFUSED_MS_MAX, LATE_MS = 4, 20, 300, 5, 5
CAPACITY = WORKERS * 1000 // NAP_MS
# What the workers answer within the wait, a tenth less: they take a little longer than they nap.
QUEUE = CAPACITY * WAIT_MS // 1000 * 9 // 10
ROUTE = """[[site.route]]
path = "/nap"
resident = {{ run = ["./nap"], dir = ".", env = {{ NAP_MS = "{nap}" }}, carrier = "shm", \
workers = {{ min = {workers}, max = {workers} }}, queue = {{ max = {queue}, wait = "{wait}ms" }} }}
"""
Row = collections.namedtuple("Row", "rate sent served refused late")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hob", required=True, type=pathlib.Path)
    parser.add_argument("--secs", type=float, default=10, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, help="markdown file to write besides printing")
    options = parser.parse_args()
    options.hob = options.hob.resolve()
    with tempfile.TemporaryDirectory(prefix="overload-") as temporary:
        scratch = pathlib.Path(temporary)
        servers.prepare(scratch)
        make_program(options.hob.parent, scratch)
        text = "\n".join(report(options, scratch)) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)


def make_program(built, scratch):
    library = scratch / "libhob.so.1"
    shutil.copy(built / "libhob.so", library)
    header = HERE.parent.parent / "crates/libhob/include"
    subprocess.run(["cc", "-O2", "-o", scratch / "nap", HERE / "nap.c", "-I", header, library,
                    "-Wl,-rpath,$ORIGIN"], check=True)


def report(options, scratch):
    yield from head(options)
    yield from table(options, scratch, QUEUE, [0.5, 1, 2], is_judged=True)
    yield ""
    yield f"The same with a queue of {4 * QUEUE}, longer than its wait:"
    yield ""
    yield from table(options, scratch, 4 * QUEUE, [2], is_judged=False)


def table(options, scratch, queue, shares, is_judged):
    yield from ["| requests came | answered with 200 | p50 / p99 / most, ms | answered with 503 "
                "| p50 / p99 / most, ms | late | goals |", "| --- " * 7 + "|"]
    route = ROUTE.format(nap=NAP_MS, workers=WORKERS, queue=queue, wait=WAIT_MS)
    threads = os.cpu_count()
    cpus = set(range(threads))
    with servers.hob(options.hob, scratch, cpus, threads, routes=route) as hob:
        wait_for_workers(hob)
        for share in shares:
            for number in range(options.rounds):
                row = measure(hob.address, share * CAPACITY, options.secs, number)
                goals = verdict(row, options.secs) if is_judged and share > 1 else ""
                yield (f"| {row.rate:.0f}/s | {len(row.served)} | {spread(row.served)} "
                       f"| {len(row.refused)} | {spread(row.refused)} | {row.late} | {goals} |")


def verdict(row, secs):
    missed = []
    if at(row.served, 0.99) > WAIT_MS + NAP_MS:
        missed.append("answered too late")
    if at(row.refused, 0.99) >= REFUSED_MS_MAX:
        missed.append("refused too late")
    if len(row.served) < 0.9 * CAPACITY * secs:
        missed.append("too few answered")
    return "**missed**: " + ", ".join(missed) if missed else "met"


def spread(times):
    if not times:
        return ""
    return " / ".join(f"{at(times, part):.1f}" for part in (0.5, 0.99, 1))


def at(times, part):
    """The time within which that part of all were answered."""
    return times[min(int(len(times) * part), len(times) - 1)]


def wait_for_workers(hob):
    deadline = time.monotonic() + 30
    while True:
        (pool,) = hob.status()["programs"]["pools"]
        if [worker["state"] for worker in pool["workers"]] == ["idle"] * WORKERS:
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"the workers are not ready: {pool}")
        time.sleep(0.05)


def measure(address, rate, secs, seed):
    """Sends requests at their moments, each on a connection that has no other, and waits for all."""
    chance, moment, moments = random.Random(seed), 0.0, []
    while moment < secs:
        moments.append(moment)
        moment += chance.expovariate(rate)
    poll, busy, free = select.epoll(), {}, [connect(address) for _ in range(64)]
    times, late, upcoming = {200: [], 503: []}, 0, 0
    gc.disable()
    began = time.perf_counter()
    while upcoming < len(moments) or busy:
        now = time.perf_counter() - began
        while upcoming < len(moments) and moments[upcoming] <= now:
            late += now - moments[upcoming] > LATE_MS / 1000
            upcoming += 1
            connection = free.pop() if free else connect(address)
            busy[connection.fileno()] = connection, time.perf_counter()
            connection.sendall(b"GET /nap HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            poll.register(connection, select.EPOLLIN)
            now = time.perf_counter() - began
        pause = moments[upcoming] - now if upcoming < len(moments) else 5
        for fd, _ in poll.poll(max(pause, 0)):
            connection, sent = busy.pop(fd)
            status, stays = read(connection)
            times[status].append((time.perf_counter() - sent) * 1000)
            poll.unregister(fd)
            if stays:
                free.append(connection)
            else:
                connection.close()
    gc.enable()
    for connection in free:
        connection.close()
    return Row(rate, len(moments), sorted(times[200]), sorted(times[503]), late)


def connect(address):
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read(connection):
    """One answer with a length. Its status, and whether the connection stays."""
    head, body = b"", b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65536)
        if not piece:
            raise SystemExit(f"a connection ended in the middle of an answer: {head!r}")
        head += piece
    head, body = head.split(b"\r\n\r\n", 1)
    lines = head.lower().split(b"\r\n")
    fields = dict(line.split(b": ", 1) for line in lines[1:])
    while len(body) < int(fields[b"content-length"]):
        body += connection.recv(65536)
    return int(lines[0].split()[1]), fields.get(b"connection") != b"close"


def head(options):
    with open("/proc/cpuinfo") as text:
        models = [line.split(":", 1)[1].strip() for line in text if line.startswith("model name")]
    version = subprocess.run([options.hob, "--version"], capture_output=True, text=True).stdout.strip()
    return [f"{datetime.date.today()}, {os.cpu_count()} x {models[0] if models else platform.machine()}, "
            f"Linux {platform.release()}, {version}; `bench/overload/overload.py --hob target/release/hob "
            f"--rounds {options.rounds} --secs {options.secs:g}`, load average {os.getloadavg()[0]:.1f}. "
            f"{WORKERS} workers, {NAP_MS} ms each: {CAPACITY} requests a second; a queue of {QUEUE}, "
            f"wait {WAIT_MS} ms.", ""]


if __name__ == "__main__":
    sys.exit(main())
