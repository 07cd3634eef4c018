//! A site with one application that stays.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::harness::DEADLINE;
use crate::harness::client::Connection;
use crate::site::Programs;

const APPLICATION: &str = include_str!("app.py");

/// Serves the application at `/app/` with further keys of its table.
pub(crate) fn serve(keys: &str) -> Programs {
    application().serve_route(&route(keys))
}

/// The application in the folder `cgi`, to which it may write.
pub(crate) fn application() -> Programs {
    Programs::new().with_mode("app.py", APPLICATION, 0o644)
}

/// The application's route.
pub(crate) fn route(keys: &str) -> String {
    let keys = match keys {
        "" => String::new(),
        keys => format!(", {keys}"),
    };
    format!(
        "path = \"/app/*\"\nbody = \"64MiB\"\n\
         resident = {{ wsgi = \"app:application\", dir = \"cgi\"{keys} }}\n"
    )
}

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
    let until = Instant::now() + DEADLINE;
    while !path.exists() {
        assert!(Instant::now() < until, "no {}", path.display());
        std::thread::yield_now();
    }
}
