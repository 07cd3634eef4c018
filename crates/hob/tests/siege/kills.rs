//! Programs and the spawner get SIGKILL again and again while clients ask.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::Hob;
use crate::harness::client::Connection;
use crate::pool::until;
use crate::site::Programs;
use crate::watch::{OnDrop, Rest, family, long, take_turn};

/// Programs that are killed before the end, at least.
const PROGRAM_KILLS: usize = 40;
/// One spawner is killed after so many programs.
const KILLS_PER_SPAWNER: usize = 6;

const HELLO: &str = "printf 'Content-Type: text/plain\\n\\nhello\\n'\n";
/// Two hundred writes, so that a kill finds it between two of them.
const LONG: &str = "printf 'Content-Type: text/plain\\n\\n'\ncount=0\n\
                    while [ $count -lt 200 ]; do printf '%01000d' $count; count=$((count + 1)); done\n";
/// Only a signal ends these two: one after a piece of its answer, one before.
const BEGUN: &str =
    "printf 'Content-Type: text/plain\\n\\nbegun\\n'\nread line < \"$GATE\"\necho end\n";
const SILENT: &str = "read line < \"$GATE\"\nprintf 'Content-Type: text/plain\\n\\nend\\n'\n";

/// What a client asks for, and the only body that is right; none where no answer can be whole.
pub(crate) struct Asked {
    pub(crate) path: &'static str,
    pub(crate) whole: Option<String>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Whole,
    /// The answer says that the program failed, or to come again.
    Told(u16),
    /// A reset, or an end before the end of its framing.
    CutOff,
}

#[test]
fn killed_programs_and_spawners_never_make_a_wrong_whole_answer() {
    let _turn = take_turn();
    let programs = programs();
    let hob = programs.hob();
    let asked = asked();
    for one in asked.iter().filter(|one| one.whole.is_some()) {
        assert_eq!(outcome(hob.port(), one).unwrap(), Outcome::Whole);
    }
    let rest = Rest::of(&programs);
    let is_over = AtomicBool::new(false);
    let outcomes = std::thread::scope(|scope| {
        let clients: Vec<_> = [0, 0, 1, 1, 2, 3]
            .map(|which| {
                let (one, is_over) = (&asked[which], &is_over);
                scope.spawn(move || ask_until(is_over, hob.port(), one))
            })
            .into();
        let over = OnDrop(&is_over);
        let killed = kill_again_and_again(hob);
        drop(over);
        // Two of them wait for programs that only a signal ends.
        until("the clients have their last answers", || {
            for pid in programs_of(hob) {
                let _ = kill(pid);
            }
            clients.iter().all(|client| client.is_finished())
        });
        let mut outcomes = BTreeMap::new();
        for (path, outcome) in clients.into_iter().flat_map(|one| one.join().unwrap()) {
            *outcomes.entry((path, outcome)).or_insert(0) += 1;
        }
        println!("killed (programs, spawners): {killed:?}; answers: {outcomes:?}");
        outcomes
    });
    assert!(
        outcomes.contains_key(&("/cgi/hello.cgi", Outcome::Whole)),
        "{outcomes:?}"
    );
    assert!(
        outcomes.contains_key(&("/cgi/silent.cgi", Outcome::Told(502))),
        "{outcomes:?}"
    );
    rest.wait_for(hob);
    for one in asked.iter().filter(|one| one.whole.is_some()) {
        assert_eq!(outcome(hob.port(), one).unwrap(), Outcome::Whole);
    }
    programs.stop();
}

fn programs() -> Programs {
    let programs = Programs::new()
        .with_sh("hello.cgi", HELLO)
        .with_sh("long.cgi", LONG)
        .with_sh("begun.cgi", BEGUN)
        .with_sh("silent.cgi", SILENT);
    let gate = programs.place.path("run/gate");
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, mode).unwrap();
    programs.serve(&format!("env = {{ GATE = \"{}\" }}", gate.display()))
}

fn asked() -> [Asked; 4] {
    let long = (0..200).map(|count| format!("{count:01000}")).collect();
    let ask = |path, whole| Asked { path, whole };
    [
        ask("/cgi/hello.cgi", Some("hello\n".into())),
        ask("/cgi/long.cgi", Some(long)),
        ask("/cgi/begun.cgi", None),
        ask("/cgi/silent.cgi", None),
    ]
}

/// Kills programs one by one, and a spawner now and then. How many of each.
fn kill_again_and_again(hob: &Hob) -> (usize, usize) {
    let (began, lasts) = (Instant::now(), long().unwrap_or_default());
    let (mut killed, mut spawners) = (0, 0);
    while killed < PROGRAM_KILLS || began.elapsed() < lasts {
        until("there is a program to kill", || {
            let pids = programs_of(hob);
            // Another place in the list each time, so that none of the four is spared.
            !pids.is_empty() && kill(pids[killed % pids.len()]).is_ok()
        });
        killed += 1;
        if killed % KILLS_PER_SPAWNER == 0 {
            let line = hob.wait_for_count("spawner started", spawners + 1);
            let pid = line.rsplit_once("pid=").unwrap().1;
            kill(pid.trim().parse().unwrap()).unwrap();
            spawners += 1;
            hob.wait_for_count("spawner started", spawners + 1);
        }
    }
    (killed, spawners)
}

/// What the spawner runs at this moment, what has not become a program yet included.
pub(crate) fn programs_of(hob: &Hob) -> Vec<u32> {
    let spawners = hob.spawners();
    let is_program = |pid: u32, parent: u32| spawners.contains(&parent) && !spawners.contains(&pid);
    let found = family(hob).into_iter();
    let found = found.filter(|one| !one.is_zombie && is_program(one.pid, one.parent));
    found.map(|one| one.pid).collect()
}

/// Whoever it is may be gone already.
pub(crate) fn kill(pid: u32) -> rustix::io::Result<()> {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL)
}

pub(crate) fn ask_until(
    is_over: &AtomicBool,
    port: u16,
    asked: &Asked,
) -> Vec<(&'static str, Outcome)> {
    let mut outcomes = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        outcomes.push((asked.path, outcome(port, asked).unwrap()));
    }
    outcomes
}

/// Asks once. Whatever comes must be a right answer, or plainly none: all else fails the test.
pub(crate) fn outcome(port: u16, asked: &Asked) -> io::Result<Outcome> {
    let mut connection = Connection::open(port)?;
    connection.send_get(asked.path)?;
    let reply = match connection.try_read_reply() {
        Ok(reply) => reply,
        // Closed or reset before there was a head; a time-out is neither.
        Err(error) if is_cut(&error) => return Ok(Outcome::CutOff),
        Err(error) => return Err(error),
    };
    let (status, text) = (reply.answer.status, reply.answer.text());
    match (status, reply.is_whole) {
        (200, true) => {
            assert_eq!(Some(&text), asked.whole.as_ref(), "{}", asked.path);
            Ok(Outcome::Whole)
        }
        (200, false) => {
            let right = asked.whole.as_deref().unwrap_or("begun\n");
            assert!(right.starts_with(&text), "{}: {text}", asked.path);
            Ok(Outcome::CutOff)
        }
        (502 | 503, true) => Ok(Outcome::Told(status)),
        _ => panic!("{}: {reply:?}", asked.path),
    }
}

fn is_cut(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
    )
}
