"""CPU time of a macro page and a `.sql` page that read one row by its key out of PostgreSQL, beside a bare client.

    python3 bench/pages_postgres.py ROUNDS HOB CLIENT

HOB is the program; CLIENT is `crates/page/benches/postgres.rs`, built by `cargo bench -p hob-page --bench postgres
--no-run`: the same client of PostgreSQL in a loop, one statement after the other, and no HTTP, and once more on ten threads that another one tells what to do. The database's own CPU
time counts for none. Hob stands on CPU 0 with one thread, its access log on; 10 connections of `hob bench`. "static"
is a file. Rounds are interleaved; medians, and the ratio of a page without what a static file costs to the client.
Needs root, PostgreSQL of Debian, version 1 of control groups.
"""
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from grouped import CONFIG, Grouped, cost, free_port

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "conformance"))
from postgres import Postgres  # noqa: E402

ONE = "SELECT id, title, cents FROM part WHERE id = ?"
HOB = CONFIG + """[[site]]
root = "{place}/www"
[[site.route]]
path = "/pages/*"
page = {{ dir = "{place}/macros", database = "{url}" }}
"""
TARGETS = {"static": "/page.html", "one row": "/pages/stock.page/one?id=4711", "one row, `.sql`": "/pages/one.sql?id=4711"}


def main():
    rounds, hob, client = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-pages-"))
    place.chmod(0o777)
    (place / "www").mkdir()
    (place / "www/page.html").write_text("<h1>Part</h1>\n")
    (place / "macros").mkdir()
    for page in ("stock.page", "one.sql"):
        shutil.copy(HERE / "pages" / page, place / "macros")
    clients = {"client": [], "client, ten threads": ["10"]}
    found = {name: [] for name in [*TARGETS, *clients]}
    with Postgres(place) as database:
        database.ask("CREATE TABLE part AS SELECT n AS id, 'part ' || n AS title, n * 7 AS cents "
                     "FROM generate_series(1, 10000) AS n; ALTER TABLE part ADD PRIMARY KEY (id); ANALYZE part")
        for _ in range(rounds):
            port = free_port()
            config = place / "hob.conf"
            config.write_text(HOB.format(place=place, port=port, url=database.url))
            running = [Grouped("hob", [hob, "serve", "--config", str(config)], port)]
            for name, target in TARGETS.items():
                running[0].await_answer(target)
                found[name].append(cost(running, f"http://127.0.0.1:{port}{target}", hob))
            running[0].stop()
            asked = ["taskset", "-c", "0", client, database.url, ONE, "4711"]
            for name, threads in clients.items():
                found[name].append(float(subprocess.run(asked + threads, capture_output=True, check=True).stdout))
    shutil.rmtree(place)
    medians = {name: statistics.median(costs) for name, costs in found.items()}
    print("| | us | without HTTP, to the client |\n| --- | --- | --- |")
    for name, median in medians.items():
        ratio = (median - medians["static"]) / medians["client"]
        print(f"| {name} | {median:.1f} | {ratio:.2f} |" if "row" in name else f"| {name} | {median:.1f} | |")


main()
