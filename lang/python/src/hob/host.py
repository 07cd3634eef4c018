"""What the server starts: `python3 - wsgi api:application`, and the like.

The words are `wsgi MODULE:NAME`, `asgi MODULE:NAME` and `loop FILE`. A program that cannot be
loaded says why on standard error and the process ends with 1, before it has greeted the server.
"""

from __future__ import annotations

import faulthandler
import functools
import importlib
import os
import runpy
import signal
import socket
import sys
import traceback
from types import TracebackType
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence

from . import loop
from .stream import Disconnected, Malformed, NotOurs, opened

USAGE = "usage: hob wsgi MODULE:NAME | hob asgi MODULE:NAME | hob loop FILE"


class NotLoaded(Exception):
    """The program is not there, or is not what was named."""


def main(argv: Sequence[str]) -> NoReturn:
    """Runs what the words name and ends the process. `argv` is as in sys.argv."""
    words = list(argv)
    if words and words[0] not in VERBS:
        del words[0]
    if len(words) < 2 or words[0] not in VERBS:
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    _prepare()
    try:
        VERBS[words[0]](words[1:])
    except (NotLoaded, NotOurs) as error:
        sys.exit(f"hob: {error}")
    except Disconnected:
        _end_at_once()
    except Malformed as error:
        print(f"hob: the server does not speak as agreed: {error}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)
    sys.exit(0)


def load(target: str) -> Any:
    """The object that `package.module:name.name` stands for."""
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name):
        raise NotLoaded(f"{target!r} is not MODULE:NAME")
    try:
        found: Any = importlib.import_module(module_name)
    except SystemExit as error:
        # What it says by itself comes after this.
        said = f"{module_name!r} calls sys.exit({error.code!r}) when it is imported"
        print(f"hob: {said}", file=sys.stderr)
        raise
    except Exception as error:
        traceback.print_exception(type(error), error, _of_program(error.__traceback__))
        sys.exit(1)
    for word in name.split("."):
        try:
            found = getattr(found, word)
        except AttributeError:
            raise NotLoaded(f"module {module_name!r} has no {name!r} ({target!r})") from None
    if not callable(found):
        raise NotLoaded(f"{target!r} is a {type(found).__name__}, not an application")
    return found


def _of_program(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    """A traceback from the program's first line on: how that came to be loaded explains nothing."""
    ours = (main.__code__.co_filename, importlib.__file__, runpy.__file__)
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file not in ours and not file.startswith("<frozen "):
            break
        trace = trace.tb_next
    return trace


def _wsgi(words: List[str]) -> None:
    from . import wsgi

    application = load(words[0])
    wsgi.serve(application, loop.connection())


def _asgi(words: List[str]) -> None:
    from . import asgi, lifespan

    number = os.environ.pop("HOB_FD", None)
    if number is None:
        raise NotLoaded("an ASGI application is no CGI program: HOB_FD is not set")
    # Before anything of the application's: what it starts or forks must not hold the socket.
    sock = opened(number)
    os.register_at_fork(after_in_child=sock.close)
    try:
        asgi.serve(functools.partial(load, words[0]), lambda: _accelerated(sock) or sock)
    except lifespan.StartFailed as error:
        raise NotLoaded(f"the application's start failed: {error}") from None


def _accelerated(sock: socket.socket) -> Any:
    """The native part's connection, which takes the socket over; None without a native part."""
    try:
        from . import native
    except ImportError:  # a copy that came without it has the stream alone
        return None
    os.environ["HOB_FD"] = str(sock.fileno())
    try:
        found = native.connect()
    finally:
        os.environ.pop("HOB_FD", None)
    if found is not None:
        sock.detach()
    return found


def _loop(words: List[str]) -> None:
    file = words[0]
    if not os.path.isfile(file):
        raise NotLoaded(f"no file {file!r} in {os.getcwd()!r}")
    sys.argv = words
    try:
        runpy.run_path(file, run_name="__main__")
    except (NotOurs, Disconnected, Malformed):
        raise
    except Exception as error:
        sys.excepthook(type(error), error, _of_program(error.__traceback__))
        sys.exit(1)


VERBS: Dict[str, Callable[[List[str]], None]] = {"wsgi": _wsgi, "asgi": _asgi, "loop": _loop}


def _prepare() -> None:
    """Standard input away, prints into the log line by line, stacks on SIGTERM."""
    if "HOB_FD" in os.environ:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        if nothing:
            os.close(nothing)
        sys.stdin = open(0, closefd=False)
        faulthandler.enable()
        faulthandler.register(signal.SIGTERM, all_threads=True, chain=True)
    for file in (sys.stdout, sys.stderr):
        if hasattr(file, "reconfigure"):
            file.reconfigure(line_buffering=True)
    folder = os.getcwd()
    if not sys.path or sys.path[0] not in ("", folder):
        sys.path.insert(0, folder)
    else:
        sys.path[0] = folder


def _end_at_once() -> NoReturn:
    """The server is gone: nothing that still runs has anybody to answer."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)
