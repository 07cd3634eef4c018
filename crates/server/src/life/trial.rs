//! A server that is just enough to try the life of processes: one thread per connection, one
//! request each, files of the first site by name. Goes when the real one arrives.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Event, Failure, Generation, ServerLife, Wish};
use crate::config::{Config, Handler};

/// Runs a server process.
pub fn run() -> Result<(), Failure> {
    let mut life = ServerLife::from_stdin()?;
    let generation = life.start()?;
    let mut trial = Trial {
        running: Arc::new(()),
        asked: Vec::new(),
        until: None,
        generation,
    };
    life.ready();
    trial.run(&mut life);
    life.drained();
    Ok(())
}

struct Trial {
    /// One clone per connection.
    running: Arc<()>,
    asked: Vec<(u64, UnixStream)>,
    until: Option<Instant>,
    generation: Generation,
}

impl Trial {
    fn run(&mut self, life: &mut ServerLife) {
        loop {
            while let Some(event) = life.next() {
                self.handle(life, event);
            }
            self.accept(life);
            match self.until {
                Some(_) if Arc::strong_count(&self.running) == 1 => return,
                Some(until) if until <= Instant::now() => return,
                _ => self.wait(life),
            }
        }
    }

    fn wait(&self, life: &ServerLife) {
        let mut polled = vec![PollFd::from_borrowed_fd(life.fd(), PollFlags::IN)];
        if self.until.is_none() {
            for socket in self
                .generation
                .listeners
                .iter()
                .chain(&self.generation.control)
            {
                polled.push(PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN));
            }
        }
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: 5_000_000,
        };
        let _ = poll(&mut polled, self.until.map(|_| &tick));
    }

    fn handle(&mut self, life: &mut ServerLife, event: Event) {
        match event {
            Event::Reload(generation) => {
                self.accept(life);
                self.generation = *generation;
                life.reloaded(self.generation.number);
            }
            Event::Drain { deadline, .. } => {
                self.accept(life);
                self.until = Some(Instant::now() + deadline);
            }
            Event::KeeperGone => self.until = Some(Instant::now() + Duration::from_secs(1)),
            Event::LogFile { index, file } => {
                if let Some(log) = self.generation.logs.get_mut(index) {
                    *log = Some(file);
                }
            }
            Event::Answer {
                request,
                is_ok,
                text,
            } => {
                let asked = self.asked.iter().position(|(number, _)| *number == request);
                if let Some(position) = asked {
                    let (_, stream) = self.asked.remove(position);
                    let status = if is_ok { "200 OK" } else { "409 Conflict" };
                    let body = serde_json::json!({ "ok": is_ok, "text": text }).to_string();
                    let _ = respond(stream, status, body.as_bytes());
                }
            }
        }
    }

    fn accept(&mut self, life: &mut ServerLife) {
        if self.until.is_some() {
            return;
        }
        let root = root(&self.generation.config);
        for listener in &self.generation.listeners {
            while let Ok(stream) = rustix::net::accept(listener) {
                let (root, running) = (root.clone(), self.running.clone());
                let log = self.generation.logs.iter().flatten().next();
                let log = log.and_then(|log| log.try_clone().ok());
                std::thread::spawn(move || {
                    let _ = serve(stream, &root, log);
                    drop(running);
                });
            }
        }
        let mut came = Vec::new();
        if let Some(control) = &self.generation.control {
            while let Ok(stream) = rustix::net::accept(control) {
                came.push(UnixStream::from(stream));
            }
        }
        for stream in came {
            let _ = self.steer(life, stream);
        }
    }

    fn steer(&mut self, life: &mut ServerLife, stream: UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let head = read_head(&stream)?;
        let wish = match head.split(' ').take(2).collect::<Vec<_>>()[..] {
            ["GET", "/v1/status"] => {
                let status = serde_json::json!({
                    "generation": self.generation.number,
                    "pid": std::process::id(),
                    "keeper_pid": self.generation.facts.keeper_pid,
                    "listening": self.generation.facts.addresses,
                    "warnings": self.generation.facts.warnings,
                    "servers_started": self.generation.facts.servers_started,
                    "cache": { "bytes": 0 },
                });
                return respond(stream, "200 OK", status.to_string().as_bytes());
            }
            ["POST", "/v1/reload"] => Wish::Reload,
            ["POST", "/v1/upgrade"] => Wish::Upgrade,
            ["POST", "/v1/stop"] => Wish::Stop,
            _ => return respond(stream, "404 Not Found", b"{}"),
        };
        self.asked.push((life.ask(wish), stream));
        Ok(())
    }
}

fn root(config: &Config) -> PathBuf {
    match config
        .sites
        .first()
        .and_then(|site| site.routes.first())
        .map(|route| &route.handler)
    {
        Some(Handler::Respond(respond)) => PathBuf::from(&respond.body),
        _ => PathBuf::from("."),
    }
}

fn serve(stream: OwnedFd, root: &std::path::Path, log: Option<OwnedFd>) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&stream)?;
    rustix::fs::fcntl_setfl(&stream, flags - rustix::fs::OFlags::NONBLOCK)?;
    let stream = File::from(stream);
    let head = read_head(&stream)?;
    let name = head
        .split(' ')
        .nth(1)
        .unwrap_or("/")
        .trim_start_matches('/');
    let result = std::fs::read(root.join(name));
    if let Some(log) = log {
        writeln!(File::from(log), "{name}")?;
    }
    match result {
        Ok(body) => respond(stream, "200 OK", &body),
        Err(_) => respond(stream, "404 Not Found", b"not found"),
    }
}

fn read_head(mut stream: impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 65536 {
        if stream.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&byte);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn respond(mut stream: impl Write, status: &str, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}
