//! Access log files: opened and rotated by the keeper, because the server may not reach them.
//!
//! Compressing takes as long as a file is large, so a child does it, some time after the rotation:
//! by then nobody writes to the file any more.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::KeeperFailure;
use hob_config::{LogSettings, LogTarget};

/// Between a rotation and the compression of what was put aside: the server's log thread may still
/// be writing lines it took before it heard of the new file.
const SETTLE: Duration = Duration::from_secs(5);
/// Files that wait to be compressed; beyond that they stay as they are.
const WAITING_MAX: usize = 1024;

/// Opens every log that is a file, by its index.
pub(super) fn open_all(logs: &[LogSettings]) -> Result<Vec<(u16, OwnedFd)>, KeeperFailure> {
    let mut open_logs = Vec::new();
    for (index, log) in logs.iter().enumerate() {
        let LogTarget::File(path) = &log.target else {
            continue;
        };
        let index = u16::try_from(index)
            .map_err(|_| KeeperFailure::Config(format!("more than {} access logs", u16::MAX)))?;
        let file = hob_trace::rotate::open(path).map_err(|error| {
            let path = path.display();
            KeeperFailure::System(format!("cannot open the access log {path}: {error}"))
        })?;
        open_logs.push((index, file.into()));
    }
    Ok(open_logs)
}

/// What was rotated, and what is left to do about it.
#[derive(Debug, Default)]
pub(super) struct Rotations {
    /// The day, since 1970, on which a log was last put aside because of the day.
    days: HashMap<PathBuf, u64>,
    /// Put aside and to be compressed, with the time from which that may be done.
    waiting: VecDeque<(Instant, PathBuf)>,
}

impl Rotations {
    /// Those that were waiting when another keeper handed over.
    pub(super) fn resumed(paths: Vec<PathBuf>, now: Instant) -> Rotations {
        let waiting = paths.into_iter().map(|path| (now + SETTLE, path)).collect();
        Rotations {
            waiting,
            ..Rotations::default()
        }
    }

    /// Puts a log aside and opens a new file, or opens the same again when nothing is due. The
    /// server says when; whether it is due is looked at again here, because the server is the less
    /// trusted one and old files are deleted.
    pub(super) fn rotate(
        &mut self,
        log: &LogSettings,
        day: u64,
        now: Instant,
    ) -> io::Result<OwnedFd> {
        let LogTarget::File(path) = &log.target else {
            return Err(io::Error::other("this log is not a file"));
        };
        if !self.is_due(log, path, day)? {
            return Ok(hob_trace::rotate::open(path)?.into());
        }
        let (file, to_compress) = hob_trace::rotate::rotate(path, log.keep, log.compress)?;
        if let Some(put_aside) = to_compress.filter(|_| self.waiting.len() < WAITING_MAX) {
            self.waiting.push_back((now + SETTLE, put_aside));
        }
        Ok(file.into())
    }

    fn is_due(&mut self, log: &LogSettings, path: &Path, day: u64) -> io::Result<bool> {
        if log.rotate_bytes > 0 && std::fs::metadata(path)?.len() >= log.rotate_bytes {
            return Ok(true);
        }
        if !log.rotate_daily || self.days.get(path) == Some(&day) {
            return Ok(false);
        }
        self.days.insert(path.to_owned(), day);
        Ok(true)
    }

    /// When the next file may be compressed.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting.front().map(|(due, _)| *due)
    }

    /// The next file that may be compressed now.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<PathBuf> {
        if self.due().is_none_or(|due| due > now) {
            return None;
        }
        self.waiting.pop_front().map(|(_, path)| path)
    }

    /// All that wait.
    pub(super) fn waiting(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.waiting.iter().map(|(_, path)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(path: &Path) -> LogSettings {
        LogSettings {
            target: LogTarget::File(path.to_owned()),
            format: String::new(),
            variables: Vec::new(),
            rotate_bytes: 4,
            rotate_daily: false,
            keep: 9,
            compress: true,
        }
    }

    fn count(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn full_log_is_put_aside_and_compressed_when_it_has_settled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "1234").unwrap();
        let mut rotations = Rotations::default();
        let now = Instant::now();
        rotations.rotate(&log(&path), 1, now).unwrap();
        assert_eq!(count(folder.path()), 2);
        assert_eq!(rotations.due(), Some(now + SETTLE));
        assert_eq!(rotations.take_due(now), None);
        let put_aside = rotations.take_due(now + SETTLE).unwrap();
        assert_eq!(std::fs::read_to_string(put_aside).unwrap(), "1234");
        assert_eq!(rotations.due(), None);
    }

    #[test]
    fn log_that_is_not_full_is_only_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "123").unwrap();
        let mut rotations = Rotations::default();
        rotations.rotate(&log(&path), 1, Instant::now()).unwrap();
        assert_eq!((count(folder.path()), rotations.due()), (1, None));
    }

    #[test]
    fn daily_log_is_put_aside_once_a_day_however_often_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "x").unwrap();
        let daily = LogSettings {
            rotate_bytes: 0,
            rotate_daily: true,
            ..log(&path)
        };
        let mut rotations = Rotations::default();
        for (day, files) in [(7, 2), (7, 2), (7, 2), (8, 3), (8, 3)] {
            rotations.rotate(&daily, day, Instant::now()).unwrap();
            assert_eq!(count(folder.path()), files, "day {day}");
        }
    }

    #[test]
    fn log_in_a_missing_folder_names_the_path() {
        let failure = open_all(&[log(Path::new("/no/such/folder/access.log"))]).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("/no/such/folder/access.log"), "{text}");
    }
}
