//! `rate` of a site or a route: how many requests it answers in a time.

use std::time::Duration;

use super::fault::{Faults, Spot};
use super::route::pattern::Pattern;
use super::text::is_header_name;
use super::tree::Section;
use super::units::parse_duration;

/// How many requests are answered, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSettings {
    /// So many requests, on average,
    pub count: u32,
    /// in such a time.
    pub period: Duration,
    /// So many of them may come at once.
    pub burst: u32,
    /// What requests have in common that are counted together.
    pub by: RateKey,
    /// Addresses of IPv6 that begin with so many same bits are one client.
    pub v6_prefix: u8,
    /// So many clients are counted each for itself.
    pub keys: usize,
    /// Nothing is refused, only counted.
    pub dry_run: bool,
}

/// What requests have in common that are counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateKey {
    /// The client, by its address.
    Client,
    /// Nothing: all requests are.
    All,
    /// The value of a field, whose name is in lower case; without one, the client's address.
    Field(String),
    /// The value of a cookie; without one, the client's address.
    Cookie(String),
    /// Who has signed in; the client's address where nobody has.
    User,
    /// The route, as its path is written: each of a site is counted for itself.
    Path,
    /// What a part of the route's path stands for, by the part's index; the client's address where
    /// the path has none.
    Capture(usize),
}

impl RateKey {
    /// The client says itself what it is known by, or is known by its address: requests of others
    /// are not counted with its own.
    pub fn is_of_client(&self) -> bool {
        !matches!(self, RateKey::All | RateKey::Path | RateKey::Capture(_))
    }
}

impl RateSettings {
    /// The time from one request to the next at this rate, in nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        (self.period.as_nanos() / u128::from(self.count)).max(1) as u64
    }
}

/// Requests of a rate, and its longest time.
const COUNT_MAX: u32 = 1_000_000;
const PERIOD_MAX: Duration = Duration::from_secs(30 * 86_400);

/// The rate of a site or a route, if it has one of its own. `pattern` is the route's path.
pub(crate) fn read_rate(
    section: &Section,
    pattern: Option<&Pattern>,
    faults: &mut Faults<'_>,
) -> Option<RateSettings> {
    let section = section.section("rate")?;
    let spot = section.spot("requests");
    let (count, period) = match parse_rate(section.text("requests")) {
        Ok(rate) => rate,
        Err(hint) => {
            if section.given("requests").is_some() {
                let message = format!("{:?} is no rate", section.text("requests"));
                faults.error(spot, message).hint(hint);
            }
            (1, Duration::from_secs(1))
        }
    };
    let a_second = u64::from(count) * 1000 / u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
    let burst = match section.given("burst") {
        Some(_) => section.number("burst"),
        None => u32::try_from(a_second).unwrap_or(u32::MAX).max(1),
    };
    Some(RateSettings {
        count,
        period,
        burst,
        by: read_key(section, pattern, faults),
        v6_prefix: section.number("v6_prefix"),
        keys: section.number("keys"),
        dry_run: section.flag("dry_run"),
    })
}

/// `10/s`, or `1000/15m`.
pub(crate) fn parse_rate(text: &str) -> Result<(u32, Duration), &'static str> {
    const HINT: &str = "write how many in what time, such as `10/s`, `100/m` or `1000/15m`";
    let (count, period) = text.split_once('/').ok_or(HINT)?;
    let count: u32 = count.trim().parse().map_err(|_| HINT)?;
    let period = period.trim();
    let is_unit = period.bytes().all(|byte| byte.is_ascii_alphabetic());
    let period = match is_unit {
        true => parse_duration(&format!("1{period}")),
        false => parse_duration(period),
    };
    let period = period.map_err(|_| HINT)?;
    if !(1..=COUNT_MAX).contains(&count) {
        return Err("a rate is of 1 to 1000000 requests");
    }
    if period.is_zero() || period > PERIOD_MAX {
        return Err("the time of a rate is 30 days at most");
    }
    Ok((count, period))
}

/// `by`: what requests have in common that are counted together.
pub(crate) fn read_key(
    section: &Section,
    pattern: Option<&Pattern>,
    faults: &mut Faults<'_>,
) -> RateKey {
    let (text, spot) = (section.text("by"), section.spot("by"));
    let name = |name: &str| is_header_name(name).then(|| name.to_owned());
    let key = match text.split_once(':') {
        None if text == "client" => Some(RateKey::Client),
        None if text == "all" => Some(RateKey::All),
        None if text == "user" => Some(RateKey::User),
        None if text == "path" => Some(RateKey::Path),
        Some(("field", field)) => name(&field.to_ascii_lowercase()).map(RateKey::Field),
        Some(("cookie", cookie)) => name(cookie).map(RateKey::Cookie),
        Some(("capture", part)) => return read_capture(part, spot, pattern, faults),
        _ => None,
    };
    key.unwrap_or_else(|| {
        faults
            .error(spot, format!("{text:?} is nothing to count requests by"))
            .hint(
                "write `client`, `all`, `user`, `path`, `field:NAME`, `cookie:NAME` or \
                 `capture:NAME`",
            );
        RateKey::Client
    })
}

/// A part of a route's path by its name.
fn read_capture(
    part: &str,
    spot: Spot,
    pattern: Option<&Pattern>,
    faults: &mut Faults<'_>,
) -> RateKey {
    let names: Vec<&str> = pattern.map_or_else(Vec::new, |pattern| pattern.names().collect());
    if let Some(index) = names.iter().position(|name| *name == part) {
        return RateKey::Capture(index);
    }
    let hint = match names.as_slice() {
        [] => format!("write a route's `path` with it, such as `/shop/{{{part}}}/*`"),
        names => format!("its parts are called {}", names.join(", ")),
    };
    let message = format!("no part of the path is called {part:?}");
    faults.error(spot, message).hint(hint);
    RateKey::Client
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let s = Duration::from_secs;
        for (text, count, period) in [
            ("10/s", 10, s(1)),
            ("100/m", 100, s(60)),
            ("1000/15m", 1000, s(900)),
            ("1/250ms", 1, Duration::from_millis(250)),
            ("7 / d", 7, s(86_400)),
        ] {
            assert_eq!(parse_rate(text), Ok((count, period)), "{text}");
        }
        for wrong in [
            "",
            "10",
            "10/",
            "/s",
            "0/s",
            "10/x",
            "-1/s",
            "1000001/s",
            "1/31d",
            "1/0s",
            "1.5/s",
        ] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
