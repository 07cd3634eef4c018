"""What the judges with sqlmap share: the places that are attacked, the servers, and what became of each place."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from judge import Hob, Judge, place
from pasted import Pasted
from postgres import Postgres

VERSION = "1.10.10"
PACKAGES = [f"sqlmap=={VERSION}", "psycopg[binary]==3.2.13"]
# A word that is on no page: who reads it has broken out of a statement.
SECRET = "kettledrum"
PARTS = 30

CONFIG = """
threads = 2

[[listen]]
address = "127.0.0.1:0"

[[database]]
name = "sqlite"
url = "sqlite:data/stock.db"

{more}
[[site]]

[[site.route]]
path = "/sqlite/*"
page = {{ dir = "pages", database = "sqlite" }}
"""
# PostgreSQL, by hob's own client and by unixODBC's driver.
POSTGRES = """
[[database]]
name = "postgres"
url = "{postgres.url}"

[[database]]
name = "odbc"
url = "{postgres.odbc_url}"

"""
POSTGRES_ROUTES = """
[[site.route]]
path = "/postgres/*"
page = { dir = "pages", database = "postgres" }

[[site.route]]
path = "/odbc/*"
page = { dir = "pages", database = "odbc" }
"""
# What the control pastes into, and what sqlmap takes it for.
CONTROLS = {"sqlite": "sqlite", "postgres": "postgres", "odbc": "postgres"}
KINDS = {"sqlite": "SQLite", "postgres": "PostgreSQL", "odbc": "PostgreSQL"}
# What the driver writes itself where it fetches by a cursor: its name, and values as PostgreSQL quotes them.
CURSOR = re.compile(r'"_?SQL_CUR[^"]*"')
VALUE = re.compile(r"""\bE'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|\b\d+\b""")

TABLES = f"""
CREATE TABLE part (id INTEGER PRIMARY KEY, title TEXT NOT NULL, kind TEXT NOT NULL);
CREATE TABLE secret (word TEXT NOT NULL);
INSERT INTO secret VALUES ('{SECRET}');
INSERT INTO part WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {PARTS})
  SELECT i, 'part ' || i, CASE i % 2 WHEN 0 THEN 'nut' ELSE 'bolt' END FROM n;
"""
NOTES = {
    "sqlite": "CREATE TABLE note (id INTEGER PRIMARY KEY, word TEXT);",
    "postgres": "CREATE TABLE note (id SERIAL PRIMARY KEY, word TEXT);",
}


@dataclass(frozen=True)
class Place:
    """Where a visitor's data comes to stand in a statement."""

    # The block of attacked.d2w, or the file of statements.
    name: str
    # An ordinary request: its form, and which field of it is attacked.
    form: str
    field: str
    by: str = "GET"


PLACES = [
    Place("quoted", "kind=nut", "kind"),
    Place("like", "q=part", "q"),
    Place("number", "id=3", "id"),
    Place("among", "ids=1", "ids"),
    Place("ordered", "sort=id", "sort"),
    Place("limited", "n=3", "n"),
    Place("filtered", "kind=nut&q=part", "q"),
    Place("doubled", "kind=nut", "kind"),
    Place("built", "kind=nut", "kind"),
    Place("entered", "kind=nut&title=part+2", "title", "POST"),
    Place("agent", "", "user-agent", "agent"),
    Place("again", "kind=nut", "kind"),
    Place("window", "START_ROW_NUM=1", "START_ROW_NUM"),
    Place("search.sql", "q=part", "q"),
    Place("one.sql", "id=3", "id"),
]


class Servers:
    """hob and the control over the same kinds of databases, for as long as a block."""

    def __init__(self, folder: Path, databases: list[str]):
        self.folder, self.databases = folder, databases
        self.stack = ExitStack()

    def __enter__(self):
        pages = self.folder / "pages"
        pages.mkdir()
        for name in ["attacked.d2w", "search.sql", "one.sql"]:
            shutil.copy(Path(__file__).with_name(name), pages)
        for name in ["data", "control"]:
            (self.folder / name).mkdir()
            (self.folder / name).chmod(0o777)
            file = self.folder / name / "stock.db"
            with sqlite3.connect(file) as database:
                database.executescript(TABLES + NOTES["sqlite"])
            file.chmod(0o666)
        more, route, self.postgres, control = "", "", None, None
        if {"postgres", "odbc"} & set(self.databases):
            library = "shared_preload_libraries=pg_stat_statements"
            self.postgres = self.stack.enter_context(Postgres(self.folder, library, "pg_stat_statements.max=10000"))
            self.postgres.ask(TABLES + NOTES["postgres"] + "CREATE EXTENSION pg_stat_statements;")
            self.postgres.ask("CREATE DATABASE control TEMPLATE postgres")
            self.postgres.ask("SELECT pg_stat_statements_reset()")
            more, route = POSTGRES.format(postgres=self.postgres), POSTGRES_ROUTES
            control = f"host={self.postgres.folder} user=hob dbname=control"
        config = CONFIG.format(more=more) + route
        self.hob = self.stack.enter_context(Hob(self.folder, config)).urls("http")[0]
        self.control = self.stack.enter_context(Pasted(self.folder / "control/stock.db", control)).url
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def statements(self) -> set[str]:
        """The texts of all statements that PostgreSQL was given for the pages, white space apart."""
        asked = self.postgres.ask(
            "SELECT replace(query, E'\\n', ' ') FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid "
            "WHERE d.datname = 'postgres' AND query ~* 'part|note|secret' AND query !~ 'pg_stat_statements|^CREATE'"
        )
        return {shape(" ".join(line.split())) for line in asked}


