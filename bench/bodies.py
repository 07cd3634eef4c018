"""CPU time of bodies and messages: through hob and through application servers, the same work for each.

    python3 bench/bodies.py ROUNDS SERVERS NAME=FOLDER ...

SERVERS is a folder with `granian`, `gunicorn` and `uvicorn` (a virtual environment's `bin`); a FOLDER
has `hob` and `lib/hob`. Each stands on CPU 0 in a control group of its own, with one worker; clients
on CPU 1. Bodies have 100 MB. Rounds are interleaved, in changing order; medians. Needs root, curl,
version 1 of control groups, and websockets of Python in SERVERS.
"""
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

from grouped import CONFIG, Grouped, free_port

MEGABYTES, CONNECTIONS, MESSAGES = 100, 10, 2000
APP = '''PIECE = bytes(65536)

def application(environ, start_response):
    if environ["REQUEST_METHOD"] == "GET":
        start_response("200 OK", [("Content-Type", "application/octet-stream")])
        return iter([PIECE] * (%d * 1000000 // 65536))
    count, source = 0, environ["wsgi.input"]
    while piece := source.read(65536):
        count += len(piece)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(count).encode()]

async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        return await send({"type": "lifespan.shutdown.complete"})
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        return
    count, is_more = 0, True
    while is_more:
        message = await receive()
        count += len(message["body"])
        is_more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(count).encode()})
''' % MEGABYTES
HOB = CONFIG + """[limits]
body = "1GiB"
[[site]]
root = "{place}"
[[site.route]]
path = "/*"
resident = {{ {kind} = "app:{entry}", dir = "{place}", interpreter = "{servers}/python3", workers = {{ min = 1, max = 1{concurrency} }} }}
"""
ROWS = {"body to WSGI": "wsgi", "body to ASGI": "asgi", "WSGI streams": "wsgi", "WebSocket echo": "asgi"}


def command_of(what, kind, place, servers, port):
    entry, address = {"wsgi": "application", "asgi": "asgi"}[kind], f"127.0.0.1:{port}"
    if what == "granian":
        return [servers / "granian", "--interface", kind, "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
                "--log-level", "critical", "--working-dir", place, f"app:{entry}"]
    if what == "gunicorn":
        return [servers / "gunicorn", "-b", address, "-w", "1", "--threads", "4", "--log-level", "critical",
                "--chdir", place, "app:application"]
    if what == "uvicorn":
        return [servers / "uvicorn", "--host", "127.0.0.1", "--port", str(port), "--log-level", "critical",
                "--app-dir", place, "app:asgi"]
    config = place / f"{port}.toml"
    config.write_text(HOB.format(place=place, port=port, kind=kind, entry=entry, servers=servers,
        concurrency=", concurrency = 200" if kind == "asgi" else ""))
    return [f"{what}/hob", "serve", "--config", config]


def transfer(server, place, row):
    """One body: milliseconds of CPU time a megabyte."""
    body = ["-T", place / "body", "-X", "POST", "-H", "Expect:"] if row.startswith("body") else ["-o", "/dev/null"]
    before = server.cpu_us()
    curl = ["taskset", "-c", "1", "curl", "-sS", *body, "-w", " %{http_code} %{size_upload} %{size_download}",
            f"http://127.0.0.1:{server.port}/x"]
    said = subprocess.run(curl, capture_output=True, check=True).stdout.decode()
    if max(int(word) for word in said.split()[-2:]) < MEGABYTES * 999000:
        raise SystemExit(f"{server.name}, {row}: {said}")
    return (server.cpu_us() - before) / 1000 / MEGABYTES


ECHO = """import asyncio, sys, websockets
async def one(url, count):
    async with websockets.connect(url, compression=None) as socket:
        for number in range(count):
            text = f"message {number}"
            await socket.send(text)
            assert await socket.recv() == text
async def main():
    await asyncio.gather(*(one(sys.argv[1], int(sys.argv[3])) for _ in range(int(sys.argv[2]))))
asyncio.run(main())
"""


def echo(server, servers):
    """Microseconds of CPU time a message."""
    url, before = f"ws://127.0.0.1:{server.port}/", server.cpu_us()
    command = ["taskset", "-c", "1", servers / "python3", "-c", ECHO, url, str(CONNECTIONS), str(MESSAGES)]
    subprocess.run(command, check=True)
    return (server.cpu_us() - before) / (CONNECTIONS * MESSAGES)


def measure(name, what, row, place, servers):
    port, kind = free_port(), ROWS[row]
    server = Grouped(f"{name}-{port}", command_of(what, kind, place, servers, port), port)
    try:
        # A stream would be a whole body.
        server.await_answer("/") if kind == "asgi" else server.await_answer("/?")
        return echo(server, servers) if row == "WebSocket echo" else transfer(server, place, row)
    finally:
        server.stop()


def main():
    rounds, servers, *given = sys.argv[1:]
    servers = pathlib.Path(servers).absolute()
    entrants = [tuple(word.split("=", 1)) for word in given]
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-bodies-"))
    place.chmod(0o755)
    (place / "app.py").write_text(APP)
    (place / "body").write_bytes(b"b" * MEGABYTES * 1_000_000)
    names = [name for name, _ in entrants] + ["granian", "gunicorn", "uvicorn"]
    print(f"| | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    try:
        for row, kind in ROWS.items():
            rivals = [("granian", "granian"), ("gunicorn", "gunicorn") if kind == "wsgi" else ("uvicorn", "uvicorn")]
            found = {name: [] for name, _ in entrants + rivals}
            for _ in range(int(rounds)):
                for name, what in random.sample(entrants + rivals, len(found)):
                    found[name].append(measure(name, what, row, place, servers))
            unit = "us" if row == "WebSocket echo" else "ms/MB"
            cells = [f"{statistics.median(found[name]):.3g}" if name in found else "" for name in names]
            print(f"| {row}, {unit} | {' | '.join(cells)} |", flush=True)
    finally:
        shutil.rmtree(place)


main()
