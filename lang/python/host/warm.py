"""A Python that is kept, and forks for each request: it runs CGI scripts unchanged.

The server speaks with it over descriptor 3; what they say to each other is drawn in
`crates/server/src/handle/warm/protocol.rs`. The loop over its links is that of the native part,
`_warm.c`, or where there is none that of `links.py`; `loop.py`, which the interpreter is started
with, brings the texts.

What costs here is memory: each page that a child writes to is copied first, and counting a
reference is writing; and each page there is has its entry copied. So all that can be is done before
the fork, where pages are not copied once the last child is gone, a child calls as little as it can,
and what is not needed is not loaded.
"""

import sys

_main = sys.modules["__main__"]
#: What `__main__` holds before a script begins.
FRESH = {name: _main.__dict__[name] for name in list(_main.__dict__) if name.startswith("__")}
FRESH["__doc__"] = None

import _thread
import atexit
import gc
import importlib
import importlib.machinery
import importlib.util
import io
import itertools
import os
import signal
import time
import types
import warnings

#: Scripts that are kept compiled, and the largest of them in bytes.
SCRIPTS_MAX = 512
SCRIPT_BYTES_MAX = 4 * 1024 * 1024
#: A file that changed so short a time ago, in nanoseconds, may change again without showing it; the
#: second is for file systems that know whole seconds only.
UNSETTLED_NS = (50_000_000, 2_000_000_000)


class Script:
    """A script as it was at one moment."""

    __slots__ = ("stamp", "code", "name", "folder", "loader", "runs_cold")

    def __init__(self, file, stamp, stat):
        self.stamp = stamp
        self.code = None
        self.name = os.fsdecode(file)
        self.folder = os.path.dirname(os.path.realpath(self.name))
        self.loader = importlib.machinery.SourceFileLoader("__main__", self.name)
        source = b""
        if stat.st_size <= SCRIPT_BYTES_MAX:
            with open(file, "rb", buffering=0) as opened:
                source = opened.read()
        #: What is executed instead, and what stands before the script's name in its arguments.
        self.runs_cold = None
        if is_foreign(source[:1024], stat):
            self.runs_cold = (file, [])
        elif b"\0" in source:
            # The interpreter reads such a file in another way than `compile` does.
            self.runs_cold = (sys.executable, [sys.executable])
        elif COMPILES and source:
            self.code = compile_quietly(source, self.name)


def is_foreign(begin, stat):
    """Whether the kernel would start something else for this file."""
    if not stat.st_mode & 0o111:
        return False
    if begin.startswith(b"\x7fELF"):
        return True
    if not begin.startswith(b"#!"):
        return False
    words = os.fsdecode(begin[2:].split(b"\n", 1)[0]).split()
    if words and os.path.basename(words[0]) == "env":
        del words[0]
        words[:1] = [which(words[0])] if words else []
    # What follows the interpreter's name changes how it starts, which has been.
    if len(words) != 1:
        return True
    return os.path.realpath(words[0]) != EXECUTABLE


def which(name):
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    return name


def compile_quietly(source, file):
    """The code of a script; none of one that has something to say to each request: an error, or a
    warning."""
    try:
        with warnings.catch_warnings(record=True) as said:
            code = compile(source, file, "exec", dont_inherit=True)
        return None if said else code
    except Exception:
        return None


def look_up(file):
    """The script of this name, read again when its file is another."""
    stat = os.stat(file)
    stamp = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino, stat.st_dev)
    known = SCRIPTS.get(file)
    if known is not None and known.stamp == stamp:
        return known
    script = Script(file, stamp, stat)
    settled = stat.st_ctime_ns + UNSETTLED_NS[stat.st_ctime_ns % 1_000_000_000 == 0]
    if time.time_ns() < settled:
        script.code = None
        SCRIPTS.pop(file, None)
        return script
    if len(SCRIPTS) >= SCRIPTS_MAX:
        del SCRIPTS[next(iter(SCRIPTS))]
    SCRIPTS[file] = script
    return script


def execute(script, arguments, variables):
    """What does not run here runs as the kernel runs it."""
    # Others expect these as they were.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    pairs = (item.partition(b"=") for item in variables)
    file, begin = script.runs_cold
    os.execve(file, [*begin, *arguments], {name: value for name, _, value in pairs})


