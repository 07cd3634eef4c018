"""CPU time and memory where a site has many files: 100,000 of 1 KiB in 100 folders, asked for at random.

    python3 bench/many_files.py ROUNDS NAME=FOLDER[:CACHE] ...

A FOLDER has `hob`; CACHE is its `cache.bytes`. nginx stands beside them, as it comes and with
open_file_cache. Each runs with one thread on CPU 0 in a control group of its own, 10 connections of
`hob bench` on CPU 1; rounds are interleaved, in changing order. "First" is the first three seconds
of a server, "then" the seven behind them; each the median of the rounds. Needs root, nginx, version
1 of control groups.
"""
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

from grouped import CONFIG, Grouped, free_port

FOLDERS, FILES, BYTES = 100, 1000, 1024
PHASES = [("first", 3), ("then", 7)]
HOB = CONFIG + """{cache}[[site]]
root = "{place}/www"
"""
NGINX = """worker_processes 1; daemon off; pid {place}/nginx.pid; error_log {place}/error.log;
worker_rlimit_nofile 16000;
events {{ worker_connections 512; }}
http {{ include /etc/nginx/mime.types; access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; {cache}
server {{ listen 127.0.0.1:{port}; root {place}/www; }} }}
"""
OPEN_FILES = "open_file_cache max=15000 inactive=60s; open_file_cache_valid 1s;"


def make_place():
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-many-files-"))
    place.chmod(0o755)
    for folder in range(FOLDERS):
        (place / "www" / str(folder)).mkdir(parents=True)
        for file in range(FILES):
            name = f"{folder}/{file}.html"
            (place / "www" / name).write_bytes(name.encode().ljust(BYTES, b"x"))
    return place


def urls(place, port):
    """A list whose lines are drawn at random: those that weigh the same would come in turn."""
    path = place / f"urls-{port}"
    lines = [
        f"http://127.0.0.1:{port}/{folder}/{file}.html weight={1 + file % 2 / 10000} name=all\n"
        for folder in range(FOLDERS) for file in range(FILES)
    ]
    path.write_text("".join(lines))
    return path


def memory_mib(server):
    """What the processes of the group hold of their own, shared pages by their share."""
    kib = 0
    for pid in (server.group / "cgroup.procs").read_text().split():
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                kib += int(line.split()[1])
    return kib / 1024


def start(name, what, place):
    """Starts hob of a folder, or nginx."""
    port = free_port()
    folder, _, cache = what.partition(":")
    if folder == "nginx":
        text, command = NGINX, ["nginx", "-c"]
    else:
        text, command = HOB, [f"{folder}/hob", "serve", "--config"]
        cache = f'[cache]\nbytes = "{cache}"\n' if cache else ""
    config = place / f"config-{port}"
    config.write_text(text.format(place=place, port=port, cache=cache))
    server = Grouped(f"{name}-{port}", [*command, config], port)
    server.await_answer("/0/0.html")
    return server


def measure(name, what, place, client):
    server = start(name, what, place)
    try:
        found, asked = {"empty": memory_mib(server)}, urls(place, server.port)
        for phase, seconds in PHASES:
            before = server.cpu_us()
            command = ["taskset", "-c", "1", client, "bench", "--urls", asked, "-c", "10", "--json",
                       "--for", f"{seconds}s", "--warm-up", "0s", "--seed", str(random.randrange(1 << 30)),
                       f"http://127.0.0.1:{server.port}"]
            said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            found[phase] = (server.cpu_us() - before) / (said["bytes"]["bodies"] / BYTES)
        found["full"] = memory_mib(server)
        return found
    finally:
        server.stop()


def main():
    rounds, *given = sys.argv[1:]
    entrants = [tuple(word.split("=", 1)) for word in given]
    client = f"{entrants[0][1].partition(':')[0]}/hob"
    entrants += [("nginx", "nginx"), ("nginx, open_file_cache", f"nginx:{OPEN_FILES}")]
    place, found = make_place(), {name: [] for name, _ in entrants}
    try:
        # Once, so that no one alone finds the folders cold.
        measure("warming", entrants[0][1], place, client)
        for _ in range(int(rounds)):
            for name, what in random.sample(entrants, len(entrants)):
                found[name].append(measure(name.split(",")[0], what, place, client))
    finally:
        shutil.rmtree(place)
    middle = {name: {word: statistics.median(one[word] for one in all) for word in all[0]} for name, all in found.items()}
    nginx = middle["nginx"]
    print("| server | first | x nginx | then | x nginx | MiB, empty | MiB, full |\n|---|---|---|---|---|---|---|")
    for name, one in middle.items():
        ratios = [f"{one[word]:.2f} us | {one[word] / nginx[word]:.2f}" for word, _ in PHASES]
        print(f"| {name} | {' | '.join(ratios)} | {one['empty']:.1f} | {one['full']:.1f} |")


main()
