"""The cases of the Autobahn test suite, for WebSockets that send everything back.

The suite is written for Python 2.7, which is not to be had any more, and for the Autobahn of its day. Its cases are
small classes over a protocol that does what they say, right or wrong. They are taken from its source package on PyPI
and read as Python 3, their byte strings as text of the same code points; the protocol is today's Autobahn, on Twisted.
Cases run side by side, and those that measure speed with fewer messages: what is judged is whether they come back.
"""

import binascii
import importlib.abc
import importlib.machinery
import re
import sys
import tarfile
import types
from pathlib import Path

from judge import TARGET, install

VERSION = "25.10.1"
SUITE = f"autobahntestsuite=={VERSION}"
PACKAGES = ["autobahn[twisted]==24.4.2", "twisted==26.10.0", "setuptools==65.5.0", "wheel==0.45.1"]
MESSAGES_MAX = 20
# Side by side: cases that mostly wait, and those that move much (limits, compression).
LIGHT_AT_ONCE, HEAVY_AT_ONCE = 24, 2
HEAVY = ("9", "12", "13")
# How much longer than the suite says a case may take before it is given up: machines are busy.
PATIENCE = 3
GOOD = {"OK", "INFORMATIONAL"}
# What the suite allows: a close frame that leaves at once, before the application has answered what came ahead of a
# fault. Whether it does is a matter of time. Text that is none has to be refused as soon as that shows all the same.
ALLOWED, STRICT = "NON-STRICT", "6."


def bytes_of(text) -> bytes:
    """What was a byte string in Python 2."""
    return text.encode("latin-1") if isinstance(text, str) else text


def source_of_suite(python: Path) -> Path:
    """The folder of the suite's package, fetched the first time."""
    folder = TARGET / "autobahn-suite"
    found = folder / f"autobahntestsuite-{VERSION}" / "autobahntestsuite"
    if not (found / "case").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--disable-pip-version-check"]
        install([python / "pip", "download", "--quiet", *flags, "--dest", folder, SUITE])
        with tarfile.open(folder / f"autobahntestsuite-{VERSION}.tar.gz") as archive:
            archive.extractall(folder)
    return found


class Cases(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules of the folder of cases, each beside the others, as Python 2 did."""

    def __init__(self, folder: Path):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        file = self.folder / f"{name}.py"
        if path is None and name.startswith("case") and file.is_file():
            return importlib.machinery.ModuleSpec(name, self, origin=str(file))
        return None

    def exec_module(self, module) -> None:
        file = Path(module.__spec__.origin)
        exec(compile(self.source_of(file), str(file), "exec"), module.__dict__)

    @staticmethod
    def source_of(file: Path) -> str:
        text = file.read_bytes().decode("latin-1")
        text = re.sub(r"^( *)print .*$", r"\1pass", text, flags=re.MULTILINE)
        text = text.replace("xrange(", "range(").replace("(object, Case, )", "(Case, )")
        # What has other names in today's Autobahn.
        words = "acceptNoContextTakeover|acceptMaxWindowBits|requestNoContextTakeover|requestMaxWindowBits"
        text = re.sub(words, lambda word: re.sub("([A-Z])", r"_\1", word[0]).lower(), text)
        return text.replace("/ self.p.autoFragmentSize", "// self.p.autoFragmentSize")


def stand_ins(package: Path) -> None:
    """What the cases import and Python 3 has no more, or has for bytes alone."""
    from autobahn.websocket import protocol, utf8validator  # noqa: F401

    class Utf8Validator(utf8validator.Utf8Validator):
        def validate(self, text):
            return super().validate(bytes_of(text))

    validator = types.ModuleType("autobahn.websocket.utf8validator")
    validator.Utf8Validator = Utf8Validator
    sys.modules["autobahn.websocket.utf8validator"] = validator
    words = types.ModuleType("binascii")
    words.b2a_hex = lambda text: binascii.b2a_hex(bytes_of(text)).decode()
    words.hexlify = words.b2a_hex
    resources = types.ModuleType("pkg_resources")
    resources.resource_filename = lambda _, name: str(package / name)
    sys.modules.update(binascii=words, pkg_resources=resources)


def cases_of(package: Path) -> list[type]:
    """All cases, in the order of the suite."""
    kept = dict(sys.modules)
    stand_ins(package)
    sys.meta_path.insert(0, Cases(package / "case"))
    names: dict = {}
    # Of those that the suite leaves out itself, one cannot be imported.
    exec(Cases.source_of(package / "case" / "__init__.py").replace("from case9_9_1 import *", ""), names)
    for name in ("binascii", "autobahn.websocket.utf8validator"):
        sys.modules[name] = kept[name]
    names["Case"].compare = lambda self, one, other: one == other
    for case in names["Cases"]:
        if hasattr(case, "COUNT"):
            case.COUNT = min(case.COUNT, MESSAGES_MAX)
    return names["Cases"]


def id_of(case: type) -> str:
    return ".".join(case.__name__.removeprefix("Case").split("_"))


def run(python: Path, urls: list[str]) -> dict[str, list]:
    """What became of each case at each of these addresses, one after the other."""
    import client

    cases = cases_of(source_of_suite(python))
    heavy = [case for case in cases if id_of(case).split(".")[0] in HEAVY]
    light = [case for case in cases if case not in heavy]
    sockets = ["ws" + url.removeprefix("http") for url in urls]
    results = client.run(sockets, PATIENCE, [(light, LIGHT_AT_ONCE), (heavy, HEAVY_AT_ONCE)])
    return {id_of(case): [result.get(case) for result in results] for case in cases}


def wrong(name: str, case) -> str:
    """What a case that has come to its end says, where it is not content."""
    if case is None:
        return "it did not come to its end"
    said = []
    if case.behavior not in GOOD and (case.behavior != ALLOWED or name.startswith(STRICT)):
        said.append(f"{case.behavior}: {case.result}")
    if case.behaviorClose not in GOOD:
        said.append(f"close {case.behaviorClose}: {case.resultClose}")
    return "; ".join(said)