def settle(script, arguments, variables):
    """Makes the interpreter look as if it had just been started for the script."""
    VARIABLES.settle(variables)
    sys.argv = arguments = [str(argument, FILE_CODING, FILE_ERRORS) for argument in arguments]
    if ORIGINAL_NAME is not None:
        sys.orig_argv = [ORIGINAL_NAME, *arguments]
    if HAS_OWN_FOLDER:
        sys.path[OWN_PLACE] = script.folder
    NAMES["__file__"] = script.name
    NAMES["__loader__"] = script.loader


def no_change(*_):
    """C's environment is not to be changed."""


class Variables:
    """The environment. Most variables are as they were for the request before, and are not touched:
    an array of all of them for C, which `ctypes` could make, costs more than the few that change."""

    def __init__(self):
        self.last = set()

    def settle(self, variables):
        last = self.last
        new = [item for item in variables if item not in last]
        if not new and len(variables) == len(last):
            return
        known = os.environ._data
        for item in last.difference(variables):
            last.remove(item)
            name = item.partition(b"=")[0]
            unsetenv(name)
            known.pop(name, None)
        for item in new:
            last.add(item)
            name, _, value = item.partition(b"=")
            putenv(name, value)
            known[name] = value
        for name, value in OWN_VARIABLES.items():
            if name not in known:
                putenv(name, value)
                known[name] = value


def code_of(script):
    """The script's code. May raise as compiling does."""
    if script.code is not None:
        return script.code
    with open(script.name, "rb") as opened:
        source = opened.read()
    return compile(source, script.name, "exec", dont_inherit=True)


def report(error):
    """Says what ended the script as the interpreter does; gives the exit code."""
    while True:
        if isinstance(error, SystemExit):
            return exit_code(error.code)
        sys.last_type, sys.last_value = type(error), error
        sys.last_exc, sys.last_traceback = error, error.__traceback__
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except SystemExit as other:
            error = other
            continue
        except BaseException as other:
            sys.stderr.write("Error in sys.excepthook:\n")
            trace = other.__traceback__
            sys.__excepthook__(type(other), other, trace and trace.tb_next)
            sys.stderr.write("\nOriginal exception was:\n")
            sys.__excepthook__(type(error), error, error.__traceback__)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def leave(code):
    """Ends as the interpreter does, except for taking itself apart."""
    threading = sys.modules.get("threading")
    if threading is not None and (_thread._count() or has_thread_exits(threading)):
        try:
            threading._shutdown()
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
    atexit._run_exitfuncs()
    if not finish():
        code = 120
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code & 0xFF)


def finish():
    """The last that is seen of a script. False when its output could not be written."""
    flushed = flush_streams()
    forget()
    return flush_streams() and flushed


def has_thread_exits(threading):
    """Whether someone wants to be told before threads are waited for; taken for so where that
    cannot be seen."""
    return bool(getattr(threading, "_threading_atexits", True))


def forget():
    """Lets go of what the script holds, so that its files are written and its objects finalized.
    What was there before the script is not looked at: that would copy its memory."""
    # Nothing is there to be collected but what can be in a circle, which is counted. What is not
    # seen by that is not finalized at the end, as the language has it.
    collects = gc.isenabled() and gc.get_count() != COUNT
    if collects:
        collect()
    restore_streams()
    new = len(sys.modules) - MODULE_COUNT
    if new > 0:
        # The last ones, because a dictionary keeps its order.
        for module in list(itertools.islice(reversed(sys.modules.values()), new)):
            clear(names_of(module))
    clear(NAMES)
    if collects:
        collect()
    flush_files()


def names_of(module):
    """What a module holds. One that loads itself when it is first used stays as it is: another
    look at it would load it, from modules that are cleared already."""
    try:
        return object.__getattribute__(module, "__dict__")
    except AttributeError:
        return None


