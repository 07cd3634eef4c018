"""CPU time and memory of several hobs side by side, the same work for each.

    python3 bench/versions.py ROUNDS NAME=FOLDER NAME=FOLDER ...

A FOLDER has `hob` and, for native parts, `lib/hob`. Each runs on CPU 0 in a control group of its own,
wrk on CPU 1; rounds are interleaved, in changing order. Ratios are to the first; give it twice, from
a copy, to see what the machine alone makes of a ratio. Needs root, wrk, version 1 of control groups.
"""
import json
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from grouped import Grouped, free_port

SECONDS = 1
CONFIG = """threads = 1
control = "off"
default_log = "access"
[[log]]
name = "access"
file = "{place}/access.log"
format = "combined"
[[listen]]
address = "127.0.0.1:{port}"
[[site]]
root = "{place}/www"
[[site.route]]
path = "/resident"
resident = {{ wsgi = "app:application", dir = "{place}", workers = {{ min = 2, max = 2 }} }}
"""
APP = """def application(environ, start_response):
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [b'hello']
"""
ROWS = [("file of 0 bytes", "/0k.txt", 10), ("1 KiB", "/1k.txt", 10), ("64 KiB", "/64k.txt", 10),
        ("resident WSGI", "/resident", 4)]


def place_of(name, port):
    place = pathlib.Path(tempfile.mkdtemp(prefix=f"hob-versions-{name}-"))
    place.chmod(0o755)
    (place / "www").mkdir()
    for size in (0, 1, 64):
        (place / "www" / f"{size}k.txt").write_bytes(b"x" * 1024 * size)
    (place / "app.py").write_text(APP)
    (place / "hob.toml").write_text(CONFIG.format(place=place, port=port))
    return place


def memory_kib(server):
    """What the processes of the group hold, shared pages by their share."""
    sum_kib = 0
    for pid in (server.group / "cgroup.procs").read_text().split():
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        sum_kib += int(re.search(r"^Pss: +(\d+)", text, re.MULTILINE)[1])
    return sum_kib


def round_us(server, path, connections):
    url = f"http://127.0.0.1:{server.port}{path}"
    before = server.cpu_us()
    wrk = ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", url]
    said = subprocess.run(wrk, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(f"{server.name} {path}: {said}")
    return (server.cpu_us() - before) / int(re.search(r"(\d+) requests in", said)[1])


def main():
    rounds, named = int(sys.argv[1]), [word.split("=", 1) for word in sys.argv[2:]]
    servers, places = [], []
    for name, folder in named:
        port = free_port()
        places.append(place_of(name, port))
        command = [f"{folder}/hob", "serve", "--config", str(places[-1] / "hob.toml")]
        servers.append(Grouped(name, command, port))
    try:
        for server in servers:
            for _, path, _ in ROWS:
                server.await_answer(path)
        memory = {server.name: [memory_kib(server)] for server in servers}
        us = {(row, server.name): [] for row, *_ in ROWS for server in servers}
        for _ in range(rounds):
            for row, path, connections in ROWS:
                for server in random.sample(servers, len(servers)):
                    us[row, server.name].append(round_us(server, path, connections))
        for server in servers:
            memory[server.name].append(memory_kib(server))
        first = servers[0].name
        for row, *_ in ROWS:
            for server in servers:
                own = us[row, server.name]
                ratios = [one / base for one, base in zip(own, us[row, first])]
                median, ratio = statistics.median(own), statistics.median(ratios)
                print(f"| {row} | {server.name} | {median:.2f} us | {ratio:.3f} |")
        print(json.dumps({"Pss KiB, started and after all rounds": memory}))
    finally:
        for server in servers:
            server.stop()
        for place in places:
            shutil.rmtree(place)


main()
