"""A program in a cpuacct control group of its own on CPU 0, for tables that compare CPU time.

The load stands on CPU 1. Needs root and version 1 of control groups.
"""
import os, pathlib, signal, socket, subprocess, time

GROUPS = pathlib.Path("/sys/fs/cgroup/cpuacct")


class Grouped:
    """A running program: `name` is unique within one table."""

    def __init__(self, name, command, port, out=subprocess.DEVNULL):
        self.name, self.port = name, port
        self.group = GROUPS / f"hob-bench-{os.getpid()}-{name}"
        self.group.mkdir()
        self.process = subprocess.Popen(command, preexec_fn=self.enter, stdout=out, stderr=out)

    def enter(self):
        (self.group / "tasks").write_text(str(os.getpid()))
        os.sched_setaffinity(0, {0})

    def cpu_us(self):
        """Microseconds of CPU time of all its processes, those that are gone included."""
        return int((self.group / "cpuacct.usage").read_text()) / 1e3

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        # What it started may take a moment longer.
        for _ in range(100):
            try:
                return self.group.rmdir()
            except OSError:
                time.sleep(0.05)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