def flush_files():
    """Files that nothing has closed: some module that was here before has them."""
    if len(os.listdir("/proc/self/fd")) <= DESCRIPTOR_COUNT:
        return
    for found in gc.get_objects():
        if isinstance(found, (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            try:
                if not found.closed:
                    found.flush()
            except BaseException:
                pass


def collect():
    """Collects what the script has made: the youngest, unless some of it has become older."""
    _, young, old = gc.get_count()
    gc.collect(0 if young == 0 and old == 0 else 2)


def clear(names):
    """Names of a module, those that are private first."""
    if type(names) is not dict:
        return
    for name in list(names):
        if name.startswith("_") and not name.startswith("__"):
            names[name] = None
    for name in list(names):
        if name != "__builtins__":
            names[name] = None


def exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write("%s\n" % (code,))
    return 1


def flush_streams():
    """False when standard output could not be written."""
    flushed = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException as error:
            if stream is sys.stdout:
                flushed = False
                unflushed(error, stream)
    return flushed


def unflushed(error, stream):
    """Says that standard output cannot be written, as the interpreter does."""
    error.__traceback__ = None
    if sys.unraisablehook is not sys.__unraisablehook__:
        sys.unraisablehook(Unraisable(error, stream))
        return
    # The interpreter's own takes nothing that is made in Python.
    sys.stderr.write("Exception ignored in: %r\n" % (stream,))
    sys.__excepthook__(type(error), error, None)


class Unraisable:
    """What `sys.unraisablehook` is told."""

    def __init__(self, error, source):
        self.exc_type, self.exc_value = type(error), error
        self.exc_traceback = None
        self.err_msg, self.object = None, source


def flush_first():
    """As the interpreter does when a script has ended, before anything else. What is wrong shows
    later."""
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except BaseException:
            pass


def restore_streams():
    """The streams that the script has put in place of the interpreter's go."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, "__%s__" % name)
        if getattr(sys, name, None) is not stream:
            setattr(sys, name, stream)


def open_stdin():
    """Standard input as the interpreter opens it."""
    old = sys.__stdin__
    binary = open(0, "rb", closefd=False)
    binary.raw.name = "<stdin>"
    text = io.TextIOWrapper(binary, encoding=old.encoding, errors=old.errors, newline="\n")
    text.mode = "r"
    sys.stdin = sys.__stdin__ = text


def forget_source():
    """This text is read: standard input is a pipe from now on, as a request's is."""
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)
    os.close(writing)
    open_stdin()


def preload(names):
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            sys.stderr.write("warm.preload: the module %r cannot be loaded\n" % name)
            return False
        threads = os.listdir("/proc/self/task")
        if len(threads) > 1:
            text = "warm.preload: the module %r starts threads (%d), which no fork would have\n"
            sys.stderr.write(text % (name, len(threads) - 1))
            return False
    return True


class Offered:
    """Finds the modules that scripts may want and this interpreter no longer has."""

    def __init__(self, texts):
        self.codes = {
            name: compile(text, "<%s, offered by hob>" % name, "exec", dont_inherit=True)
            for name, text in texts.items()
        }

    def find_spec(self, name, path=None, target=None):
        if name not in self.codes:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.codes[module.__name__], module.__dict__)


def offer(texts):
    missing = {name: text for name, text in texts.items() if find_module(name) is None}
    if missing:
        sys.meta_path.append(Offered(missing))


def find_module(name):
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def own_descriptors():
    """Ranges that are this host's: all but those that modules have opened while they were loaded."""
    kept = sorted(fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 3 and is_open(fd))
    ranges, begin = [], 3
    for fd in kept:
        if begin < fd:
            ranges.append((begin, fd))
        begin = fd + 1
    return (*ranges, (begin, os.sysconf("SC_OPEN_MAX"))), len(kept)


def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def given_variables():
    """Names of the variables that this process was started with: every request has them."""
    with open("/proc/self/environ", "rb") as opened:
        return frozenset(item.partition(b"=")[0] for item in opened.read().split(b"\0") if item)


def rehearse():
    """Runs what each child runs at its end until it is as fast as it gets: while an interpreter
    learns that, it writes into the code, and a child would have to copy it."""
    kept = dict(NAMES)
    for _ in range(64):
        finish()
        NAMES.update(kept, _name=1)
    del NAMES["_name"]


def native_part():
    """The loop in C, if it is there and can be loaded."""
    path = globals().get("NATIVE_FILE")
    if path is None or os.environ.get("HOB_NATIVE") == "off" or not os.path.isfile(path):
        return None
    try:
        loader = importlib.machinery.ExtensionFileLoader("_warm", path)
        spec = importlib.machinery.ModuleSpec("_warm", loader, origin=path)
        module = loader.create_module(spec)
        loader.exec_module(module)
    except (ImportError, OSError) as error:
        print(f"hob: {path}: {error}; going on without it", file=sys.stderr)
        return None
    if getattr(module, "INTERFACE", 0) == INTERFACE:
        return module
    print(f"hob: {path} is for another hob; going on without it", file=sys.stderr)
    return None


