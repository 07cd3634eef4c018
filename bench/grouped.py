"""A program in a cpuacct control group of its own on CPU 0, for tables that compare CPU time.

The load stands on CPU 1. Needs root and version 1 of control groups.
"""
import json, os, pathlib, signal, socket, subprocess, tempfile, time

# How a config of hob's begins in these tables: one thread, an access log, one listener in clear text.
CONFIG = """threads = 1
control = "off"
default_log = "access"
[[log]]
name = "access"
file = "{place}/access.log"
format = "combined"
[[listen]]
address = "127.0.0.1:{port}"
"""
# How a config of nginx's begins: one worker, all its folders below `place`.
NGINX = """worker_processes 1; daemon off; pid {place}/{name}.pid; error_log {place}/{name}.err;
events {{ worker_connections 512; }}
http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {place}/b; fastcgi_temp_path {place}/f;
proxy_temp_path {place}/p; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
"""
# php-fpm with two children behind a socket.
FPM = """[global]
error_log = {place}/fpm-{name}.err
daemonize = no
[www]
user = nobody
group = nogroup
listen = {place}/{name}.sock
listen.mode = 0666
pm = static
pm.max_children = 2
"""
GROUPS = pathlib.Path("/sys/fs/cgroup/cpuacct")


class Grouped:
    """A running program: `name` is unique within one table."""

    def __init__(self, name, command, port, out=subprocess.DEVNULL):
        self.name, self.port = name, port
        self.group = GROUPS / f"hob-bench-{os.getpid()}-{name}"
        self.group.mkdir()
        self.process = subprocess.Popen(command, preexec_fn=self.enter, stdout=out, stderr=out)

    def enter(self):
        (self.group / "tasks").write_text(str(os.getpid()))
        os.sched_setaffinity(0, {0})

    def await_answer(self, path):
        """Waits until it answers; stops the table when it does not."""
        for _ in range(100):
            url = f"http://127.0.0.1:{self.port}{path}"
            if subprocess.run(["curl", "-sfo", "/dev/null", url]).returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"{self.name} does not answer")

    def cpu_us(self):
        """Microseconds of CPU time of all its processes, those that are gone included."""
        return int((self.group / "cpuacct.usage").read_text()) / 1e3

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        # What it started may take a moment longer.
        for _ in range(100):
            try:
                return self.group.rmdir()
            except OSError:
                time.sleep(0.05)


def cost(servers, url, bench, connections=10, seconds=3, form=None):
    """Microseconds of CPU time a request of all these programs together, after a second that does not count;
    `bench` is the `hob` whose load generator asks from CPU 1, or posts this form. Stops the table when requests fail."""
    with tempfile.TemporaryDirectory(prefix="hob-form-") as folder:
        asked = [url]
        if form:
            body, urls = pathlib.Path(folder, "body"), pathlib.Path(folder, "urls")
            body.write_text(form)
            urls.write_text(f"POST {url} body={body} header=Content-Type:application/x-www-form-urlencoded\n")
            asked = ["--urls", str(urls)]
        load = ["taskset", "-c", "1", bench, "bench", *asked, "-c", str(connections), "--json", "--warm-up", "0s", "--for"]
        subprocess.run([*load, "1s"], capture_output=True, check=True)
        before = sum(server.cpu_us() for server in servers)
        told = json.loads(subprocess.run([*load, f"{seconds}s"], capture_output=True, check=True).stdout)["requests"]
    if told["failed"]:
        raise SystemExit(f"{url}: {told['failed']} failed")
    return (sum(server.cpu_us() for server in servers) - before) / told["good"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def certificate(folder, key="ec"):
    """Makes `cert.pem` and `key.pem`, readable by every server's account; `ec` is P-256, `rsa` 2048 bits."""
    kinds = {"ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa": ["rsa:2048"]}
    made = ["-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", *kinds[key], "-nodes", "-days", "2", *names, *made]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    os.chmod(f"{folder}/key.pem", 0o644)
