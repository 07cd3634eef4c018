//! A site whose requests can be looked up in its log.

use std::time::Instant;

use super::client::{Answer, Reply, ask, call};
use super::{DEADLINE, Hob, Place};

/// A listener that believes this machine on who its clients are, a log, and a site with files,
/// whose keys may follow.
pub const TOP: &str = "default_log = \"access\"\n[[log]]\nname = \"access\"\n\
    file = \"run/access.log\"\nformat = \"json\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
    trusted = [\"127.0.0.1\"]\n[[site]]\nroot = \"site\"\n";

/// Spellings of `/inner/a.txt`, and paths near it: none may lead around a rule for `/inner/*`.
pub const SPELLINGS: [&str; 23] = [
    "/inner/a.txt",
    "//inner/a.txt",
    "/inner//a.txt",
    "/./inner/a.txt",
    "/inner/./a.txt",
    "/x/../inner/a.txt",
    "/x/%2e%2e/inner/a.txt",
    "/inner/%2e/a.txt",
    "/%69nner/a.txt",
    "/inner%2Fa.txt",
    "/inner%5Ca.txt",
    "/inner;x/a.txt",
    "/inner/a.txt;x",
    "/inner./a.txt",
    "/inner/a.txt.",
    "/inner/a.txt/",
    "/inner/a.txt%20",
    "/inner/a.txt%00",
    "/inner%00/a.txt",
    "/INNER/a.txt",
    "/inner/",
    "/inner/?x=/hello.txt",
    "/inner/a.txt?../hello.txt",
];

/// A request as if from this address, which such a listener believes.
pub fn ask_from(hob: &Hob, client: &str, path: &str) -> Answer {
    ask_from_with(hob, client, path, "")
}

/// The same with these other fields.
pub fn ask_from_with(hob: &Hob, client: &str, path: &str, fields: &str) -> Answer {
    let fields = format!("X-Forwarded-For: {client}\r\n{fields}");
    ask(hob.port(), "GET", path, &fields)
}

/// A served site with a handler at `/app/*`, whose requests are in a log.
pub struct Site {
    pub place: Place,
    pub hob: Hob,
}

impl Site {
    /// Serves a handler at `/app/*`, with keys of the server and more of the site.
    pub fn serve(place: Place, own: &str, handler: &str, more: &str) -> Site {
        let text = format!(
            "{own}default_log = \"access\"\n[[log]]\nname = \"access\"\nfile = \"run/access.log\"\n\
             format = \"json\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n{more}\n\
             [[site.route]]\npath = \"/app/*\"\nbody = \"10MiB\"\n{handler}\n"
        );
        let hob = place.serve_text(&text);
        Site { place, hob }
    }

    pub fn port(&self) -> u16 {
        self.hob.port()
    }

    pub fn get(&self, target: &str) -> Reply {
        call(self.port(), "GET", target, "", b"")
    }

    /// The record of a request, by its target.
    pub fn record(&self, target: &str) -> serde_json::Value {
        record(&self.place, target)
    }

    pub fn stop(self) {
        self.hob.stop();
    }

    pub fn stop_and_print(self) -> String {
        self.hob.stop_and_print()
    }
}

/// The record of a request in the log of a place, by its target.
pub fn record(place: &Place, target: &str) -> serde_json::Value {
    let log = place.path("run/access.log");
    let until = Instant::now() + DEADLINE;
    loop {
        let lines = std::fs::read_to_string(&log).unwrap_or_default();
        let mut records = lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let found = records.find(|line: &serde_json::Value| line["target"] == target);
        if let Some(record) = found {
            return record;
        }
        assert!(Instant::now() < until, "no {target} in {lines}");
        std::thread::yield_now();
    }
}
