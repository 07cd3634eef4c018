"""What passing a request on takes at least: hob's `proxy` beside a bare loop of the same system calls.

    python3 bench/proxy_floor.py ROUNDS FOLDER

The FOLDER has `hob`. Behind both is nginx with an answer of 0 bytes on CPU 0, as they are; `hob bench`
asks from CPU 1 over 1, 10 and 100 connections. Microseconds of CPU time a request of what passes it
on alone, medians of interleaved rounds. Needs root, gcc, nginx, version 1 of control groups.
"""
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

from grouped import CONFIG, NGINX, Grouped, cost, free_port

HERE = pathlib.Path(__file__).parent
CONNECTIONS = (1, 10, 100)
HOB = CONFIG + """[[site]]
[[site.route]]
path = "/*"
proxy = "http://127.0.0.1:{behind}"
"""
BEHIND = NGINX + """server {{ listen 127.0.0.1:{behind}; location / {{ return 200 ""; }} }} }}
"""


def main():
    rounds, folder = int(sys.argv[1]), sys.argv[2]
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-proxy-floor-"))
    place.chmod(0o777)
    subprocess.run(["gcc", "-O2", "-o", place / "floor", HERE / "proxy_floor.c"], check=True)
    behind = free_port()
    (place / "nginx.conf").write_text(BEHIND.format(place=place, name="nginx", behind=behind))
    server_behind = Grouped("behind", ["nginx", "-c", str(place / "nginx.conf")], behind)
    server_behind.await_answer("/")
    found = {name: {count: [] for count in CONNECTIONS} for name in ("hob", "floor")}
    for _ in range(rounds):
        for name in random.sample(list(found), len(found)):
            port = free_port()
            (place / "hob.toml").write_text(HOB.format(place=place, port=port, behind=behind))
            commands = {"hob": [f"{folder}/hob", "serve", "--config", str(place / "hob.toml")],
                        "floor": [str(place / "floor"), str(port), str(behind)]}
            server = Grouped(name, commands[name], port)
            server.await_answer("/")
            for count, costs in found[name].items():
                costs.append(cost([server], f"http://127.0.0.1:{port}/", f"{folder}/hob", count, 2))
            server.stop()
    server_behind.stop()
    print("| connections | hob, us | floor, us | ratio |\n| --- | --- | --- | --- |")
    for count in CONNECTIONS:
        hob, floor = (statistics.median(found[name][count]) for name in ("hob", "floor"))
        print(f"| {count} | {hob:.1f} | {floor:.1f} | {hob / floor:.2f} |")
    shutil.rmtree(place)


main()
