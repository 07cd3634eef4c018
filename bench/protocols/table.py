#!/usr/bin/env python3
"""What the protocols cost beside each other: files over HTTP/1.1, the same over TLS, HTTP/2 and HTTP/3.

usage: table.py --hob BINARY [--floor SEAL_FLOOR] [--resident PROGRAM] [--h3 CLIENT] [--rounds N] [--secs S]

CPU microseconds of hob per request, each row as HTTP/1.1 in clear text, over TLS 1.3 and as HTTP/2
over TLS with one and with ten streams per connection, with one and with ten connections. hob stands
in a cpuacct control group of its own on CPU 0 with one thread, the load on CPU 1; a round is every
row once, and the figure is the median of the rounds. With `--floor` a bare loop that sends 64 KiB is
measured too: from a file, from memory, and sealed. With `--resident` (`bench/rivals/resident.c`, built)
the same bytes come from a resident program over HTTP/2. With `--h3` (`bench/protocols/quic-go`, built)
files are asked for over HTTP/3, too. Must run as root; needs h2load.
"""
import argparse, os, pathlib, re, statistics, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from grouped import Grouped, certificate, free_port

HOB = """threads = 1
control = "off"
default_log = "access"
[[log]]
name = "access"
file = "{work}/hob.log"
format = "combined"
[[listen]]
address = "127.0.0.1:{clear}"
[[listen]]
address = "127.0.0.1:{secure}"
tls = {{ certificate = "{work}/cert.pem", key = "{work}/key.pem", http3 = {h3} }}
[[site]]
root = "{work}/www"
"""
RESIDENT = """
[[site.route]]
path = "/resident"
resident = {{ run = ["{program}"], workers = {{ min = 2, max = 2 }} }}
"""
SIZES = {"0k": 0, "1k": 1024, "64k": 65536}
#: Heading, and whether it is encrypted, and the streams of HTTP/2.
WAYS = {"clear": (False, 0), "TLS": (True, 0), "h2 m=1": (True, 1), "h2 m=10": (True, 10)}
#: Streams of HTTP/3.
H3 = {"h3 m=1": 1, "h3 m=10": 10}
#: What the floor serves, and what it is a floor of.
FLOORS = {"file": "clear", "memory": "from memory", "sealed": "TLS"}


def load(url, clients, streams, secs, h3=None):
    """Requests that were answered; `h3` is the client that asks over HTTP/3."""
    if h3:
        command = [h3, f"-c={clients}", f"-m={streams}", f"-D={secs}", url]
        pattern = r"(\d+) succeeded"
    else:
        # One client for all of them: how it waits and reads shows in what the server has to do.
        way = [f"-m{streams}"] if streams else ["--h1", "-m1"]
        command = ["h2load", f"-c{clients}", *way, "-D", str(secs), url]
        pattern = r"(\d+) succeeded"
    run = ["taskset", "-c", "1", *command]
    said = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout
    bad = re.search(r"[1-9]\d* (?:failed|errored)", said)
    assert not bad, said
    return int(re.search(pattern, said)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hob", required=True, type=os.path.abspath)
    parser.add_argument("--floor", type=os.path.abspath)
    parser.add_argument("--resident", type=os.path.abspath)
    parser.add_argument("--h3", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=int, default=1)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o777)
        (pathlib.Path(work) / "www").mkdir()
        for name, size in SIZES.items():
            (pathlib.Path(work) / "www" / f"{name}.txt").write_text("x" * size)
        certificate(work)
        clear, secure = free_port(), free_port()
        config = pathlib.Path(work) / "hob.toml"
        program = RESIDENT.format(program=wanted.resident) if wanted.resident else ""
        h3 = "true" if wanted.h3 else "false"
        config.write_text(HOB.format(work=work, clear=clear, secure=secure, h3=h3) + program)
        servers = [Grouped("hob", [wanted.hob, "serve", "--config", str(config)], clear)]
        figures = {}
        try:
            if wanted.floor:
                port = free_port()
                servers.append(Grouped("floor", [wanted.floor, str(port)], port))
            for server in servers:
                server.await_answer("/0k.txt")
            for _ in range(wanted.rounds):
                measure(figures, servers, secure, wanted)
        finally:
            for server in servers:
                server.stop()
    show({key: statistics.median(all_of) for key, all_of in figures.items()}, wanted)


def measure(figures, servers, secure, wanted):
    """One round: adds to the figures of each size, number of connections, and way or floor."""
    hob, *floors = servers
    for clients in (1, 10):
        asked = [(hob, size, way, f"/{size}.txt") for size in SIZES for way in WAYS]
        asked += [(floor, "64k", what, f"/{what}") for floor in floors for what in FLOORS]
        if wanted.resident:
            asked += [(hob, size, "resident", f"/resident?{size[:-1]}") for size in SIZES]
        if wanted.h3:
            asked += [(hob, size, way, f"/{size}.txt") for size in SIZES for way in H3]
        further = {"resident": (True, 10)} | {way: (True, streams) for way, streams in H3.items()}
        for server, size, way, path in asked:
            is_secure, streams = (WAYS | further).get(way, (False, 0))
            start = f"https://127.0.0.1:{secure}" if is_secure else f"http://127.0.0.1:{server.port}"
            before = server.cpu_us()
            count = load(start + path, clients, streams, wanted.secs, wanted.h3 if way in H3 else None)
            figures.setdefault((size, clients, way), []).append((server.cpu_us() - before) / count)


def show(median, wanted):
    print(f"{'us/request':14}" + "".join(f"{way:>10}" for way in WAYS)
          + f"{'TLS/clear':>12}{'h2/TLS':>8}{'h2 m=10/TLS':>13}")
    for clients in (1, 10):
        for size in SIZES:
            row = {way: median[size, clients, way] for way in WAYS}
            tls = row["TLS"]
            print(f"{size + f' c={clients}':14}" + "".join(f"{us:10.2f}" for us in row.values())
                  + f"{tls / row['clear']:12.2f}{row['h2 m=1'] / tls:8.2f}{row['h2 m=10'] / tls:13.2f}")
        if wanted.floor:
            row = {what: median["64k", clients, what] for what in FLOORS}
            said = ", ".join(f"{FLOORS[what]} {us:.2f}" for what, us in row.items())
            print(f"floor c={clients}: {said}; TLS/clear {row['sealed'] / row['file']:.2f}")
        if wanted.resident:
            rows = {size: (median[size, clients, "resident"], median[size, clients, "h2 m=10"]) for size in SIZES}
            said = ", ".join(f"{size} {us:.2f} ({us / static:.2f} x static)" for size, (us, static) in rows.items())
            print(f"resident over h2 m=10 c={clients}: {said}")
        for way in H3 if wanted.h3 else ():
            rows = {size: (median[size, clients, way], median[size, clients, "TLS"]) for size in SIZES}
            said = ", ".join(f"{size} {us:.2f} ({us / tls:.2f} x TLS)" for size, (us, tls) in rows.items())
            print(f"{way} c={clients}: {said}")


if __name__ == "__main__":
    main()
