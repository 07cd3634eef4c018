"""Instructions of one request in the threads that serve it, several hobs side by side.

    python3 bench/instructions/table.py NAME=FOLDER NAME=FOLDER ... [--rows WORD]
    python3 bench/instructions/table.py --files ROW FOLDER

A FOLDER has `hob` and, for native parts, `lib/hob`. Each row is what many requests over one
connection take less what few take, divided by how many more they are; ratios are to the first.
With --files, the source files of hob's that one request over a connection of its own executes, in
a program with debugging symbols. Needs root, gcc, curl, binutils, python3 and perl.
"""
import argparse
import base64
import hashlib
import hmac
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from grouped import certificate, free_port  # noqa: E402

CONFIG = """threads = 1
control = "off"
limits = {{ handshake_time = "10m" }}
default_log = "access"
[[log]]
name = "access"
file = "{place}/access.log"
format = "combined"
[[listen]]
address = "127.0.0.1:{port}"
[[listen]]
address = "127.0.0.1:{tls_port}"
tls = {{ certificate = "{place}/cert.pem", key = "{place}/key.pem" }}
[[site]]
root = "{place}/www"
[[site.route]]
path = "/cgi/*"
cgi = "{place}/cgi"
[[site.route]]
path = "/warm-python/*"
warm = {{ dir = "{place}/warm", interpreter = "python3" }}
[[site.route]]
path = "/warm-perl/*"
warm = {{ dir = "{place}/warm", interpreter = "perl" }}
[[site.route]]
path = "/wsgi"
resident = {{ wsgi = "app:application", dir = "{place}", workers = {{ min = 1, max = 1 }} }}
[[site.route]]
path = "/psgi"
resident = {{ psgi = "{place}/app.psgi", workers = {{ min = 1, max = 1 }} }}
"""
# What rows of rules need besides, which an older hob may not know.
SECRET = b"a secret of thirty-two characters"
RULES = """
[[site.route]]
path = "/plain/*"
files = {{ root = "{place}/www" }}
[[site.route]]
path = "/networks/*"
files = {{ root = "{place}/www" }}
access = {{ allow = [{networks}, "127.0.0.0/8"] }}
[[site.route]]
path = "/rate/*"
files = {{ root = "{place}/www" }}
rate = {{ requests = "1000000/s" }}
[[site.route]]
path = "/concurrency/*"
files = {{ root = "{place}/www" }}
concurrency = {{ requests = 1000 }}
[[site.route]]
path = "/try/*"
files = {{ root = "{place}/www", try = ["{{path}}", "{{path}}.txt"] }}
[[site.route]]
path = "/password/*"
files = {{ root = "{place}/www" }}
require = "staff"
[[site.route]]
path = "/token/*"
files = {{ root = "{place}/www" }}
require = "tokens"
[[site.route]]
path = "/forward/*"
files = {{ root = "{place}/www" }}
require = "asked"
[[site.route]]
path = "/verify"
internal = true
respond = {{ status = 200 }}
[[auth]]
name = "staff"
htpasswd = "{place}/users"
remember = "1h"
[[auth]]
name = "tokens"
jwt = {{ keys = "{place}/jwks.json", issuer = "bench", audience = "bench", algorithms = ["HS256"] }}
[[auth]]
name = "asked"
forward = "/verify"
"""
PASSWORD = ("-u", "ann:sesame")


def rules(place):
    """The routes of RULES, and what they need in files."""
    digest = base64.b64encode(hashlib.sha1(b"sesame").digest()).decode()
    (place / "users").write_text(f"ann:{{SHA}}{digest}\n")
    key = {"kty": "oct", "kid": "one", "alg": "HS256", "k": coded(SECRET)}
    (place / "jwks.json").write_text(json.dumps({"keys": [key]}))
    networks = ", ".join(f'"10.{number}.0.0/16"' for number in range(100))
    when = '[[site.route]]\npath = "/when/*"\nfiles = {{ root = "{place}/www" }}\n'
    skipped = [when + f'when = {{{{ query = {{{{ n = "{number}" }}}} }}}}\n' for number in range(100)]
    return ("".join([*skipped, when]) + RULES).format(place=place, networks=networks)


def coded(text):
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def token():
    """One that is good for a day."""
    claims = {"iss": "bench", "aud": "bench", "sub": "ann", "exp": int(time.time()) + 86_400}
    signed = ".".join(coded(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "one"}, claims))
    return f"{signed}.{coded(hmac.digest(SECRET, signed.encode(), 'sha256'))}"


