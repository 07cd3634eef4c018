"""CPU time and memory of several hobs side by side, the same work for each.

    python3 bench/versions.py ROUNDS NAME=FOLDER NAME=FOLDER ...

A FOLDER has `hob` and its `lib/hob`, with libhob and the native parts, which are used: a folder that
has them not is none to compare. Each runs on CPU 0 in a control group of its own, wrk or h2load on
CPU 1; rounds are interleaved, in changing order. Ratios are to the first; give it twice, from a copy,
to see what the machine alone makes of a ratio. Needs root, wrk, h2load, cc, version 1 of control groups.
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

from grouped import CONFIG, Grouped, certificate, free_port

SECONDS = 1
PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "crates/compare/src/programs"
HOB = CONFIG + """[[listen]]
address = "127.0.0.1:{secure}"
tls = {{ certificate = "{place}/cert.pem", key = "{place}/key.pem" }}
[[site]]
root = "{place}/www"
"""
WORKERS = "workers = { min = 2, max = 2 }"
# The path, and the route of it. One program does the same work in every way there is to run it.
ROUTES = {
    "/cgi/*": 'cgi = {{ dir = "{place}/cgi" }}',
    "/warm/script.py": 'warm = {{ script = "{place}/cgi/script.py", interpreter = "python3" }}',
    "/warm/script.pl": 'warm = {{ script = "{place}/cgi/script.pl", interpreter = "perl" }}',
    "/lines": 'resident = {{ run = ["{place}/cgi/program"], carrier = "lines", {workers} }}',
    "/shm": 'resident = {{ run = ["{place}/cgi/resident"], carrier = "shm", {workers} }}',
    "/wsgi": 'resident = {{ wsgi = "app:application", dir = "{place}/cgi", {workers} }}',
    "/asgi": 'resident = {{ asgi = "app:asgi", dir = "{place}/cgi", {workers} }}',
    "/psgi": 'resident = {{ psgi = "{place}/cgi/app.psgi", dir = "{place}/cgi", {workers} }}',
}
PSGI = "sub { [200, ['Content-Type' => 'text/plain'], ['hello']] }"
# What a row is, the path, connections, and what h2load is told besides; wrk where that is None.
ROWS = [
    ("file of 0 bytes", "/0k.txt", 10, None), ("file of 1 KiB", "/1k.txt", 10, None),
    ("file of 64 KiB", "/64k.txt", 10, None),
    ("TLS, 0 bytes", "/0k.txt", 10, ["--h1"]), ("TLS, 64 KiB", "/64k.txt", 10, ["--h1"]),
    ("HTTP/2, 0 bytes, m=1", "/0k.txt", 10, ["-m1"]), ("HTTP/2, 0 bytes, m=10", "/0k.txt", 10, ["-m10"]),
    ("HTTP/2, 1 KiB, m=10", "/1k.txt", 10, ["-m10"]), ("HTTP/2, 64 KiB, m=10", "/64k.txt", 10, ["-m10"]),
    ("CGI in C", "/cgi/program", 10, None), ("CGI in sh", "/cgi/script.sh", 10, None),
    ("warm Python", "/warm/script.py", 10, None), ("warm Perl", "/warm/script.pl", 10, None),
    ("resident C, lines", "/lines", 10, None), ("resident C, shared memory", "/shm", 10, None),
    ("WSGI", "/wsgi", 10, None), ("ASGI", "/asgi", 10, None), ("PSGI", "/psgi", 10, None),
]


def place_of(name, folder, port, secure):
    place = pathlib.Path(tempfile.mkdtemp(prefix=f"hob-versions-{name}-"))
    place.chmod(0o755)
    for made in ("www", "cgi"):
        (place / made).mkdir()
    for size in (0, 1, 64):
        (place / "www" / f"{size}k.txt").write_bytes(b"x" * 1024 * size)
    for program in ("script.py", "script.pl", "app.py"):
        shutil.copy(PROGRAMS / program, place / "cgi")
    (place / "cgi/script.sh").write_text("#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n")
    (place / "cgi/app.psgi").write_text(PSGI)
    subprocess.run(["cc", "-O2", "-static", "-o", place / "cgi/program", PROGRAMS / "program.c"], check=True)
    header = PROGRAMS.parents[2] / "libhob/include"
    library = (pathlib.Path(folder) / "lib/hob/libhob.so.1").resolve()
    shutil.copy(library, place / "cgi/libhob.so.1")
    subprocess.run(["cc", "-O2", f"-I{header}", "-o", place / "cgi/resident", PROGRAMS / "resident.c",
                    place / "cgi/libhob.so.1", f"-Wl,-rpath,{place}/cgi"], check=True)
    for file in (place / "cgi").iterdir():
        file.chmod(0o755)
    certificate(place)
    routes = [f'[[site.route]]\npath = "{path}"\n{text.format(place=place, workers=WORKERS)}\n'
              for path, text in ROUTES.items()]
    config = HOB.format(place=place, port=port, secure=secure) + "".join(routes)
    (place / "hob.toml").write_text(config)
    return place


def memory_kib(server):
    """What the processes of the group hold, shared pages by their share."""
    sum_kib = 0
    for pid in (server.group / "cgroup.procs").read_text().split():
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        sum_kib += int(re.search(r"^Pss: +(\d+)", text, re.MULTILINE)[1])
    return sum_kib


def check_native(server):
    """Stops the table where an interpreter runs without the native part: it would compare something else."""
    maps = ""
    for pid in (server.group / "cgroup.procs").read_text().split():
        maps += pathlib.Path(f"/proc/{pid}/maps").read_text()
    for part in ("/_native.abi3.so", "/_warm.abi3.so", "/lib/hob/perl/", "/libhob.so.1"):
        if part not in maps:
            raise SystemExit(f"{server.name} runs without {part}")


def round_us(server, path, connections, told):
    before = server.cpu_us()
    if told is None:
        url = f"http://127.0.0.1:{server.port}{path}"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", url]
    else:
        url = f"https://127.0.0.1:{server.secure}{path}"
        command = ["h2load", f"-c{connections}", *told, "-D", str(SECONDS), url]
    said = subprocess.run(["taskset", "-c", "1", *command], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said or (told and not re.search(r" 0 failed, 0 errored", said)):
        raise SystemExit(f"{server.name} {path}: {said}")
    count = re.search(r"(\d+) requests in", said) or re.search(r"(\d+) succeeded", said)
    return (server.cpu_us() - before) / int(count[1])


def main():
    rounds, named = int(sys.argv[1]), [word.split("=", 1) for word in sys.argv[2:]]
    servers, places = [], []
    for name, folder in named:
        port, secure = free_port(), free_port()
        places.append(place_of(name, folder, port, secure))
        command = [f"{folder}/hob", "serve", "--config", str(places[-1] / "hob.toml")]
        servers.append(Grouped(name, command, port))
        servers[-1].secure = secure
    try:
        for server in servers:
            for _, path, *_ in ROWS:
                server.await_answer(path)
            check_native(server)
        memory = {server.name: [memory_kib(server)] for server in servers}
        us = {(row, server.name): [] for row, *_ in ROWS for server in servers}
        for _ in range(rounds):
            for row, *what in ROWS:
                for server in random.sample(servers, len(servers)):
                    us[row, server.name].append(round_us(server, *what))
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
