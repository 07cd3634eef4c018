//! How programs end: by themselves, with what they leave running, and when nobody waits any more.

use crate::harness::client::Connection;
use crate::harness::wait_for_end;
use crate::site::Programs;

/// The number a program wrote to a file, once it is there.
fn number_in(programs: &Programs, name: &str) -> u32 {
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    loop {
        let text = std::fs::read_to_string(programs.path(name)).unwrap_or_default();
        if let Some(number) = text.strip_suffix('\n') {
            return number.parse().unwrap();
        }
        assert!(std::time::Instant::now() < until, "{name} was not written");
        std::thread::yield_now();
    }
}

#[test]
fn client_that_leaves_ends_the_program() {
    let programs = Programs::new()
        .with_sh(
            "asked.cgi",
            "trap 'echo asked >&2; exit' TERM\necho $$ > pid-asked\nsleep 1000 & wait\n",
        )
        .with_sh(
            "deaf.cgi",
            "trap '' TERM\nprintf 'Content-Type: text/plain\\n\\nbegun\\n'\necho $$ > pid-deaf\n\
             while :; do read line < /dev/zero; done\n",
        )
        .serve("grace = \"200ms\"");
    let mut connection = Connection::open(programs.port()).unwrap();
    connection.send_get("/cgi/asked.cgi").unwrap();
    let asked = number_in(&programs, "pid-asked");
    drop(connection);
    wait_for_end(asked);
    programs.hob().wait_for("stderr: asked");
    assert_eq!(programs.record("/cgi/asked.cgi")["outcome"], "client-left");
    let mut connection = Connection::open(programs.port()).unwrap();
    connection.send_get("/cgi/deaf.cgi").unwrap();
    connection.read_until("begun");
    let deaf = number_in(&programs, "pid-deaf");
    drop(connection);
    wait_for_end(deaf);
    programs.place.wait_for_counter("limit_program_grace", 1);
    programs.stop();
}

#[test]
fn daemon_survives_the_program_that_started_it() {
    let programs = Programs::new()
        .with_sh(
            "starts.cgi",
            "printf 'Content-Type: text/plain\\n\\nstarted\\n'\n\
             (setsid sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! > pid-daemon)\n",
        )
        .with_sh(
            "holds.cgi",
            "printf 'Content-Type: text/plain\\n\\nholding\\n'\n\
             sleep 1000 2>/dev/null & echo $! > pid-holder\n",
        )
        .serve("linger = \"200ms\"");
    assert_eq!(programs.text("/cgi/starts.cgi"), "started\n");
    let daemon = number_in(&programs, "pid-daemon");
    // The one that holds the output is waited for a moment, and the answer is whole then.
    assert_eq!(programs.text("/cgi/holds.cgi"), "holding\n");
    programs.place.wait_for_counter("limit_program_linger", 1);
    let holder = number_in(&programs, "pid-holder");
    for pid in [daemon, holder] {
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
        crate::harness::send_signal(pid, rustix::process::Signal::KILL);
    }
    programs.stop();
}

#[test]
fn program_may_work_on_after_it_has_closed_its_output() {
    let programs = Programs::new()
        .with_sh(
            "works.cgi",
            "printf 'Content-Type: text/plain\\nContent-Length: 5\\n\\ndone\\n'\n\
             exec >&- 2>&-\nread line < \"$1\"\necho \"$line\" > worked\n",
        )
        .serve("");
    let fifo = programs.place.path("run/fifo");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
    )
    .unwrap();
    let query = fifo.display().to_string().replace('/', "%2f");
    assert_eq!(programs.text(&format!("/cgi/works.cgi?{query}")), "done\n");
    std::fs::write(&fifo, "7\n").unwrap();
    assert_eq!(number_in(&programs, "worked"), 7);
    programs.stop();
}

#[test]
fn program_killed_in_the_middle_of_its_output_is_no_whole_answer() {
    let programs = Programs::new()
        .with_sh(
            "dies.cgi",
            "printf 'Content-Type: text/plain\\n\\n'\nhead -c 300000 /dev/zero\nkill -9 $$\n",
        )
        .serve("");
    let reply = programs.get("/cgi/dies.cgi");
    assert_eq!((reply.answer.status, reply.is_whole), (200, false));
    let record = programs.record("/cgi/dies.cgi");
    assert_eq!(record["reason"], "a signal ended the program");
    assert_eq!(
        (&record["outcome"], &record["fault"]),
        (&"broken".into(), &"script".into())
    );
    programs.stop();
}
