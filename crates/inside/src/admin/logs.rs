//! Access logs: which there are, their last lines, and new lines as they come. Lines are JSON
//! strings, so control characters in them reach nobody's terminal.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hob_http::Answered;
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::events::{self, EventMailbox};
use super::reply;
use crate::api::{AccessLogs, LogFile, LogLines, Remark};
use hob_server::cache::disk_threads::DiskThreads;
use hob_server::config::LogTarget;

/// Lines of one answer.
const LINES_MAX: u64 = 10_000;
/// Bytes that are read back from a log's end.
const BACK_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of one look at what is new.
const NEW_BYTES_MAX: usize = 256 * 1024;
/// Longest line that is told whole, in bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How often a log is looked at while somebody reads along.
const PACE: Duration = Duration::from_millis(250);
/// The lane of the file pool in which logs are read.
const LANE: u64 = u64::MAX - 5;

/// `GET /v1/logs`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let targets = targets(ask);
    let job = pool(ask).run(move || {
        let logs = targets.iter().enumerate();
        let logs = logs.map(|(id, target)| told(id, target));
        json!(AccessLogs {
            logs: logs.collect()
        })
    });
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let done = ask.done(job).await;
        done.map_or_else(|refusal| refusal, |value| reply::object(200, &value))
    }))
}

fn told(id: usize, target: &LogTarget) -> LogFile {
    let path = match target {
        LogTarget::File(path) => path,
        LogTarget::Stdout => return no_file(id, "standard output".to_owned()),
        LogTarget::Syslog(syslog) => return no_file(id, format!("syslog {}", syslog.address)),
        LogTarget::Program(arguments) => {
            let path = arguments.first().map_or("", String::as_str);
            return no_file(id, format!("program {path}"));
        }
    };
    let name = path.file_name().unwrap_or(path.as_os_str());
    LogFile {
        id,
        name: name.to_string_lossy().into_owned(),
        path: Some(path.display().to_string()),
        bytes: path.metadata().ok().map(|found| found.len()),
    }
}

fn no_file(id: usize, name: String) -> LogFile {
    LogFile {
        id,
        name,
        path: None,
        bytes: None,
    }
}

/// `GET /v1/logs/{id}?lines=200`
pub(super) fn last(ask: &AdminRequest) -> Answered {
    let Some(path) = path(ask) else {
        return Answered::Ready(reply::text(404, "there is no such log, or it is no file"));
    };
    let most = ask.number("lines", 200).min(LINES_MAX) as usize;
    let job = pool(ask).run(move || last_lines(&path, most));
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        match ask.done(job).await {
            Ok(Ok(lines)) => reply::object(200, &json!(LogLines { lines })),
            Ok(Err(error)) => reply::text(409, format!("the log cannot be read: {error}")),
            Err(refusal) => refusal,
        }
    }))
}

fn last_lines(path: &Path, most: usize) -> std::io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let start = len.saturating_sub(BACK_BYTES_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(BACK_BYTES_MAX).read_to_end(&mut bytes)?;
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    // The first is the end of one, unless it is where the file begins.
    let cut = usize::from(start > 0).max(lines.len().saturating_sub(most));
    Ok(lines.drain(cut.min(lines.len())..).map(text_of).collect())
}

fn text_of(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]).into_owned()
}

/// `GET /v1/logs/{id}/tail`
pub(super) fn tail(ask: &AdminRequest) -> Answered {
    let Some(path) = path(ask) else {
        return Answered::Ready(reply::text(404, "there is no such log, or it is no file"));
    };
    let mailbox = EventMailbox::new();
    let response = events::stream(ask, Arc::clone(&mailbox));
    if !mailbox.is_closed() {
        let (reactor, pool) = (ask.request.reactor().clone(), pool(ask));
        let timer = reactor.timer();
        reactor.spawn_standing(async move {
            let mut follower = Some(Follower::new(path));
            while let Some(mut following) = follower.take() {
                let Ok(job) = pool.run(move || {
                    let lines = following.look();
                    (following, lines)
                }) else {
                    break;
                };
                let Some((following, (lines, goes_on))) = job.await else {
                    break;
                };
                lines.into_iter().for_each(|(name, data)| {
                    mailbox.push(events::frame(name, &data));
                });
                if mailbox.is_closed() || !goes_on {
                    break;
                }
                follower = Some(following);
                timer.set(PACE);
                timer.elapsed().await;
            }
            mailbox.end();
        });
    }
    Answered::Ready(response)
}

