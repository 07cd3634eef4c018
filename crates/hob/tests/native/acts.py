"""What the tests' Python programs have in common."""

import os
import signal
import time

PATTERN = bytes(range(251)) * 300


def pattern(size):
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def mark(name):
    with open(name, "w"):
        pass


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


def die():
    os.kill(os.getpid(), signal.SIGKILL)
