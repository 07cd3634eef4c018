//! A PostgreSQL server in a temporary folder: on a socket there, and over TLS on this machine.
#![allow(dead_code, reason = "each test file uses its part of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};

const NOBODY: u32 = 65534;

/// A server that ends with the test.
pub(crate) struct PostgresServer {
    folder: tempfile::TempDir,
    more: Vec<String>,
    running: Option<Child>,
}

impl PostgresServer {
    /// Makes a server with the user `hob` and starts it; none where it is not installed.
    pub(crate) fn start() -> Option<PostgresServer> {
        if program("initdb").is_none() {
            println!("skipped: Debian package postgresql is not installed");
            return None;
        }
        let mut server = PostgresServer::made();
        server.go_on();
        Some(server)
    }

    fn made() -> PostgresServer {
        let folder = tempfile::tempdir().expect("a folder");
        if geteuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("its owner is set");
        }
        // Whoever runs the tests asks through its socket.
        let open = PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("its mode is set");
        let server = PostgresServer {
            folder,
            more: Vec::new(),
            running: None,
        };
        let made = server
            .command("initdb")
            .args(["-A", "trust", "-U", "hob", "-E", "UTF8", "--locale=C.UTF-8"])
            .args(["-N", "--no-instructions", "-D"])
            .arg(server.data())
            .output()
            .expect("initdb is started");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb: {said}");
        server
    }

    /// Starts it, with what it had before, and waits until it takes connections.
    pub(crate) fn go_on(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        command.arg("-k").arg(self.folder.path());
        let quick = ["fsync=off", "listen_addresses=", "max_connections=20"];
        for setting in quick
            .into_iter()
            .chain(self.more.iter().map(String::as_str))
        {
            command.args(["-c", setting]);
        }
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let said = child.stderr.take().expect("it has standard error");
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let is_ready = lines.any(|line| line.contains("ready to accept connections"));
        assert!(is_ready, "the server ended before it was ready");
        // It says more, and waits where nobody reads it.
        std::thread::spawn(move || lines.for_each(drop));
        self.running = Some(child);
    }

    /// Starts it on a port of this machine as well, with TLS.
    pub(crate) fn listen(&mut self, port: u16) {
        let settings = ["listen_addresses=127.0.0.1".to_owned(), "ssl=on".to_owned()];
        self.more.extend(settings);
        self.more.push(format!("port={port}"));
        self.go_on();
    }

    /// Ends it at once: its connections break.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            let pid = Pid::from_child(&child);
            kill_process(pid, Signal::QUIT).expect("it is there");
            child.wait().expect("it ends");
        }
    }

    /// The URL of its database, with a user of it.
    pub(crate) fn url(&self, user: &str) -> String {
        let folder = self.folder.path().display();
        format!("postgres://{user}@/postgres?host={folder}")
    }

    /// A folder that its data is in.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A file for the server alone, below its data.
    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        let path = self.data().join(name);
        fs::write(&path, content).expect("it is written");
        let private = PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, private).expect("its mode is set");
        if geteuid().is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("its owner is set");
        }
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program(name).expect("it is installed"));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::null());
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Debian has the server's programs in a folder of their version.
fn program(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let programs = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin").join(name)));
    programs.filter(|path| path.exists()).max()
}
