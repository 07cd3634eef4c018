//! One resident program, watched from outside: who answers, what is told of it, and how it is made
//! to wait.
// Every test program uses its own part of this.
#![allow(dead_code)]

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::harness::DEADLINE;
use crate::harness::client::Connection;
use crate::site::Programs;

impl Programs {
    /// The process that answers now.
    pub(crate) fn worker(&self) -> u32 {
        self.text("/app/pid").parse().unwrap()
    }

    /// What is told of the first program.
    pub(crate) fn pool(&self) -> Value {
        self.place.status()["programs"]["pools"][0].clone()
    }

    /// Waits until the first program is as it should be.
    pub(crate) fn wait_for_pool(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + DEADLINE;
        loop {
            let pool = self.pool();
            if is_so(&pool) {
                return pool;
            }
            assert!(Instant::now() < until, "not {what}: {pool}");
        }
    }

    /// How many workers it has.
    pub(crate) fn wait_for_workers(&self, count: usize) {
        self.wait_for_pool(&format!("{count} workers"), |pool| workers(pool) == count);
    }

    /// Sends a request and waits until the application has marked that it has it.
    pub(crate) fn begin(&self, target: &str, marked: &str) -> Connection {
        let mut client = Connection::open(self.port()).unwrap();
        client.send_ask("GET", target, "");
        wait_for_file(&self.path(&format!("{marked}.begun")));
        client
    }

    /// Lets the application go on.
    pub(crate) fn go(&self, marked: &str) {
        std::fs::write(self.path(&format!("{marked}.go")), "").unwrap();
    }

    /// The reason and the detail in a target's record.
    pub(crate) fn reason(&self, target: &str) -> (String, String) {
        let record = self.record(target);
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("detail"))
    }
}

/// How many workers a program has.
pub(crate) fn workers(pool: &Value) -> usize {
    pool["workers"].as_array().map_or(0, Vec::len)
}

/// Waits for a file.
pub(crate) fn wait_for_file(path: &Path) {
    until(&format!("there is {}", path.display()), || path.exists());
}

/// Waits for something that nobody tells.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < limit, "not so: {what}");
        std::thread::yield_now();
    }
}
