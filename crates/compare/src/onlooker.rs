//! Who looks at hob while it is measured: watchers, admin pages, a collector of metrics. They read
//! its control socket in threads of this process, so that what they use is not the server's.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::limits::{ONLOOKER_HEAD_BYTES_MAX, ONLOOKER_PATIENCE};
use crate::server::Extra;

/// How often a collector asks; Prometheus' own default is a sixtieth as often.
const SCRAPE_PERIOD: Duration = Duration::from_secs(1);
/// What ten admin pages follow.
const PAGES: [&str; 10] = [
    "overview",
    "programs",
    "running",
    "connections",
    "status",
    "overview",
    "programs",
    "running",
    "connections",
    "overview",
];

/// Those who look at one server. When it is dropped, they are gone.
#[derive(Default)]
pub(crate) struct Onlookers {
    streams: Vec<UnixStream>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped to end the collector.
    collector: Option<Sender<()>>,
}

impl Onlookers {
    /// Those that belong to `extra`, looking at the server behind this control socket.
    pub(crate) fn new(extra: Extra, control: &Path) -> Result<Onlookers, String> {
        let mut onlookers = Onlookers::default();
        let targets: Vec<String> = match extra {
            Extra::Watched => vec!["/v1/watch".to_owned()],
            Extra::WatchedElsewhere => vec!["/v1/watch?path=/nowhere/*".to_owned()],
            Extra::Pages => PAGES.map(|page| format!("/v1/live?page={page}")).to_vec(),
            Extra::Scraped => {
                onlookers.collect(control)?;
                vec![]
            }
            _ => vec![],
        };
        for target in targets {
            onlookers.follow(control, &target)?;
        }
        Ok(onlookers)
    }

    /// Reads a stream of events and throws them away.
    fn follow(&mut self, control: &Path, target: &str) -> Result<(), String> {
        let cannot = |error: io::Error| format!("nobody can look at {target}: {error}");
        let mut stream = ask(control, target).map_err(cannot)?;
        self.streams.push(stream.try_clone().map_err(cannot)?);
        self.threads.push(std::thread::spawn(move || {
            let mut room = vec![0; 1 << 16];
            while stream.read(&mut room).is_ok_and(|count| count > 0) {}
        }));
        Ok(())
    }

    /// Asks for the metrics again and again.
    fn collect(&mut self, control: &Path) -> Result<(), String> {
        let read = |control: &Path| -> io::Result<u64> {
            let mut stream = ask(control, "/metrics")?;
            stream.set_read_timeout(Some(ONLOOKER_PATIENCE))?;
            io::copy(&mut stream, &mut io::sink())
        };
        read(control).map_err(|error| format!("/metrics cannot be read: {error}"))?;
        let (collector, end) = channel();
        let control = control.to_owned();
        self.threads.push(std::thread::spawn(move || {
            while end.recv_timeout(SCRAPE_PERIOD) == Err(RecvTimeoutError::Timeout) {
                // A server that has ended is told of by the rounds.
                let _ = read(&control);
            }
        }));
        self.collector = Some(collector);
        Ok(())
    }
}

impl Drop for Onlookers {
    fn drop(&mut self) {
        self.collector = None;
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            // It has said so itself if it panicked.
            let _ = thread.join();
        }
    }
}

/// Sends a request over a connection of its own and reads the head of its answer, which must be
/// 200; the rest ends with the connection.
fn ask(control: &Path, target: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(ONLOOKER_PATIENCE))?;
    let request = format!("GET {target} HTTP/1.1\r\nHost: hob\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = Vec::new();
    let mut byte = [0];
    // Byte by byte: what follows the head is for who reads on.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= ONLOOKER_HEAD_BYTES_MAX {
            return Err(io::Error::other("the answer's head has no end"));
        }
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    stream.set_read_timeout(None)?;
    if head.starts_with(b"HTTP/1.1 200 ") {
        return Ok(stream);
    }
    let first = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first).into_owned();
    Err(io::Error::other(format!("the answer is {first}")))
}
