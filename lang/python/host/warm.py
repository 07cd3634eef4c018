"""A Python that is kept, and forks for each request: it runs CGI scripts unchanged.

The server gives it this text as standard input and speaks with it over descriptor 3; what they say
to each other is drawn in `crates/server/src/handle/warm/protocol.rs`. Everything up to `serve()` is
the kept interpreter, everything from there on its child, which becomes what `python3 SCRIPT` would
be. The script runs from the bottom of this file, so that nothing of ours is between it and the top.
"""

import sys

_main = sys.modules["__main__"]
#: What `__main__` holds before a script begins.
FRESH = {name: _main.__dict__[name] for name in list(_main.__dict__) if name.startswith("__")}

import _socket
import atexit
import gc
import importlib
import importlib.machinery
import io
import os
import select
import signal
import struct
import time
import types
import warnings

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]

VERSION = 1
LINK, RUN, READY, ENDED, FAILED = 1, 2, 32, 33, 34
IN_MEMORY, STDIN_IS_FILE = 1, 2
HEAD = struct.Struct("<BBHIQ")
RUN_HEAD = struct.Struct("<BBHIQIIII")
ENDED_TAIL = struct.Struct("<IIQQQQQQQ")
PACKET_BYTES_MAX = 100 * 1024
#: Where the number of a run stands in what belongs to it: a limit that binds nobody.
RLIMIT_LOCKS = 10
#: Steps of a run that can fail.
READ_STRINGS, FORK, DESCRIPTORS, CHANGE_FOLDER, READ_SCRIPT, EXECUTE = range(6)
#: Scripts that are kept compiled, and the largest of them in bytes.
SCRIPTS_MAX = 512
SCRIPT_BYTES_MAX = 4 * 1024 * 1024
#: A file that changed so short a time ago, in nanoseconds, may change again without showing it; the
#: second is for file systems that know whole seconds only.
UNSETTLED_NS = (50_000_000, 2_000_000_000)


class Script:
    """A script as it was at one moment."""

    __slots__ = ("stamp", "code", "folder", "is_foreign", "is_cold")

    def __init__(self, file, stamp, stat):
        self.stamp = stamp
        self.code = None
        self.folder = os.path.dirname(os.path.realpath(file))
        source = b""
        if stat.st_size <= SCRIPT_BYTES_MAX:
            with open(file, "rb", buffering=0) as opened:
                source = opened.read()
        self.is_foreign = is_foreign(source[:1024], stat)
        # The interpreter reads such a file in another way than `compile` does.
        self.is_cold = b"\0" in source
        if COMPILES and source and not self.is_foreign:
            self.code = compile_quietly(source, file)


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


