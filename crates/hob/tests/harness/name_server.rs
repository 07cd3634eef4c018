//! dnsmasq on loopback, with the names of a test.

use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::DEADLINE;

/// Ended with this.
pub struct NameServer {
    pub child: Child,
    pub port: u16,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl NameServer {
    /// One that is started with these arguments, and has an address for this name.
    pub fn start(arguments: &[String], name: &str) -> NameServer {
        let until = Instant::now() + DEADLINE;
        loop {
            assert!(Instant::now() < until, "dnsmasq does not start");
            // Free a moment ago; should another take it, the next is tried.
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let mut command = Command::new("/usr/sbin/dnsmasq");
            command.args([
                "--keep-in-foreground",
                "--conf-file=/dev/null",
                "--pid-file",
                "--no-resolv",
                "--no-hosts",
                "--bind-interfaces",
                "--listen-address=127.0.0.1",
                "--user=root",
            ]);
            command.arg(format!("--port={port}")).args(arguments);
            let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
            let child = child.unwrap_or_else(|error| panic!("dnsmasq: {error}"));
            let mut server = NameServer { child, port };
            while server.child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < until, "dnsmasq says nothing");
                if server.address(name).is_some() {
                    return server;
                }
            }
        }
    }

    /// What it has now for a name.
    pub fn address(&self, name: &str) -> Option<[u8; 4]> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", self.port)).unwrap();
        let patience = Some(Duration::from_millis(200));
        socket.set_read_timeout(patience).unwrap();
        let mut question = b"\x00\x07\x01\x00\x00\x01\0\0\0\0\0\0".to_vec();
        for label in name.split('.') {
            question.push(label.len() as u8);
            question.extend_from_slice(label.as_bytes());
        }
        question.extend_from_slice(b"\0\0\x01\0\x01");
        socket.send(&question).ok()?;
        let mut room = [0; 512];
        let count = socket.recv(&mut room).ok()?;
        room[..count].last_chunk().copied()
    }
}