def find(file):
    """For the native part: a script, and whether it is to be kept until its file is another."""
    script = look_up(file)
    gc.freeze()
    return script, SCRIPTS.get(file) is script


def settle_for_native(script, arguments, variables):
    """For the native part, in the host or in a child."""
    settle(script, arguments, variables)
    gc.freeze()


def prepare(has_file):
    """For the native part, in a child: what a script may expect besides."""
    if has_file:
        open_stdin()
    seed()


def seed():
    """Random numbers that the interpreter does not seed by itself after a fork."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def fail(error):
    """For the native part: ends with what the script has raised."""
    leave(report(error))


def note_initialized():
    """Says of modules that they are loaded, as importing says of all but the interpreter's own: the
    import of one that does not say it raises an exception, and catches it."""
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        if isinstance(spec, importlib.machinery.ModuleSpec) and not hasattr(spec, "_initializing"):
            spec._initializing = False


def bind_write():
    """Has the system call found that a child writes with, which would else find it each time."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.write(null, b"\n")
    os.close(null)


def given_to_native():
    """What the native part is to know."""
    given = {
        "find": find,
        "settle": settle_for_native,
        "prepare": prepare,
        "code_of": code_of,
        "execute": execute,
        "fail": fail,
        "leave": leave,
        "unflushed": unflushed,
        "flush_files": flush_files,
        "names": NAMES,
        "modules": sys.modules,
        "system": sys.__dict__,
        "variables": os.environ._data,
        "own_variables": tuple(b"%b=%b" % item for item in OWN_VARIABLES.items()),
        "ranges": OWN_DESCRIPTORS,
        "is_collecting": gc.isenabled,
        "collect": gc.collect,
        "count": gc.get_count,
        "exit_count": atexit._ncallbacks,
        "exit_run": atexit._run_exitfuncs,
        "thread_count": _thread._count,
    }
    prepares = "numpy.random" in sys.modules
    what = "python " + sys.version.split()[0]
    gc.freeze()
    return given, CPU_SECONDS, MODULE_COUNT, DESCRIPTOR_COUNT - 1, prepares, what


#: What this text and the native part must agree on.
INTERFACE = 1
COMPILES = sys.argv[1] == "compile"
GIVEN_VARIABLES = given_variables()
FILE_CODING, FILE_ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
CPU_SECONDS = int(sys.argv[2])
SCRIPTS = {}
EXECUTABLE = os.path.realpath(sys.executable)
ORIGINAL_NAME = sys.orig_argv[0] if hasattr(sys, "orig_argv") else None
HAS_OWN_FOLDER = not getattr(sys.flags, "safe_path", False)
OWN_FOLDER = os.getcwd()
if sys.path and sys.path[0] == "":
    sys.path[0] = OWN_FOLDER
forget_source()
if not preload(sys.argv[3:]):
    sys.stderr.flush()
    os._exit(1)
offer(globals().get("OFFERED", {}))
NATIVE = native_part()
if NATIVE is None:
    exec(compile_elsewhere(LINKS))
OWN_DESCRIPTORS, KEPT_COUNT = own_descriptors()
#: With standard input, output and error, and the one that a listing is read from.
DESCRIPTOR_COUNT = KEPT_COUNT + 4
#: What the interpreter or a module has set by itself, and no request does.
OWN_VARIABLES = {
    name: os.environ._data[name] for name in os.environ._data if name not in GIVEN_VARIABLES
}
VARIABLES = Variables()
#: With the native part a child has an environment of its own in C.
putenv, unsetenv = (os.putenv, os.unsetenv) if NATIVE is None else (no_change, no_change)
#: Where the script's folder belongs: in the place of ours, unless a module has moved it away.
if HAS_OWN_FOLDER and OWN_FOLDER not in sys.path:
    sys.path.insert(0, OWN_FOLDER)
OWN_PLACE = sys.path.index(OWN_FOLDER) if HAS_OWN_FOLDER else 0
MAIN = types.ModuleType("__main__")
NAMES = MAIN.__dict__
NAMES.clear()
NAMES.update(FRESH)
NAMES["__file__"] = NAMES["__cached__"] = None
if "__annotations__" in NAMES:
    NAMES["__annotations__"] = {}
sys.modules["__main__"] = MAIN
MODULE_COUNT = len(sys.modules)
#: Of containers when a child began.
COUNT = None
sys.stdout.flush()
sys.stderr.flush()
note_initialized()
bind_write()
if NATIVE is None:
    rehearse()
gc.collect()
