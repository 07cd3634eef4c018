"""A PostgreSQL of Debian in a folder of its own, for as long as a block: on a socket there, with a user `hob`."""

import shutil
from pathlib import Path

from judge import UNPRIVILEGED, Program, missing, output

DRIVER = "PostgreSQL Unicode"


def programs() -> Path:
    """Where Debian has the newest server; ends where it has none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else missing("Debian package postgresql is not installed")


class Postgres(Program):
    """Such a server, with settings beside its own."""

    def __init__(self, folder: Path, *settings: str):
        self.folder = folder / "postgres"
        self.folder.mkdir()
        if UNPRIVILEGED:
            shutil.chown(self.folder, "nobody", "nogroup")
        data = self.folder / "data"
        options = ["--auth=trust", "--username=hob", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        # Where this program runs may not be for the server's account.
        own = {"cwd": self.folder, **UNPRIVILEGED}
        output([programs() / "initdb", *options, "-D", data], 120, **own)
        usual = ["fsync=off", "listen_addresses=", "max_connections=40", "log_min_messages=log"]
        said = [word for setting in (*usual, *settings) for word in ("-c", setting)]
        command = [programs() / "postgres", "-D", data, "-k", self.folder, *said]
        super().__init__(command, folder / "postgres.printed", "ready to accept connections", **own)

    @property
    def url(self) -> str:
        return f"postgres://hob@/postgres?host={self.folder}"

    @property
    def odbc_url(self) -> str:
        """The same over unixODBC and Debian's driver, which fetches rows as they are taken."""
        if f"[{DRIVER}]" not in Path("/etc/odbcinst.ini").read_text():
            missing("Debian package odbc-postgresql is not installed")
        way = f"Driver={DRIVER};Server={self.folder};Database=postgres;UID=hob"
        return f"odbc:{way};UseDeclareFetch=1;Fetch=1000"

    def ask(self, statement: str, seconds: float = 600) -> list[str]:
        """The rows of an answer; the columns of each are divided by `|`."""
        command = [programs() / "psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.folder]
        command += ["-U", "hob", "-d", "postgres", "-c", statement]
        return output(command, seconds).splitlines()
