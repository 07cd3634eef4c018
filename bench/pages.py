"""CPU time of macro pages: without SQL, one row by key, a list of twenty; the same in PHP and Django.

    python3 bench/pages.py ROUNDS NAME=FOLDER ...

A FOLDER has `hob`. Each server stands on CPU 0 in a control group of its own with one thread; 10
connections of `hob bench` on CPU 1. The database is a file of SQLite with 10,000 rows and a key. PHP is php-fpm (two
children, opcache, PDO with a lasting connection) behind nginx as it comes. Django
(lasting connections, no middleware) is two workers of gunicorn behind nginx, and left out where PYTHON
in the environment is no interpreter that has both.
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
PAGE = """%FUNCTION(DTW_SQL) one() {
SELECT id, title, cents FROM part WHERE id = $(id)
%REPORT { %ROW { <p>$(V_id) $(V_title) $(V_cents) %} %} %}
%FUNCTION(DTW_SQL) list() {
SELECT id, title, cents FROM part WHERE id >= $(id) ORDER BY id LIMIT 20
%REPORT { <table> %ROW { <tr><td>$(V_id)<td>$(V_title)<td>$(V_cents) %} </table> %} %}
%HTML(html) { <h1>Hello, $(name)</h1> @DTW_rUPPERCASE(name) FILL %}
%HTML(one) { <h1>Part</h1> @one() %}
%HTML(list) { <h1>Parts</h1> @list() %}
""".replace("FILL", "<p>A line of the page as its author wrote it.\n" * 20)
PHP = """<?php
$db = new PDO('sqlite:PLACE/stock.db', null, null, [PDO::ATTR_PERSISTENT => true]);
if ($_GET['block'] === 'one') {
  $all = $db->prepare('SELECT id, title, cents FROM part WHERE id = ?');
  $all->execute([$_GET['id']]);
  echo '<h1>Part</h1>';
  foreach ($all as $row) echo '<p>', $row['id'], ' ', htmlspecialchars($row['title']), ' ', $row['cents'];
} else {
  $all = $db->prepare('SELECT id, title, cents FROM part WHERE id >= ? ORDER BY id LIMIT 20');
  $all->execute([$_GET['id']]);
  echo '<h1>Parts</h1><table>';
  foreach ($all as $row)
    echo '<tr><td>', $row['id'], '<td>', htmlspecialchars($row['title']), '<td>', $row['cents'];
  echo '</table>';
}
"""
DJANGO = """import django, django.conf
django.conf.settings.configure(SECRET_KEY='x', ALLOWED_HOSTS=['*'], ROOT_URLCONF=__name__, DATABASES={'default':
    {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'PLACE/stock.db', 'CONN_MAX_AGE': None}},
    TEMPLATES=[{'BACKEND': 'django.template.backends.django.DjangoTemplates'}])
django.setup()
from django.core.wsgi import get_wsgi_application
from django.db import models
from django.http import HttpResponse
from django.template import engines
from django.urls import path
class Part(models.Model):
    title = models.TextField(null=True)
    cents = models.IntegerField(null=True)
    class Meta:
        app_label, db_table = 'part', 'part'
ONE = engines['django'].from_string(
    '<h1>Part</h1>{% for row in rows %}<p>{{ row.id }} {{ row.title }} {{ row.cents }}{% endfor %}')
LIST = engines['django'].from_string('<h1>Parts</h1><table>{% for row in rows %}'
    '<tr><td>{{ row.id }}<td>{{ row.title }}<td>{{ row.cents }}{% endfor %}</table>')
def one(request):
    return HttpResponse(ONE.render({'rows': Part.objects.filter(id=request.GET['id'])}))
def list(request):
    rows = Part.objects.filter(id__gte=request.GET['id']).order_by('id')[:20]
    return HttpResponse(LIST.render({'rows': rows}))