class Host:
    """The kept interpreter: its links, and what runs."""

    def __init__(self):
        self.first = _socket.socket(fileno=3)
        os.set_inheritable(3, False)
        self.first.setblocking(True)
        self.links = {3: self.first}
        self.poll = select.poll()
        self.poll.register(3, select.POLLIN)
        self.runs = {}
        self.buffer = bytearray(PACKET_BYTES_MAX)
        self.view = memoryview(self.buffer)
        self.room = _socket.CMSG_SPACE(4 * 4)
        self.flags = getattr(_socket, "MSG_CMSG_CLOEXEC", 0x40000000) | _socket.MSG_DONTWAIT
        self.bell, wake = os.pipe()
        for end in (self.bell, wake):
            os.set_blocking(end, False)
        self.poll.register(self.bell, select.POLLIN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def serve(self):
        """Makes children until nobody wants more; returns in each of them, with what it is to
        run."""
        while self.first is not None or self.runs:
            for fd, _ in self.poll.poll():
                if fd == self.bell:
                    self.reap()
                    continue
                run = self.receive(self.links[fd])
                if run is not None:
                    return run
        os._exit(0)

    def reap(self):
        try:
            os.read(self.bell, 512)
        except BlockingIOError:
            pass
        while self.runs:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            link, number = self.runs.pop(pid, (None, 0))
            if link is None:
                continue
            told = HEAD.pack(VERSION, ENDED, 0, 0, number) + ENDED_TAIL.pack(
                status,
                pid,
                used.ru_maxrss,
                int(used.ru_utime * 1_000_000),
                int(used.ru_stime * 1_000_000),
                used.ru_majflt,
                used.ru_minflt,
                used.ru_nvcsw,
                used.ru_nivcsw,
            )
            tell(link, told)

    def receive(self, link):
        """Takes one packet of a link; returns a run in its child only."""
        try:
            length, told, _, _ = link.recvmsg_into([self.view], self.room, self.flags)
        except BlockingIOError:
            return None
        except OSError:
            length, told = 0, []
        carried = []
        for level, kind, content in told:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                carried = list(struct.unpack("=%di" % (len(content) // 4), content[: len(content) & ~3]))
        if length == 0:
            return self.lose(link)
        kind = self.buffer[1] if length >= HEAD.size else 0
        if self.buffer[0] == VERSION and kind == LINK and link is self.first and len(carried) == 1:
            other = _socket.socket(fileno=carried[0])
            self.links[carried[0]] = other
            self.poll.register(carried[0], select.POLLIN)
            return None
        if self.buffer[0] == VERSION and kind == RUN and length >= RUN_HEAD.size:
            try:
                return self.fork(link, length, carried)
            finally:
                for fd in carried:
                    os.close(fd)
        raise SystemExit("the server makes no sense to this host")

    def lose(self, link):
        fd = link.fileno()
        self.poll.unregister(fd)
        del self.links[fd]
        if link is self.first:
            self.first = None
        link.close()
        return None

    def fork(self, link, length, carried):
        _, _, flags, _, number, arguments, variables, size, _ = RUN_HEAD.unpack_from(self.buffer)
        step = READ_STRINGS
        try:
            if flags & IN_MEMORY:
                strings = os.pread(carried[3], size, 0)
            else:
                strings = bytes(self.view[RUN_HEAD.size : length])
            if len(strings) != size or len(carried) < 3:
                raise OSError(22, "not as announced")
            file = strings[: strings.index(b"\0")]
            step = READ_SCRIPT
            script = look_up(file)
            step = FORK
            pid = os.fork()
        except OSError as error:
            tell(link, HEAD.pack(VERSION, FAILED, step, error.errno or 5, number))
            return None
        if pid:
            self.runs[pid] = (link, number)
            return None
        words = strings.split(b"\0")
        run = Run(script, file, flags)
        run.arguments = words[2 : 2 + arguments]
        run.variables = words[2 + arguments : 2 + arguments + variables]
        run.become(link, number, words[1], carried)
        # The parent closes its copies, not ours: they are closed.
        del carried[:]
        return run


def tell(link, packet):
    try:
        link.send(packet)
    except OSError:
        # It is gone, and shows that when it is read.
        pass


class Run:
    """A child on its way to being its script."""

    def __init__(self, script, file, flags):
        self.script = script
        self.file = os.fsdecode(file)
        self.flags = flags
        self.arguments = self.variables = ()

    def become(self, link, number, folder, carried):
        step = DESCRIPTORS
        try:
            if resource is not None:
                resource.setrlimit(RLIMIT_LOCKS, (number, number))
            os.setpgid(0, 0)
            for fd in (0, 1, 2):
                os.dup2(carried[fd], fd)
            step = CHANGE_FOLDER
            os.chdir(folder)
            if CPU_SECONDS and resource is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            if self.script.is_foreign or self.script.is_cold:
                step = EXECUTE
                self.execute()
        except OSError as error:
            tell(link, HEAD.pack(VERSION, FAILED, step, error.errno or 5, number))
            os._exit(127)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.closerange(3, DESCRIPTORS_MAX)

    def execute(self):
        """What is not ours runs as the kernel runs it."""
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        pairs = (item.partition(b"=") for item in self.variables)
        variables = {name: value for name, _, value in pairs}
        if self.script.is_foreign:
            os.execve(self.file, self.arguments, variables)
        os.execve(sys.executable, [sys.executable, *self.arguments], variables)

    def settle(self):
        """Makes the interpreter look as if it had just been started for the script; gives the
        script's names."""
        known = os.environ._data
        for item in self.variables:
            name, _, value = item.partition(b"=")
            if known.get(name) != value:
                os.putenv(name, value)
                known[name] = value
        arguments = [os.fsdecode(argument) for argument in self.arguments]
        sys.argv = arguments
        if hasattr(sys, "orig_argv"):
            sys.orig_argv = [sys.orig_argv[0], self.file, *arguments[1:]]
        folder = os.fsdecode(self.script.folder)
        if not getattr(sys.flags, "safe_path", False):
            if sys.path and sys.path[0] == OWN_FOLDER:
                sys.path[0] = folder
            else:
                sys.path.insert(0, folder)
        if self.flags & STDIN_IS_FILE:
            open_stdin()
        main = types.ModuleType("__main__")
        names = main.__dict__
        names.clear()
        names.update(FRESH)
        names["__file__"] = self.file
        names["__cached__"] = None
        names["__loader__"] = LOADER("__main__", self.file)
        if "__annotations__" in names:
            names["__annotations__"] = {}
        sys.modules["__main__"] = self.main = main
        seed = getattr(sys.modules.get("numpy.random"), "seed", None)
        if seed is not None:
            seed()
        return names

    def code(self):
        """The script's code. May raise as compiling does."""
        if self.script.code is not None:
            return self.script.code
        with open(self.file, "rb") as opened:
            source = opened.read()
        return compile(source, self.file, "exec", dont_inherit=True)

    def report(self, error):
        """Says what ended the script as the interpreter does; gives the exit code."""
        # Without our own frame.
        trace = error.__traceback__
        error = error.with_traceback(trace and trace.tb_next)
        while True:
            if isinstance(error, SystemExit):
                return exit_code(error.code)
            sys.last_type, sys.last_value = type(error), error
            sys.last_traceback = error.__traceback__
            try:
                sys.excepthook(type(error), error, error.__traceback__)
            except SystemExit as other:
                error = other
                continue
            except BaseException as other:
                sys.stderr.write("Error in sys.excepthook:\n")
                sys.__excepthook__(type(other), other, other.__traceback__ and other.__traceback__.tb_next)
                sys.stderr.write("\nOriginal exception was:\n")
                sys.__excepthook__(type(error), error, error.__traceback__)
            return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1

    def leave(self, code):
        """Ends as the interpreter does, except for taking itself apart."""
        threading = sys.modules.get("threading")
        if threading is not None:
            try:
                threading._shutdown()
            except BaseException as error:
                sys.excepthook(type(error), error, error.__traceback__)
        atexit._run_exitfuncs()
        flushed = flush_streams()
        if gc.isenabled():
            gc.collect()
        self.forget()
        if not (flush_streams() and flushed):
            code = 120
        if code == -signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(code & 0xFF)

    def forget(self):
        """Lets go of what the script holds, so that its files are written and its objects
        finalized."""
        own = [module for name, module in list(sys.modules.items()) if name not in OWN_MODULES]
        for module in own:
            names = getattr(module, "__dict__", None)
            if type(names) is not dict:
                continue
            for private in (True, False):
                for name in list(names):
                    is_private = name.startswith("_") and not name.startswith("__")
                    if is_private == private and name != "__builtins__":
                        names[name] = None
        gc.collect()
        for found in gc.get_objects():
            if isinstance(found, (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
                try:
                    if not found.closed:
                        found.flush()
                except BaseException:
                    pass


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
                sys.unraisablehook(Unraisable(error, stream))
    return flushed


class Unraisable:
    """What `sys.unraisablehook` is told."""

    def __init__(self, error, source):
        self.exc_type, self.exc_value = type(error), error
        self.exc_traceback = None
        self.err_msg, self.object = None, source


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


COMPILES = sys.argv[1] == "compile"
CPU_SECONDS = int(sys.argv[2])
SCRIPTS = {}
EXECUTABLE = os.path.realpath(sys.executable)
LOADER = importlib.machinery.SourceFileLoader
DESCRIPTORS_MAX = os.sysconf("SC_OPEN_MAX")
OWN_FOLDER = os.getcwd()
if sys.path and sys.path[0] == "":
    sys.path[0] = OWN_FOLDER
forget_source()
if not preload(sys.argv[3:]):
    sys.stderr.flush()
    os._exit(1)
HOST = Host()
OWN_MODULES = frozenset(sys.modules) - {"__main__"}
sys.stdout.flush()
sys.stderr.flush()
gc.collect()
gc.freeze()
tell(
    HOST.first,
    HEAD.pack(VERSION, READY, 0, 0, 0) + b"python " + sys.version.split()[0].encode(),
)

RUNNING = HOST.serve()
NAMES = RUNNING.settle()
try:
    CODE = RUNNING.code()
except BaseException as error:
    error.__traceback__ = None
    RUNNING.leave(RUNNING.report(error))
try:
    exec(CODE, NAMES)
except BaseException as error:
    RUNNING.leave(RUNNING.report(error))
RUNNING.leave(0)