/// A log that is read along, over rotations.
struct Follower {
    path: PathBuf,
    file: Option<File>,
    /// What of a line has come.
    part: Vec<u8>,
}

/// Events to come of a look: their names and data.
type Told = Vec<(&'static str, Value)>;

impl Follower {
    fn new(path: PathBuf) -> Follower {
        Follower {
            path,
            file: None,
            part: Vec::new(),
        }
    }

    /// What is new, and whether there is any sense in going on.
    fn look(&mut self) -> (Told, bool) {
        let mut told = Told::new();
        if self.file.is_none() {
            let opened = File::open(&self.path).and_then(|mut file| {
                file.seek(SeekFrom::End(0))?;
                Ok(file)
            });
            match opened {
                Ok(file) => self.file = Some(file),
                Err(error) => {
                    let text = format!("the log cannot be read: {error}");
                    return (vec![("error", json!(Remark { text }))], false);
                }
            }
            told.push(("ready", json!({})));
        }
        self.read(&mut told);
        if self.was_rotated() {
            self.file = File::open(&self.path).ok();
            self.read(&mut told);
        }
        (told, true)
    }

    fn read(&mut self, told: &mut Told) {
        let Some(file) = &mut self.file else { return };
        let mut buffer = vec![0; NEW_BYTES_MAX];
        let Ok(count) = file.read(&mut buffer) else {
            return;
        };
        for byte in &buffer[..count] {
            match byte {
                b'\n' => {
                    told.push(("line", json!(text_of(&self.part))));
                    self.part.clear();
                }
                byte if self.part.len() < LINE_BYTES_MAX => self.part.push(*byte),
                _ => {}
            }
        }
    }

    /// Another file stands at its path.
    fn was_rotated(&self) -> bool {
        let ours = self.file.as_ref().and_then(|file| file.metadata().ok());
        let theirs = self.path.metadata().ok();
        let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
        theirs.is_some() && ours.map(identity) != theirs.map(identity)
    }
}

fn pool(ask: &AdminRequest) -> DiskThreads {
    ask.admin.shared.pool.for_lane(LANE)
}

/// Where the lines of each log go, by its number.
fn targets(ask: &AdminRequest) -> Vec<LogTarget> {
    let config = Arc::clone(&ask.admin.configured.lock().config);
    config.logs.iter().map(|log| log.target.clone()).collect()
}

/// The file of a log, if it is one.
fn path(ask: &AdminRequest) -> Option<PathBuf> {
    let id: usize = ask.part.parse().ok()?;
    match targets(ask).into_iter().nth(id)? {
        LogTarget::File(path) => Some(path),
        LogTarget::Stdout | LogTarget::Syslog(_) | LogTarget::Program(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_lines_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "a\nb\n\u{1b}c\nrest").unwrap();
        let last = |most| last_lines(&path, most).unwrap();
        assert_eq!(last(10), ["a", "b", "\u{1b}c", "rest"]);
        assert_eq!(last(2), ["\u{1b}c", "rest"]);
        std::fs::write(&path, "").unwrap();
        assert_eq!(last(2), Vec::<String>::new());
        let long = format!("{}\nend\n", "x".repeat(BACK_BYTES_MAX as usize));
        std::fs::write(&path, long).unwrap();
        assert_eq!(last(5), ["end"]);
    }

    #[test]
    fn a_follower_goes_on_with_the_file_that_took_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "before\n").unwrap();
        let mut follower = Follower::new(path.clone());
        assert_eq!(follower.look().0, [("ready", json!({}))]);
        let append = |text: &str| {
            let mut file = File::options()
                .append(true)
                .create(true)
                .open(&path)
                .unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        append("one\ntw");
        assert_eq!(follower.look().0, [("line", json!("one"))]);
        append("o\n");
        std::fs::rename(&path, folder.path().join("log.1")).unwrap();
        append("three\n");
        assert_eq!(
            follower.look().0,
            [("line", json!("two")), ("line", json!("three"))]
        );
        let (told, goes_on) = Follower::new(folder.path().join("none")).look();
        assert_eq!((told[0].0, goes_on), ("error", false));
    }
}
