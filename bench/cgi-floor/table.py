#!/usr/bin/env python3
"""CPU time of one CGI request beside the floor, for C, sh, perl and Python.

usage: table.py NAME=SERVER... [--rounds N] [--secs S] --programs FOLDER

A server is `hob:BINARY` or `lighttpd`. FOLDER has cgitest.cgi, testsh.cgi, testpl.cgi and
testpy.cgi; each prints a head and nothing else. Servers (with what they start) and the floor stand
in cpuacct control groups of their own on CPU 0, the load on CPU 1; a round is every row once, and
the figure is the median of the rounds. Must run as root; hob's programs run as nobody, the floor
has the environment hob gives. Needs wrk, curl, gcc and, where asked for, lighttpd.
"""
import argparse, os, pathlib, re, signal, socket, statistics, subprocess, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
GROUPS = pathlib.Path("/sys/fs/cgroup/cpuacct")
PROGRAMS = {"C": "cgitest.cgi", "sh": "testsh.cgi", "perl": "testpl.cgi", "python": "testpy.cgi"}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Place:
    """A control group, and what runs in it on CPU 0."""

    def __init__(self, name):
        self.group = GROUPS / f"cgi-floor-{os.getpid()}-{name}"
        self.group.mkdir()

    def enter(self):
        (self.group / "tasks").write_text(str(os.getpid()))
        os.sched_setaffinity(0, {0})

    def cpu_us(self):
        return int((self.group / "cpuacct.usage").read_text()) / 1e3

    def remove(self):
        for _ in range(100):
            try:
                return self.group.rmdir()
            except OSError:
                time.sleep(0.05)


class Server(Place):
    def __init__(self, name, kind, programs, work):
        super().__init__(name)
        self.port = free_port()
        file = work / f"{name}.conf"
        if kind == "lighttpd":
            file.write_text(
                f'server.document-root="{work}"\nserver.port={self.port}\nserver.bind="127.0.0.1"\n'
                'server.max-keep-alive-requests=100000000\nserver.modules=("mod_alias","mod_cgi")\n'
                f'alias.url=("/cgi/"=>"{programs}/")\n$HTTP["url"] =~ "^/cgi/" {{ cgi.assign=(".cgi"=>"") }}\n'
            )
            command = ["lighttpd", "-D", "-f", str(file)]
        else:
            file.write_text(
                f'threads = 1\ncontrol = "off"\ndefault_log = "access"\n[[log]]\nname = "access"\n'
                f'file = "{work}/{name}.log"\nformat = "combined"\n[[listen]]\n'
                f'address = "127.0.0.1:{self.port}"\n[[site]]\nroot = "{work}"\n[[site.route]]\n'
                f'path = "/cgi/*"\ncgi = {{ dir = "{programs}" }}\n'
            )
            command = [kind.removeprefix("hob:"), "serve", "--config", str(file)]
        out = open(work / f"{name}.out", "w")
        self.process = subprocess.Popen(command, preexec_fn=self.enter, stdout=out, stderr=out)
        for _ in range(100):
            if subprocess.run(["curl", "-sfo", "/dev/null", self.url("cgitest.cgi")]).returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"{name} does not answer, see {out.name}")

    def url(self, program):
        return f"http://127.0.0.1:{self.port}/cgi/{program}?0"

    def cost(self, program, secs):
        before = self.cpu_us()
        load = ["taskset", "-c", "1", "wrk", "-t1", "-c10", f"-d{secs}s", self.url(program)]
        said = subprocess.run(load, capture_output=True, text=True).stdout
        if "Non-2xx" in said or "Socket errors" in said:
            raise SystemExit(said)
        return (self.cpu_us() - before) / int(re.search(r"(\d+) requests in", said).group(1))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.remove()


class Floor(Place):
    def __init__(self, programs, environment, binary):
        super().__init__("floor")
        self.programs, self.environment, self.binary = programs, environment, binary

    def cost(self, program, secs):
        runs = {"C": 1500, "sh": 1000, "perl": 150, "python": 40}
        runs = secs * next(runs[name] for name, file in PROGRAMS.items() if file == program)
        before = self.cpu_us()
        command = [self.binary, str(runs), self.environment, self.programs / program]
        subprocess.run(command, preexec_fn=self.enter, check=True)
        return (self.cpu_us() - before) / runs

    def stop(self):
        self.remove()


# What hob tells a program of a request for `/cgi/x?0`.
ENVIRONMENT = "\n".join(
    "GATEWAY_INTERFACE=CGI/1.1 UNIQUE_ID=1a2016c7f4c-1-0 REMOTE_HOST=127.0.0.1 QUERY_STRING=0 "
    "REMOTE_ADDR=127.0.0.1 DOCUMENT_ROOT=/srv/www REMOTE_PORT=35232 SCRIPT_FILENAME=/srv/cgi/x "
    "HTTP_HOST=127.0.0.1:17961 REQUEST_URI=/cgi/x?0 SERVER_SOFTWARE=hob REQUEST_SCHEME=http "
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SERVER_PROTOCOL=HTTP/1.1 "
    "PATH_INFO= REDIRECT_STATUS=200 REQUEST_METHOD=GET SERVER_ADDR=127.0.0.1 SERVER_PORT=17961 "
    "SCRIPT_NAME=/cgi/x SERVER_NAME=127.0.0.1".split()
)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("servers", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=int, default=1)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cgi-floor-") as folder:
        work = pathlib.Path(folder)
        work.chmod(0o755)
        subprocess.run(["gcc", "-O2", "-o", work / "floor", HERE / "floor.c"], check=True)
        (work / "environment").write_text(ENVIRONMENT)
        rows = {"floor": Floor(asked.programs, work / "environment", work / "floor")}
        try:
            for word in asked.servers:
                name, _, kind = word.partition("=")
                rows[name] = Server(name, kind, asked.programs, work)
            measure(rows, asked)
        finally:
            for row in rows.values():
                row.stop()


def measure(rows, asked):
    names = asked.only.split(",")
    costs = {(name, row): [] for name in names for row in rows}
    for _ in range(asked.rounds):
        for name in names:
            for row, place in rows.items():
                costs[name, row].append(place.cost(PROGRAMS[name], asked.secs))
    print("us of CPU time per request, median (lowest)")
    print(f"{'':8s}" + "".join(f"{row:>22s}" for row in rows))
    for name in names:
        cells = (costs[name, row] for row in rows)
        cells = (f"{statistics.median(cell):.0f} ({min(cell):.0f})" for cell in cells)
        print(f"{name:8s}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)


main()
