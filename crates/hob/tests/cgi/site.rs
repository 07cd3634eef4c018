//! A site with programs.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::harness::client::{Reply, call};
use crate::harness::{Hob, Place};

/// A place with a folder of programs, and the server for it.
pub(crate) struct Programs {
    pub(crate) place: Place,
    hob: Option<Hob>,
}

#[allow(dead_code)]
impl Programs {
    /// A folder `cgi` and nothing in it.
    pub(crate) fn new() -> Programs {
        Programs::at(Place::new())
    }

    /// The same at a place of its own.
    pub(crate) fn at(place: Place) -> Programs {
        place.folder("cgi");
        Programs { place, hob: None }
    }

    /// Adds a program.
    pub(crate) fn with(self, name: &str, text: &str) -> Programs {
        self.place.script(&format!("cgi/{name}"), text);
        self
    }

    /// Adds a shell script.
    pub(crate) fn with_sh(self, name: &str, text: &str) -> Programs {
        self.with(name, &format!("#!/bin/sh\n{text}"))
    }

    /// Adds a file with these permissions.
    pub(crate) fn with_mode(self, name: &str, text: &str, mode: u32) -> Programs {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        self
    }

    /// Adds a program compiled from C.
    pub(crate) fn with_c(self, name: &str, source: &str) -> Programs {
        let file = self.place.path("source.c");
        std::fs::write(&file, source).unwrap();
        let status = Command::new("cc")
            .args(["-O1", "-o"])
            .arg(self.path(name))
            .arg(file)
            .status()
            .unwrap();
        assert!(status.success());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path("cgi").join(name)
    }

    /// Serves the folder at `/cgi/` with further keys of its table, and a log in JSON.
    pub(crate) fn serve(self, keys: &str) -> Programs {
        let keys = match keys {
            "" => String::new(),
            keys => format!(", {keys}"),
        };
        self.serve_route(&format!(
            "path = \"/cgi/*\"\ncgi = {{ dir = \"cgi\"{keys} }}\n"
        ))
    }

    /// Serves with a route of this text.
    pub(crate) fn serve_route(mut self, route: &str) -> Programs {
        let log = self.place.path("run/access.log");
        let text = format!(
            "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"{}\"\nformat = \"json\"\n\
             [[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
             [[site.route]]\n{route}",
            log.display()
        );
        self.hob = Some(self.place.serve_text(&text));
        self
    }

    /// Serves with exactly this config.
    pub(crate) fn serve_whole(&mut self, text: &str) {
        self.hob = Some(self.place.serve_text(text));
    }

    pub(crate) fn hob(&self) -> &Hob {
        self.hob.as_ref().unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.hob().port()
    }

    /// Answers a GET.
    pub(crate) fn get(&self, path: &str) -> Reply {
        call(self.port(), "GET", path, "", b"")
    }

    /// The body of a GET that must succeed.
    pub(crate) fn text(&self, path: &str) -> String {
        let reply = self.get(path);
        assert_eq!(reply.answer.status, 200, "{path}: {reply:?}");
        assert!(reply.is_whole, "{path}");
        reply.answer.text()
    }

    /// The log's line for a target, once it is written.
    pub(crate) fn record(&self, target: &str) -> serde_json::Value {
        let log = self.place.path("run/access.log");
        let until = std::time::Instant::now() + crate::harness::DEADLINE;
        loop {
            let lines = std::fs::read_to_string(&log).unwrap_or_default();
            let records = lines
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            let mut records = records.filter(|line: &serde_json::Value| line["target"] == target);
            if let Some(record) = records.next() {
                return record;
            }
            assert!(std::time::Instant::now() < until, "no {target} in {lines}");
            std::thread::yield_now();
        }
    }

    /// Puts another config in force.
    pub(crate) fn reload(&self, text: &str) {
        self.place.write("hob.toml", text);
        let output = self.place.run(&["reload"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }

    /// Ends the server, which must go well, and returns all it printed.
    pub(crate) fn stop_and_print(mut self) -> String {
        self.hob.take().unwrap().stop_and_print()
    }

    /// Ends the server, which must go well.
    pub(crate) fn stop(mut self) {
        self.hob.take().unwrap().stop();
    }
}
