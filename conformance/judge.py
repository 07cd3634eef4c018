"""What the judges of this folder share: how one is installed, what is known to fail, and how it ends.

A judge is a folder with a `run` and a file expected.txt. `run` is called as

    run HTTP_URL HTTPS_URL RSA_URL ECDSA_URL CA_FILE

with addresses of one server: in clear text, with the certificate it makes for itself, and with certificates of
both kinds of keys from the authority in the file. It prints a line for each failure and one at the end:

    judge: NAME VERSION, N cases, M failures, K known

or, where the judge cannot be had, `missing: REASON`. expected.txt has a line for each case that fails and is
known: the case as the judge calls it, ` | `, and the reason. A case there that does not fail is a failure.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, NoReturn

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "target" / "conformance"
HOB = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "hob"
INSTALL_SECONDS_MAX = 600
CLICK_SECONDS_MAX = 600
START_SECONDS_MAX = STOP_SECONDS_MAX = 60
# Programs of others need no privileges, and some refuse to have any.
UNPRIVILEGED = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


class Judge:
    """The cases of one program that judges, and what became of them."""

    def __init__(self, run: str, name: str = ""):
        folder = Path(run).resolve().parent
        self.name = name or folder.name
        self.cases = self.failures = 0
        self.seen: set[str] = set()
        self.known: dict[str, str] = {}
        for line in (folder / "expected.txt").read_text().splitlines():
            # Where two judges share a folder, the name of one comes first.
            if line.strip() and not line.startswith("#") and (not name or line.startswith(f"{name} ")):
                case, reason = line.removeprefix(f"{name} ").split(" | ", 1)
                self.known[case] = reason

    def case(self, case: str, wrong: str = "") -> None:
        """Counts a case, in which something was wrong or nothing."""
        self.cases += 1
        if wrong and case in self.known:
            self.seen.add(case)
            print(f"known {case}: {wrong} ({self.known[case]})", flush=True)
        elif wrong:
            self.failures += 1
            print(f"FAILED {self.name}: {case}: {wrong}", flush=True)

    def attempt(self, case: str, does: Callable[[], object]) -> None:
        """The same for a function that raises what is wrong."""
        try:
            does()
        except (ValueError, LookupError, OSError, subprocess.SubprocessError) as error:
            self.case(case, " ".join(f"{type(error).__name__}: {error}".split()))
        else:
            self.case(case)

    def end(self, version: str) -> NoReturn:
        """Prints the last line, and leaves."""
        sys.exit(0 if self.sum_up(version) else 1)

    def sum_up(self, version: str) -> bool:
        """Prints the last line, and says whether all is as it should be."""
        for case in self.known.keys() - self.seen:
            self.failures += 1
            print(f"FAILED {self.name}: {case}: it is in expected.txt and did not fail; take it out")
        if not self.cases:
            self.failures += 1
            print(f"FAILED {self.name}: it had nothing to say; is there a server?")
        counts = f"{self.cases} cases, {self.failures} failures, {len(self.seen)} known"
        print(f"judge: {self.name} {version}, {counts}", flush=True)
        return not self.failures


class Program:
    """A program that runs for as long as a block, begun when it has said that it is ready."""

    def __init__(self, command: list[str | Path], printed: Path, ready: str, count: int = 1, **more):
        self.command, self.printed, self.more = command, printed, more
        self.ready, self.count = ready, count

    def __enter__(self):
        # Where it is another account's, the program may open it anew.
        self.printed.touch()
        self.printed.chmod(0o666)
        with self.printed.open("w") as output:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
            self.process = subprocess.Popen(self.command, **streams, **self.more)
        try:
            self.wait_for(self.ready, self.count)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS_MAX)
        finally:
            self.process.kill()

    def wait_for(self, text: str, count: int = 1) -> str:
        """What it has printed, once a text is in there so many times."""
        until = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < until and self.process.poll() is None:
            said = self.said()
            if said.count(text) >= count:
                return said
            time.sleep(0.05)
        raise ValueError(f"{Path(self.command[0]).name} did not print {text!r}: {self.said()[-500:]}")

    def said(self) -> str:
        return self.printed.read_text(errors="replace")


class Hob(Program):
    """A hob of this build with a config of its own; requests are logged where the config says `log`."""

    def __init__(self, folder: Path, config: str):
        self.folder = folder
        (folder / "hob.toml").write_text(config)
        own = {"env": os.environ | {"XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder)}}
        command = [HOB, "serve", "--config", folder / "hob.toml"]
        super().__init__(command, folder / "hob.printed", "listening on ", config.count("[[listen]]"), **own)

    def urls(self, scheme: str) -> list[str]:
        """Its addresses, in the order of the config."""
        found = re.findall(r"listening on (\w+)(://\S+)", self.said())
        return [(one + rest).rstrip("/") for one, rest in found if one == scheme]


# What a config begins with whose requests [`none_failed`] is to see.
LOGGED = 'default_log = "all"\n[[log]]\nname = "all"\nfile = "access.log"\nformat = "json"\n'


def none_failed(folder: Path) -> None:
    """Raises requests that a hob answered with 5xx; it has to have answered some."""
    records = [json.loads(line) for line in (folder / "access.log").read_text().splitlines()]
    failed = [f"{one['status']} {one['method']} {one['target']}" for one in records if one["status"] >= 500]
    if failed or not records:
        raise ValueError("; ".join(failed) or "no request was logged")


@contextmanager
def place() -> Iterator[Path]:
    """A folder for a run, which other accounts may enter."""
    with TemporaryDirectory(prefix="hob-judge-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def program(*names: str) -> str:
    """The first of these programs that is installed; ends where none is."""
    # What `make pages` took where the system has no Node.js, and what not everybody has in PATH.
    path = os.pathsep.join([str(ROOT / "target/node/bin"), os.environ["PATH"], "/usr/sbin"])
    found = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    return found or missing(f"there is no {names[0]}")


def clicked(judge: Judge, script: Path, *arguments: str | Path) -> None:
    """Has a script drive headless Chromium by the pages' own Playwright; it prints a case a line, in JSON."""
    package = ROOT / "ui" / "package.json"
    if not package.with_name("node_modules").is_dir():
        missing("there is no Playwright: `make pages`")
    command = [program("node"), script, package, program(os.environ.get("CHROMIUM", "chromium")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CLICK_SECONDS_MAX)
    for line in done.stdout.splitlines():
        one = json.loads(line)
        judge.case(one["case"], one["wrong"])
    judge.case("browser comes to its end", "" if done.returncode == 0 else done.stderr.strip()[-500:])


def addresses(count: int) -> list[str]:
    """The first of the arguments, as the text above lists them."""
    if len(sys.argv) <= count:
        names = ["HTTP_URL", "HTTPS_URL", "RSA_URL", "ECDSA_URL", "CA_FILE"][:count]
        print(f"usage: {sys.argv[0]} {' '.join(names)}", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1 : count + 1]


def missing(reason: object) -> NoReturn:
    print(f"missing: {reason}", flush=True)
    sys.exit(1)


def output(command: list[str | Path], seconds: float = 60, **more) -> str:
    """What a program prints, which has to end well."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, **more)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise ValueError(f"{Path(command[0]).name} ended with {done.returncode}: {said[-1]}")
    return done.stdout


def version(command: list[str | Path], word: int = 1) -> str:
    """One word of the first line with words of what a program says of itself; ends where it is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        missing(error)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    words = lines[0].split() if lines else []
    return words[word] if word < len(words) else "of unknown version"


def venv(name: str, packages: list[str]) -> Path:
    """The folder of programs of a Python with these packages from PyPI, made the first time."""
    folder = TARGET / name
    done = folder / "packages.txt"
    wanted = "\n".join(packages)
    if not done.exists() or done.read_text() != wanted:
        pip = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
        install([sys.executable, "-m", "venv", "--clear", folder], pip + packages)
        done.write_text(wanted)
    return folder / "bin"


def within(python: Path) -> None:
    """Goes on with the Python of [`venv`]."""
    if Path(sys.prefix).resolve() != python.parent.resolve():
        os.execv(python / "python", [str(python / "python"), *sys.argv])


def install(*steps: list[str | Path], **more) -> None:
    """Runs what installs a judge, or ends and says why that cannot be."""
    for step in steps:
        try:
            output(step, INSTALL_SECONDS_MAX, **more)
        except (ValueError, OSError, subprocess.SubprocessError) as error:
            missing(error)
