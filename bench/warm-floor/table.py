#!/usr/bin/env python3
"""CPU time of a script forked from a warm interpreter, beside the floor and beside CGI.

usage: table.py --hob BINARY [--rounds N] [--secs S] [--clients C]

The same two scripts, which print a head and nothing else, as a bare fork of the same interpreter
(`floor.py`, `floor.pl`), as `warm` and `cgi` of hob, and as CGI of lighttpd where it is installed.
Each stands in a cpuacct control group of its own on CPU 0, the load on CPU 1; a round is every row
once, and the figure is the median of the rounds. Must run as root; needs wrk and curl.
"""
import argparse, os, pathlib, re, shutil, statistics, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from grouped import Grouped, free_port

#: As the floor is started, so that all run the same one.
INTERPRETERS = {"perl": "/usr/bin/perl", "python": "/usr/bin/python3"}
SCRIPTS = {
    "perl": "#!/usr/bin/perl\nuse strict; use warnings;\nprint \"Content-Type: text/plain\\r\\n\\r\\n\";\n",
    "python": "#!/usr/bin/python3\nimport os, sys\nsys.stdout.write(\"Content-Type: text/plain\\r\\n\\r\\n\")\n",
}
HOB = """threads = 1
control = "off"
default_log = "access"
[[log]]
name = "access"
file = "{work}/hob.log"
format = "combined"
[[listen]]
address = "127.0.0.1:{port}"
[[site]]
root = "{work}"
[[site.route]]
path = "/cgi/*"
cgi = {{ dir = "{work}/cgi" }}
[[site.route]]
path = "/perl/*"
warm = {{ dir = "{work}/cgi", interpreter = "/usr/bin/perl" }}
[[site.route]]
path = "/python/*"
warm = {{ dir = "{work}/cgi", interpreter = "/usr/bin/python3" }}
"""
LIGHTTPD = """server.document-root="{work}"
server.port={port}
server.bind="127.0.0.1"
server.max-keep-alive-requests=100000000
server.modules=("mod_alias","mod_cgi")
alias.url=("/cgi/"=>"{work}/cgi/")
$HTTP["url"] =~ "^/cgi/" {{ cgi.assign=(".cgi"=>"") }}
"""


class Server(Grouped):
    def cost(self, path, secs, clients):
        url = f"http://127.0.0.1:{self.port}{path}"
        before = self.cpu_us()
        load = ["taskset", "-c", "1", "wrk", "-t1", f"-c{clients}", f"-d{secs}s", url]
        said = subprocess.run(load, stdout=subprocess.PIPE, text=True).stdout
        count = re.search(r"(\d+) requests in", said)
        if not count or count.group(1) == "0" or "Non-2xx" in said or "Socket errors" in said:
            raise SystemExit(f"{self.name} {path}: {said}")
        return (self.cpu_us() - before) / int(count.group(1))


def rows(work, binary, started):
    """Name, language, server and path of each row."""
    all = []

    def start(name, command):
        port = free_port()
        out = open(work / f"{name}.out", "w")
        server = Server(name, [word.format(port=port) for word in command(port)], port, out)
        started.append(server)
        return server

    def config(name, text):
        def command(port):
            (work / f"{name}.conf").write_text(text.format(work=work, port=port))
            known = {"hob": [binary, "serve", "--config"], "lighttpd": ["lighttpd", "-D", "-f"]}
            return [*known[name], str(work / f"{name}.conf")]

        return command

    for language, interpreter in INTERPRETERS.items():
        file = {"perl": "floor.pl", "python": "floor.py"}[language]
        script = str(work / "cgi" / f"{language}.cgi")
        floor = start(f"floor-{language}", lambda port: [interpreter, str(HERE / file), str(port), script])
        all.append(("bare fork", language, floor, "/"))
    hob = start("hob", config("hob", HOB))
    for language in INTERPRETERS:
        all.append(("hob warm", language, hob, f"/{language}/{language}.cgi"))
        all.append(("hob cgi", language, hob, f"/cgi/{language}.cgi"))
    if shutil.which("lighttpd"):
        lighttpd = start("lighttpd", config("lighttpd", LIGHTTPD))
        for language in INTERPRETERS:
            all.append(("lighttpd cgi", language, lighttpd, f"/cgi/{language}.cgi"))
    for _, _, server, path in all:
        server.await_answer(path)
    return all


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--hob", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=int, default=2)
    parser.add_argument("--clients", type=int, default=10)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warm-floor-") as folder:
        work, started = pathlib.Path(folder), []
        work.chmod(0o755)
        (work / "cgi").mkdir()
        for language, text in SCRIPTS.items():
            (work / "cgi" / f"{language}.cgi").write_text(text)
            (work / "cgi" / f"{language}.cgi").chmod(0o755)
        try:
            measure(rows(work, os.path.abspath(asked.hob), started), asked)
        finally:
            for server in started:
                server.stop()


def measure(all, asked):
    costs = {(name, language): [] for name, language, _, _ in all}
    for _ in range(asked.rounds):
        for name, language, server, path in all:
            costs[name, language].append(server.cost(path, asked.secs, asked.clients))
    print("us of CPU time per request: median (lowest), and to the bare fork of the same round")
    for language in INTERPRETERS:
        floor = costs["bare fork", language]
        for (name, other), found in costs.items():
            if other == language:
                ratio = statistics.median(one / least for one, least in zip(found, floor))
                figures = f"{statistics.median(found):8.0f} ({min(found):.0f})"
                print(f"{language:8s}{name:14s}{figures:20s} x {ratio:.2f}", flush=True)


main()
