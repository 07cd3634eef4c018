//! A terminal of 80 columns and 24 lines: a program runs on it, types, stops and goes on as steps
//! say, and what was shown can be read as text.

use std::process::Command;

use super::text_of;

/// Runs a program on a terminal of 80 columns and 24 lines and does what the first argument says,
/// step by step. Prints what was shown, with `ECHO` and whether the terminal echoes where a step
/// asks for it, and the screen where one asks for a picture, then how the program ended.
const TERMINAL: &str = r#"
import codecs, fcntl, json, os, pty, re, resource, select, signal, struct, subprocess, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
pid = os.fork()
if pid == 0:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in range(3): os.dup2(slave, descriptor)
    os.close(master)
    os.execv(sys.argv[2], sys.argv[2:])
shown = b""
cells, line, column, rest = [[" "] * 80 for _ in range(24)], 0, 0, ""
decode = codecs.getincrementaldecoder("utf-8")("replace").decode
def draw(text):
    "What the programs here use of a terminal, drawn."
    global cells, line, column, rest
    for part in re.findall(r"\x1b\[[^a-zA-Z]*[a-zA-Z]?|.", rest + text, re.S):
        rest = ""
        if part[0] != "\x1b":
            if part in "\r\n": column, line = 0, line + (part == "\n")
            else:
                if line < 24 and column < 80: cells[line][column] = part
                column += 1
        elif not part[-1].isalpha(): rest = part
        elif part[-1] == "H": line, column = (int(n) - 1 for n in part[2:-1].split(";"))
        elif part[-1] == "J": cells = [[" "] * 80 for _ in range(24)]
def picture():
    return "\n".join("".join(line).rstrip() for line in cells) + "\n"
def read(wait):
    global shown
    if not select.select([master], [], [], wait)[0]: return False
    more = os.read(master, 65536)
    shown += more
    draw(decode(more))
    return True
def look(options):
    "The next change of the program's state, reading meanwhile."
    while True:
        read(0.05)
        changed, status = os.waitpid(pid, options)
        if changed:
            while read(0): pass
            return status
def give_up(*_):
    sys.stdout.write(shown.decode(errors="replace") + "\nGAVE UP\n" + picture())
    sys.stdout.flush()
    os.kill(pid, signal.SIGKILL)
    os._exit(1)
signal.signal(signal.SIGALRM, give_up)
signal.alarm(90)
for step, *given in json.loads(sys.argv[1]):
    if step == "wait":
        before = len(shown)
        while given[0].encode() not in shown[before:]: read(1)
    elif step == "see":
        while given[0] not in picture(): read(1)
    elif step == "picture":
        shown += ("\nPICTURE\n" + picture()).encode()
    elif step == "draws":
        for _ in range(given[0]):
            while not read(1): pass
    elif step == "type":
        os.write(master, given[0].encode())
    elif step == "stops":
        status = look(os.WUNTRACED | os.WNOHANG)
        shown += b"\nSTOPPED %d\n" % os.WIFSTOPPED(status)
    elif step == "signal":
        os.kill(given[0], getattr(signal, "SIG" + given[1]))
    elif step == "run":
        subprocess.run([sys.executable, given[0]], check=True)
    elif step == "go on":
        os.kill(pid, signal.SIGCONT)
    elif step == "echo":
        shown += b"\nECHO %d\n" % bool(termios.tcgetattr(slave)[3] & termios.ECHO)
status = look(os.WNOHANG)
sys.stdout.write(shown.decode(errors="replace"))
echoes = bool(termios.tcgetattr(slave)[3] & termios.ECHO)
print("\nEXIT", os.waitstatus_to_exitcode(status), "ECHO", echoes)
"#;

/// Takes the terminal, and gives it back.
pub const ENTER: &str = "\x1b[?1049h";
pub const LEAVE: &str = "\x1b[?1049l";

/// What a program shows on a terminal with these steps. `python` runs it, as some user somewhere.
pub fn on_terminal(mut python: Command, steps: &str, program: &[&str]) -> String {
    let output = python
        .args(["-c", TERMINAL, steps])
        .args(program)
        .output()
        .unwrap();
    text_of(&output)
}

/// The screen at the last step that asked for a picture, line by line.
pub fn picture(shown: &str) -> Vec<&str> {
    let (_, picture) = shown.rsplit_once("\nPICTURE\n").unwrap();
    picture.lines().take(24).collect()
}
