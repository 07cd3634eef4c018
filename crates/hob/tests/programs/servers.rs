//! hob, Apache and lighttpd on loopback with one CGI program behind a path, run by the same user,
//! and ended by their own process ids.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use crate::harness::{DEADLINE, Hob, send_signal};
use crate::place::{Place, installed, shown};

use rustix::process::Signal;

/// Another process may take the free port that was found: so often it is tried again.
const TRIES: usize = 5;

/// Servers to compare with.
pub(crate) const PEERS: [Peer; 2] = [Peer::Apache, Peer::Lighttpd];

/// A server to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Apache,
    Lighttpd,
}

impl Peer {
    /// As the tables call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Apache => "apache",
            Peer::Lighttpd => "lighttpd",
        }
    }

    /// By that name.
    pub(crate) fn of_name(name: &str) -> Option<Peer> {
        PEERS.into_iter().find(|peer| peer.name() == name)
    }

    fn programs(self) -> &'static [&'static str] {
        match self {
            Peer::Apache => &["/usr/sbin/apache2"],
            Peer::Lighttpd => &["/usr/sbin/lighttpd"],
        }
    }

    /// What it prints when its sockets listen.
    fn ready_words(self) -> &'static str {
        match self {
            Peer::Apache => "resuming normal operations",
            Peer::Lighttpd => "server started",
        }
    }
}

/// A CGI program behind a path.
pub(crate) struct Mount {
    /// The path, like `/cgit`; empty for the whole site.
    pub(crate) path: &'static str,
    pub(crate) script: PathBuf,
    /// Variables of its environment.
    pub(crate) env: Vec<(&'static str, String)>,
    /// What it is written in, if hob keeps that warm.
    pub(crate) interpreter: Option<String>,
}

impl Mount {
    /// A program with what it needs to answer the same everywhere.
    pub(crate) fn new(place: &Place, path: &'static str, script: PathBuf) -> Mount {
        let mount = Mount {
            path,
            script,
            env: Vec::new(),
            interpreter: None,
        };
        let mount = mount.with("HOME", place.shown("home"));
        mount.with("LC_ALL", "C.UTF-8").with("TZ", "UTC")
    }

    /// As a script that is forked from a warm interpreter, too.
    pub(crate) fn warmed_by(mut self, interpreter: &str) -> Mount {
        self.interpreter = Some(interpreter.to_owned());
        self
    }

    /// With one more variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Mount {
        self.env.push((name, value.into()));
        self
    }
}

/// A running server. Ended when dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    child: Running,
}

enum Running {
    Hob(Hob),
    Peer(Child),
}

