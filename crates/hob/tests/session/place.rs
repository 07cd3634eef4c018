//! A site with a shop that remembers its visitors.

use std::time::Instant;

use crate::harness::client::{Reply, call};
use crate::harness::{DEADLINE, wait_for_end};
use crate::site::Programs;

const SHOP: &str = include_str!("shop.py");

/// Serves the shop at `/shop/` with further keys of its table.
pub(crate) fn serve(keys: &str) -> Programs {
    shop().serve_route(&route("/shop/*", keys))
}

/// The shop in the folder `cgi`, to which it may write.
pub(crate) fn shop() -> Programs {
    Programs::new().with_mode("shop.py", SHOP, 0o644)
}

/// The shop's route at a path.
pub(crate) fn route(path: &str, keys: &str) -> String {
    let keys = match keys {
        "" => String::new(),
        keys => format!(", {keys}"),
    };
    format!(
        "path = \"{path}\"\nbody = \"64MiB\"\n\
         session = {{ python = \"cgi/shop.py\", grace = \"2s\"{keys} }}\n"
    )
}

impl Programs {
    /// Begins a visit: its handle.
    pub(crate) fn begin(&self) -> String {
        let handle = self.text("/shop/tell/HTSession");
        assert!(handle.starts_with('~') && handle.len() == 33, "{handle}");
        handle
    }

    /// Asks for what is below the shop in a visit.
    pub(crate) fn ask(&self, handle: &str, what: &str) -> Reply {
        self.get(&format!("/shop/{handle}/{what}"))
    }

    /// The text of that, which must come.
    pub(crate) fn said(&self, handle: &str, what: &str) -> String {
        self.text(&format!("/shop/{handle}/{what}"))
    }

    /// The status of that.
    pub(crate) fn status_of(&self, handle: &str, what: &str) -> u16 {
        self.ask(handle, what).answer.status
    }

    /// The process of a visit.
    pub(crate) fn pid_of(&self, handle: &str) -> u32 {
        self.said(handle, "pid").parse().unwrap()
    }

    /// A file of the shop is there.
    pub(crate) fn wait_for_file(&self, name: &str) {
        let until = Instant::now() + DEADLINE;
        while !self.path(name).exists() {
            assert!(Instant::now() < until, "no {name}");
            std::thread::yield_now();
        }
    }

    /// The shop may go on.
    pub(crate) fn let_go(&self, name: &str) {
        std::fs::write(self.path(&format!("{name}.go")), "").unwrap();
    }

    /// What `hob status --json` tells of visits.
    pub(crate) fn visits(&self) -> serde_json::Value {
        self.place.status()["programs"]["visits"].clone()
    }

    /// A counter has this value.
    pub(crate) fn counts(&self, name: &str, value: u64) {
        self.place.wait_for_counter(name, value);
        assert_eq!(self.place.counter(name), value, "{name}");
    }

    /// A process is gone.
    pub(crate) fn gone(&self, pid: u32) {
        wait_for_end(pid);
    }

    /// Asks with more fields.
    pub(crate) fn ask_with(&self, target: &str, fields: &str) -> Reply {
        call(self.port(), "GET", target, fields, b"")
    }
}