urlpatterns = [path('one', one), path('list', list)]
application = get_wsgi_application()
"""
STATEMENT = "-- hob: page\nSELECT id, title, cents FROM part WHERE id = :id;\n"
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
location /django/ {{ proxy_pass http://unix:{place}/django.sock:/; proxy_set_header Host localhost; }}
location ~ \\.php$ {{ include /etc/nginx/fastcgi_params;
fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass unix:{place}/{name}.sock; }} }} }}
"""
TARGETS = {
    # Paths at hob, with PHP and with Django.
    "static": ("/page.html", None, None),
    "page without SQL": ("/pages/stock.page/html?name=Ben", None, None),
    "one row": ("/pages/stock.page/one?id=4711", "/part.php?block=one&id=4711", "/django/one?id=4711"),
    "20 rows": ("/pages/stock.page/list?id=4711", "/part.php?block=list&id=4711", "/django/list?id=4711"),
    "one row, floor": ("/floor/one?id=4711", None, None),
    "20 rows, floor": ("/floor/list?id=4711", None, None),
    "one row, `.sql`": ("/pages/one.sql?id=4711", None, None),
}
if IS_ODBC_THERE:
    TARGETS["one row, ODBC"] = ("/odbc/stock.page/one?id=4711", None, None)
    TARGETS["20 rows, ODBC"] = ("/odbc/stock.page/list?id=4711", None, None)


def start(name, folder, place, port):
    """What answers, and what stands behind it."""
    values = {"place": place, "name": name, "port": port}
    config = place / f"{name}.conf"
    if folder:
        odbc = ODBC.format(**values) if IS_ODBC_THERE else ""
        config.write_text(HOB.format(odbc=odbc, **values))
        return [Grouped(name, [f"{folder}/hob", "serve", "--config", str(config)], port)]
    config.write_text(FRONT.format(**values))
    if name == "Django":
        (place / "stock.py").write_text(DJANGO.replace("PLACE", str(place)))
        socket = place / "django.sock"
        command = [os.environ["PYTHON"], "-m", "gunicorn", "-w", "2", "-b", f"unix:{socket}", "--chdir", str(place), "stock"]
    else:
        conf, socket = place / f"{name}.fpm", place / f"{name}.sock"
        conf.write_text(FPM.format(**values))
        command = ["php-fpm8.2", "-F", "-R", "-y", str(conf)]
    socket.unlink(missing_ok=True)
    behind = Grouped(f"behind-{name}", command, port)
    while not socket.exists():
        time.sleep(0.01)
    return [Grouped(name, ["nginx", "-c", str(config)], port), behind]


def measure(name, folder, place, bench):
    """A row of the table."""
    port = free_port()
    running = start(name, folder, place, port)
    column = 0 if folder else 2 if name == "Django" else 1
    targets = [target[column] for target in TARGETS.values()]
    costs = []
    for target in targets:
        if target:
            running[0].await_answer(target)
        costs.append(cost(running, f"http://127.0.0.1:{port}{target}", bench) if target else None)
    for one in running:
        one.stop()
    return costs


def main():
    rounds, folders = int(sys.argv[1]), [argument.split("=", 1) for argument in sys.argv[2:]]
    servers = dict(folders) | {"PHP": None} | ({"Django": None} if "PYTHON" in os.environ else {})
    place = pathlib.Path(tempfile.mkdtemp(prefix="hob-pages-"))
    place.chmod(0o777)
    (place / "www").mkdir()
    (place / "macros").mkdir()
    (place / "macros/stock.page").write_text(PAGE)
    (place / "macros/one.sql").write_text(STATEMENT)
    (place / "www/page.html").write_text("<p>A line of the page as its author wrote it.\n" * 21)
    (place / "www/part.php").write_text(PHP.replace("PLACE", str(place)))
    with sqlite3.connect(place / "stock.db") as stock:
        stock.execute("CREATE TABLE part (id INTEGER PRIMARY KEY, title TEXT, cents INTEGER)")
        rows = ((f"part {number}", number * 7) for number in range(ROWS))
        stock.executemany("INSERT INTO part (title, cents) VALUES (?, ?)", rows)
    (place / "stock.db").chmod(0o666)
    built = ["gcc", "-O2", "-I", HERE.parent / "crates/libhob/include", HERE / "page_floor.c", f"{folders[0][1]}/libhob.a"]
    subprocess.run([*built, "-lsqlite3", "-lm", "-lpthread", "-o", place / "floor"], check=True)
    found = {name: [] for name in servers}
    for _ in range(rounds):
        for name in random.sample(list(servers), len(servers)):
            found[name].append(measure(name, servers[name], place, f"{folders[0][1]}/hob"))
    print("| server | " + " | ".join(f"{target}, us" for target in TARGETS) + " |\n|" + " --- |" * (1 + len(TARGETS)))
    for name, costs in found.items():
        columns = [[one for one in column if one is not None] for column in zip(*costs)]
        cells = [f"{statistics.median(column):.1f}" if column else "" for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    shutil.rmtree(place)


main()
