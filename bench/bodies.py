"""CPU time of bodies and messages: through hob and through application servers, the same work for each.

    python3 bench/bodies.py ROUNDS SERVERS NAME=FOLDER ...

SERVERS is a folder with `granian`, `gunicorn` and `uvicorn` (a virtual environment's `bin`); a FOLDER
has `hob` and `lib/hob`. Each stands on CPU 0 in a control group of its own, with one worker; clients
on CPU 1. Bodies have 100 MB. Rounds are interleaved, in changing order; medians. Rivals of a program
in C and of a kept Perl script are a FastCGI program behind nginx and Apache's mod_perl. Needs root,
curl, cc, starman, nginx, spawn-fcgi, libfcgi, mod_perl, version 1 of control groups, and websockets
of Python in SERVERS.
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
PSGI = """sub { my ($env, $count) = (shift, 0);
while (my $got = $env->{'psgi.input'}->read(my $piece, 65536)) { $count += $got }
[200, ['Content-Type', 'text/plain'], [$count]] }
"""
SCRIPT = """my $count = 0;
while (my $got = read STDIN, my $piece, 65536) { $count += $got }
print "Content-Type: text/plain\\n\\n$count";
"""
PROGRAM = """#include <stdio.h>
#ifdef FAST
#include <fcgiapp.h>
int main(void) {
    FCGX_Request request; char piece[65536]; long count; int got;
    FCGX_Init(); FCGX_InitRequest(&request, 0, 0);
    while (FCGX_Accept_r(&request) >= 0) {
        for (count = 0; (got = FCGX_GetStr(piece, sizeof piece, request.in)) > 0; count += got);
        FCGX_FPrintF(request.out, "Content-Type: text/plain\\r\\n\\r\\n%ld", count);
    }
}
#else
#include <hob.h>
int main(void) {
    hob *server; hob_request *request; char piece[65536]; long count, got;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        for (count = 0; (got = hob_read(request, piece, sizeof piece)) > 0; count += got);
        hob_header(request, "Content-Type", "text/plain");
        hob_write(request, piece, sprintf(piece, "%ld", count));
        hob_finish(request);
    }
}
#endif
"""
HOB = CONFIG + """[limits]
body = "1GiB"
[[site]]
root = "{place}"
[[site.route]]
path = "/*"
{rewrite}resident = {{ {runs}, workers = {{ min = 1, max = 1{concurrency} }} }}
"""
RUNS = {
    "wsgi": 'wsgi = "app:application", dir = "{place}", interpreter = "{servers}/python3"',
    "asgi": 'asgi = "app:asgi", dir = "{place}", interpreter = "{servers}/python3"',
    "psgi": 'psgi = "{place}/app.psgi"',
    "perl": 'scripts = "{place}"',
    "c": 'run = ["{what}/bodies-c"]',
}
NGINX = """worker_processes 1; daemon off; pid {place}/{port}.pid; error_log {place}/{port}.err;
events {{ worker_connections 64; }}
http {{ access_log off; client_max_body_size 1g; client_body_temp_path {place}/b; fastcgi_temp_path {place}/f;
proxy_temp_path {place}/p; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
server {{ listen 127.0.0.1:{port}; location / {{ include /etc/nginx/fastcgi_params; fastcgi_request_buffering off;
fastcgi_pass unix:{place}/{port}.sock; }} }} }}
"""
APACHE = """ServerRoot /usr/lib/apache2
LoadModule mpm_prefork_module modules/mod_mpm_prefork.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule alias_module modules/mod_alias.so
LoadModule perl_module modules/mod_perl.so
Listen 127.0.0.1:{port}
ServerName localhost
PidFile {place}/{port}.pid
ErrorLog {place}/{port}.err
User nobody
Group nogroup
StartServers 1
MinSpareServers 1
MaxSpareServers 1
MaxRequestWorkers 1
ScriptAliasMatch ^/ {place}/count.pl
<Location />
SetHandler perl-script
PerlResponseHandler ModPerl::Registry
PerlOptions +ParseHeaders
Options +ExecCGI
</Location>
"""
ROWS = {"body to WSGI": "wsgi", "body to ASGI": "asgi", "body to PSGI": "psgi", "body to kept Perl": "perl",
        "body to C": "c", "WSGI streams": "wsgi", "WebSocket echo": "asgi"}
RIVALS = {"wsgi": ["granian", "gunicorn"], "asgi": ["granian", "uvicorn"], "psgi": ["starman"], "perl": ["mod_perl"],
          "c": ["nginx+FastCGI"]}


def command_of(what, kind, place, servers, port):
    entry, address = {"wsgi": "application", "asgi": "asgi"}.get(kind), f"127.0.0.1:{port}"
    config = place / f"{port}.conf"
    if what == "starman":
        return ["starman", "--workers", "1", "--listen", address, "--user", "nobody", place / "app.psgi"]
    if what == "mod_perl":
        config.write_text(APACHE.format(place=place, port=port))
        # It ends by a signal to its process group.
        return ["setsid", "apache2", "-DFOREGROUND", "-f", config]
    if what == "nginx+FastCGI":
        config.write_text(NGINX.format(place=place, port=port))
        # Both are one server here: they end together.
        spawn = f"spawn-fcgi -n -s {place}/{port}.sock -M 0666 -- {place}/fast & exec nginx -c {config}"
        return ["setsid", "sh", "-c", f"trap 'trap - TERM; kill 0' TERM; ({spawn}) & wait"]
    if what == "granian":
        return [servers / "granian", "--interface", kind, "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
                "--log-level", "critical", "--working-dir", place, f"app:{entry}"]
    if what == "gunicorn":
        return [servers / "gunicorn", "-b", address, "-w", "1", "--threads", "4", "--log-level", "critical",
                "--chdir", place, "app:application"]
    if what == "uvicorn":
        return [servers / "uvicorn", "--host", "127.0.0.1", "--port", str(port), "--log-level", "critical",
                "--app-dir", place, "app:asgi"]
    config.write_text(HOB.format(place=place, port=port, rewrite='rewrite = "/count.pl"\n' if kind == "perl" else "",
        runs=RUNS[kind].format(place=place, servers=servers, what=what),
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
    (place / "app.psgi").write_text(PSGI)
    (place / "count.pl").write_text(SCRIPT)
    (place / "count.pl").chmod(0o755)
    (place / "count.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O2", "-DFAST", place / "count.c", "-o", place / "fast", "-lfcgi"], check=True)
    include = pathlib.Path(__file__).parent.parent / "crates/libhob/include"
    for _, what in entrants:
        lib = f"{what}/lib/hob"
        subprocess.run(["cc", "-O2", f"-I{include}", place / "count.c", "-o", f"{what}/bodies-c", f"-L{lib}", "-l:libhob.so.1",
                        f"-Wl,-rpath,{lib}"], check=True)
    (place / "body").write_bytes(b"b" * MEGABYTES * 1_000_000)
    names = [name for name, _ in entrants] + sorted({name for names in RIVALS.values() for name in names})
    print(f"| | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    try:
        for row, kind in ROWS.items():
            rivals = [(name, name) for name in RIVALS[kind]]
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
