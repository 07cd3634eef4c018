//! Access log files: opened and rotated by the keeper, because the server may not.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Failure;
use crate::config::{LogSettings, LogTarget};

/// Logs may hold addresses of visitors: readable by the owner and the group.
const LOG_MODE: u32 = 0o640;

/// Opens every log that is a file, by its index.
pub(super) fn open_all(logs: &[LogSettings]) -> Result<Vec<(u16, OwnedFd)>, Failure> {
    let mut open_logs = Vec::new();
    for (index, log) in logs.iter().enumerate() {
        let LogTarget::File(path) = &log.target else {
            continue;
        };
        let index = u16::try_from(index)
            .map_err(|_| Failure::Config(format!("more than {} access logs", u16::MAX)))?;
        let file = open(path).map_err(|error| {
            Failure::System(format!(
                "cannot open the access log {}: {error}",
                path.display()
            ))
        })?;
        open_logs.push((index, file.into()));
    }
    Ok(open_logs)
}

fn open(path: &Path) -> io::Result<File> {
    // Not waiting for a reader when the path is a FIFO: std opens with O_CLOEXEC.
    let flags = (rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NONBLOCK).bits();
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(LOG_MODE)
        .custom_flags(flags as i32)
        .open(path)
}

/// Puts a log aside as `path.1`, the older ones one further, and opens a new one. The server says
/// when; whether it is due is looked at again here, because it is the less trusted one.
pub(super) fn rotate(log: &LogSettings) -> io::Result<OwnedFd> {
    let LogTarget::File(path) = &log.target else {
        return Err(io::Error::other("this log is not a file"));
    };
    let is_full = log.rotate_bytes > 0 && std::fs::metadata(path)?.len() >= log.rotate_bytes;
    if is_full || (log.rotate_daily && !was_rotated_today(path)) {
        shift(path, log.keep)?;
    }
    Ok(open(path)?.into())
}

fn was_rotated_today(path: &Path) -> bool {
    const DAY_SECONDS: i64 = 24 * 60 * 60;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    ["", ".gz"].iter().any(|suffix| {
        let newest = std::fs::metadata(numbered(path, 1, suffix));
        newest.is_ok_and(|file| file.mtime().div_euclid(DAY_SECONDS) == now.div_euclid(DAY_SECONDS))
    })
}

fn shift(path: &Path, keep: usize) -> io::Result<()> {
    if keep == 0 {
        return remove(path);
    }
    for suffix in ["", ".gz"] {
        remove(&numbered(path, keep, suffix))?;
        for number in (1..keep).rev() {
            rename(
                &numbered(path, number, suffix),
                &numbered(path, number + 1, suffix),
            )?;
        }
    }
    rename(path, &numbered(path, 1, ""))
}

fn numbered(path: &Path, number: usize, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}{suffix}"));
    name.into()
}

fn remove(path: &Path) -> io::Result<()> {
    missing_is_fine(std::fs::remove_file(path))
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    missing_is_fine(std::fs::rename(from, to))
}

fn missing_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn log(path: PathBuf, keep: usize) -> LogSettings {
        LogSettings {
            target: LogTarget::File(path),
            format: String::new(),
            rotate_bytes: 4,
            rotate_daily: false,
            keep,
            compress: false,
        }
    }

    #[test]
    fn rotation_shifts_and_forgets_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let log = log(path.clone(), 2);
        for text in ["first", "second", "third", "fourth"] {
            let mut file = File::from(rotate_or_open(&log));
            file.write_all(text.as_bytes()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("access.log"), "fourth");
        assert_eq!(
            (read("access.log.1"), read("access.log.2")),
            ("third".into(), "second".into())
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    fn rotate_or_open(log: &LogSettings) -> OwnedFd {
        match open_all(std::slice::from_ref(log)).unwrap().pop() {
            Some(_) => rotate(log).unwrap(),
            None => panic!("a file"),
        }
    }

    #[test]
    fn log_that_is_not_due_is_only_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "abc").unwrap();
        rotate(&log(path.clone(), 2)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "abc");
    }

    #[test]
    fn daily_log_is_put_aside_once_a_day_however_often_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "x").unwrap();
        let daily = LogSettings {
            rotate_bytes: 0,
            rotate_daily: true,
            ..log(path.clone(), 5)
        };
        for _ in 0..3 {
            rotate(&daily).unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn log_in_a_missing_folder_names_the_path() {
        let failure = open_all(&[log("/no/such/folder/access.log".into(), 1)]).unwrap_err();
        assert!(
            failure.to_string().contains("/no/such/folder/access.log"),
            "{failure}"
        );
    }
}
