"""The loop of a kept Python without its native part: links, and forks for what comes over them.

Runs in the names of `warm.py`, as a part of it. The native part, `_warm.c`, does the same.
"""

# What is not defined here is in `warm.py`.
# ruff: noqa: F821

import _socket
import errno
import select
import struct

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


def tell(link, packet):
    try:
        link.send(packet)
    except OSError:
        # It is gone, and shows that when it is read.
        pass


class Host:
    """The kept interpreter: its links, and what runs."""

    def __init__(self):
        self.first = _socket.socket(fileno=3)
        os.set_inheritable(3, False)
        self.first.setblocking(True)
        self.links = {3: self.first}
        self.poll = select.poll()
        self.poll.register(3, select.POLLIN)
        #: By the descriptor that tells of its end: process, link, number.
        self.runs = {}
        #: Orphans come to the first process of a namespace, and only it can reap them.
        self.is_first = os.getpid() == 1
        #: Where it is, and whether what it makes next reads a file.
        self.folder = None
        self.has_file = False
        self.buffer = bytearray(PACKET_BYTES_MAX)
        self.view = memoryview(self.buffer)
        self.room = _socket.CMSG_SPACE(5 * 4)
        self.flags = getattr(_socket, "MSG_CMSG_CLOEXEC", 0x40000000) | _socket.MSG_DONTWAIT

    def next_run(self):
        """Waits for something to run, and does all else meanwhile."""
        while self.first is not None or self.runs:
            for fd, _ in self.poll.poll():
                if fd in self.runs:
                    self.reap(fd)
                    continue
                if fd not in self.links:
                    # It was reaped with another.
                    continue
                run = self.receive(self.links[fd])
                if run is not None:
                    # What else is ready is so at the next look too.
                    return run
        os._exit(0)

    def note_started(self, process, run):
        watch = os.pidfd_open(process)
        self.runs[watch] = (process, run[0], run[1])
        self.poll.register(watch, select.POLLIN)
        for fd in run[2]:
            os.close(fd)

    def note_failed(self, run, step, error):
        tell(run[0], HEAD.pack(VERSION, FAILED, step, error.errno or errno.EIO, run[1]))
        for fd in run[2]:
            os.close(fd)

    def reap(self, fd):
        self.note_ended(fd, *os.wait4(self.runs[fd][0], 0))
        while self.is_first:
            try:
                process, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            for fd in [fd for fd, run in self.runs.items() if run[0] == process]:
                self.note_ended(fd, process, status, used)

    def note_ended(self, fd, process, status, used):
        _, link, number = self.runs.pop(fd)
        self.poll.unregister(fd)
        os.close(fd)
        told = HEAD.pack(VERSION, ENDED, 0, 0, number) + ENDED_TAIL.pack(
            status,
            process,
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
        """Takes one packet of a link; returns what it wants run."""
        try:
            length, told, _, _ = link.recvmsg_into([self.view], self.room, self.flags)
        except BlockingIOError:
            return None
        except OSError:
            length, told = 0, []
        carried = ()
        for level, kind, content in told:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                carried = struct.unpack("=%di" % (len(content) // 4), content[: len(content) & ~3])
        if length == 0:
            return self.lose(link)
        kind = self.buffer[1] if length >= HEAD.size and self.buffer[0] == VERSION else 0
        if kind == RUN and length >= RUN_HEAD.size:
            return self.take(link, length, carried)
        if kind == LINK and link is self.first and len(carried) == 1:
            self.links[carried[0]] = _socket.socket(fileno=carried[0])
            self.poll.register(carried[0], select.POLLIN)
            return None
        sys.exit("the server makes no sense to this host")

    def lose(self, link):
        fd = link.fileno()
        self.poll.unregister(fd)
        del self.links[fd]
        if link is self.first:
            self.first = None
        link.close()
        return None

    def take(self, link, length, carried):
        _, _, flags, _, number, arguments, variables, size, _ = RUN_HEAD.unpack_from(self.buffer)
        step = READ_STRINGS
        try:
            if flags & IN_MEMORY:
                strings = os.pread(carried[3], size, 0)
            else:
                strings = bytes(self.view[RUN_HEAD.size : length])
            words = strings.split(b"\0")
            if len(strings) != size or len(words) != 3 + arguments + variables or len(carried) < 3:
                raise OSError(errno.EINVAL, "not as announced")
            step = CHANGE_FOLDER
            if words[1] != self.folder:
                os.chdir(words[1])
                self.folder = words[1]
            step = READ_SCRIPT
            script = look_up(words[0])
        except OSError as error:
            self.note_failed((link, number, carried), step, error)
            return None
        last = 2 + arguments
        del words[-1]
        variables = words[last:]
        settle(script, words[2:last], variables)
        self.has_file = flags & STDIN_IS_FILE
        return (link, number, carried, script, words[2:last], variables)


def become(link, number, carried, script, arguments, variables):
    """Makes a child what the kernel is to see."""
    step = DESCRIPTORS
    try:
        setrlimit(RLIMIT_LOCKS, (number, number))
        setpgid(0, 0)
        dup2(carried[0], 0)
        dup2(carried[1], 1)
        dup2(carried[2], 2)
        if CPU_SECONDS:
            setrlimit(RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        if script.runs_cold is not None:
            step = EXECUTE
            execute(script, arguments, variables)
    except OSError as error:
        tell(link, HEAD.pack(VERSION, FAILED, step, error.errno or errno.EIO, number))
        os._exit(127)
    for first, end in OWN_DESCRIPTORS:
        closerange(first, end)


def no_limit(*_):
    """There is no `resource` module: runs cannot be told apart by limits then."""


setrlimit = getattr(resource, "setrlimit", no_limit)
RLIMIT_CPU = getattr(resource, "RLIMIT_CPU", 0)
setpgid, dup2, closerange = os.setpgid, os.dup2, os.closerange
HOST = Host()
