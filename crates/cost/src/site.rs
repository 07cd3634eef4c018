//! The config of a private hob: each rung has a route of its own, and one route answers without any
//! program. The second listener writes what the server's own clock says of each request to a log.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::error::CostError;
use crate::limits::{LOOK_PERIOD, MESSAGE_BYTES_MAX, SERVER_TIME_MAX};
use crate::load::ResponseTimes;
use crate::private::{NOBODY, TemporaryFolder, is_root};
use crate::rungs::{Rung, quoted};

/// Listeners of the config, by their place in it.
pub(crate) const PLAIN: usize = 0;
pub(crate) const TIMED: usize = 1;
pub(crate) const SECURE: usize = 2;
pub(crate) const LISTENERS: usize = 3;
/// Where nothing but the server answers.
pub(crate) const FIXED: &str = "/fixed";

/// Writes the config. `concurrent` is the start limit of CGI routes, where it is not the usual one.
pub(crate) fn config(
    folder: &TemporaryFolder,
    rungs: &[Rung],
    concurrent: Option<usize>,
) -> Result<String, CostError> {
    let log = quoted(&folder.path("run/log"))?;
    let state = quoted(&folder.path("run/state"))?;
    let site = quoted(&folder.path("site"))?;
    let program = match is_root() {
        true => format!("[program]\nuser = \"{NOBODY}\"\n"),
        false => String::new(),
    };
    let mut config = format!(
        "# Written by hob cost.\n\
         drain = \"1s\"\nstate = {state}\n{program}\
         [[log]]\nname = \"timed\"\nfile = {log}\n\
         format = \"{{status}} {{total_us}} {{program_us}} {{reason}}: {{detail}}\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\nlog = \"timed\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\
         [[site]]\nroot = {site}\n\
         [[site.route]]\npath = \"{FIXED}\"\n\
         respond = {{ status = 200, body = \"fixed\\n\" }}\n"
    );
    for (index, rung) in rungs.iter().enumerate() {
        if let Ok(route) = &rung.route {
            let limit = match (rung.handler, concurrent) {
                ("cgi", Some(count)) => format!("{}, concurrent = {count} }}", unclosed(route)),
                _ => route.clone(),
            };
            config.push_str(&format!("[[site.route]]\npath = \"/{index}/*\"\n{limit}\n"));
        }
    }
    Ok(config)
}

/// An inline table without its last brace.
fn unclosed(route: &str) -> &str {
    route.trim_end_matches('}').trim_end()
}

/// What the server's own clock says, over many requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Recorded {
    /// From the request's first byte until its answer was handed to the kernel.
    pub(crate) total: ResponseTimes,
    /// From asking for a program's start until the head of its answer was complete.
    pub(crate) program: ResponseTimes,
}

/// The log of the second listener.
pub(crate) struct Records {
    file: PathBuf,
}

impl Records {
    pub(crate) fn of(folder: &TemporaryFolder) -> Records {
        Records {
            file: folder.path("run/log"),
        }
    }

    /// How many there are until now.
    pub(crate) fn count(&self) -> usize {
        self.lines().len()
    }

    /// Those after the first ones, when so many have come.
    pub(crate) fn after(&self, first: usize, count: u64) -> Result<Recorded, CostError> {
        let Some(lines) = self.wait(first, count as usize) else {
            return Err(CostError::Server(format!(
                "the log of the hob to measure with is not complete: of {count} requests {} are in \
                 it after {} s; try again with a smaller --count",
                self.count().saturating_sub(first),
                SERVER_TIME_MAX.as_secs()
            )));
        };
        let (mut total, mut program) = (Vec::new(), Vec::new());
        for line in &lines {
            let (all, part) = times(line).ok_or_else(|| {
                CostError::Server(format!(
                    "the log of the hob to measure with has a line without times: {line}"
                ))
            })?;
            total.push(all * 1000);
            program.push(part * 1000);
        }
        Ok(Recorded {
            total: ResponseTimes::of(total),
            program: ResponseTimes::of(program),
        })
    }

    /// Why the request after the first ones was answered as it was.
    pub(crate) fn reason(&self, first: usize) -> String {
        let lines = self.wait(first, 1).unwrap_or_default();
        let Some(line) = lines.first() else {
            return "the server does not say why".to_owned();
        };
        let reason: String = line.splitn(4, ' ').skip(3).collect();
        let reason = reason.trim_end_matches([' ', '-', ':']);
        reason.chars().take(MESSAGE_BYTES_MAX).collect()
    }

    fn wait(&self, first: usize, count: usize) -> Option<Vec<String>> {
        let begun = Instant::now();
        loop {
            let lines = self.lines();
            if lines.len() >= first + count {
                return Some(lines[first..first + count].to_vec());
            }
            if begun.elapsed() > SERVER_TIME_MAX {
                return None;
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let whole = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        whole.map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Microseconds of the whole request and until the program's head, in a line of the log.
fn times(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split(' ').skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_without_times_is_an_error_and_no_zero() {
        assert_eq!(times("200 15 7 -: -"), Some((15, 7)));
        assert_eq!(times("200 15"), None);
        let folder = TemporaryFolder::new().unwrap();
        let records = Records::of(&folder);
        fs::write(&records.file, "200 15 7 -: -\n200 - -\n").unwrap();
        let one = records.after(0, 1).unwrap();
        assert_eq!((one.total.p50_us, one.program.p50_us), (15.0, 7.0));
        let error = records.after(0, 2).unwrap_err().to_string();
        assert!(error.contains("a line without times: 200 - -"), "{error}");
    }
}
