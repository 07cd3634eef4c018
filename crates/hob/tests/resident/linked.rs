//! A C program linked with libhob that stays behind the server.

use std::path::Path;
use std::process::Command;

// Cargo builds the library beside the tests because of this.
use hob as _;

use crate::site::Programs;

/// Serves the program at `/app/` with further keys of its table.
#[allow(dead_code)]
pub(crate) fn serve_c(source: &str, keys: &str) -> Programs {
    Programs::new()
        .with_linked("program", source)
        .serve_route(&format!(
            "path = \"/app/*\"\nresident = {{ run = [\"cgi/program\"], {keys} }}\n"
        ))
}

impl Programs {
    /// Adds a program compiled from C, with libhob in it.
    pub(crate) fn with_linked(self, name: &str, source: &str) -> Programs {
        let file = self.place.path("source.c");
        std::fs::write(&file, source).unwrap();
        let test = std::env::current_exe().unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../libhob/include");
        let status = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
            .arg(include)
            .arg(&file)
            .arg("-o")
            .arg(self.path(name))
            .arg(test.parent().unwrap().join("libhob.a"))
            .args(["-pthread", "-ldl", "-lm"])
            .status();
        assert!(status.unwrap().success(), "{name} compiles");
        self
    }
}
