"""Finds the accelerator: `_native`, built from _native.c, and the libhob that it calls.

Without either of them the stream in pure Python does the same work. HOB_LIBRARY names the library
where the loader does not find it, HOB_NATIVE the module where Python does not; HOB_NATIVE=off keeps
both out of use.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader
from typing import Any, Optional

from .stream import Cancelled, Disconnected, Malformed

MODULE = "hob._native"
FILE = os.path.join("hob", "_native.abi3.so")
LIBRARY = "libhob.so.1"
ABI = 1


def connect() -> Any:
    """The connection through libhob, which has the calls of a Stream; None without it."""
    if os.environ.get("HOB_NATIVE") == "off":
        return None
    module = _module()
    if module is None or module.ABI != ABI:
        return None
    library = os.environ.get("HOB_LIBRARY")
    try:
        module.open(library or LIBRARY, Disconnected, Cancelled, Malformed)
    except OSError as error:
        if library:
            print(f"hob: HOB_LIBRARY={library}: {error}; going on without it", file=sys.stderr)
        return None
    connection = module.connect()
    # libhob has taken it from the process, not from Python's copy.
    os.environ.pop("HOB_FD", None)
    return connection


def _module() -> Any:
    path = os.environ.get("HOB_NATIVE") or _found()
    if path is None:
        return None
    try:
        loader = ExtensionFileLoader(MODULE, path)
        spec = importlib.util.spec_from_file_location(MODULE, path, loader=loader)
        if spec is None:
            return None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        if "HOB_NATIVE" in os.environ:
            print(f"hob: HOB_NATIVE={path}: {error}; going on without it", file=sys.stderr)
        return None
    return module


def _found() -> Optional[str]:
    """Beside this package, or in one that is installed: the server's own copy has no such file."""
    own = globals().get("__file__")
    folders = [os.path.dirname(os.path.dirname(own)), *sys.path] if own else sys.path
    for folder in folders:
        path = os.path.join(folder, FILE)
        if os.path.isfile(path):
            return path
    return None
