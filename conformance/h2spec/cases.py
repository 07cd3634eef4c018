"""h2spec, whole and strict, in clear text and over TLS.

It is built from its Go module the first time. A case is called by how it was asked, its section and its place there.
"""

import os
import subprocess
import xml.etree.ElementTree as ET
from urllib.parse import urlsplit

from judge import TARGET, Judge, install

VERSION = "v2.2.1+incompatible"
MODULE = f"github.com/summerwind/h2spec/cmd/h2spec@{VERSION}"
SECONDS_MAX = 8 * 60
CASE_SECONDS = 4

PROGRAM = TARGET / "h2spec" / "h2spec"


def results(how: str, address: str) -> list[tuple[str, str]]:
    """Each case with what went wrong, if something did."""
    url = urlsplit(address)
    report = PROGRAM.with_name(f"{how}.xml")
    report.unlink(missing_ok=True)
    command = [str(PROGRAM), "--host", url.hostname or "", "--port", str(url.port), "--strict"]
    command += ["--timeout", str(CASE_SECONDS), "--junit-report", str(report)]
    if url.scheme == "https":
        command += ["--tls", "--insecure"]
    subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    found = []
    numbers: dict[str, int] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        section = case.get("package", "")
        numbers[section] = numbers.get(section, 0) + 1
        wrong = [" ".join((part.text or kind).split()) for kind in ("failure", "error") for part in case.findall(kind)]
        if case.find("skipped") is not None:
            wrong.append("h2spec left it out")
        about = f"{case.get('classname', '')}: " if wrong else ""
        found.append((f"{how} {section}/{numbers[section]}", about + " ".join(wrong)))
    return found


def judge_all(judge: Judge, clear: str, secure: str) -> None:
    """All cases at both addresses."""
    if not PROGRAM.exists():
        environment = os.environ | {"GOBIN": str(PROGRAM.parent), "GOFLAGS": "-mod=mod"}
        install(["go", "install", MODULE], env=environment)
    for how, address in [("clear", clear), ("tls", secure)]:
        for case, wrong in results(how, address):
            judge.case(case, wrong)