TOKEN = ("-H", f"Authorization: Bearer {token()}")
FILES = {
    "app.py": """def application(environ, start_response):
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [b'hello']
""",
    "app.psgi": "sub { [200, ['Content-Type' => 'text/plain'], ['hello']] };\n",
    "warm/hello.py": "print('Content-Type: text/plain\\n\\nhello')\n",
    "warm/hello.pl": "print \"Content-Type: text/plain\\n\\nhello\";\n",
    "cgi/hello.c": """#include <stdio.h>
int main(void) { puts("Content-Type: text/plain\\n\\nhello"); }
""",
}
# Name, path, options of curl, few and many requests, and whether the spawner's part is counted too.
# A path that ends in / is a folder of files, of which none is asked for twice.
ROWS = [
    ("file of 0 bytes", "/0k.txt", (), 2, 12, False),
    ("1 KiB", "/1k.txt", (), 2, 12, False),
    ("1 KiB, new to the cache", "/many/", (), 2, 12, False),
    ("64 KiB", "/64k.txt", (), 2, 12, False),
    ("4 MiB", "/4096k.txt", (), 2, 6, False),
    ("TLS, 0 bytes", "/0k.txt", ("--tls", "--http1.1"), 2, 12, False),
    ("TLS, 64 KiB", "/64k.txt", ("--tls", "--http1.1"), 2, 6, False),
    ("HTTP/2, 0 bytes", "/0k.txt", ("--tls", "--http2"), 2, 12, False),
    ("HTTP/2, 64 KiB", "/64k.txt", ("--tls", "--http2"), 2, 6, False),
    ("CGI in C", "/cgi/hello", (), 2, 7, True),
    ("warm Python", "/warm-python/hello.py", (), 2, 7, True),
    ("warm Perl", "/warm-perl/hello.pl", (), 2, 7, True),
    ("resident WSGI", "/wsgi", (), 2, 12, False),
    ("resident PSGI", "/psgi", (), 2, 12, False),
    ("rule: none", "/plain/0k.txt", (), 2, 12, False),
    ("rule: 101 networks", "/networks/0k.txt", (), 2, 12, False),
    ("rule: rate", "/rate/0k.txt", (), 2, 12, False),
    ("rule: concurrency", "/concurrency/0k.txt", (), 2, 12, False),
    ("rule: try, the first", "/try/0k.txt", (), 2, 12, False),
    ("rule: try, the second", "/try/0k", (), 2, 12, False),
    ("rule: 100 routes with when", "/when/0k.txt", (), 2, 12, False),
    ("rule: none, a password comes along", "/plain/0k.txt", PASSWORD, 2, 12, False),
    ("rule: a password that is remembered", "/password/0k.txt", PASSWORD, 2, 12, False),
    ("rule: none, a token comes along", "/plain/0k.txt", TOKEN, 2, 12, False),
    ("rule: a token that is remembered", "/token/0k.txt", TOKEN, 2, 12, False),
    ("rule: a route is asked", "/forward/0k.txt", (), 2, 12, False),
]


def chosen(wanted):
    """The rows with a word in their names; those of rules only where one is meant."""
    return [row for row in ROWS if wanted in row[0] and (wanted != "" or not row[0].startswith("rule"))]



def make_place():
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-instructions-"))
    place.chmod(0o755)
    for folder in ("www", "cgi", "warm"):
        (place / folder).mkdir()
    for size in (0, 1, 64, 4096):
        (place / "www" / f"{size}k.txt").write_bytes(b"x" * 1024 * size)
    (place / "www/many").mkdir()
    for number in range(200):
        (place / "www/many" / f"{number}.txt").write_bytes(b"x" * 1024)
    for name, text in FILES.items():
        (place / name).write_text(text)
    subprocess.run(["gcc", "-O2", "-o", place / "cgi/hello", place / "cgi/hello.c"], check=True)
    subprocess.run(["gcc", "-O2", "-o", place / "steps", HERE / "steps.c"], check=True)
    certificate(place)
    return place


