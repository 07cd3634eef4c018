//! The real program on a temporary site: started on port 0, watched by its output, stopped by pid.
//!
//! Run as root, everything runs as an unprivileged user unless a test asks for root. Waiting is
//! always for an event (a line, an exit, bytes), with a deadline that only a failure reaches.
// Every test program uses its own part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod client;
pub mod library;
pub mod load;
pub mod name_server;
pub mod over;
pub mod site;
pub mod terminal;
pub mod usage;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use over::{Carrier, Protocol};

/// Reached only when something is wrong, however busy the machine.
pub const DEADLINE: Duration = Duration::from_secs(60);
/// Larger than what sockets buffer: a client that does not read keeps its answer in progress.
pub const BIG_BYTES: usize = 24 * 1024 * 1024;
/// What `Place::fill_big` fills with.
pub const BIG_LINE: &str = "0123456789abcde\n";
const NOBODY: u32 = 65534;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The program that is tested: the one just built, or the one `HOB_PROGRAM` names, so that a test
/// can be shown to fail with a program of before its mend.
pub fn program() -> PathBuf {
    let built = || PathBuf::from(env!("CARGO_BIN_EXE_hob"));
    std::env::var_os("HOB_PROGRAM").map_or_else(built, PathBuf::from)
}

/// Copies a file that is to be executed. Another process does it: what a test of this one starts
/// meanwhile would hold the file open for writing until its exec, and it could not be executed.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "cp {} {}", from.display(), to.display());
}

/// Gives the program another name, under which everybody finds it. It is copied where it is on
/// another file system: a test would write a hundred megabytes before it began.
fn link_program(to: &Path) {
    if std::fs::hard_link(program(), to).is_err() {
        copy_program(&program(), to);
    }
}

/// Who a program runs as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Nobody in particular, also when the tests run as root.
    Unprivileged,
    /// Whoever runs the tests.
    Same,
}

/// Writes a program that may be started at once, whoever else starts programs meanwhile: where a
/// file was open for writing when another thread forked, nobody can execute it until that child has
/// executed something itself.
pub fn write_program(path: &Path, text: &str) {
    let install = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn();
    let mut install = install.unwrap();
    let input = install.stdin.take().unwrap();
    { input }.write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success(), "{}", path.display());
}

/// A socket for datagrams whose address is free for TCP: below those that the system gives to
/// connections, of which one could come to have the same number.
pub fn datagram_port() -> (UdpSocket, String) {
    let free = (10_000..32_000).find_map(|port| {
        let address = format!("127.0.0.1:{port}");
        TcpListener::bind(&address).ok()?;
        Some((UdpSocket::bind(&address).ok()?, address))
    });
    free.unwrap()
}

/// A temporary folder with a copy of the program and a site.
pub struct Place {
    folder: tempfile::TempDir,
    user: User,
}

impl Place {
    pub fn new() -> Place {
        Place::for_user(User::Unprivileged)
    }

