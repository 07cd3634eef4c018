"""Finds the native part: `_native`, built from _native.c, and the libhob that it calls.

Without either of them the stream in pure Python does the same work. The module is taken from the
folder of native parts that came with the server, else from beside this package, else from an
installed one; the library from beside the module, or from where the system's loader finds it.
HOB_NATIVE and HOB_LIBRARY name other files; HOB_NATIVE=off keeps both out of use.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader
from typing import Any, Callable, Iterator, Optional, Union

from .stream import Cancelled, Disconnected, Malformed

MODULE = "hob._native"
FILE = "_native.abi3.so"
LIBRARY = "libhob.so.1"
#: What this package and the module must agree on.
INTERFACE = 7

#: The folder of native parts that came with the server; set by the host that it starts.
folder: Optional[str] = None
#: What frames.py has of the module, once it is connected.
unframe: Optional[Callable[[bytearray, int], Union[str, bytes, None]]] = None


def connect() -> Any:
    """The connection through libhob, which has the calls of a Stream; None without it."""
    global unframe
    named = os.environ.get("HOB_NATIVE")
    if named == "off":
        return None
    for path in [named] if named else _modules():
        module = _loaded(path, is_named=bool(named))
        if module is not None and _opened(module, os.path.dirname(path)):
            connection = module.connect()
            unframe = module.unframe
            # libhob has taken it from the process, not from Python's copy.
            os.environ.pop("HOB_FD", None)
            return connection
    return None


def _modules() -> Iterator[str]:
    """Files that may be the module. Not from the working directory, whoever it belongs to."""
    if folder is not None:
        yield os.path.join(folder, "python", FILE)
    own = globals().get("__file__")
    places = [os.path.dirname(own)] if own else []
    places += [os.path.join(place, "hob") for place in sys.path if place not in ("", os.getcwd())]
    for place in places:
        path = os.path.join(place, FILE)
        if os.path.isfile(path):
            yield path


def _loaded(path: str, *, is_named: bool) -> Any:
    """The module; None when it is not there, not for this Python, or not for this package. One that
    is there and cannot be used is told of; the server's log has that once for all workers."""
    named = "HOB_NATIVE=" if is_named else ""
    try:
        loader = ExtensionFileLoader(MODULE, path)
        spec = importlib.util.spec_from_file_location(MODULE, path, loader=loader)
        if spec is None:
            return None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        if is_named or os.path.isfile(path):
            print(f"hob: {named}{path}: {error}; going on without it", file=sys.stderr)
        return None
    if getattr(module, "INTERFACE", 0) == INTERFACE:
        return module
    print(f"hob: {named}{path} is for another hob; going on without it", file=sys.stderr)
    return None


def _opened(module: Any, beside: str) -> bool:
    """Has the module open its library, from the first place that has it."""
    named = os.environ.get("HOB_LIBRARY")
    problem = ""
    near = [os.path.join(place, LIBRARY) for place in (beside, os.path.dirname(beside))]
    for path in [named] if named else [*filter(os.path.isfile, near), LIBRARY]:
        try:
            module.open(path, Disconnected, Cancelled, Malformed)
            return True
        except OSError as error:
            problem = f"{path}: {error}"
    begin = "HOB_LIBRARY=" if named else ""
    print(f"hob: {begin}{problem}; going on without it", file=sys.stderr)
    return False
