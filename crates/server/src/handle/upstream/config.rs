//! What the config says of an upstream, whatever is spoken there.

use std::time::Duration;

use crate::handle::config::PathStatus;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::key::SchemaTable;
use crate::handle::config::tree::Section;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::keys::{FAIL_TABLE, QUEUE_TABLE, RETRY_TABLE};
use crate::handle::upstream::members::{Balance, FailureLimits};
use crate::handle::upstream::patience::UpstreamTimeouts;

/// An upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSettings {
    /// Its members.
    pub members: Vec<MemberAddress>,
    /// Which of them gets a request.
    pub balance: Balance,
    /// Connections at once.
    pub connections: usize,
    /// Connections to each member that stay open between requests.
    pub keep: usize,
    /// Requests that wait for one.
    pub queue: usize,
    /// How long a request waits for one.
    pub wait: Duration,
    /// Limits of time.
    pub timeout: UpstreamTimeouts,
    /// When a member is left out.
    pub fail: FailureLimits,
    /// When another member is asked.
    pub retry: RetryRules,
}

/// When another member is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// So often at most.
    pub times: usize,
    /// After what.
    pub on: Vec<RetryCause>,
    /// Retries among a hundred requests.
    pub budget_percent: u64,
}

/// After what another member may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// There was no connection.
    Connect,
    /// The connection ended before an answer, or something else came over it.
    Closed,
    /// No answer in time.
    FirstByte,
    /// An answer of this status.
    Status(u16),
}

impl RetryRules {
    /// Whether this is one of the causes.
    pub(crate) fn has(&self, cause: RetryCause) -> bool {
        self.on.contains(&cause)
    }
}

impl UpstreamSettings {
    /// Reads the keys that all have. The members are read already, and `timeout` has this table.
    pub(crate) fn read(
        section: &Section,
        (members, timeouts): (Vec<MemberAddress>, &'static SchemaTable),
        faults: &mut Faults<'_>,
    ) -> UpstreamSettings {
        let (connections, keep) = (section.number("connections"), section.number("keep"));
        if let Some(given) = section.given("keep").filter(|_| keep > connections) {
            faults
                .warn(given.key, "`keep` is more than `connections`")
                .hint("there are never more to keep: lower it, or raise `connections`");
        }
        let (queue, wait) = section.inner("queue", &QUEUE_TABLE, |queue| {
            (queue.number("max"), queue.time("wait"))
        });
        if let [_] = &members[..] {
            for key in ["balance", "fail"] {
                if let Some(given) = section.given(key) {
                    faults
                        .warn(given.key, format!("`{key}` does nothing here"))
                        .hint("remove it: there is one member, and it is always asked");
                }
            }
        }
        let balance = match section.word("balance") {
            "requests" => Balance::Requests,
            "round_robin" => Balance::RoundRobin,
            _ => Balance::Latency,
        };
        UpstreamSettings {
            members,
            balance,
            connections,
            keep,
            queue,
            wait,
            timeout: section.inner("timeout", timeouts, UpstreamTimeouts::read),
            fail: section.inner("fail", &FAIL_TABLE, |fail| FailureLimits {
                count: fail.number("count"),
                window_ms: millis(fail.time("window")),
                pause_ms: millis(fail.time("pause")),
            }),
            retry: section.inner("retry", &RETRY_TABLE, |retry| RetryRules {
                times: retry.number("times"),
                on: retry
                    .texts("on")
                    .iter()
                    .filter_map(|(word, _)| cause(word))
                    .collect(),
                budget_percent: percent(retry, faults),
            }),
        }
    }

    /// Its members, for people.
    pub(crate) fn texts(&self) -> String {
        let texts: Vec<_> = self.members.iter().map(MemberAddress::to_string).collect();
        texts.join(", ")
    }
}

/// Warns of sockets of members that are not there. They may yet come: what is served is told, and
/// no more.
pub(crate) fn look_at_sockets(
    settings: &UpstreamSettings,
    spot: Spot,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    for member in &settings.members {
        if let MemberAddress::Unix(socket) = member
            && looked.look(socket) == PathStatus::Nothing
        {
            let message = format!("there is no socket {}", socket.display());
            faults
                .warn(spot, message)
                .hint("start the program that listens there; until then its requests are 502");
        }
    }
}

fn cause(word: &str) -> Option<RetryCause> {
    Some(match word {
        "connect" => RetryCause::Connect,
        "closed" => RetryCause::Closed,
        "first_byte" => RetryCause::FirstByte,
        _ => RetryCause::Status(word.parse().ok()?),
    })
}

fn percent(retry: &Section, faults: &mut Faults<'_>) -> u64 {
    let text = retry.text("budget");
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok());
    number.filter(|percent| *percent <= 100).unwrap_or_else(|| {
        faults
            .error(
                retry.spot("budget"),
                format!("{text:?} is no part of all requests"),
            )
            .hint("write a whole number of percent, such as `\"20%\"`");
        0
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The members that `to` names, each read by `parse`.
pub(crate) fn members<T>(
    section: &Section,
    faults: &mut Faults<'_>,
    parse: impl Fn(&str, &dyn Fn(&str) -> std::path::PathBuf) -> Result<T, &'static str>,
) -> Vec<T> {
    let mut members = Vec::new();
    let texts = section.texts("to");
    if texts.is_empty() && section.given("to").is_some() {
        faults
            .error(section.spot("to"), "`to` names nobody")
            .hint("write an address, or several");
    }
    for (text, spot) in texts {
        let resolve = |path: &str| faults.sources().resolve(spot.source, path);
        match parse(text, &resolve) {
            Ok(member) => members.push(member),
            Err(hint) => {
                faults
                    .error(spot, format!("{text:?} is no address"))
                    .hint(hint);
            }
        }
    }
    members
}
