//! hob, nginx and Apache on loopback, each started with a config that serves the same folder in the
//! same way as far as it can, and ended by its own process id.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::exchange;
use crate::site::{PLAIN, Site};

const READY: Duration = Duration::from_secs(30);
/// Another process may take the free port that was found: so often it is tried again.
const TRIES: usize = 5;
/// Whom servers started by root become; hob chooses the same.
const USER: &str = "www-data";
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// A server to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Nginx,
    Apache,
}

impl Peer {
    /// As the table calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Nginx => "nginx",
            Peer::Apache => "apache",
        }
    }

    /// By that name.
    pub(crate) fn of_name(name: &str) -> Option<Peer> {
        [Peer::Nginx, Peer::Apache]
            .into_iter()
            .find(|peer| peer.name() == name)
    }

    fn programs(self) -> &'static [&'static str] {
        match self {
            Peer::Nginx => &["nginx", "/usr/sbin/nginx"],
            Peer::Apache => &["apache2", "/usr/sbin/apache2"],
        }
    }

    /// What it prints when its sockets listen.
    fn ready_words(self) -> &'static str {
        match self {
            Peer::Nginx => "start worker process ",
            Peer::Apache => "resuming normal operations",
        }
    }
}

/// A server or why there is none.
pub(crate) enum Start {
    Running(Server),
    NotInstalled(String),
}

/// What a server gave for /plain.txt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validators {
    pub(crate) entity_tag: String,
    pub(crate) modified: String,
}

/// A running server. Ended when dropped.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
    pub(crate) validators: Validators,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

impl Server {
    fn ready(name: &'static str, port: u16, child: Child) -> Server {
        let mut server = Server {
            name,
            port,
            validators: Validators::default(),
            child,
        };
        let request = b"GET /plain.txt HTTP/1.1\r\nHost: peers.test\r\n\r\n";
        let conversation = exchange::converse(port, request).unwrap();
        let answer = &conversation.answers[0];
        assert_eq!(answer.body, PLAIN.as_bytes(), "{name}");
        server.validators = Validators {
            entity_tag: answer.field("etag").unwrap(),
            modified: answer.field("last-modified").unwrap(),
        };
        server
    }
}

/// Starts hob on a site, with these lines under `[site.files]`.
pub(crate) fn hob(site: &Site, files: &str) -> Server {
    hob_with(site, &(include_str!("hob.toml").to_owned() + files))
}

/// Starts hob with this config, in which `@ROOT@` is the site's folder.
pub(crate) fn hob_with(site: &Site, config: &str) -> Server {
    let file = site.room("hob").join("hob.toml");
    fs::write(&file, config.replace("@ROOT@", &shown(&site.root()))).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hob"))
        .args(["serve", "--control", "off", "--config"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = wait_for("listening on http://127.0.0.1:", &lines(&mut child));
    let said = said.unwrap_or_else(|said| {
        let _ = child.kill();
        panic!("hob does not start: {said}")
    });
    let (_, port) = said
        .trim_end()
        .trim_end_matches('/')
        .rsplit_once(':')
        .unwrap();
    Server::ready("hob", port.parse().unwrap(), child)
}

/// Starts a peer.
pub(crate) fn peer(peer: Peer, site: &Site) -> Start {
    let Some(program) = installed(peer) else {
        return Start::NotInstalled(format!("{} is not installed", peer.name()));
    };
    if peer == Peer::Apache && !Path::new(APACHE_MODULES).is_dir() {
        return Start::NotInstalled(format!("{APACHE_MODULES} has no modules of apache"));
    }
    let room = site.room(peer.name());
    let mut said = String::new();
    for _ in 0..TRIES {
        let port = free_port();
        let config = room.join("server.conf");
        fs::write(&config, peer_config(peer, site, &room, port)).unwrap();
        let mut command = Command::new(program);
        match peer {
            Peer::Nginx => command
                .arg("-e")
                .arg("stderr")
                .arg("-p")
                .arg(&room)
                .arg("-c")
                .arg(&config),
            Peer::Apache => command
                .arg("-d")
                .arg(&room)
                .arg("-f")
                .arg(&config)
                .arg("-DFOREGROUND"),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        match wait_for(peer.ready_words(), &lines(&mut child)) {
            Ok(_) => return Start::Running(Server::ready(peer.name(), port, child)),
            Err(last) => said = last,
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("{} does not start: {said}", peer.name());
}

fn installed(peer: Peer) -> Option<&'static str> {
    let answers = |program: &&&str| {
        let mut command = Command::new(program);
        command
            .arg("-v")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    peer.programs().iter().find(answers).copied()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn peer_config(peer: Peer, site: &Site, room: &Path, port: u16) -> String {
    let (text, user) = match peer {
        Peer::Nginx => (include_str!("nginx.conf"), format!("user {USER};")),
        Peer::Apache => (
            include_str!("apache.conf"),
            format!("User {USER}\nGroup {USER}"),
        ),
    };
    let user = if geteuid().is_root() {
        user
    } else {
        String::new()
    };
    text.replace("@USER@", &user)
        .replace("@ROOM@", &shown(room))
        .replace("@ROOT@", &shown(&site.root()))
        .replace("@PORT@", &port.to_string())
        .replace("@MODULES@", APACHE_MODULES)
}

fn shown(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Both streams, line by line, read to their end so that the server never blocks on them.
fn lines(child: &mut Child) -> Receiver<String> {
    let (to, lines) = mpsc::channel();
    let output = child
        .stdout
        .take()
        .map(|stream| Box::new(stream) as Box<dyn Read + Send>);
    let errors = child
        .stderr
        .take()
        .map(|stream| Box::new(stream) as Box<dyn Read + Send>);
    for stream in [output, errors].into_iter().flatten() {
        let to = to.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let _ = to.send(line);
            }
        });
    }
    lines
}

/// The first line with these words; else all that was said.
fn wait_for(words: &str, lines: &Receiver<String>) -> Result<String, String> {
    let deadline = Instant::now() + READY;
    let mut said = Vec::new();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains(words) => return Ok(line),
            Ok(line) => said.push(line),
            Err(_) => return Err(said.join("\n")),
        }
    }
}
