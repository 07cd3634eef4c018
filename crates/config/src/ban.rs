//! `[[ban]]`: who is refused too often, and is not heard for a while.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::clients::ClientSet;
use super::fault::Faults;
use super::rate::parse_rate;
use super::tree::Section;

/// A rule that bans clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanSettings {
    /// What people call it.
    pub name: String,
    /// Statuses of answers that count.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Refusals that count.
    pub refusals: Vec<BanCause>,
    /// So many of them make a ban
    pub count: u32,
    /// within such a time.
    pub window: Duration,
    /// How long it lasts.
    pub time: Duration,
    /// Who is never banned.
    pub except: ClientSet,
    /// New connections of who is banned are closed.
    pub close: bool,
    /// Addresses of IPv6 that begin with so many same bits are one client.
    pub v6_prefix: u8,
    /// So many clients are counted each for itself.
    pub keys: usize,
    /// Nobody is banned, it is only counted who would be.
    pub dry_run: bool,
}

/// A refusal that can count towards a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanCause {
    /// By `access` of a route.
    Access,
    /// By its `rate`.
    Rate,
    /// A name, a password or a signed link was wrong.
    SignIn,
    /// A TLS handshake failed.
    Tls,
}

impl BanCause {
    /// As it is written in a config.
    pub const fn word(self) -> &'static str {
        match self {
            BanCause::Access => "access",
            BanCause::Rate => "rate",
            BanCause::SignIn => "sign_in",
            BanCause::Tls => "tls",
        }
    }
}

impl BanSettings {
    /// Whether an answer with this status counts.
    pub fn counts_status(&self, status: u16) -> bool {
        self.statuses.iter().any(|range| range.contains(&status))
    }

    /// Whether this refusal counts.
    pub fn counts(&self, cause: BanCause) -> bool {
        self.refusals.contains(&cause)
    }
}

/// Of the times of each client that are kept.
const COUNT_MAX: u32 = 1000;
/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The rules of a config, in file order.
pub(crate) fn build_bans(root: &Section, faults: &mut Faults<'_>) -> Vec<BanSettings> {
    let mut all: Vec<BanSettings> = Vec::new();
    for section in root.sections("ban") {
        let name = section.text("name");
        if section.given("name").is_some() {
            let spot = section.spot("name");
            let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
                && !name.chars().any(|c| c.is_control() || c.is_whitespace());
            if !is_name {
                faults
                    .error(spot, format!("{name:?} cannot be the name of a ban"))
                    .hint("write a word of 64 bytes at most, such as `\"guessers\"`");
            } else if all.iter().any(|known| known.name == name) {
                faults.error(spot, format!("two `[[ban]]` are called {name:?}"));
            }
        }
        all.push(read_ban(section, faults));
    }
    all
}

fn read_ban(section: &Section, faults: &mut Faults<'_>) -> BanSettings {
    let (count, window) = match parse_rate(section.text("count")) {
        Ok((count, window)) if count <= COUNT_MAX => (count, window),
        wrong => {
            if section.given("count").is_some() {
                let message = format!("{:?} is no count of a ban", section.text("count"));
                let hint = match wrong {
                    Ok(_) => "a ban is made of 1 to 1000 refusals",
                    Err(_) => "write how many in what time, such as `20/10m`; 30 days at most",
                };
                faults.error(section.spot("count"), message).hint(hint);
            }
            (1, Duration::from_secs(1))
        }
    };
    let all = [
        BanCause::Access,
        BanCause::Rate,
        BanCause::SignIn,
        BanCause::Tls,
    ];
    let given = section.texts("refused");
    let is_given = |cause: &BanCause| given.iter().any(|(word, _)| *word == cause.word());
    let refusals: Vec<BanCause> = all.into_iter().filter(is_given).collect();
    let has = |key: &str| section.has(key) || section.is_claimed(key);
    if !has("status") && !has("refused") {
        faults
            .error(section.header, "nothing counts towards this ban")
            .hint("add `refused = [\"sign_in\"]`, or answers by their `status = [\"403\"]`");
    }
    BanSettings {
        name: section.text("name").to_owned(),
        statuses: read_statuses(section, faults),
        refusals,
        count,
        window,
        time: section.time("time"),
        except: ClientSet::read(section, "except", false, faults),
        close: section.flag("close"),
        v6_prefix: section.number("v6_prefix"),
        keys: section.number("keys"),
        dry_run: section.flag("dry_run"),
    }
}

fn read_statuses(section: &Section, faults: &mut Faults<'_>) -> Vec<RangeInclusive<u16>> {
    let mut statuses = Vec::new();
    for (text, spot) in section.given_texts("status") {
        match parse_statuses(text) {
            Some(range) => statuses.push(range),
            None => {
                faults
                    .error(spot, format!("{text:?} is no status of an error"))
                    .hint(
                        "write one from `\"400\"` to `\"599\"`, or a class: `\"4xx\"`, `\"5xx\"`",
                    );
            }
        }
    }
    statuses
}

/// `404`, or `4xx`.
fn parse_statuses(text: &str) -> Option<RangeInclusive<u16>> {
    match text {
        "4xx" => Some(400..=499),
        "5xx" => Some(500..=599),
        _ if text.len() == 3 => {
            let status: u16 = text.parse().ok()?;
            (400..=599).contains(&status).then_some(status..=status)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_errors() {
        for (text, expected) in [("404", 404..=404), ("4xx", 400..=499), ("5xx", 500..=599)] {
            assert_eq!(parse_statuses(text), Some(expected), "{text}");
        }
        for wrong in [
            "", "200", "399", "600", "3xx", "xxx", "4XX", "+40", "40", "4040",
        ] {
            assert_eq!(parse_statuses(wrong), None, "{wrong}");
        }
    }
}