    pub fn for_user(user: User) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { folder, user };
        let open = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.path(""), open).unwrap();
        link_program(&place.path("hob"));
        place.own("");
        place.folder("site");
        place.folder("run");
        place.write("site/hello.txt", "hello\n");
        let big = File::create(place.path("site/big.bin")).unwrap();
        big.set_len(BIG_BYTES as u64).unwrap();
        place
    }

    /// Fills `site/big.bin` with lines, for who looks at what comes; else it is one hole.
    pub fn fill_big(&self) {
        self.write("site/big.bin", &BIG_LINE.repeat(BIG_BYTES / BIG_LINE.len()));
    }

    /// A path in the folder; the folder itself for an empty name.
    pub fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            self.folder.path().to_owned()
        } else {
            self.folder.path().join(name)
        }
    }

    /// Writes a file; a config so that hob speaks what is tested.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        match name.ends_with(".toml") {
            true => std::fs::write(path, Protocol::tested().config(text)),
            false => std::fs::write(path, text),
        }
        .unwrap();
    }

    /// Writes a program, in a folder that is made where there is none.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_program(&path, text);
        path
    }

    /// Makes a folder that the program may write to.
    pub fn folder(&self, name: &str) {
        std::fs::create_dir(self.path(name)).unwrap();
        self.own(name);
    }

    /// Makes a certificate that signs itself for a name: `FILE.pem` and `FILE.key`.
    pub fn certificate(&self, file: &str, name: &str) {
        let path = |end: &str| self.path(&format!("{file}{end}")).display().to_string();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
            .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
            .args(["-subj", &format!("/CN={name}")])
            .args(["-addext", &format!("subjectAltName=DNS:{name}")])
            .args(["-keyout", &path(".key"), "-out", &path(".pem")])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text_of(&made));
        // As openssl leaves it only its maker reads the key; the tests serve as somebody else.
        std::fs::set_permissions(path(".key"), PermissionsExt::from_mode(0o644)).unwrap();
    }

    /// Puts another file in place of the program, as a package does: under its name at once.
    pub fn replace_program(&self, make: impl FnOnce(&Path)) {
        let (made, next) = (self.path("hob.made"), self.path("hob.next"));
        make(&made);
        copy_program(&made, &next);
        std::fs::set_permissions(&next, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::rename(next, self.path("hob")).unwrap();
    }

    fn own(&self, name: &str) {
        if is_root() && self.user == User::Unprivileged {
            std::os::unix::fs::chown(self.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// The program with the user and surroundings of this place, in its folder.
    pub fn command(&self) -> Command {
        self.command_of(&self.path("hob"))
    }

    /// Another program with the same.
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("")).stdin(Stdio::null());
        command
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_STATE_HOME", self.path("run"))
            .env("HOB_LOG", "debug");
        for variable in [
            "LISTEN_FDS",
            "LISTEN_PID",
            "LISTEN_FDNAMES",
            "NOTIFY_SOCKET",
        ] {
            command.env_remove(variable);
        }
        if is_root() && self.user == User::Unprivileged {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Runs a command of the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Serves with these arguments and waits until it listens.
    pub fn serve(&self, arguments: &[&str]) -> Hob {
        let mut command = self.command();
        command.arg("serve").args(arguments);
        let hob = Hob::start(command);
        hob.wait_for("listening on ");
        hob
    }

    /// Serves `/kept` with so many open files at most, to clients that may take their time.
    pub fn serve_with_open_files(&self, count: u64) -> Hob {
        let route =
            "[[site.route]]\npath = \"/kept\"\nrespond = { status = 200, body = \"hello\\n\" }\n";
        let keys = "[limits]\nhead_time = \"10m\"\n";
        self.serve_text_with_open_files(&format!("{}{route}", config(keys, "site")), count)
    }

    /// Serves exactly this config with so many open files at most.
    pub fn serve_text_with_open_files(&self, text: &str, count: u64) -> Hob {
        self.write("hob.toml", text);
        let mut command = self.command_of(Path::new("prlimit"));
        command.arg(format!("--nofile={count}:{count}"));
        command
            .arg(self.path("hob"))
            .args(["serve", "--config", "hob.toml"]);
        let hob = Hob::start(command);
        hob.wait_for("listening on ");
        hob
    }

    /// The same with more connections allowed than there are descriptors left, and how many are
    /// left.
    pub fn serve_with_few_left(&self) -> (Hob, u64) {
        let usual = self.serve_with_open_files(1024);
        let told = self.run(&["status", "--environment", "--json"]);
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        let held = told["server"]["descriptors"].as_u64().unwrap();
        usual.stop();
        let room = held - 8;
        (self.serve_with_open_files(held + room), room)
    }

    /// The same with keys and tables of the site after its root.
    pub fn serve_config_with(&self, keys: &str, site_keys: &str) -> Hob {
        self.serve_text(&format!("{}{site_keys}", config(keys, "site")))
    }

    /// Serves exactly this config.
    pub fn serve_text(&self, text: &str) -> Hob {
        self.write("hob.toml", text);
        self.serve(&["--config", "hob.toml"])
    }

    /// What `hob status --json` says.
    pub fn status(&self) -> serde_json::Value {
        let output = self.run(&["status", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A counter of `hob status`.
    pub fn counter(&self, name: &str) -> u64 {
        self.status()["counters"][name].as_u64().unwrap()
    }

    /// Waits until a counter has this value.
    pub fn wait_for_counter(&self, name: &str, value: u64) {
        let until = Instant::now() + DEADLINE;
        loop {
            let count = self.counter(name);
            if count == value {
                return;
            }
            assert!(Instant::now() < until, "{name} is {count}, not {value}");
        }
    }

    /// Writes `hob.toml` with the site on port 0 and these keys before, and serves it.
    pub fn serve_config(&self, keys: &str) -> Hob {
        self.write_config(keys, "site");
        self.serve(&["--config", "hob.toml"])
    }

    /// Writes `hob.toml` with a site on port 0 and these keys before.
    pub fn write_config(&self, keys: &str, root: &str) {
        self.write("hob.toml", &config(keys, root));
    }
}

/// A config with a site on port 0 and these keys before.
pub fn config(keys: &str, root: &str) -> String {
    format!("{keys}\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[site]]\nroot = \"{root}\"\n")
}

/// What the program printed so far, standard output and standard error together.
#[derive(Default)]
struct Printed {
    text: Mutex<String>,
    changed: Condvar,
}

/// A running `hob serve`.
pub struct Hob {
    child: Child,
    printed: Arc<Printed>,
    carrier: OnceLock<Carrier>,
}

impl Hob {
    pub fn start(mut command: Command) -> Hob {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let printed = Arc::new(Printed::default());
        collect(child.stdout.take().unwrap(), printed.clone());
        collect(child.stderr.take().unwrap(), printed.clone());
        Hob {
            child,
            printed,
            carrier: OnceLock::new(),
        }
    }

    /// Waits for a line with this text and returns it.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_for_count(text, 1)
    }

    /// Waits until so many lines with this text were printed and returns the last.
    pub fn wait_for_count(&self, text: &str, count: usize) -> String {
        let until = Instant::now() + DEADLINE;
        let mut printed = self
            .printed
            .text
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(line) = printed
                .lines()
                .filter(|line| line.contains(text))
                .nth(count - 1)
            {
                return line.to_owned();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "no `{text}` ({count} times) in:\n{printed}"
            );
            printed = self.printed.changed.wait_timeout(printed, left).unwrap().0;
        }
    }

    /// Everything printed so far.
    pub fn printed(&self) -> String {
        self.printed
            .text
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The port of the first TCP listener; of what carries HTTP/1.1 to it where the tests run over
    /// another protocol.
    pub fn port(&self) -> u16 {
        match Protocol::tested() {
            Protocol::H1 => self.clear_port(),
            protocol => {
                let start = || Carrier::start(protocol, self.own_port());
                self.carrier.get_or_init(start).port
            }
        }
    }

    /// The port of hob itself that the tests speak to.
    pub fn own_port(&self) -> u16 {
        match Protocol::tested() {
            Protocol::H1 | Protocol::Proxy | Protocol::ProxyH2 => self.clear_port(),
            _ => self.tls_port(),
        }
    }

    /// The port of HTTP/1.1 in clear.
    pub fn clear_port(&self) -> u16 {
        let line = self.wait_for("listening on http://");
        line.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// The port of the first TCP listener that speaks TLS.
    pub fn tls_port(&self) -> u16 {
        let line = self.wait_for("listening on https://");
        line.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// The keeper.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The servers, old ones that drain included.
    pub fn servers(&self) -> Vec<u32> {
        self.children("server")
    }

    /// The one server.
    pub fn server(&self) -> u32 {
        let servers = self.servers();
        assert_eq!(servers.len(), 1, "{}", self.printed());
        servers[0]
    }

    /// The processes that start programs; none where no route has one.
    pub fn spawners(&self) -> Vec<u32> {
        self.children("spawner")
    }

    /// The one spawner.
    pub fn spawner(&self) -> u32 {
        let spawners = self.spawners();
        assert_eq!(spawners.len(), 1, "{}", self.printed());
        spawners[0]
    }

    /// Children of the keeper that run this command.
    fn children(&self, command: &str) -> Vec<u32> {
        let is_it = |child: &u32| {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(command.as_bytes())
        };
        children_of(self.pid()).into_iter().filter(is_it).collect()
    }

    pub fn signal(&self, signal: Signal) {
        send_signal(self.pid(), signal);
    }

    /// Waits for the end and returns the exit code; none after a signal.
    pub fn exit_code(&mut self) -> Option<i32> {
        wait_for_end(self.pid());
        self.child.wait().unwrap().code()
    }

    /// Stops by SIGTERM, which must work.
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.exit_code(), Some(0), "{}", self.printed());
    }

    /// Stops as [`Hob::stop`] does and returns all that was printed.
    pub fn stop_and_print(mut self) -> String {
        self.signal(Signal::TERM);
        assert_eq!(self.exit_code(), Some(0), "{}", self.printed());
        self.all_printed()
    }

    /// All that was printed by a program that has ended. Its two streams are read side by side: a
    /// line of one says nothing about the other.
    pub fn all_printed(&self) -> String {
        let until = Instant::now() + DEADLINE;
        // Who reads has a share of it until the pipes have ended.
        while Arc::strong_count(&self.printed) > 1 {
            assert!(Instant::now() < until, "its output does not end");
            std::thread::yield_now();
        }
        self.printed()
    }
}

impl Drop for Hob {
    fn drop(&mut self) {
        // Its server sees the channel close and ends by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the program printed:\n{}", self.printed());
        }
    }
}

fn collect(pipe: impl Read + Send + 'static, printed: Arc<Printed>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut text = printed.text.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(&line);
            text.push('\n');
            printed.changed.notify_all();
        }
    });
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number as i32).unwrap()
}

pub fn send_signal(number: u32, signal: Signal) {
    kill_process(pid(number), signal).unwrap();
}

/// Waits until a process has ended, whoever's child it is.
pub fn wait_for_end(number: u32) {
    // Already reaped: as gone as can be.
    let Ok(process) = pidfd_open(pid(number), PidfdFlags::empty()) else {
        return;
    };
    let mut polled = [PollFd::new(&process, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: DEADLINE.as_secs() as i64,
        tv_nsec: 0,
    };
    assert_eq!(
        poll(&mut polled, Some(&limit)).unwrap(),
        1,
        "process {number} did not end"
    );
}

/// The running children of a process.
pub fn children_of(parent: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(number) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name before may hold anything; state and parent follow its last parenthesis.
        let rest = stat.rsplit(')').next().unwrap_or_default();
        let mut fields = rest.split_whitespace();
        let state = fields.next();
        let is_child = fields.next().and_then(|field| field.parse().ok()) == Some(parent);
        if is_child && state != Some("Z") {
            children.push(number);
        }
    }
    children.sort_unstable();
    children
}

/// A line of `/proc/PID/status` without its name.
pub fn status_line(number: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{number}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Standard output and standard error of a finished command, as text.
pub fn text_of(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}
