//! `bandwidth` of a site or a route: how fast its answers leave.

use super::fault::Faults;
use super::tree::Section;
use super::units::parse_size;

/// How many bytes of answers leave in a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandwidthSettings {
    /// Of one answer.
    pub answer: Option<u64>,
    /// Of all answers to one client.
    pub client: Option<u64>,
    /// Of all answers.
    pub all: Option<u64>,
    /// So many bytes of an answer leave before `answer` holds.
    pub after: u64,
    /// Addresses of IPv6 that begin with so many same bits are one client.
    pub v6_prefix: u8,
    /// So many clients are counted each for itself.
    pub keys: usize,
}

/// The slowest, in bytes a second: a packet's worth.
const SLOWEST: u64 = 1024;
/// The fastest.
const FASTEST: u64 = 1 << 40;

/// The bandwidth of a site or a route, if it has one of its own.
pub(crate) fn read_bandwidth(
    section: &Section,
    faults: &mut Faults<'_>,
) -> Option<BandwidthSettings> {
    let section = section.section("bandwidth")?;
    let mut speed = |name: &str| {
        let text = section.optional_text(name)?;
        match parse_speed(text) {
            Ok(speed) => Some(speed),
            Err(hint) => {
                let message = format!("{text:?} is no bandwidth");
                faults.error(section.spot(name), message).hint(hint);
                None
            }
        }
    };
    let settings = BandwidthSettings {
        answer: speed("answer"),
        client: speed("client"),
        all: speed("all"),
        after: section.size("after"),
        v6_prefix: section.number("v6_prefix"),
        keys: section.number("keys"),
    };
    let is_any = ["answer", "client", "all"].map(|name| section.given(name).is_some());
    if !is_any.contains(&true) {
        faults
            .error(section.header, "a `bandwidth` of nothing")
            .hint("add `answer = \"1MiB/s\"`, `client` or `all`");
    }
    Some(settings)
}

/// `256KiB/s`: bytes in a second.
fn parse_speed(text: &str) -> Result<u64, &'static str> {
    const HINT: &str = "write how much in a second, such as `256KiB/s` or `10MiB/s`";
    let size = text.trim().strip_suffix("/s").ok_or(HINT)?;
    let bytes = parse_size(size.trim()).map_err(|_| HINT)?;
    match (SLOWEST..=FASTEST).contains(&bytes) {
        true => Ok(bytes),
        false => Err("a bandwidth is of 1KiB/s to 1TiB/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_are_read() {
        for (text, bytes) in [
            ("256KiB/s", 256 << 10),
            ("10MiB/s", 10 << 20),
            (" 1 MiB /s ", 1 << 20),
            ("1024/s", 1024),
        ] {
            assert_eq!(parse_speed(text), Ok(bytes), "{text}");
        }
        for wrong in [
            "", "1MiB", "/s", "1023/s", "1MiB/m", "2TiB/s", "-1/s", "1k/s",
        ] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }
}
