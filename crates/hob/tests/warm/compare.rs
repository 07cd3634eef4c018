//! The same script under `cgi` and under `warm`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::harness::client::{Reply, call};
use crate::parts::{Parts, programs};
use crate::site::Programs;

/// A script and what it is asked.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) method: &'static str,
    /// What follows the name in the target.
    pub(crate) rest: &'static str,
    pub(crate) body: &'static [u8],
}

impl Case {
    pub(crate) const fn new(name: &'static str, text: &'static str) -> Case {
        Case {
            name,
            text,
            method: "GET",
            rest: "",
            body: b"",
        }
    }

    /// Started the first time, then forked: before it is compiled, when it is or may be, and again.
    fn target(&self, time: usize) -> String {
        let handler = if time == 0 { "cold" } else { "warm" };
        let mark = if self.rest.contains('?') { "&" } else { "?" };
        format!("/{handler}/{}{}{mark}time={time}", self.name, self.rest)
    }

    pub(crate) const fn at(self, rest: &'static str) -> Case {
        Case { rest, ..self }
    }

    pub(crate) const fn posts(self, body: &'static [u8]) -> Case {
        Case {
            method: "POST",
            body,
            ..self
        }
    }
}

/// Everything of an answer that could tell a started script from a forked one.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    status: u16,
    fields: Vec<(String, String)>,
    body: String,
    is_whole: bool,
    outcome: String,
    fault: String,
    reason: String,
    detail: String,
}

impl Seen {
    fn of(programs: &Programs, case: &Case, time: usize, target: &str, reply: Reply) -> Seen {
        let record = programs.record(target);
        let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let id = format!("time={time}");
        // Perl itself names what it was started with in this one message.
        let stopped = "Execution of /proc/self/fd/0 aborted";
        let own = format!(
            "Execution of {} aborted",
            programs.path(case.name).display()
        );
        let same = |text: String| {
            let text = text.replace(&id, "time=T").replace("/warm/", "/cold/");
            // Whether the connection's session was a new one is a matter of time, too.
            let text = text.replace("Resumed", "Initial");
            text.replace(stopped, &own)
        };
        let mut fields = reply.answer.headers.clone();
        // How it was framed, and so whether it could have been coded, is a matter of time.
        const OF_TIME: [&str; 4] = ["date", "content-length", "transfer-encoding", "vary"];
        fields.retain(|(name, _)| !OF_TIME.contains(&name.as_str()));
        Seen {
            status: reply.answer.status,
            fields,
            body: same(reply.answer.text()),
            is_whole: reply.is_whole,
            // Who has the whole answer may leave before the server has heard so.
            outcome: match reply.is_whole {
                true => text("outcome").replace("client-left", "complete"),
                false => text("outcome"),
            },
            fault: text("fault"),
            reason: text("reason"),
            detail: same(text("detail")),
        }
    }

    /// What differs, in words.
    fn differences(&self, other: &Seen, of: &str) -> Vec<String> {
        let parts = |seen: &Seen| {
            let (texts, fields) = (seen, &seen.fields);
            [
                ("status", texts.status.to_string()),
                ("fields", format!("{fields:?}")),
                ("body", texts.body.clone()),
                ("is whole", texts.is_whole.to_string()),
                ("outcome", texts.outcome.clone()),
                ("fault", texts.fault.clone()),
                ("reason", texts.reason.clone()),
                ("detail", texts.detail.clone()),
            ]
        };
        // A script that fails after a little output gets the page of a 502, or breaks off an answer
        // that has begun: a matter of time. The reason is the same.
        let is_begun = [self, other].map(|seen| seen.status != 502);
        let is_of_time =
            is_begun[0] != is_begun[1] && self.reason == "the program failed after its head";
        let of_time = ["status", "fields", "body", "is whole", "outcome"];
        let both = parts(self).into_iter().zip(parts(other));
        both.filter(|(one, other)| one != other)
            .filter(|((name, _), _)| !(is_of_time && of_time.contains(name)))
            .map(|((name, one), (_, other))| format!("{of}: {name}: {one:?} but {other:?}"))
            .collect()
    }
}

