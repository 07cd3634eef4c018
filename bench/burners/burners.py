#!/usr/bin/env python3
"""Do static files stay quick while programs burn every CPU? See README.md.

usage: burners.py --hob BINARY [--rounds N] [--secs S] [--out FILE]
"""
import argparse
import contextlib
import datetime
import os
import pathlib
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fairness"))
import servers  # noqa: E402
import small  # noqa: E402

BURNERS = 8
GOAL = 3.0
# Share of the CPUs that other work may have had in a measurement that counts, and how often one is tried.
OTHERS_MAX, TRIES = 0.02, 30
# One step behind the server, as hob starts its programs.
NICE = 1
BURN = "int main(void) { for (volatile unsigned long turns = 0;; turns++) {} }\n"
ROUTE = """[[site.route]]
path = "/cgi/*"
cgi = { dir = "cgi", first_byte = "1h", total = "1h", grace = "100ms" }
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hob", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=float, default=3, help="of each measurement")
    parser.add_argument("--out", type=pathlib.Path, help="markdown file to write besides printing")
    options = parser.parse_args()
    options.hob = options.hob.resolve()
    # Ended from outside, it must end what it started: eight burners are no small thing to leave behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    with tempfile.TemporaryDirectory(prefix="burners-") as temporary:
        scratch = pathlib.Path(temporary)
        servers.prepare(scratch)
        make_burner(scratch)
        text = "\n".join(report(options, scratch)) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)


def make_burner(scratch):
    (scratch / "cgi").mkdir(mode=0o755)
    (scratch / "burn.c").write_text(BURN)
    subprocess.run(["cc", "-O1", "-o", scratch / "cgi/burn", scratch / "burn.c"], check=True)


def report(options, scratch):
    cpus = set(range(os.cpu_count()))
    with contextlib.ExitStack() as stack:
        hob = stack.enter_context(servers.hob(options.hob, scratch, cpus, len(cpus), routes=ROUTE))
        measured = [(hob, burners_of_hob)]  # of which server, and how its burners are started
        if shutil.which("nginx"):
            nginx = stack.enter_context(servers.nginx(scratch, cpus, len(cpus)))
            measured.append((nginx, lambda server: burners_by_hand(server, scratch)))
        rows = measure(measured, options, cpus)
    yield from head(options)
    yield from ["| server | asker | idle p50 / p99 | beside p50 / p99 | p99 ratio (least..most) "
                "| least idle p99 | least beside p99 | beside to least idle | other work | goal |",
                "| --- " * 10 + "|"]
    for (label, is_realtime), rounds in rows.items():
        ratios = [beside["p99"] / idle["p99"] for idle, beside in rounds]
        ratio = statistics.median(ratios)
        cells = [" / ".join(f"{statistics.median(part[which][name] for part in rounds):.0f}"
                            for name in ("p50", "p99")) for which in (0, 1)]
        idle, beside = ([part[which]["p99"] for part in rounds] for which in (0, 1))
        # Other work on the machine lengthens idle too; the round it spared is the hardest measure.
        strict = statistics.median(beside) / min(idle)
        most = max(part["others"] for pair in rounds for part in pair)
        goal = verdict(strict, most) if label == "hob" else ""
        yield (f"| {label} | {'real time' if is_realtime else 'as the rest'} | {' | '.join(cells)} "
               f"| {ratio:.2f} ({min(ratios):.2f}..{max(ratios):.2f}) | {min(idle):.0f} | {min(beside):.0f} "
               f"| {strict:.2f} | {most:.1%} | {goal} |")


def verdict(ratio, others):
    """None where other work had the CPUs: neither ratio would be the burners'."""
    if others > OTHERS_MAX:
        return "not judged: other work"
    return "met" if ratio <= GOAL else "**missed**"


def head(options):
    with open("/proc/cpuinfo") as text:
        models = [line.split(":", 1)[1].strip() for line in text if line.startswith("model name")]
    version = subprocess.run([options.hob, "--version"], capture_output=True, text=True).stdout.strip()
    return [f"{datetime.date.today()}, {os.cpu_count()} x {models[0] if models else platform.machine()}, "
            f"Linux {platform.release()}, {version}; `bench/burners/burners.py --hob target/release/hob "
            f"--rounds {options.rounds} --secs {options.secs:g}`, load average at the end "
            f"{os.getloadavg()[0]:.1f}. Microseconds, medians of the rounds.", ""]


def measure(measured, options, cpus):
    """Each server idle and beside burners, in turns. (label, realtime) to [(idle, beside)]."""
    rows = {(server.label, realtime): [] for realtime in (True, False) for server, _ in measured}
    for _ in range(options.rounds):
        for server, burners in measured:
            for realtime in (True, False):
                idle = ask(server, options.secs, cpus, realtime)
                with burners(server):
                    beside = ask(server, options.secs, cpus, realtime)
                rows[server.label, realtime].append((idle, beside))
    return rows


def ask(server, secs, cpus, realtime):
    """Figures of a measurement during which nothing else worked, `others` of the CPU time but for that;
    of the quietest one where none was."""
    quietest = None
    for _ in range(TRIES):
        before, began = others_us(server), time.monotonic()
        every, _ = small.ask(server, secs, cpus, realtime)
        wall_us = (time.monotonic() - began) * 1e6 * len(cpus)
        figures = small.figures(every) | {"others": (others_us(server) - before) / wall_us}
        if quietest is None or figures["others"] < quietest["others"]:
            quietest = figures
        if quietest["others"] <= OTHERS_MAX:
            break
    return quietest


def others_us(server):
    """CPU time so far of all but the server, its programs and this process; 0 where nobody counts it."""
    if not server.group:
        return 0
    whole = int((servers.CPUACCT / "cpuacct.usage").read_text()) / 1000
    return whole - server.cpu_us() - time.process_time() * 1e6


@contextlib.contextmanager
def burners_of_hob(server):
    """As many requests for a program that burns and never answers."""
    request = b"GET /cgi/burn HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    asked = []
    try:
        for _ in range(BURNERS):
            asked.append(socket.create_connection(server.address))
            asked[-1].sendall(request)
        wait_until(lambda: len(burning(server)) == BURNERS, "all burners run")
        nices = {os.getpriority(os.PRIO_PROCESS, pid) for pid in burning(server)}
        if nices != {NICE}:
            raise SystemExit(f"burners have nice {nices}, not {NICE}: the comparison would not be fair")
        yield
    finally:
        for connection in asked:
            connection.close()
        wait_until(lambda: not burning(server), "all burners ended")


def burning(server):
    found = []
    for pid in server.pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as name:
            if name.read() == "burn\n":
                found.append(pid)
    return found


@contextlib.contextmanager
def burners_by_hand(server, scratch):
    """The same program as often, in one session of its own, as under a starter of programs, and
    counted with the server."""
    def before_exec():
        if server.group:
            (server.group / "tasks").write_text(str(os.getpid()))

    command = f"for one in $(seq {BURNERS}); do nice -n {NICE} {scratch}/cgi/burn & done; wait"
    shell = subprocess.Popen(["sh", "-c", command], start_new_session=True, preexec_fn=before_exec)
    try:
        wait_until(lambda: len(burning_in(shell.pid)) == BURNERS, "all burners run")
        yield
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def burning_in(session):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text() == "burn\n" and os.getsid(int(process.name)) == session:
                found.append(process.name)
    return found


def wait_until(is_so, what):
    deadline = time.monotonic() + 30
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"not so after 30 seconds: {what}")
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
