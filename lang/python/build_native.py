"""Builds the native parts: `python3 build_native.py FILE...`.

A file called `_warm...` is the loop of a warm host, of host/_*.c; any other is the native part of
the package, `_native.abi3.so`, of src/hob/*.c. One build over Python's stable ABI serves every version from 3.9 on. Ends with 2 and says why where
it cannot be built: there is no C compiler, or no Python.h.
"""

from __future__ import annotations

import glob
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import List, Optional

FOLDER = Path(__file__).resolve().parent
SOURCES = FOLDER / "src" / "hob"
WARM_SOURCES = FOLDER / "host"
WARM_HEADER = FOLDER.parent / "c" / "host"
HEADER = FOLDER.parent.parent / "crates" / "libhob" / "include"
#: With every name bound when it is loaded: a fork that had to find one would do so each time.
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
FLAGS += ["-fvisibility=hidden", "-Wl,-z,now"]


class CannotBuild(Exception):
    """What is missing here."""


def build(made: Path) -> None:
    """Compiles it into that file, which appears whole or not at all."""
    headers = _headers()
    if headers is None:
        raise CannotBuild("no Python.h (Debian: python3-dev)")
    is_warm = made.name.startswith("_warm")
    header = WARM_HEADER / "host.h" if is_warm else HEADER / "hob.h"
    if not header.is_file():
        raise CannotBuild(f"no {header.name} in {header.parent}")
    sources = sorted((WARM_SOURCES if is_warm else SOURCES).glob("_*.c"))
    compiler = shlex.split(os.environ.get("CC", "cc"))
    begun = made.with_name(f"{made.name}.{os.getpid()}")
    words: List[str] = [*compiler, *FLAGS, "-DPy_LIMITED_API=0x03090000"]
    words += [f"-I{headers}", f"-I{header.parent}", *map(str, sources)]
    try:
        subprocess.run([*words, "-o", str(begun), "-ldl"], check=True)
    except FileNotFoundError as error:
        raise CannotBuild(f"no C compiler (Debian: gcc): {error}") from None
    begun.replace(made)


def _headers() -> Optional[str]:
    """This Python's own headers, or those of another Python 3.9 or newer."""
    for folder in [sysconfig.get_path("include"), *glob.glob("/usr/include/python3.*")]:
        version = folder.rpartition("python3.")[2]
        digits = version.rstrip("abcdefghijklmnopqrstuvwxyz")
        if os.path.isfile(os.path.join(folder, "Python.h")) and int(digits or 0) >= 9:
            return folder
    return None


if __name__ == "__main__":
    try:
        for file in sys.argv[1:]:
            build(Path(file))
    except CannotBuild as error:
        print(f"left out: {error}", file=sys.stderr)
        sys.exit(2)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode or 1)
