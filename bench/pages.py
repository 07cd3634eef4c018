"""CPU time of macro pages: without SQL, one row by key, a list, a search, a change, a report; in PHP, Django, Flask, too.

    python3 bench/pages.py ROUNDS NAME=FOLDER ...

A FOLDER has `hob`. Each server stands on CPU 0 in a control group of its own with one thread; 10
connections of `hob bench` on CPU 1. The database is a file of SQLite with 10,000 rows and a key; the pages and what
answers like them are in `pages/`. PHP is php-fpm (two children, opcache, PDO with a lasting connection) behind nginx as
it comes. Django (lasting connections, no middleware) and Flask (a lasting connection) are two workers of gunicorn each
behind nginx, and left out where PYTHON in the environment is no interpreter that has them.
"floor" is page_floor.c, a resident program of two workers with its statements kept prepared, beside libhob.a
of the same FOLDER. "ODBC" is the same page and file over unixODBC and Debian's libsqliteodbc, where that is installed.
"static" is a file as large as the page without SQL. hob writes an access log, nginx none. Rounds
are interleaved, in changing order; medians. Needs root, php-fpm, php-sqlite3, nginx, version 1 of
control groups.
"""
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from grouped import CONFIG, FPM, NGINX, Grouped, cost, free_port

HERE = pathlib.Path(__file__).parent
ROWS = 10_000
PAGES = HERE / "pages"
HOB = CONFIG + """[[site]]
root = "{place}/www"
[[site.route]]
path = "/pages/*"
page = {{ dir = "{place}/macros", database = "sqlite:{place}/stock.db" }}
{odbc}
[[site.route]]
path = "/floor/*"
resident = {{ run = ["{place}/floor", "{place}/stock.db"], workers = {{ min = 2, max = 2 }} }}
"""
DRIVERS = pathlib.Path("/etc/odbcinst.ini")
IS_ODBC_THERE = DRIVERS.exists() and "[SQLite3]" in DRIVERS.read_text()
ODBC = """[[site.route]]
path = "/odbc/*"
page = {{ dir = "{place}/macros", database = "odbc:Driver=SQLite3;Database={place}/stock.db" }}
"""
FRONT = NGINX + """server {{ listen 127.0.0.1:{port}; root {place}/www;
location /python/ {{ proxy_pass http://unix:{place}/python.sock:/; proxy_set_header Host localhost; }}
location ~ \\.php$ {{ include /etc/nginx/fastcgi_params;
fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass unix:{place}/{name}.sock; }} }} }}
"""
ASKED = {
    "one row": "one?id=4711",
    "20 rows": "list?id=4711",
    "search": "search?q=part%201",
    "change": "edit",
    "report": "report?id=4000",
}
# What stands there already: the answers stay the same.
CHANGE = "id=4711&cents=32970"
TARGETS = {
    "static": {"hob": "/page.html"},
    "page without SQL": {"hob": "/pages/stock.page/html?name=Ben"},
    **{
        name: {
            "hob": f"/pages/stock.page/{asked}",
            "PHP": "/part.php?block=" + asked.replace("?", "&"),
            "Django": f"/python/{asked}",
            "Flask": f"/python/{asked}",
        }
        for name, asked in ASKED.items()
    },
    "one row, floor": {"hob": "/floor/one?id=4711"},
    "20 rows, floor": {"hob": "/floor/list?id=4711"},
    "one row, `.sql`": {"hob": "/pages/one.sql?id=4711"},
}
if IS_ODBC_THERE:
    TARGETS["one row, ODBC"] = {"hob": "/odbc/stock.page/one?id=4711"}
    TARGETS["20 rows, ODBC"] = {"hob": "/odbc/stock.page/list?id=4711"}


