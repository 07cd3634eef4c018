#!/usr/bin/env python3
"""What the protocols cost beside each other: files over HTTP/1.1, the same over TLS, and HTTP/2.

usage: table.py --hob BINARY [--rounds N] [--secs S]

CPU microseconds of hob per request, each row as HTTP/1.1 in clear text, over TLS 1.3 and as HTTP/2
over TLS with one and with ten streams per connection, with one and with ten connections. hob stands
in a cpuacct control group of its own on CPU 0 with one thread, the load on CPU 1; a round is every
row once, and the figure is the median of the rounds. Must run as root; needs wrk and h2load.
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
tls = {{ certificate = "{work}/cert.pem", key = "{work}/key.pem", http3 = false }}
[[site]]
root = "{work}/www"
"""
SIZES = {"0k": 0, "1k": 1024, "64k": 65536}
#: Heading, and whether it is encrypted, and the streams of HTTP/2.
WAYS = {"clear": (False, 0), "TLS": (True, 0), "h2 m=1": (True, 1), "h2 m=10": (True, 10)}


def load(url, clients, streams, secs):
    """Requests that were answered."""
    if streams:
        command = ["h2load", f"-c{clients}", f"-m{streams}", "-D", str(secs), url]
        pattern = r"(\d+) succeeded"
    else:
        command = ["wrk", "-t1", f"-c{clients}", f"-d{secs}s", url]
        pattern = r"(\d+) requests in"
    said = subprocess.run(["taskset", "-c", "1", *command], stdout=subprocess.PIPE, text=True).stdout
    bad = re.search(r"Non-2xx.*|[1-9]\d* (?:failed|errored)", said)
    assert not bad, said
    return int(re.search(pattern, said)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hob", required=True, type=os.path.abspath)
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
        config.write_text(HOB.format(work=work, clear=clear, secure=secure))
        server = Grouped("hob", [wanted.hob, "serve", "--config", str(config)], clear)
        try:
            server.await_answer("/0k.txt")
            figures = {}
            for _ in range(wanted.rounds):
                for clients in (1, 10):
                    for size in SIZES:
                        for way, (is_secure, streams) in WAYS.items():
                            start = f"https://127.0.0.1:{secure}" if is_secure else f"http://127.0.0.1:{clear}"
                            before = server.cpu_us()
                            count = load(f"{start}/{size}.txt", clients, streams, wanted.secs)
                            used = server.cpu_us() - before
                            figures.setdefault((size, clients, way), []).append(used / count)
        finally:
            server.stop()
    median = {key: statistics.median(all_of) for key, all_of in figures.items()}
    print(f"{'us/request':14}" + "".join(f"{way:>10}" for way in WAYS)
          + f"{'TLS/clear':>12}{'h2/TLS':>8}{'h2 m=10/TLS':>13}")
    for clients in (1, 10):
        for size in SIZES:
            row = {way: median[size, clients, way] for way in WAYS}
            tls = row["TLS"]
            print(f"{size + f' c={clients}':14}" + "".join(f"{us:10.2f}" for us in row.values())
                  + f"{tls / row['clear']:12.2f}{row['h2 m=1'] / tls:8.2f}{row['h2 m=10'] / tls:13.2f}")


if __name__ == "__main__":
    main()
