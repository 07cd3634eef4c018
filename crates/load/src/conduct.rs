//! How a run is conducted and watched, beside what is asked of the server: when it begins, which
//! part of the whole it is, what ends it early, what is shown meanwhile.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use crate::limits::SHARD_COUNT_MAX;

/// What is shown while a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressDisplay {
    /// Nothing.
    #[default]
    Nothing,
    /// A line on standard error every so often.
    Lines(Duration),
    /// A screen of figures and curves on standard error, which is a terminal.
    Screen,
}

/// How a run is conducted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conduct {
    /// The command line, for the report.
    pub command: Vec<String>,
    /// A control group whose CPU time and memory are put beside the result.
    pub cgroup: Option<PathBuf>,
    /// What ends the run early.
    pub stops: Vec<StopCondition>,
    /// Which part of the plan is carried out here.
    pub shard: Option<Shard>,
    /// When to begin.
    pub start_at: Option<SystemTime>,
    /// What is shown meanwhile.
    pub view: ProgressDisplay,
}

/// One of several machines that carry out a plan together, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which one.
    pub number: u32,
    /// Of how many.
    pub count: u32,
}

impl Shard {
    /// The part of something countable that falls to it.
    pub(crate) fn part(self, whole: u64) -> u64 {
        let (each, rest) = (whole / u64::from(self.count), whole % u64::from(self.count));
        each + u64::from(u64::from(self.number) <= rest)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let wrong = || {
            format!(
                "{text:?} is no part of a whole; write 1/3, 2/3 or 3/3 for the three of three \
                 machines, at most {SHARD_COUNT_MAX}"
            )
        };
        let (number, count) = text.split_once('/').ok_or_else(wrong)?;
        let number = number.parse().map_err(|_| wrong())?;
        let count = count.parse().map_err(|_| wrong())?;
        if number == 0 || number > count || count > SHARD_COUNT_MAX {
            return Err(wrong());
        }
        Ok(Shard { number, count })
    }
}

/// What is watched for a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopper {
    /// Requests that are due and wait for a connection.
    Backlog,
    /// Requests that failed.
    Errors,
}

/// A condition that ends a run early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopCondition {
    text: String,
    pub(crate) stopper: Stopper,
    limit: u64,
}

impl StopCondition {
    /// Has it come to that?
    pub(crate) fn is_reached(&self, count: u64) -> bool {
        count > self.limit
    }
}

impl fmt::Display for StopCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for StopCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<StopCondition, String> {
        let wrong = || {
            format!(
                "{text:?} ends no run; write backlog>COUNT (requests that are due and wait for a \
                 connection) or errors>COUNT"
            )
        };
        let (figure, limit) = text.split_once('>').ok_or_else(wrong)?;
        let stopper = match figure.trim() {
            "backlog" => Stopper::Backlog,
            "errors" => Stopper::Errors,
            _ => return Err(wrong()),
        };
        Ok(StopCondition {
            text: text.to_owned(),
            stopper,
            limit: limit.trim().parse().map_err(|_| wrong())?,
        })
    }
}

/// Seconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ`.
fn utc(text: &str) -> Option<f64> {
    let (us, _) = crate::moment::iso(text).filter(|_| text.ends_with('Z'))?;
    Some(us as f64 / 1e6)
}

/// Reads when to begin: seconds since 1970 or a moment of UTC such as `2026-01-31T12:00:00Z`.
pub fn parse_moment(text: &str) -> Result<SystemTime, String> {
    let wrong = || {
        format!("{text:?} is no moment; write seconds since 1970 or UTC as 2026-01-31T12:00:00Z")
    };
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => utc(text).ok_or_else(wrong)?,
    };
    if !(0.0..=4e9).contains(&seconds) {
        return Err(wrong());
    }
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds))
}

/// Seconds since 1970 of a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = text.split(' ').skip(1);
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let time = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    utc(&format!("{year}-{month:02}-{day}T{time}Z")).map(|seconds| seconds as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_all_of_the_whole_together() {
        for whole in [0, 1, 7, 100] {
            let parts = (1..=3).map(|number| Shard { number, count: 3 }.part(whole));
            assert_eq!(parts.sum::<u64>(), whole);
        }
        assert_eq!(
            "2/3".parse(),
            Ok(Shard {
                number: 2,
                count: 3
            })
        );
        for wrong in ["", "0/3", "4/3", "1", "1/", "1/1000000", "a/b"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn stop_has_a_figure_and_a_limit() {
        let stop: StopCondition = "backlog > 10".parse().unwrap();
        assert_eq!(stop.stopper, Stopper::Backlog);
        assert!(stop.is_reached(11) && !stop.is_reached(10));
        for wrong in ["", "backlog", "backlog>", "backlog>1%", "p99>1", "errors<1"] {
            assert!(wrong.parse::<StopCondition>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn dates_of_http_are_moments() {
        assert_eq!(
            http_date("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777)
        );
        for wrong in ["", "0", "Sun, 06 Nov 1994", "Sun, 6 Nov 1994 08:49:37 GMT"] {
            assert_eq!(http_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn moments_are_seconds_or_utc() {
        let seconds = |text| {
            let moment = parse_moment(text)?;
            let passed = moment.duration_since(SystemTime::UNIX_EPOCH);
            Ok::<u64, String>(passed.unwrap().as_secs())
        };
        assert_eq!(seconds("1700000000"), Ok(1_700_000_000));
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(seconds("2024-02-29T12:34:56Z"), Ok(1_709_210_096));
        for wrong in [
            "",
            "soon",
            "2024-13-01T00:00:00Z",
            "2024-01-01 00:00:00",
            "-5",
            "NaN",
        ] {
            assert!(parse_moment(wrong).is_err(), "{wrong}");
        }
    }
}
