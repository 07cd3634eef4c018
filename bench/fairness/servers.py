"""Servers to measure, each in a scratch folder, pinned to given CPUs, with its CPU time counted.

Started servers listen on loopback only and are ended by `Server.stop`. CPU time comes from a cpuacct
cgroup where there is one (every process of the server counts), else from the scheduler's own count.
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time
import urllib.request

CPUACCT = pathlib.Path("/sys/fs/cgroup/cpuacct")
SIZES = {"1k.txt": 1 << 10, "64k.bin": 64 << 10, "256k.bin": 256 << 10, "1m.bin": 1 << 20,
         "4m.bin": 4 << 20, "256m.bin": 256 << 20}


def prepare(scratch):
    """Writes the files to serve. The bytes differ so that nothing is stored sparsely."""
    scratch.chmod(0o755)  # a server that gives up root must be able to enter it
    (scratch / "control").mkdir(mode=0o700, exist_ok=True)
    www = scratch / "www"
    www.mkdir(parents=True, exist_ok=True)
    for name, size in SIZES.items():
        path = www / name
        if not path.exists() or path.stat().st_size != size:
            piece = os.urandom(min(size, 1 << 20))
            with open(path, "wb") as file:
                for _ in range(0, size, len(piece)):
                    file.write(piece)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One server: where it listens, its processes, its CPU time."""

    def __init__(self, label, command, port, scratch, cpus, status_command=None):
        self.label, self.port, self.status_command = label, port, status_command
        self.address = ("127.0.0.1", port)
        self.group = CPUACCT / f"fairness_{os.getpid()}_{port}"
        try:
            self.group.mkdir()
        except OSError:
            self.group = None

        def before_exec():
            if self.group:
                (self.group / "tasks").write_text(str(os.getpid()))
            os.sched_setaffinity(0, cpus)

        log = open(scratch / f"{label}.out", "wb")
        self.process = subprocess.Popen(command, preexec_fn=before_exec, stdout=log, stderr=log,
                                        cwd=scratch, start_new_session=True)
        log.close()
        self.wait_until_ready(scratch)

    def wait_until_ready(self, scratch):
        for _ in range(200):
            try:
                url = f"http://127.0.0.1:{self.port}/1k.txt"
                with urllib.request.urlopen(url, timeout=5) as answer:
                    answer.read()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        text = (scratch / f"{self.label}.out").read_text()
        self.stop()
        raise SystemExit(f"{self.label} did not answer on {self.address}:\n{text}")

    def pids(self):
        if self.group:
            return sorted({int(pid) for pid in (self.group / "cgroup.procs").read_text().split()})
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as children:
                    todo += map(int, children.read().split())
        return found

    def cpu_us(self):
        """CPU time of all processes of this server so far, in microseconds."""
        if self.group:
            return int((self.group / "cpuacct.usage").read_text()) / 1000
        total = 0
        for pid in self.pids():
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/schedstat") as stat:
                    total += int(stat.read().split()[0])
        return total / 1000

    def status(self):
        """What hob's control socket says, or {}."""
        if not self.status_command:
            return {}
        text = subprocess.run(self.status_command, capture_output=True, check=True).stdout
        return json.loads(text)

    def threads_of_connections(self):
        """Client (address, port) to the epoll set its server-side socket stands in; {} when unknown.

        A server thread has an epoll set of its own, and the kernel lists what is in it.
        """
        clients = {}
        with open("/proc/net/tcp") as table:
            next(table)
            for line in table:
                words = line.split()
                if int(words[1].split(":")[1], 16) == self.port and words[3] == "01":
                    address, port = words[2].split(":")
                    address = socket.inet_ntoa(struct.pack("<I", int(address, 16)))
                    clients[words[9]] = (address, int(port, 16))
        threads = {}
        for pid in self.pids():
            try:
                inodes, sets = {}, []
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    target = os.readlink(f"/proc/{pid}/fd/{fd}")
                    if target.startswith("socket:["):
                        inodes[int(fd)] = target[8:-1]
                    elif "eventpoll" in target:
                        sets.append(fd)
                for number in sets:
                    with open(f"/proc/{pid}/fdinfo/{number}") as text:
                        for line in text:
                            if line.startswith("tfd:"):
                                client = clients.get(inodes.get(int(line.split()[1])))
                                if client:
                                    threads[client] = (pid, number)
            except (PermissionError, FileNotFoundError):
                return {}
        return threads

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if self.group:
            for _ in range(50):
                if not (self.group / "tasks").read_text():
                    break
                time.sleep(0.05)
            try:
                self.group.rmdir()
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def hob(binary, scratch, cpus=frozenset({0}), threads=1, label="hob", routes="", listen=""):
    port = free_port()
    config = scratch / f"{label}-{port}.toml"
    config.write_text(f"""threads = {threads}
control = "{scratch}/control/{port}"

[limits]
connections = 20000

[[listen]]
address = "127.0.0.1:{port}"
{listen}

[[site]]
root = "www"
{routes}
""")
    command = [binary, "serve", "--config", str(config)]
    status = [binary, "status", "--json", "--config", str(config)]
    return Server(label, command, port, scratch, cpus, status)


def nginx(scratch, cpus=frozenset({0}), workers=1, label="nginx"):
    port = free_port()
    config = scratch / f"{label}-{port}.conf"
    config.write_text(f"""worker_processes {workers}; pid {scratch}/{label}-{port}.pid; daemon off;
error_log {scratch}/{label}.err crit; user root; worker_rlimit_nofile 40000;
events {{ worker_connections 20000; }}
http {{ include /etc/nginx/mime.types; access_log off; sendfile on; tcp_nopush on; tcp_nodelay on;
 keepalive_requests 100000000; keepalive_timeout 600;
 open_file_cache max=10000 inactive=600s; open_file_cache_valid 600s; open_file_cache_min_uses 1;
 client_body_temp_path {scratch}/nginx-body; proxy_temp_path {scratch}/nginx-proxy;
 fastcgi_temp_path {scratch}/nginx-fastcgi; uwsgi_temp_path {scratch}/nginx-uwsgi;
 scgi_temp_path {scratch}/nginx-scgi;
 server {{ listen 127.0.0.1:{port}; root {scratch}/www; }} }}
""")
    return Server(label, ["nginx", "-c", str(config)], port, scratch, cpus)
