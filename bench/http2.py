"""HTTP/2 to clients and to the server behind, over one connection each: hob and HAProxy.

    python3 bench/http2.py ROUNDS hob=FOLDER [REQUESTS]

The FOLDER has `hob`. h2load asks over one connection with ten streams at a time, in the clear without asking;
behind is nghttpd with files of 0 bytes and 64 KiB, spoken to in HTTP/2 too. Microseconds of CPU time a request of
the proxy alone, medians of rounds. Needs root, cgroup v1, HAProxy, nghttp2-client and nghttp2-server.
"""
import contextlib
import pathlib
import statistics
import subprocess
import sys
import tempfile

from grouped import CONFIG, Grouped, free_port

STREAMS = 10
SIZES = {"0k": 0, "64k": 65536}
HOB = CONFIG + """
[[site]]
[[site.route]]
path = "/*"
proxy = {{ to = "http://127.0.0.1:{behind}", http = "2" }}
"""
HAPROXY = """global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:{port} proto h2
  default_backend out
backend out
  http-reuse always
  server s 127.0.0.1:{behind} proto h2
"""


def start(name, place, behind):
    port = free_port()
    if name.startswith("hob="):
        (place / "hob.toml").write_text(HOB.format(place=place, port=port, behind=behind))
        command = [f"{name.removeprefix('hob=')}/hob", "serve", "--config", str(place / "hob.toml")]
    else:
        (place / "haproxy.cfg").write_text(HAPROXY.format(port=port, behind=behind))
        command = ["haproxy", "-q", "-f", str(place / "haproxy.cfg")]
    return Grouped(name.split("=")[0], command, port)


def ask(port, size, count):
    load = ["taskset", "-c", "1", "h2load", "-c", "1", "-m", str(STREAMS), "-n", str(count)]
    told = subprocess.run([*load, f"http://127.0.0.1:{port}/{size}"], capture_output=True, text=True, check=True)
    if f" {count} succeeded, 0 failed, 0 errored" not in told.stdout or f"{count} 2xx" not in told.stdout:
        raise SystemExit(told.stdout + told.stderr)


def main():
    rounds, hob = int(sys.argv[1]), sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        place, behind = pathlib.Path(folder), free_port()
        place.chmod(0o777)
        for name, size in SIZES.items():
            (place / name).write_bytes(b"x" * size)
        command = ["taskset", "-c", "1", "nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", folder, str(behind)]
        server = ending.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        ending.callback(server.terminate)
        running = [start(name, place, behind) for name in (hob, "HAProxy")]
        for one in running:
            ending.callback(one.stop)
            subprocess.run(
                ["curl", "-sfo", "/dev/null", "--retry", "20", "--retry-delay", "1", "--retry-connrefused"]
                + ["--http2-prior-knowledge", f"http://127.0.0.1:{one.port}/0k"],
                check=True,
            )
        print("| work | hob | HAProxy | hob to HAProxy |\n| --- | --- | --- | --- |")
        for size in SIZES:
            times = {one.name: [] for one in running}
            for _ in range(rounds):
                for one in running:
                    ask(one.port, size, count // 20)
                    before = one.cpu_us()
                    ask(one.port, size, count)
                    times[one.name].append((one.cpu_us() - before) / count)
            own, other = (statistics.median(times[one.name]) for one in running)
            print(f"| {size}, {STREAMS} streams | {own:.1f} | {other:.1f} | {own / other:.2f} |", flush=True)


main()