class Server:
    """A running hob, and the threads of it that serve."""

    def __init__(self, name, folder, place, rows):
        self.name, self.place, self.port, self.tls_port = name, place, free_port(), free_port()
        config = place / f"{name}.toml"
        more = rules(place) if any(row.startswith("rule") for row, *_ in rows) else ""
        config.write_text(CONFIG.format(place=place, port=self.port, tls_port=self.tls_port) + more)
        command = [f"{folder}/hob", "serve", "--config", config]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.folder, self.asked = folder, 0
        for _, path, options, *_ in rows:
            self.ask(path, options, 3, retries=100)
        self.server, self.spawner = self.find("hob-server"), self.find("hob-spawner")

    def find(self, name):
        """The number of a process that hob started, by its name."""
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            fields = re.match(r"(\d+) \((.*)\) \S (\d+)", stat.read_text())
            if fields[2] == name and int(fields[3]) == self.process.pid:
                return int(fields[1])
        raise SystemExit(f"{self.name}: no {name}")

    def threads(self, with_spawner):
        tasks = pathlib.Path(f"/proc/{self.server}/task").iterdir()
        serving = [task.name for task in tasks if re.fullmatch(r"hob-\d+\n", (task / "comm").read_text())]
        return serving + [str(self.spawner)] * with_spawner

    def command(self, path, options, count):
        scheme, port = ("https", self.tls_port) if "--tls" in options else ("http", self.port)
        flags = [word for word in options if word != "--tls"]
        which = f"?[1-{count}]"
        if path.endswith("/"):
            which = f"[{self.asked}-{self.asked + count - 1}].txt"
            self.asked += count
        url = f"{scheme}://127.0.0.1:{port}{path}{which}"
        return ["curl", "-sfk", "-o", "/dev/null", *flags, url]

    def ask(self, path, options, count, retries=1):
        for _ in range(retries):
            if subprocess.run(self.command(path, options, count)).returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"{self.name} does not answer {path}")

    def steps(self, path, options, count, with_spawner, places=()):
        threads = ",".join(self.threads(with_spawner))
        command = [self.place / "steps", *places, threads, *self.command(path, options, count)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return int(said)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def table(servers, rows):
    print("| row | hob | instructions | ratio |\n|---|---|---|---|")
    for row, path, options, few, many, with_spawner in rows:
        first = None
        for server in servers:
            # Timers fall into some runs: the least of three has the fewest.
            least = [min(server.steps(path, options, count, with_spawner) for _ in range(3)) for count in (few, many)]
            steps = (least[1] - least[0]) / (many - few)
            first = first or steps
            print(f"| {row} | {server.name} | {steps:,.0f} | {steps / first:.3f} |", flush=True)


def files(server, row):
    """The source files of hob's that one request executes."""
    [(_, path, options, _, _, with_spawner)] = [known for known in ROWS if known[0] == row]
    places = server.place / "places"
    server.steps(path, options, 1, with_spawner, places=("-p", places))
    program = pathlib.Path(server.folder, "hob").resolve()
    ranges = []
    for line in pathlib.Path(f"/proc/{server.server}/maps").read_text().splitlines():
        fields = line.split()
        if len(fields) == 6 and fields[5] == str(program):
            start, end = (int(part, 16) for part in fields[0].split("-"))
            ranges.append((start, end, int(fields[2], 16)))
    base = min(start - offset for start, _, offset in ranges)
    own = [int(line, 16) for line in places.read_text().splitlines()]
    own = [hex(at - base) for at in own if any(start <= at < end for start, end, _ in ranges)]
    command = ["addr2line", "-e", program]
    lines = subprocess.run(command, input="\n".join(own), capture_output=True, text=True, check=True).stdout
    found = {re.sub(r".*/(crates/\w+/src/)", r"\1", line.split(":")[0]) for line in lines.splitlines()}
    return sorted(name for name in found if name.startswith("crates/"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("hobs", nargs="+", metavar="[NAME=]FOLDER")
    parser.add_argument("--rows", default="", help="only rows whose name has this word")
    parser.add_argument("--files", metavar="ROW", help="the source files of one request")
    given = parser.parse_args()
    os.sched_setaffinity(0, {0})
    rows = chosen(given.files or given.rows)
    place, servers = make_place(), []
    try:
        for word in given.hobs:
            name, _, folder = word.rpartition("=")
            servers.append(Server(name or "hob", folder, place, rows))
        if given.files:
            names = files(servers[0], given.files)
            print("\n".join(names), f"{len(names)} files", sep="\n")
        else:
            table(servers, rows)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(place)


main()
