//! What a terminal shows of a run, and how it is left by signals.

use std::process::Command;

use super::harness::text_of;
use super::hello;
use super::server::{Reply, Server, answer};

/// Runs a program on a terminal of 80 columns and 24 lines and does what the first argument says,
/// step by step. Prints what was shown, with `ECHO` and whether the terminal echoes where a step
/// asks for it, then how the program ended.
const TERMINAL: &str = r#"
import fcntl, json, os, pty, resource, select, signal, struct, sys, termios
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
def read(wait):
    global shown
    if not select.select([master], [], [], wait)[0]: return False
    shown += os.read(master, 65536)
    return True
def look(options):
    "The next change of the program's state, reading meanwhile."
    while True:
        read(0.05)
        changed, status = os.waitpid(pid, options)
        if changed:
            while read(0): pass
            return status
for step, *rest in json.loads(sys.argv[1]):
    if step == "wait":
        before = len(shown)
        while rest[0].encode() not in shown[before:]: read(1)
    elif step == "draws":
        for _ in range(rest[0]):
            while not read(1): pass
    elif step == "type":
        os.write(master, rest[0].encode())
    elif step == "stops":
        status = look(os.WUNTRACED | os.WNOHANG)
        shown += b"\nSTOPPED %d\n" % os.WIFSTOPPED(status)
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
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// What is shown of a run without end, with these steps.
fn shown(url: &str, steps: &str) -> String {
    let hob = env!("CARGO_BIN_EXE_hob");
    let output = Command::new("python3")
        .args(["-c", TERMINAL, steps, hob, "bench", url, "-c", "2"])
        .args(["--for", "1h", "--warm-up", "0s", "--think", "5ms"])
        .args(["--timeout", "1h"])
        .output()
        .unwrap();
    text_of(&output)
}

#[test]
fn terminal_shows_the_run_until_control_c_and_is_given_back() {
    let server = hello();
    let text = shown(
        &server.url(),
        r#"[["wait", "slowest"], ["type", "\u0003"]]"#,
    );
    let (screen, report) = text.split_once(LEAVE).unwrap_or_else(|| panic!("{text}"));
    assert!(screen.contains(ENTER), "{screen:?}");
    assert!(
        screen.contains("of 3600 s") && screen.contains("Ctrl-C"),
        "{screen:?}"
    );
    assert!(report.contains(", then interrupted\r\n"), "{report}");
    assert!(report.ends_with("\nEXIT 0 ECHO True\n"), "{report}");
}

#[test]
fn stall_is_said_on_a_screen_that_goes_on_being_drawn() {
    let server = Server::start(|number| match number {
        0..10 => Reply::Bytes(answer("200 OK", "hello\n")),
        _ => Reply::Never,
    });
    let steps = r#"[["wait", "no answer for"], ["draws", 3], ["type", "\u0003"]]"#;
    let text = shown(&server.url(), steps);
    let (screen, _) = text.split_once(LEAVE).unwrap_or_else(|| panic!("{text}"));
    assert!(screen.contains("no answer for"), "{screen:?}");
    assert!(text.ends_with("\nEXIT 0 ECHO True\n"), "{text}");
}

#[test]
fn control_z_gives_the_terminal_back_until_the_run_goes_on() {
    let server = hello();
    let steps = r#"[
        ["wait", "slowest"], ["type", "\u001a"], ["stops"], ["echo"],
        ["go on"], ["wait", "slowest"], ["echo"], ["type", "\u0003"]
    ]"#;
    let text = shown(&server.url(), steps);
    let (first, rest) = text
        .split_once("\nSTOPPED 1\n\nECHO 1\n")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(first.contains(ENTER) && first.ends_with(LEAVE), "{first:?}");
    let (again, report) = rest.split_once(LEAVE).unwrap_or_else(|| panic!("{rest}"));
    // All of it, not only what has changed.
    assert!(again.starts_with(ENTER), "{again:?}");
    assert!(again.contains("closed loop, 2 connections"), "{again:?}");
    assert!(again.contains("\nECHO 0\n"), "{again:?}");
    assert!(report.contains(", then interrupted\r\n"), "{report}");
    assert!(report.ends_with("\nEXIT 0 ECHO True\n"), "{report}");
}

#[test]
fn quit_gives_the_terminal_back_and_ends_as_it_always_does() {
    let server = hello();
    let text = shown(
        &server.url(),
        r#"[["wait", "slowest"], ["type", "\u001c"]]"#,
    );
    // By the signal itself.
    let end = format!("{LEAVE}\nEXIT -3 ECHO True\n");
    assert!(text.ends_with(&end), "{text:?}");
}
