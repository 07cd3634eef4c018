"""Builds the native part for tests: from _native.c, with the libhob that is there."""

from __future__ import annotations

import atexit
import ctypes.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, Optional, Union

import peer

ROOT = peer.FOLDER.parent.parent
_made: Union[Dict[str, str], str, None] = None


def environment() -> Union[Dict[str, str], str]:
    """HOB_NATIVE and HOB_LIBRARY of what was built; or why it cannot be, in words."""
    global _made
    if _made is None:
        _made = _build()
    return _made


def _build() -> Union[Dict[str, str], str]:
    library = _library()
    if library is None:
        return "no libhob.so in HOB_LIBRARY, target/ or the loader's folders"
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    made = folder / "_native.abi3.so"
    done = subprocess.run(
        [sys.executable, str(peer.FOLDER / "build_native.py"), str(made)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode == 2:
        return done.stdout.strip()
    if done.returncode:
        raise AssertionError(f"_native.c does not compile:\n{done.stdout}")
    if os.path.isfile(library):  # beside it, where every account can reach it
        library = str(shutil.copy(library, folder / "libhob.so.1"))
    return {"HOB_NATIVE": str(made), "HOB_LIBRARY": library}


def _library() -> Optional[str]:
    named = os.environ.get("HOB_LIBRARY")
    if named:
        return named
    for kind in ("release", "debug"):
        built = ROOT / "target" / kind / "libhob.so"
        if built.is_file():
            return str(built)
    return ctypes.util.find_library("hob")
