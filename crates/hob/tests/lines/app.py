"""Speaks lines by itself; what follows the program in the path says what to do."""

import fcntl
import hashlib
import os
import signal
import struct
import termios
import time

END = os.environb[b"CGIPLUSEOF"]
ESCAPE = os.environb[b"CGIPLUSESC"]
OVER = os.environb[b"CGIPLUSEOT"]
REQUESTS = open(os.environ["CGIPLUSIN"], "rb")
HEAD = b"Content-Type: text/plain\n\n"


def say(*pieces):
    """Writes all at once, as far as a pipe takes it."""
    rest = memoryview(b"".join(pieces))
    while rest:
        rest = rest[os.write(1, rest) :]


def say_apart(*pieces):
    """Writes each piece once the one before it was read."""
    for piece in pieces:
        say(piece)
        unread = struct.pack("i", 1)
        while struct.unpack("i", unread)[0]:
            unread = fcntl.ioctl(1, termios.FIONREAD, struct.pack("i", 0))


def next_request():
    for line in REQUESTS:
        if line == b"!\n":
            entries = [entry[:-1] for entry in iter(REQUESTS.readline, b"\n")]
            return dict(entry.split(b"=", 1) for entry in entries)
        if line.startswith(b"!!"):
            block = REQUESTS.read(int(line[2:]))
            return dict(struct_entries(block))
    return None


def struct_entries(block):
    at = 0
    while True:
        (length,) = struct.unpack_from("<H", block, at)
        at += 2
        if length == 0:
            assert at == len(block)
            return
        assert block[at + length - 1] == 0
        yield block[at : at + length - 1].split(b"=", 1)
        at += length


def body(environ, most=1 << 16):
    left = int(environ.get(b"CONTENT_LENGTH", 0))
    while left:
        piece = os.read(0, min(left, most))
        if not piece:
            return
        left -= len(piece)
        yield piece


def mark(name):
    with open(name, "w"):
        pass


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


def own_pid():
    return str(os.getpid()).encode()


def tell(environ, rest):
    names = rest.split(b",")
    say(HEAD, b"\n".join(name + b"=" + environ.get(name, b"-") for name in names))


def pid(environ, rest):
    say(HEAD, own_pid())


def echo(environ, rest):
    say(b"Content-Type: application/octet-stream\n\n")
    for piece in body(environ):
        say(piece)


def digest(environ, rest):
    pieces = list(body(environ))
    whole = b"".join(pieces)
    say(HEAD, b"%d %s" % (len(whole), hashlib.sha256(whole).hexdigest().encode()))


def give(environ, rest):
    """So many bytes."""
    say(HEAD, bytes(index % 251 for index in range(int(rest))))


def cut(environ, rest):
    """An answer whose bytes are read in two parts."""
    answer = HEAD + b"the body$" + END + b"\n"
    at = int(rest)
    say_apart(answer[:at], answer[at:])
    return True


def drip(environ, rest):
    """An answer byte by byte, with what looks like its end."""
    answer = HEAD + END[:-1] + b"$" + END[:9] + b"." + END + b"\n"
    say_apart(*(answer[at : at + 1] for at in range(len(answer))))
    return True


def without_newline(environ, rest):
    say(HEAD, own_pid(), END)
    return True


def late_newline(environ, rest):
    say_apart(HEAD + own_pid() + END, b"\n")
    return True


def blank_after(environ, rest):
    say(HEAD, own_pid(), END, b"\n\r\n \n")
    return True


def stray(environ, rest):
    say(HEAD, own_pid(), END, b"\nand more\n")
    return True


def stray_later(environ, rest):
    """Once the answer's end was read, it may take a while."""
    say_apart(HEAD + own_pid() + END + b"\n")
    wait_for(rest.decode() + ".go")
    say(b"and more\n")
    return True


def raw(environ, rest):
    say(RAW[rest])


def call_out(environ, rest):
    say(ESCAPE, b"\n", rest.replace(b"_", b" "), b"\n", OVER, b"\n")
    say(HEAD, b"" if rest.startswith(b"!") else REQUESTS.readline())


def call_out_midway(environ, rest):
    say(HEAD, b"before ", ESCAPE, b"MAP-PATH: /x", OVER)
    say(REQUESTS.readline().rstrip(), b" after")


def struct_from_now_on(environ, rest):
    say(ESCAPE, b"\n!CGIPLUS: struct\n", OVER, b"\n", HEAD, b"asked")


def no_head_but_body(environ, rest):
    say(b"just some text\n\n")
    for _ in body(environ):
        pass
    mark(rest.decode() + ".over")


def leave_half(environ, rest):
    """Reads half of the body."""
    half = int(environ[b"CONTENT_LENGTH"]) // 2
    while half:
        half -= len(os.read(0, half))
    say(HEAD, own_pid())


def hold(environ, rest):
    """Says that it has begun, and answers with its process once it may."""
    mark(rest.decode() + ".begun")
    wait_for(rest.decode() + ".go")
    say(HEAD, own_pid())


def wait_for_body(environ, rest):
    """Reads the body to its end, whichever that is."""
    mark(rest.decode() + ".begun")
    for _ in body(environ):
        pass
    mark(rest.decode() + ".over")
    say(HEAD, own_pid())


def endless(environ, rest):
    say(HEAD)
    while True:
        say(b"x" * 65536)


def kill(environ, rest):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_midway(environ, rest):
    say(HEAD, b"the first half\n")
    wait_for(rest.decode() + ".go")
    os.kill(os.getpid(), signal.SIGKILL)


def leave_midway(environ, rest):
    say(HEAD, b"the first half\n")
    raise SystemExit(0)


def answer_and_leave(environ, rest):
    say(HEAD, own_pid(), END, b"\n")
    raise SystemExit(0)


def close_output(environ, rest):
    os.close(1)
    time.sleep(3600)


def sleeper(environ, rest):
    mark(rest.decode() + ".begun")
    while True:
        time.sleep(3600)


def fall_silent(environ, rest):
    say(HEAD, b"the first half\n")
    while True:
        time.sleep(3600)


RAW = {
    b"status": b"Status: 418 Teapot\nContent-Type: text/plain\nX-Tea: green\n\ntea",
    b"nph": b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\nnot here",
    b"interim": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nat last",
    b"inside": b"Location: /hello.txt\n\n",
    b"away": b"Location: http://localhost/else\n\n",
    b"no-body": b"Status: 204\nX-Tea: green\n\n",
    b"announced": b"Content-Type: text/plain\nContent-Length: 3\n\ntea",
    b"short": b"Content-Type: text/plain\nContent-Length: 9\n\ntea",
    b"no-head": b"just some text\nand more\n",
    b"no-field": b"just some text\n\nand more\n",
    b"nothing": b"",
    b"long-head": b"X-Long: " + b"x" * 70000 + b"\n\n",
}
ACTIONS = {
    action.__name__.encode(): action
    for action in (
        tell,
        pid,
        echo,
        digest,
        give,
        cut,
        drip,
        without_newline,
        late_newline,
        blank_after,
        stray,
        stray_later,
        raw,
        call_out,
        call_out_midway,
        struct_from_now_on,
        no_head_but_body,
        leave_half,
        hold,
        wait_for_body,
        endless,
        kill,
        kill_midway,
        leave_midway,
        answer_and_leave,
        close_output,
        sleeper,
        fall_silent,
    )
}

while (request := next_request()) is not None:
    what, _, argument = request[b"PATH_INFO"].lstrip(b"/").partition(b"/")
    if not ACTIONS[what](request, argument):
        say(END, b"\n")
mark("input-has-ended")