impl Server {
    /// What hob printed.
    pub(crate) fn printed(&self) -> String {
        match &self.child {
            Running::Hob(hob) => hob.printed(),
            Running::Peer(_) => String::new(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match &mut self.child {
            Running::Hob(hob) => {
                hob.signal(Signal::TERM);
                hob.exit_code();
            }
            // Its children end with it, which they would not if it were killed.
            Running::Peer(child) => {
                send_signal(child.id(), Signal::TERM);
                let _ = child.wait();
            }
        }
    }
}

/// Starts hob with a program that is started for each request.
pub(crate) fn hob(place: &Place, mount: &Mount) -> Server {
    hob_with(place, mount, "cgi", "")
}

/// Starts hob with a script that is forked from a warm interpreter, if it is of such a language.
pub(crate) fn warm_hob(place: &Place, mount: &Mount) -> Option<Server> {
    let interpreter = mount.interpreter.as_ref()?;
    let keys = format!(", interpreter = \"{interpreter}\"");
    Some(hob_with(place, mount, "warm", &keys))
}

fn hob_with(place: &Place, mount: &Mount, handler: &str, keys: &str) -> Server {
    let env = mount
        .env
        .iter()
        .map(|(name, value)| format!("{name} = '{value}'"));
    let env: Vec<String> = env.collect();
    let (script, env) = (shown(&mount.script), env.join(", "));
    let mut routes = String::new();
    // `/cgit` is not among what is below `/cgit/`.
    for path in [mount.path, &format!("{}/*", mount.path)] {
        if !path.is_empty() {
            routes += &format!(
                "\n[[site.route]]\npath = \"{path}\"\n\
                 {handler} = {{ script = \"{script}\", env = {{ {env} }}, pass_authorization = true{keys} }}\n"
            );
        }
    }
    place.write(
        "hob.toml",
        &include_str!("hob.toml").replace("@ROUTES@", &routes),
    );
    let mut command = place.command(place.path("hob"));
    command.args(["serve", "--control", "off", "--config", "hob.toml"]);
    let hob = Hob::start(command);
    Server {
        port: hob.port(),
        child: Running::Hob(hob),
    }
}

/// Starts a peer with a program; says why when there is none.
pub(crate) fn peer(peer: Peer, place: &Place, mount: &Mount) -> Option<Server> {
    let program = installed(peer.name(), peer.programs())?;
    let room = place.path(peer.name());
    if !room.exists() {
        place.folder(peer.name());
    }
    let mut said = String::new();
    for _ in 0..TRIES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let name = format!("{}/server.conf", peer.name());
        place.write(&name, &config(peer, mount, &room, port));
        let mut child = command(peer, place, &program, &room, &place.path(&name))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        match wait_for(peer.ready_words(), &lines(&mut child)) {
            Ok(()) => {
                let child = Running::Peer(child);
                return Some(Server { port, child });
            }
            Err(last) => said = last,
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("{} does not start: {said}", peer.name());
}

fn command(peer: Peer, place: &Place, program: &Path, room: &Path, config: &Path) -> Command {
    let mut command = place.command(program);
    match peer {
        Peer::Apache => command.arg("-DFOREGROUND").arg("-d").arg(room),
        Peer::Lighttpd => command.arg("-D"),
    };
    // Apache ends by a signal to its whole process group, which must not be that of the tests.
    command.arg("-f").arg(config).process_group(0);
    command
}

fn config(peer: Peer, mount: &Mount, room: &Path, port: u16) -> String {
    let script = shown(&mount.script);
    let folder = shown(mount.script.parent().unwrap());
    // The whole site: each path is the program's own.
    let (from, to) = match mount.path {
        "" => ("/", format!("{script}/")),
        path => (path, script),
    };
    let text = match peer {
        Peer::Apache => include_str!("apache.conf"),
        Peer::Lighttpd => include_str!("lighttpd.conf"),
    };
    let env = mount.env.iter().map(|(name, value)| match peer {
        Peer::Apache => format!("SetEnv {name} \"{value}\"\n"),
        Peer::Lighttpd => format!("\"{name}\" => \"{value}\",\n"),
    });
    let env: String = env.collect();
    text.replace("@FROM@", from)
        .replace("@TO@", &to)
        .replace("@ENV@", &env)
        .replace("@FOLDER@", &folder)
        .replace("@ROOM@", &shown(room))
        .replace("@PORT@", &port.to_string())
}

/// Both streams, line by line, read to their end so that the server never blocks on them.
fn lines(child: &mut Child) -> Receiver<String> {
    let (to, lines) = mpsc::channel();
    let collect = |stream: Box<dyn Read + Send>| {
        let to = to.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let _ = to.send(line);
            }
        });
    };
    collect(Box::new(child.stdout.take().unwrap()));
    collect(Box::new(child.stderr.take().unwrap()));
    lines
}

/// Waits for a line with these words; all that was said when the server ends without.
fn wait_for(words: &str, lines: &Receiver<String>) -> Result<(), String> {
    let until = Instant::now() + DEADLINE;
    let mut said = String::new();
    while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if line.contains(words) {
            return Ok(());
        }
        said += &line;
        said.push('\n');
    }
    Err(said)
}
