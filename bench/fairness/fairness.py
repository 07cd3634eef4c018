#!/usr/bin/env python3
"""Does everyone get a fair share, and do many routes cost more than few? See README.md.

usage: fairness.py --hob BINARY [downloads] [small] [routes] [--out FILE] [--scratch DIR] [--quick]
"""
import argparse
import datetime
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import downloads
import quiet
import routes
import servers
import small

GOAL_JAIN, GOAL_P99, GOAL_ROUTES = 0.98, 2.0, 1.3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="downloads, small, routes; all when none is named")
    parser.add_argument("--hob", required=True, type=pathlib.Path)
    parser.add_argument("--out", help="markdown file to write besides printing")
    parser.add_argument("--scratch", help="folder for files and configs (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="a third of the time; figures scatter more")
    options = parser.parse_args()
    parts = {"downloads": report_downloads, "small": report_small, "routes": report_routes}
    unknown = set(options.what) - set(parts)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    options.hob = options.hob.resolve()
    downloads.raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="fairness-") as temporary:
        scratch = pathlib.Path(options.scratch or temporary).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        servers.prepare(scratch)
        lines = head(options, quiet.prefer())
        for name, part in parts.items():
            if not options.what or name in options.what:
                lines += part(options, scratch)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        pathlib.Path(options.out).write_text(text)


def head(options, priority):
    with open("/proc/cpuinfo") as text:
        models = [line.split(":", 1)[1].strip() for line in text if line.startswith("model name")]
    version = subprocess.run([options.hob, "--version"], capture_output=True, text=True).stdout.strip()
    peer = subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr.split(":")[-1].strip()
    command = " ".join(["bench/fairness/fairness.py", "--hob", "target/release/hob", *options.what]
                       + (["--quick"] if options.quick else []))
    return ["# Fair shares and many routes", "",
            f"- {datetime.date.today()}, {os.cpu_count()} x {models[0] if models else platform.machine()}, "
            f"Linux {platform.release()}, {version}, {peer}, Python {platform.python_version()}",
            f"- `{command}`; measured processes at {priority}; load average at the start "
            f"{os.getloadavg()[0]:.1f}",
            "- how to read it: `bench/fairness/README.md`", ""]


def verdict(met):
    return "met" if met else "**missed**"


def least(values):
    return f"{min(values):.4f}"


def report_downloads(options, scratch):
    lines = ["## Equal downloads from six addresses", "",
             "Jain index of the bytes each had when half of one answer each had come, of the times they were "
             "finished, and of the bytes each got in a fixed time of one answer after another.", "",
             "| threads | downloads | connections by thread | half-way | finished | fixed time, all | within threads "
             "| across threads | across addresses | least..most of the mean | MB/s | goal |",
             "| --- " * 12 + "|"]
    secs = 2 if options.quick else 5
    for threads, count, path in ((1, 30, "/4m.bin"), (2, 30, "/4m.bin"), (1, 1000, "/1m.bin"),
                                 (2, 1000, "/1m.bin")):
        cpus = {0} if threads == 1 else {0, 1}
        os.sched_setaffinity(0, {1} if threads == 1 else {0, 1})
        with servers.hob(options.hob, scratch, cpus, threads) as server:
            got = downloads.measure(server, path, count, secs)
        met = min(got["all"], got["across"], *got["within"]) >= GOAL_JAIN
        lines.append(
            f"| {threads} | {count} x {path[1:]} | {got['threads']} | {got['half']:.4f} | {got['done']:.4f} "
            f"| {got['all']:.4f} | {least(got['within'])} | {got['across']:.4f} | {got['sources']:.4f} "
            f"| {got['least']:.2f}..{got['most']:.2f} | {got['mb_per_sec']:.0f} | {verdict(met)} |")
    os.sched_setaffinity(0, range(os.cpu_count()))
    return lines + [""]


def report_small(options, scratch):
    lines = ["## Small requests beside 100 bulk downloads", "",
             "Microseconds, p50 / p99. \"Had its CPU\": without the requests during which other work on the machine "
             f"kept the serving thread waiting for {small.LATE_US} us or more.", "",
             "| asked | bulk from | asker | idle | beside | idle, had its CPU | beside, had its CPU | p99 ratio | "
             "disturbed | bulk MB/s |", "| --- " * 10 + "|"]
    secs, rounds = (3, 1) if options.quick else (9, 3)

    def row(asked, loaded, realtime):
        got = small.measure(asked, loaded, secs, 100, "/256m.bin", realtime, rounds)
        cells = [f"{part['p50']:.0f} / {part['p99']:.0f}"
                 for index in (0, 1) for part in (got["idle"][index], got["beside"][index])]
        ratio = got["beside"][1]["p99"] / got["idle"][1]["p99"]
        goal = f" {verdict(ratio <= GOAL_P99)}" if asked is loaded and asked.label == "hob" and realtime else ""
        lines.append(f"| {asked.label} | {loaded.label} | {'real time' if realtime else 'as the rest'} "
                     f"| {' | '.join(cells)} | {ratio:.2f}{goal} | {got['disturbed']:.1%} "
                     f"| {got['mb_per_sec']:.0f} |")

    with servers.hob(options.hob, scratch) as first:
        row(first, first, True)
        row(first, first, False)
        with servers.hob(options.hob, scratch, label="another hob") as other:
            row(first, other, True)
        with servers.nginx(scratch) as peer:
            row(peer, peer, True)
            row(peer, peer, False)
    return lines + [""]


def report_routes(options, scratch):
    lines = [f"## {routes.MANY} routes against {routes.FEW}", "",
             "CPU microseconds per request of the whole server, median (least..most of the rounds).", "",
             f"| route | {routes.FEW} | {routes.MANY} | ratio | goal |", "| --- " * 5 + "|"]
    rounds = 3 if options.quick else 7
    for kind in routes.KINDS:
        got = routes.measure(lambda table: servers.hob(options.hob, scratch, routes=table), kind, scratch,
                             rounds, 1)
        cells = [f"{middle:.2f} ({low:.2f}..{high:.2f})"
                 for middle, (low, high) in zip((got["few"], got["many"]), got["spread"])]
        lines.append(f"| {kind} | {' | '.join(cells)} | {got['ratio']:.2f} "
                     f"| {verdict(got['ratio'] <= GOAL_ROUTES)} |")
    return lines + [""]


if __name__ == "__main__":
    sys.exit(main())
