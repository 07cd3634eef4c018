#!/usr/bin/env python3
"""CPU time of TLS handshakes, full and resumed, of hob and of nginx where it is installed.

usage: table.py --hob BINARY [--load BINARY] [--key ec|rsa] [--suite NAME] [--rounds N] [--secs S]

Each connection is a handshake of TLS 1.3, one request for an empty file and its answer, made by `hob
bench --close`. The key is ECDSA with P-256 or RSA of 2048 bits; the suite is the one that browsers ask
for first. Keys are exchanged as each server does it: hob hybrid, X25519 with ML-KEM-768, OpenSSL 3.0
under nginx X25519 alone. The same without TLS is a row too: what is above it is the handshake. Each server stands in a cpuacct control group of its own on CPU 0, the load on CPU 1; a
round is every row once, and the figure is the median of the rounds. Must run as root.
"""
import argparse, json, os, pathlib, shutil, statistics, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from grouped import Grouped, certificate, free_port

HOB = """threads = 1
control = "off"
[[listen]]
address = "127.0.0.1:{clear}"
[[listen]]
address = "127.0.0.1:{port}"
tls = {{ certificate = "{work}/cert.pem", key = "{work}/key.pem", http3 = false, suites = ["{suite}"] }}
[[site]]
root = "{work}/www"
"""
NGINX = """daemon off; worker_processes 1; pid {work}/nginx.pid; error_log /dev/null;
events {{ worker_connections 1024; }}
http {{ access_log off; root {work}/www;
server {{ listen 127.0.0.1:{clear}; }}
server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {work}/cert.pem; ssl_certificate_key {work}/key.pem;
ssl_protocols TLSv1.3; ssl_ecdh_curve X25519; ssl_conf_command Ciphersuites {suite}; ssl_session_cache shared:s:10m; }} }}
"""


def commands(work, hob, suite):
    """Each server's name, command and two ports."""
    rows = [("hob", [hob, "serve", "--config", f"{work}/hob.toml"], HOB, "hob.toml")]
    if shutil.which("nginx"):
        command = ["nginx", "-c", f"{work}/nginx.conf", "-p", work]
        rows.append(("nginx", command, NGINX, "nginx.conf"))
    for name, command, text, file in rows:
        clear, port = free_port(), free_port()
        (pathlib.Path(work) / file).write_text(text.format(work=work, clear=clear, port=port, suite=suite))
        yield name, command, clear, port


def cost(server, hob, url, secs, *flags):
    """CPU microseconds of the server per connection, and how many of them resumed a session."""
    before = server.cpu_us()
    load = [hob, "bench", "--json", "--close", "--insecure", "--warm-up", "0s", "--cpus", "1"]
    load += ["--connections", "1", "--for", f"{secs}s", *flags, url]
    said = subprocess.run(load, stdout=subprocess.PIPE, check=True).stdout
    used = server.cpu_us() - before
    result = json.loads(said)
    assert result["requests"]["failed"] == 0, result["failures"]
    tls = result["tls"]
    return used / result["requests"]["answered"], tls["full"], tls["resumed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hob", required=True, type=os.path.abspath)
    parser.add_argument("--load", type=os.path.abspath, help="another hob, for the load")
    parser.add_argument("--key", choices=("ec", "rsa"), default="ec")
    parser.add_argument("--suite", default="TLS_AES_128_GCM_SHA256")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=int, default=2)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        (pathlib.Path(work) / "www").mkdir()
        (pathlib.Path(work) / "www" / "empty.txt").write_text("")
        certificate(work, wanted.key)
        servers = []
        for name, command, clear, port in commands(work, wanted.hob, wanted.suite):
            servers.append((Grouped(name, command, clear), clear, port))
        try:
            for server, _, _ in servers:
                server.await_answer("/empty.txt")
            figures = {}
            for _ in range(wanted.rounds):
                for server, clear, port in servers:
                    for row, url, flags in (
                        ("clear", f"http://127.0.0.1:{clear}/empty.txt", ()),
                        ("full", f"https://127.0.0.1:{port}/empty.txt", ("--tls", "full")),
                        ("resumed", f"https://127.0.0.1:{port}/empty.txt", ()),
                    ):
                        us, full, resumed = cost(server, wanted.load or wanted.hob, url, wanted.secs, *flags)
                        if row == "full":
                            assert resumed == 0 and full, (full, resumed)
                        if row == "resumed":
                            assert full <= 1 + resumed // 100, (full, resumed)
                        figures.setdefault((server.name, row), []).append(us)
        finally:
            for server, _, _ in servers:
                server.stop()
    median = {key: statistics.median(all_of) for key, all_of in figures.items()}
    print(f"{'':24}{'us/connection':>14}{'to clear':>10}{'of full':>9}")
    for (name, row), us in median.items():
        handshake = us - median[name, "clear"]
        of_full = handshake / (median[name, "full"] - median[name, "clear"])
        share = "" if row == "clear" else f"{of_full:9.2f}"
        print(f"{name + ' ' + row:24}{us:14.1f}{handshake:10.1f}{share}")


if __name__ == "__main__":
    main()
