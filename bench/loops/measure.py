#!/usr/bin/env python3
"""CPU microseconds per request of each candidate loop, interleaved; wrk on CPU 1, the loop on CPU 0.

usage: measure.py LOOPS [--floor FLOOR] [--conns 1,10] [--rounds 5] [--secs 1]
Needs wrk and cgroup v1's cpuacct (or falls back to the process's own times).
"""
import argparse, os, re, signal, statistics, subprocess, time, urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("loops")
parser.add_argument("--floor")
parser.add_argument("--conns", default="1,10")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--secs", type=int, default=1)
parser.add_argument("--only", default="")
args = parser.parse_args()

commands = {kind: [args.loops, kind] for kind in ("own", "guest", "nested", "tokio", "thread")}
if args.floor:
    commands["floor"] = [args.floor]
only = set(filter(None, args.only.split(",")))
commands = {kind: words for kind, words in commands.items() if not only or kind in only}


def ticks(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as stat:
            total += int(stat.read().split()[0])
    return total


procs = {}
for number, (kind, words) in enumerate(commands.items()):
    port = 17300 + number
    tail = [str(port), "0"]
    proc = subprocess.Popen(words + tail, preexec_fn=lambda: os.sched_setaffinity(0, {0}))
    procs[kind] = (proc, port)
try:
    for kind, (proc, port) in procs.items():
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/").read()
                break
            except OSError:
                time.sleep(0.02)
    for conns in map(int, args.conns.split(",")):
        figures = {kind: [] for kind in procs}
        for _ in range(args.rounds):
            for kind, (proc, port) in procs.items():
                before = ticks(proc.pid)
                text = subprocess.run(
                    ["taskset", "-c", "1", "wrk", "-t1", f"-c{conns}", f"-d{args.secs}s", f"http://127.0.0.1:{port}/"],
                    capture_output=True, text=True, check=True).stdout
                count = int(re.search(r"(\d+) requests in", text).group(1))
                figures[kind].append((ticks(proc.pid) - before) / 1000 / count)
        base = statistics.median(figures["floor"]) if "floor" in figures else min(map(statistics.median, figures.values()))
        print(f"c={conns}")
        for kind, values in sorted(figures.items(), key=lambda item: statistics.median(item[1])):
            median = statistics.median(values)
            print(f"  {kind:8} {median:6.2f} us  x{median / base:.3f}", flush=True)
finally:
    for proc, _ in procs.values():
        proc.send_signal(signal.SIGTERM)
        proc.wait()
