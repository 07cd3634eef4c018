#!/usr/bin/env python3
"""CPU time per MB of 1000 MB that a resident C program makes, beside the floor.

usage: table.py --hob BINARY [--rounds N]

`ring.c`, the least that can be done, and hob with the program of `bench/rivals` over shared memory
and over a socket. Each stands in a cpuacct control group of its own on CPU 0, curl on CPU 1; a
round is every row once, and the figure is the median of the rounds. Must run as root; needs curl
and a C compiler. BINARY has `libhob.so` beside it.
"""
import argparse, pathlib, shutil, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from grouped import Grouped, free_port

ROOT = HERE.parent.parent
KIB = 1024000
CONFIG = """threads = 1
control = "off"
[[listen]]
address = "127.0.0.1:{port}"
[[site]]
root = "{work}/www"
[[site.route]]
path = "/shm"
resident = {{ run = ["{work}/resident"], dir = "{work}", env = {{ LD_LIBRARY_PATH = "{work}" }} }}
[[site.route]]
path = "/stream"
resident = {{ run = ["{work}/resident"], dir = "{work}", carrier = "stream", env = {{ LD_LIBRARY_PATH = "{work}" }} }}
"""


class Server(Grouped):
    def fetch(self, path, kib):
        url = f"http://127.0.0.1:{self.port}{path}?{kib}"
        load = ["taskset", "-c", "1", "curl", "-sf", "-o", "/dev/null", "-w", "%{size_download}", url]
        return int(subprocess.run(load, stdout=subprocess.PIPE, text=True).stdout or 0)

    def cost(self, path):
        before = self.cpu_us()
        if self.fetch(path, KIB) != KIB * 1024:
            raise SystemExit(f"{path}: the answer was not whole")
        return (self.cpu_us() - before) / (KIB / 1024)

    def await_answer(self, path):
        for _ in range(100):
            if self.fetch(path, 64) == 65536:
                return
            time.sleep(0.1)
        raise SystemExit(f"{path}: no answer")


def build(work, binary):
    library = pathlib.Path(binary).resolve().parent / "libhob.so"
    for name in ["libhob.so", "libhob.so.1"]:
        shutil.copy(library, work / name)
    include = ROOT / "crates/libhob/include"
    for name, source, more in [
        ("ring", HERE / "ring.c", []),
        ("resident", ROOT / "bench/rivals/resident.c", [f"-I{include}", f"-L{work}", "-lhob"]),
    ]:
        subprocess.run(["cc", "-O2", "-o", str(work / name), str(source), *more], check=True)
    (work / "www").mkdir()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--hob", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        work.chmod(0o755)
        build(work, options.hob)
        ring_port, pages_port, hob_port = free_port(), free_port(), free_port()
        (work / "hob.toml").write_text(CONFIG.format(work=work, port=hob_port))
        ring = Server("ring", [str(work / "ring"), str(ring_port)], ring_port)
        # 256 chunks of 64 KiB, of which 176 are kept: more than 4 MiB to send and 6 MiB to receive.
        pages = Server("pages", [str(work / "ring"), str(pages_port), "64", "256", "176"], pages_port)
        hob = Server("hob", [options.hob, "serve", "--config", str(work / "hob.toml")], hob_port)
        rows = [("floor: ring.c", ring, "/"), ("ring.c by sendfile", pages, "/"), ("hob, shared memory", hob, "/shm"), ("hob, socket", hob, "/stream")]
        try:
            for _, server, path in rows:
                server.await_answer(path)
            costs = {name: [] for name, _, _ in rows}
            for _ in range(options.rounds):
                for name, server, path in rows:
                    costs[name].append(server.cost(path))
        finally:
            ring.stop()
            pages.stop()
            hob.stop()
    floor = statistics.median(costs[rows[0][0]])
    for name, _, _ in rows:
        cost = statistics.median(costs[name])
        print(f"  {name:24}{cost:9.1f} us of CPU per MB  x {cost / floor:.2f}   ({min(costs[name]):.1f} to {max(costs[name]):.1f})")


if __name__ == "__main__":
    main()
