//! A hob that serves one of the examples, on a port the kernel chose, until it is dropped.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::native;
use crate::run::{self, Scratch};
use crate::welcome;

/// Longest time to the line that says where it listens.
const READY: Duration = Duration::from_secs(20);

/// Longest time from SIGTERM to the end.
const STOP: Duration = Duration::from_secs(20);

/// What examples listen on; they are replaced by ports the kernel chooses.
const ADDRESSES: &[&str] = &[
    "127.0.0.1:8080",
    "127.0.0.1:8443",
    "localhost:8080",
    "localhost:8443",
    "127.0.0.1:9080",
];

/// A running server.
pub(crate) struct Served {
    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub(crate) url: String,
    /// The same of each listener that speaks TLS, in the order of the config.
    pub(crate) tls_urls: Vec<String>,
    child: Child,
    _files: Scratch,
}

impl Served {
    /// Serves `examples/<name>` in a copy of them all, as some use programs of others: so whoever
    /// tests may write into it, and a server that dropped its privileges can read it wherever the
    /// repository is.
    pub(crate) fn start(root: &Path, name: &str) -> Result<Served, String> {
        Served::start_with(root, name, &|_| Ok(String::new()))
    }

    /// The same with what `more` puts at the end of its config; it is given the example's folder.
    pub(crate) fn start_with(
        root: &Path,
        name: &str,
        more: &dyn Fn(&Path) -> Result<String, String>,
    ) -> Result<Served, String> {
        let program = run::built("hob")?;
        let files = Scratch::new(&format!("example-{name}"))?;
        copy_folder(&root.join("examples"), &files.0)?;
        let folder = files.0.join(name);
        match name {
            "welcome" => welcome::make(&folder)?,
            "c" => native::link(root, &folder.join("tea.c"))?,
            _ => {}
        }
        let config = folder.join("hob.toml");
        let text = fs::read_to_string(&config).map_err(|e| format!("{}: {e}", config.display()))?;
        let mut text = format!("{text}\n{}", more(&folder)?);
        for address in ADDRESSES {
            text = text.replace(address, "127.0.0.1:0");
        }
        fs::write(&config, &text).map_err(|e| format!("{}: {e}", config.display()))?;
        let listeners = text.matches("[[listen]]").count();

        let mut child = Command::new(program)
            .args(["serve", "--config"])
            .arg(&config)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("starting hob: {error}"))?;
        let lines = lines_of(&mut child);
        let urls = wait_for_addresses(&lines, listeners).and_then(|urls| {
            let (tls, clear): (Vec<_>, Vec<_>) =
                urls.into_iter().partition(|url| url.starts_with("https:"));
            let url = clear.into_iter().next().ok_or("it listens on no http://")?;
            Ok((url, tls))
        });
        match urls {
            Ok((url, tls_urls)) => Ok(Served {
                url,
                tls_urls,
                child,
                _files: files,
            }),
            Err(said) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(format!(
                    "hob serve --config examples/{name}/hob.toml: {said}"
                ))
            }
        }
    }

    /// Asks the server to end, and says whether it did so in time and without an error.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        run::signal("TERM", self.child.id());
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("hob ended with {status}")),
                Ok(None) => thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(format!("waiting for hob: {error}")),
            }
        }
        Err(format!(
            "hob did not end within {} seconds of SIGTERM",
            STOP.as_secs()
        ))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Both streams, line by line. They are read to their end, so that the server never blocks on them.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (to, lines) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child
            .stdout
            .take()
            .map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child
            .stderr
            .take()
            .map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for stream in streams.into_iter().flatten() {
        let to = to.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let _ = to.send(line);
            }
        });
    }
    lines
}

/// The addresses in lines like `listening on http://127.0.0.1:PORT`; else what was said instead.
fn wait_for_addresses(lines: &Receiver<String>, count: usize) -> Result<Vec<String>, String> {
    let deadline = Instant::now() + READY;
    let (mut urls, mut said) = (Vec::new(), Vec::new());
    while urls.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => match address_in(&line) {
                Some(url) => urls.push(url),
                None => said.push(line),
            },
            Err(_) => {
                return Err(format!(
                    "{} of {count} lines \"listening on http...\"; it said {said:?}",
                    urls.len()
                ));
            }
        }
    }
    Ok(urls)
}

fn address_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("listening on ")?;
    let url = rest.split_whitespace().next()?.trim_end_matches('/');
    url.starts_with("http").then(|| url.to_string())
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let named = |error: std::io::Error| format!("copying {}: {error}", from.display());
    fs::create_dir_all(to).map_err(named)?;
    for entry in fs::read_dir(from).map_err(named)? {
        let entry = entry.map_err(named)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(named)?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).map_err(named)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_found_in_its_line() {
        let url = address_in("listening on http://127.0.0.1:40123/ (4 threads)");
        assert_eq!(url.as_deref(), Some("http://127.0.0.1:40123"));
        let url = address_in("listening on https://127.0.0.1:40124");
        assert_eq!(url.as_deref(), Some("https://127.0.0.1:40124"));
        assert_eq!(address_in("listening on unix:socket"), None);
        assert_eq!(address_in("ready"), None);
    }
}
