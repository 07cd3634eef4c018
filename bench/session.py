"""What a visit costs beside the same program as a resident one: CPU time of a request, memory of a visit.

    python3 bench/session.py ROUNDS FOLDER [VISITS]

The FOLDER has `hob` and libhob.a. One connection of `hob bench` on CPU 1 asks the program of session.c on CPU 0, as
`resident` with one worker and as one visit of `session`: microseconds of CPU time a request, server
and program together, medians of interleaved rounds. Then VISITS (1,000) visits are begun and left
idle: KiB of PSS a visit in its program, and in hob's own processes. Needs root, gcc, version 1 of
control groups.
"""
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request

from grouped import CONFIG, Grouped, cost, free_port

HERE = pathlib.Path(__file__).parent
HOB = CONFIG + """[limits]
workers = 4096
[[site]]
[[site.route]]
path = "/resident"
resident = {{ run = ["{place}/program"], workers = {{ min = 1, max = 1 }} }}
[[site.route]]
path = "/session/*"
session = {{ run = ["{place}/program"], visits = {{ max = 4096, per_client = 0, rate = 0 }}, wait = "20m" }}
"""


def pss(server, program):
    """KiB of the processes that are this program, or of the others, and how many they are."""
    sums, counts = [0, 0], [0, 0]
    for pid in (server.group / "cgroup.procs").read_text().split():
        is_program = pathlib.Path(f"/proc/{pid}/exe").resolve() == program
        rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        kib = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        sums[is_program] += kib
        counts[is_program] += 1
    return sums, counts


def main():
    rounds, folder = int(sys.argv[1]), sys.argv[2]
    visits = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-session-"))
    place.chmod(0o777)
    program, port = place / "program", free_port()
    built = ["gcc", "-O2", "-I", HERE.parent / "crates/libhob/include", HERE / "session.c", f"{folder}/libhob.a"]
    subprocess.run([*built, "-lm", "-lpthread", "-o", program], check=True)
    (place / "hob.toml").write_text(HOB.format(place=place, port=port))
    server = Grouped("session", [f"{folder}/hob", "serve", "--config", str(place / "hob.toml")], port, None)
    server.await_answer("/resident")
    base = f"http://127.0.0.1:{port}"

    def visit():
        with urllib.request.urlopen(f"{base}/session/") as answer:
            return answer.read().decode()

    targets = {"resident": f"{base}/resident", "session": f"{base}/session/{visit()}/"}
    found = {name: [] for name in targets}
    for _ in range(rounds):
        for name, url in targets.items():
            found[name].append(cost([server], url, f"{folder}/hob", 1))
    resident, session = (statistics.median(found[name]) for name in targets)
    print(f"a request: resident {resident:.1f} us, session {session:.1f} us, {session / resident:.2f}")
    before, counts = pss(server, program)
    for _ in range(visits):
        visit()
    after, now = pss(server, program)
    if now[1] - counts[1] != visits:
        raise SystemExit(f"{now[1] - counts[1]} programs for {visits} visits")
    print(f"{visits} idle visits: {(after[1] - before[1]) / visits:.0f} KiB each in its program, "
          f"{(after[0] - before[0]) / visits:.0f} KiB in the server")
    server.stop()
    shutil.rmtree(place)


main()