def start(name, folder, place, port):
    """What answers, and what stands behind it."""
    values = {"place": place, "name": name, "port": port}
    config = place / f"{name}.conf"
    if folder:
        odbc = ODBC.format(**values) if IS_ODBC_THERE else ""
        config.write_text(HOB.format(odbc=odbc, **values))
        return [Grouped(name, [f"{folder}/hob", "serve", "--config", str(config)], port)]
    config.write_text(FRONT.format(**values))
    if name == "PHP":
        conf, socket = place / f"{name}.fpm", place / f"{name}.sock"
        conf.write_text(FPM.format(**values))
        command = ["php-fpm8.2", "-F", "-R", "-y", str(conf)]
    else:
        socket = place / "python.sock"
        module = f"stock_{name.lower()}"
        command = [os.environ["PYTHON"], "-m", "gunicorn", "-w", "2", "-b", f"unix:{socket}", "--chdir", str(PAGES), module]
    socket.unlink(missing_ok=True)
    behind = Grouped(f"behind-{name}", command, port)
    while not socket.exists():
        time.sleep(0.01)
    return [Grouped(name, ["nginx", "-c", str(config)], port), behind]


def answer_of(url, form):
    """The answer, without blanks."""
    asked = ["curl", "-sSf", url] + (["--data", form] if form else [])
    return b"".join(subprocess.run(asked, capture_output=True, check=True).stdout.split())


def measure(name, folder, place, bench, answers):
    """A row of the table. What a page answers has to be the same everywhere."""
    port = free_port()
    running = start(name, folder, place, port)
    costs = []
    for column, target in TARGETS.items():
        path = target.get("hob" if folder else name)
        if not path:
            costs.append(None)
            continue
        url = f"http://127.0.0.1:{port}{path}"
        running[0].await_answer("/page.html")
        form = CHANGE if column == "change" else None
        if column in ASKED:
            answer = answer_of(url, form)
            if answers.setdefault(column, answer) != answer:
                raise SystemExit(f"{url}: {answer}, and not {answers[column]}")
        costs.append(cost(running, url, bench, form=form))
    for one in running:
        one.stop()
    return costs


def main():
    rounds, folders = int(sys.argv[1]), [argument.split("=", 1) for argument in sys.argv[2:]]
    servers = dict(folders) | {"PHP": None} | (dict.fromkeys(["Django", "Flask"] if "PYTHON" in os.environ else []))
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-pages-"))
    place.chmod(0o777)
    (place / "www").mkdir()
    (place / "macros").mkdir()
    for page in ("stock.page", "one.sql"):
        shutil.copy(PAGES / page, place / "macros")
    shutil.copy(PAGES / "part.php", place / "www")
    os.environ["STOCK"] = f"{place}/stock.db"
    (place / "www/page.html").write_text("<p>A line of the page as its author wrote it.\n" * 21)
    with sqlite3.connect(place / "stock.db") as stock:
        stock.execute("CREATE TABLE part (id INTEGER PRIMARY KEY, title TEXT, cents INTEGER)")
        rows = ((f"part {number}", number * 7) for number in range(ROWS))
        stock.executemany("INSERT INTO part (title, cents) VALUES (?, ?)", rows)
    (place / "stock.db").chmod(0o666)
    built = ["gcc", "-O2", "-I", HERE.parent / "crates/libhob/include", HERE / "page_floor.c", f"{folders[0][1]}/libhob.a"]
    subprocess.run([*built, "-lsqlite3", "-lm", "-lpthread", "-o", place / "floor"], check=True)
    found, answers = {name: [] for name in servers}, {}
    for _ in range(rounds):
        for name in random.sample(list(servers), len(servers)):
            found[name].append(measure(name, servers[name], place, f"{folders[0][1]}/hob", answers))
    print("| server | " + " | ".join(f"{target}, us" for target in TARGETS) + " |\n|" + " --- |" * (1 + len(TARGETS)))
    for name, costs in found.items():
        columns = [[one for one in column if one is not None] for column in zip(*costs)]
        cells = [f"{statistics.median(column):.1f}" if column else "" for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    shutil.rmtree(place)


main()