def shape(text: str) -> str:
    """A statement's text without what the driver of ODBC wrote into it as values."""
    if not CURSOR.search(text):
        return text
    return VALUE.sub("?", CURSOR.sub("cursor", text))


def options(one: Place, url: str) -> list[str]:
    """sqlmap's for one place."""
    target = f"{url}/{one.name}"
    if one.by == "agent":
        return ["-u", target, "--user-agent", "nut*"]
    if one.by == "POST":
        return ["-u", target, "--data", one.form, "-p", one.field]
    return ["-u", f"{target}?{one.form}", "-p", one.field]


def attacked(sqlmap: Path, folder: Path, database: str, how: list[str], where: list[str], seconds: float) -> str:
    """What sqlmap found at one place: the ways in, and whether it came away with the secret."""
    folder.mkdir(parents=True)
    own = ["--batch", "--disable-coloring", "--flush-session", "--skip-waf", "--output-dir", folder]
    own += ["--dbms", KINDS[database]]
    read = ["--sql-query", "SELECT word FROM secret"]
    command = [sqlmap, *own, *how, *read, *where]
    environment = os.environ | {"HOME": str(folder), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    said = done.stdout + done.stderr
    (folder / "said.txt").write_text(said)
    if "no parameter(s) found" in said or "unable to connect" in said or done.returncode not in (0, 1):
        raise ValueError(f"sqlmap had nothing to attack: {said[-300:]}")
    ways = [line.strip().removeprefix("Title: ") for line in said.splitlines() if line.strip().startswith("Title: ")]
    told = "reads the secret" if SECRET in said else "reads nothing"
    return f"{told} by {'; '.join(ways)}" if ways or SECRET in said else ""


def judged(judge: Judge, servers: Servers, sqlmap: Path, places: list[Place], how: list[str], seconds: float) -> None:
    """Attacks the places of hob and of the control alike; a place that is not broken there says nothing here."""
    tasks = [(database, one, "hob") for database in servers.databases for one in places]
    controls = {CONTROLS[database] for database in servers.databases}
    tasks += [(database, one, "control") for database in sorted(controls) for one in places]

    def attack(task: tuple[str, Place, str]) -> str | Exception:
        database, one, which = task
        base = servers.hob if which == "hob" else servers.control
        file = "" if one.name.endswith(".sql") or which == "control" else "/attacked.d2w"
        folder = servers.folder / "said" / which / database / one.name
        try:
            return attacked(sqlmap, folder, database, how, options(one, f"{base}/{database}{file}"), seconds)
        except (ValueError, OSError, subprocess.SubprocessError) as error:
            return error

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        found = dict(zip(tasks, pool.map(attack, tasks)))
    for database in servers.databases:
        for one in places:
            control, here = found[CONTROLS[database], one, "control"], found[database, one, "hob"]
            print(f"{database} {one.name}: the control {control or 'holds'}", flush=True)
            if isinstance(here, Exception) or isinstance(control, Exception):
                judge.case(f"{database} {one.name}", f"{here!r}, control {control!r}")
            elif here:
                judge.case(f"{database} {one.name}", f"sqlmap {here}")
            elif "reads the secret" not in control:
                judge.case(f"{database} {one.name}", f"void: the control {control or 'was not broken'}")
            else:
                judge.case(f"{database} {one.name}")
    judge.case("tables of SQLite are as they were", changed(servers))


def changed(servers: Servers) -> str:
    """What is not as it was in hob's file of SQLite."""
    with sqlite3.connect(servers.folder / "data/stock.db") as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        rows = [database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("part", "secret")]
    ours = tables == {"part", "note", "secret"} and rows == [PARTS, 1]
    return "" if ours else f"tables {sorted(tables)}, rows {rows}"


def run(judge: Judge, sqlmap: Path, databases: list[str], places: list[Place], how: list[str], seconds: float) -> None:
    with place() as folder, Servers(folder, databases) as servers:
        print(f"hob {servers.hob}, control {servers.control}", file=sys.stderr)
        judged(judge, servers, sqlmap, places, how, seconds)
