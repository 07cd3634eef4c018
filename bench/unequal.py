"""Response times over members one of which is ten times slower than the three others.

    python3 bench/unequal.py FOLDER [SECONDS]

The FOLDER has `hob`. Four members, each with so many workers: three take 20 ms for a request, one
takes 200 ms. They wait and use no CPU, so that the machine is no part of it. The load is open, 70 %
of what the three can take; times are measured from when a request was due. hob as it comes, and
with the counts of requests alone, HAProxy with leastconn, nginx with round robin; beside them hob
with the three fast members alone. Needs nginx and HAProxy.
"""
import asyncio
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

from grouped import free_port

FAST_MS, SLOW_MS = 20, 200
HOB = """control = "off"
[[listen]]
address = "127.0.0.1:{port}"
[[site]]
[[site.route]]
path = "/*"
proxy = {{ to = [{to}], balance = "{balance}" }}
"""
HAPROXY = """defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:{port}
  default_backend out
backend out
  balance leastconn
{servers}
"""
NGINX = """daemon off; pid {place}/nginx.pid; error_log {place}/nginx.err; worker_processes 2;
events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {place}/b; fastcgi_temp_path {place}/f;
proxy_temp_path {place}/p; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
upstream out {{ {servers} keepalive 64; }}
server {{ listen 127.0.0.1:{port};
location / {{ proxy_pass http://out; proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}
"""


async def be_member(port, workers, pause_ms):
    """Answers each request after a while, so many at a time."""
    free = asyncio.Semaphore(workers)

    async def serve(reader, writer):
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                async with free:
                    await asyncio.sleep(pause_ms / 1000)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


def command(kind, folder, place, port, members):
    to = ", ".join(f'"http://127.0.0.1:{member}"' for member in members)
    if kind.startswith("hob"):
        balance = "requests" if "requests" in kind else "latency"
        (place / "hob.toml").write_text(HOB.format(port=port, to=to, balance=balance))
        return [f"{folder}/hob", "serve", "--config", str(place / "hob.toml")]
    if kind.startswith("HAProxy"):
        servers = "\n".join(f"  server m{one} 127.0.0.1:{one}" for one in members)
        (place / "haproxy.cfg").write_text(HAPROXY.format(port=port, servers=servers))
        return ["haproxy", "-q", "-f", str(place / "haproxy.cfg")]
    servers = " ".join(f"server 127.0.0.1:{one};" for one in members)
    (place / "nginx.conf").write_text(NGINX.format(place=place, port=port, servers=servers))
    return ["nginx", "-c", str(place / "nginx.conf")]


def measured(folder, port, rate, seconds):
    bench = [f"{folder}/hob", "bench", f"http://127.0.0.1:{port}/", "--rate", str(rate)]
    bench += ["--for", f"{seconds}s", "--warm-up", "5s", "--timeout", "10s", "--connections", "2000", "--json"]
    told = subprocess.run(bench, capture_output=True, text=True)
    if not told.stdout:
        raise SystemExit(told.stderr)
    told = json.loads(told.stdout)
    times = told["latency"]["response"]
    return [times["p50_us"] / 1000, times["p99_us"] / 1000, len(told["failures"])]


@contextlib.contextmanager
def running(command, port):
    """A server that answers at this port, until the block ends, however it does."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}/"
            patient = ["--retry", "10", "--retry-delay", "1", "--retry-connrefused"]
            subprocess.run(["curl", "-sfo", "/dev/null", *patient, url], check=True)
            yield
        finally:
            server.terminate()


def table(folder, place, workers, seconds):
    rate = int(0.7 * 3 * workers * 1000 / FAST_MS)
    pauses = [FAST_MS, FAST_MS, FAST_MS, SLOW_MS]
    ports = [free_port() for _ in pauses]
    kinds = ["hob, the three alone", "hob", "hob, `requests`", "HAProxy, leastconn", "nginx, round robin"]
    print(f"\n{workers} workers each, {rate} requests a second\n")
    print("| server | median, ms | p99, ms | beside the three alone |\n| --- | --- | --- | --- |")
    with contextlib.ExitStack() as members:
        for port, pause in zip(ports, pauses):
            member = [sys.executable, __file__, "member", str(port), str(workers), str(pause)]
            members.enter_context(running(member, port))
        alone = None
        for kind in kinds:
            port = free_port()
            asked = ports[:3] if "alone" in kind else ports
            with running(command(kind, folder, place, port, asked), port):
                median, p99, failures = measured(folder, port, rate, seconds)
            alone = alone or p99
            failed = f", {failures} kinds of failures" if failures else ""
            print(f"| {kind} | {median:.1f} | {p99:.1f} | {p99 / alone:.2f}{failed} |", flush=True)


if sys.argv[1] == "member":
    asyncio.run(be_member(*map(int, sys.argv[2:5])))
else:
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as place:
        # Servers that drop their rights write there.
        pathlib.Path(place).chmod(0o777)
        for workers in (8, 1):
            table(sys.argv[1], pathlib.Path(place), workers, seconds)
