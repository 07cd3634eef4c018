//! A site with one C program that stays, and clients that never stop asking it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::client::Connection;
use crate::harness::{copy_program, library};
use crate::site::Programs;

/// Serves the program at `/app/` with further keys of its table.
pub(crate) fn serve(keys: &str) -> Programs {
    program().serve_route(&route(keys))
}

/// The program in the folder `cgi`, to which it may write.
pub(crate) fn program() -> Programs {
    let programs = Programs::new();
    for name in ["libhob.so.1", "program"] {
        copy_program(&compiled().join(name), &programs.path(name));
    }
    programs
}

/// The program, compiled once for all tests.
fn compiled() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let name = format!("shared-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        library::compile("crates/hob/tests/shared/program.c", &folder);
        folder
    })
}

/// The program's route.
pub(crate) fn route(keys: &str) -> String {
    let keys = match keys {
        "" => String::new(),
        keys => format!(", {keys}"),
    };
    format!(
        "path = \"/app/*\"\nbody = \"64MiB\"\n\
         resident = {{ run = [\"./cgi/program\"], dir = \"cgi\"{keys} }}\n"
    )
}

impl Programs {
    /// Sends a request that the program holds, and waits until it has it.
    pub(crate) fn hold(&self, marked: &str) -> Connection {
        self.begin(&format!("/app/hold?{marked}"), marked)
    }

    /// Has so many clients ask for the process while something is done; each must be answered.
    /// Tells how many answers there were.
    pub(crate) fn under_load<T>(&self, clients: usize, work: impl FnOnce() -> T) -> (T, usize) {
        self.under_load_of("/app/pid", clients, work)
    }

    /// The same for another target that answers with a process.
    pub(crate) fn under_load_of<T>(
        &self,
        target: &str,
        clients: usize,
        work: impl FnOnce() -> T,
    ) -> (T, usize) {
        let (port, is_over) = (self.port(), &AtomicBool::new(false));
        let answered = &AtomicUsize::new(0);
        let done = std::thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(move || {
                    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
                    let mut connection = Connection::open(port).unwrap();
                    while !is_over.load(Ordering::Relaxed) {
                        connection.send(request.as_bytes()).unwrap();
                        let answer = connection.read().unwrap();
                        assert_eq!(answer.status, 200, "{answer:?}");
                        answer.text().parse::<u32>().unwrap();
                        answered.fetch_add(1, Ordering::Relaxed);
                        if answer.header("connection") == Some("close") {
                            connection = Connection::open(port).unwrap();
                        }
                    }
                });
            }
            let _end = End(is_over);
            work()
        });
        (done, answered.load(Ordering::Relaxed))
    }
}

/// Ends the clients whatever happens.
pub(crate) struct End<'a>(pub(crate) &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
