"""CPU time of a page of PHP: php-fpm behind hob and behind other servers, the same pool for each.

    python3 bench/fastcgi.py ROUNDS NAME=FOLDER ...

A FOLDER has `hob`. Each server stands on CPU 0 with a php-fpm of its own (two children, always
there), both in a control group of its own and with one thread; 10 connections of `hob bench` on
CPU 1. "kept" leaves connections to php-fpm open. hob writes an access log, the others none. Rounds are
interleaved, in changing order; medians. Needs root, php-fpm, nginx, lighttpd, version 1 of control
groups.
"""
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

from grouped import CONFIG, FPM, NGINX, Grouped, free_port

SECONDS = 4
PAGES = {
    "short": "<?php header('Content-Type: text/plain'); echo 'hello ', $_SERVER['QUERY_STRING'];",
    "64 KiB": "<?php header('Content-Type: text/plain'); echo str_repeat('0123456789abcdef', 4096);",
}
HOB = CONFIG + """[[site]]
root = "{place}/www"
[[site.route]]
path = "*.php"
fastcgi = {{ to = "unix:{place}/{name}.sock"{keep} }}
"""
FRONT = NGINX + """upstream php {{ server unix:{place}/{name}.sock; {keep} }}
server {{ listen 127.0.0.1:{port}; root {place}/www;
location ~ \\.php$ {{ include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
fastcgi_pass php; fastcgi_buffers 16 64k; {kept} }} }} }}
"""
LIGHTTPD = """server.modules = ("mod_fastcgi")
server.document-root = "{place}/www"
server.bind = "127.0.0.1"
server.port = {port}
server.max-keep-alive-requests = 100000000
server.errorlog = "{place}/{name}.err"
fastcgi.server = (".php" => (("socket" => "{place}/{name}.sock")))
"""


def text_of(what, **values):
    server, _, kept = what.partition(":")
    if server == "nginx":
        keep, kept = ("keepalive 2;", "fastcgi_keep_conn on;") if kept else ("", "")
        return FRONT.format(keep=keep, kept=kept, **values)
    if server == "lighttpd":
        return LIGHTTPD.format(**values)
    return HOB.format(keep=", connections = 2, keep = 2" if kept else "", **values)


def command(what, config):
    server = what.partition(":")[0]
    if server == "nginx":
        return ["nginx", "-c", config]
    if server == "lighttpd":
        return ["lighttpd", "-D", "-f", config]
    return [f"{server}/hob", "serve", "--config", config]


def measure(name, what, place, bench):
    """Microseconds of CPU time a request of each page, server and php-fpm."""
    port, name = free_port(), name.replace(" ", "-")
    values = {"place": place, "name": name, "port": port}
    conf, config = place / f"{name}.fpm", place / f"{name}.conf"
    conf.write_text(FPM.format(**values))
    config.write_text(text_of(what, **values))
    fpm = Grouped(f"fpm-{name}", ["php-fpm8.2", "-n", "-F", "-R", "-y", str(conf)], port)
    while not (place / f"{name}.sock").exists():
        pass
    server = Grouped(name, command(what, str(config)), port)
    costs = []
    for page in range(len(PAGES)):
        server.await_answer(f"/{page}.php")
        before = server.cpu_us() + fpm.cpu_us()
        url = f"http://127.0.0.1:{port}/{page}.php?a=b"
        load = ["taskset", "-c", "1", bench, "bench", url, "-c", "10", "--for", f"{SECONDS}s", "--warm-up", "0s", "--json"]
        told = json.loads(subprocess.run(load, capture_output=True, check=True).stdout)["requests"]
        # A server that lets requests wait for a child that a resting connection holds.
        if told["failed"]:
            print(f"{name}: {told['failed']} of {told['due']} failed", file=sys.stderr)
        costs.append((server.cpu_us() + fpm.cpu_us() - before) / told["good"])
    server.stop()
    fpm.stop()
    return costs


def main():
    rounds, folders = int(sys.argv[1]), [argument.split("=", 1) for argument in sys.argv[2:]]
    servers = {name + more: folder + kept for name, folder in folders for more, kept in [("", ""), (", kept", ":kept")]}
    servers |= {"nginx": "nginx", "nginx, kept": "nginx:kept", "lighttpd": "lighttpd"}
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-fastcgi-"))
    place.chmod(0o755)
    (place / "www").mkdir()
    for number, text in enumerate(PAGES.values()):
        (place / "www" / f"{number}.php").write_text(text)
    found = {name: [] for name in servers}
    for _ in range(rounds):
        for name in random.sample(list(servers), len(servers)):
            found[name].append(measure(name, servers[name], place, f"{folders[0][1]}/hob"))
    print("| server | " + " | ".join(f"{page}, us" for page in PAGES) + " |\n|" + " --- |" * (1 + len(PAGES)))
    for name, costs in found.items():
        print(f"| {name} | " + " | ".join(f"{statistics.median(column):.1f}" for column in zip(*costs)) + " |", flush=True)
    shutil.rmtree(place)


main()
