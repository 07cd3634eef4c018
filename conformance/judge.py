"""What the judges of this folder share: how one is installed, what is known to fail, and how it ends.

A judge is a folder with a `run` and a file expected.txt. `run` is called as

    run HTTP_URL HTTPS_URL RSA_URL ECDSA_URL CA_FILE

with addresses of one server: in clear text, with the certificate it makes for itself, and with certificates of
both kinds of keys from the authority in the file. It prints a line for each failure and one at the end:

    judge: NAME VERSION, N cases, M failures, K known

or, where the judge cannot be had, `missing: REASON`. expected.txt has a line for each case that fails and is
known: the case as the judge calls it, ` | `, and the reason. A case there that does not fail is a failure.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, NoReturn

TARGET = Path(__file__).resolve().parents[1] / "target" / "conformance"
INSTALL_SECONDS_MAX = 600


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