/// Serves the scripts both ways, hosts with their native parts.
pub(crate) fn serve(cases: &[Case], warm: &str) -> Programs {
    serve_with(Parts::Native, cases, warm)
}

/// Serves the scripts both ways, hosts with these parts.
pub(crate) fn serve_with(parts: Parts, cases: &[Case], warm: &str) -> Programs {
    let mut programs = programs(parts);
    for case in cases {
        programs = programs.with(case.name, case.text);
    }
    let endings = "interpreters = { \".py\" = \"python3\", \".pl\" = \"perl\" }";
    let both = format!(
        "path = \"/cold/*\"\ncgi = {{ dir = \"cgi\", {endings} }}\n\
         [[site.route]]\npath = \"/warm/*\"\nwarm = {{ dir = \"cgi\", {warm} }}\n"
    );
    let programs = programs.serve_route(&both);
    cases
        .iter()
        .for_each(|case| await_settled(&programs.path(case.name)));
    programs
}

/// Waits until a file is old enough to be kept compiled.
pub(crate) fn await_settled(file: &Path) {
    let found = std::fs::metadata(file).unwrap();
    let changed = Duration::new(found.ctime() as u64, found.ctime_nsec() as u32);
    let settled = SystemTime::UNIX_EPOCH + changed + Duration::from_millis(60);
    while SystemTime::now() < settled {
        std::thread::yield_now();
    }
}

/// Asks each script once as `cgi` and three times as `warm`, and compares: with native parts and
/// without.
pub(crate) fn compare(cases: &[Case], warm: &str) {
    for parts in [Parts::Native, Parts::Bare] {
        compare_with(parts, cases, warm);
    }
}

fn compare_with(parts: Parts, cases: &[Case], warm: &str) {
    let programs = serve_with(parts, cases, warm);
    // All are asked before the log is read, which is written after a while.
    let replies: Vec<_> = cases
        .iter()
        .map(|case| {
            let replies = (0..4).map(|time| {
                let target = case.target(time);
                let reply = call(programs.port(), case.method, &target, "", case.body);
                (target, reply)
            });
            replies.collect::<Vec<_>>()
        })
        .collect();
    let mut different = Vec::new();
    for (case, replies) in cases.iter().zip(replies) {
        let replies = replies.into_iter().enumerate();
        let mut seen =
            replies.map(|(time, (target, reply))| Seen::of(&programs, case, time, &target, reply));
        let started = seen.next().unwrap();
        for (time, forked) in seen.enumerate() {
            different.extend(started.differences(&forked, &format!("{} {time}", case.name)));
        }
    }
    let files: Vec<_> = cases.iter().map(|case| programs.path(case.name)).collect();
    let printed = programs.stop_and_print();
    for file in files {
        let all = stderr_of(&printed, &file);
        if !all.is_empty() && all.len() != 4 {
            different.push(format!("{}: only some print: {all:?}", file.display()));
        }
        for (time, one) in all.iter().enumerate() {
            if one != &all[0] {
                different.push(format!(
                    "{} {time}: {one:?}, not {:?}",
                    file.display(),
                    all[0]
                ));
            }
        }
    }
    assert!(different.is_empty(), "{parts:?}: {}", different.join("\n"));
}

/// What a script printed on standard error, from the server's log, by request.
fn stderr_of(printed: &str, file: &Path) -> Vec<Vec<String>> {
    let program = format!("program={}", file.display());
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for line in printed.lines() {
        let Some((_, line)) = line.split_once("stderr: ") else {
            continue;
        };
        let Some((text, fields)) = line.split_once(" request=") else {
            continue;
        };
        let Some((request, of)) = fields.split_once(' ') else {
            continue;
        };
        if of != program {
            continue;
        }
        let text = text.replace(
            "/proc/self/fd/0 aborted",
            &format!("{} aborted", file.display()),
        );
        match all.iter_mut().find(|(known, _)| known == request) {
            Some((_, lines)) => lines.push(text),
            None => all.push((request.to_owned(), vec![text])),
        }
    }
    all.into_iter().map(|(_, lines)| lines).collect()
}

/// The number a script wrote to a file, once it is there.
pub(crate) fn number_in(programs: &Programs, name: &str) -> u32 {
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
