//! What is worth an alert, one table or function for each: limits that are near, limits that
//! refused somebody, programs that do not start, certificates that end, logs that lose lines.
//!
//! Facts in, findings out: nothing is read here.

use hob_server::handle::resident::status::PoolFacts;
use hob_trace::Snapshot;

use super::alarms::{Alarms, Finding, Level, LimitUsage, SHARE_ON};
use super::minute::Minute;
use hob_server::cache::store::Holdings;
use hob_server::handle::script::stderr::cause;

/// What the server knows of itself at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerVitals {
    pub(crate) counters: Snapshot,
    /// Connections open that count towards the limit.
    pub(crate) connections: u64,
    pub(crate) connections_max: u64,
    pub(crate) descriptors: u64,
    /// None for no limit.
    pub(crate) descriptors_max: Option<u64>,
    pub(crate) workers: u64,
    pub(crate) workers_max: u64,
    pub(crate) pools: Vec<PoolFacts>,
    pub(crate) certificates: Vec<Expiry>,
    /// Of the last ten seconds: requests, and those that failed.
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    /// Requests that wait for a worker, workers that could take one, and those at work.
    pub(crate) queued: u64,
    pub(crate) idle: u64,
    pub(crate) busy: u64,
    /// The config wants no activity.
    pub(crate) is_blind: bool,
    /// Why the file of history or activity cannot be written.
    pub(crate) failed_write: Option<String>,
    /// Names of certificates that an authority did not give, with why.
    pub(crate) refused_certificates: Vec<(String, String)>,
}

/// When a certificate ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// Its first name.
    pub(crate) name: String,
    /// When it began to be good, as Unix time in seconds.
    pub(crate) from_unix_s: i64,
    /// When it ends to be good.
    pub(crate) until_unix_s: i64,
}

/// From this share of requests on, errors are told of: one in so many.
const ERRORS_ONE_IN: u64 = 20;
/// And from so many errors on.
const ERRORS_MIN: u64 = 5;
/// Looks at levels, a second apart, before one is told.
const LOOKS_QUICK: u32 = 5;
/// Looks at minutes before one is told.
const LOOKS_MINUTES: u32 = 5;
/// Days before its end from which a certificate is told of.
const CERTIFICATE_DAYS: i64 = 14;
/// One that lives shorter than four times that is told of in the last part of its life: one in so
/// many.
const CERTIFICATE_LIFE_PART: i64 = 4;
/// Days before its end from which that is bad.
const CERTIFICATE_BAD_DAYS: i64 = 2;
const DAY_S: i64 = 86_400;
/// A kernel that waits for memory this share of a minute is short of it.
const PRESSURE_PERMILLE: u16 = 100;
/// A disk that is waited for this share of a minute is slow.
const DISK_PERMILLE: u16 = 400;
/// Share of packets, in thousandths, that may be dropped.
const DROPS_PERMILLE: u64 = 1;
/// Questions to the cache in a minute from which its answers are judged.
const CACHE_ASKED_MIN: u64 = 600;
/// Thousandths of them that should be answered from memory.
const CACHE_HIT_PERMILLE_MIN: u64 = 500;
/// A cache that is too small has thrown out more than one file for so many questions.
const CACHE_EVICTED_ONE_IN: u64 = 10;

/// Counters that grow while all is well: what idles or is old goes.
const QUIET: &[&str] = &[
    "limit_idle",
    "limit_linger",
    "limit_resident_idle",
    "limit_resident_requests",
    "limit_resident_age",
    "limit_program_linger",
];

/// Limits at which clients are turned away though they did nothing wrong.
const REFUSING: &[&str] = &[
    "limit_connections",
    "limit_handshakes",
    "limit_starts",
    "limit_disk_queue",
    "limit_program_queue",
    "limit_program_queue_time",
    "limit_resident_queue",
    "limit_resident_wait",
    "limit_resident_files",
    "limit_workers",
];

/// Other counters whose growth is told, how much it matters, and where more is seen.
const EVENTS: &[(&str, Level, &str)] = &[
    ("accept_errors", Level::Bad, "connections"),
    ("log_dropped", Level::Bad, "logs"),
    ("log_write_errors", Level::Bad, "logs"),
    ("limit_log_value", Level::Notice, "logs"),
    ("limit_syslog_message", Level::Notice, "logs"),
    ("programs_lost", Level::Bad, "programs"),
    ("programs_not_started", Level::Bad, "programs"),
    ("program_stderr_dropped", Level::Notice, "programs"),
    ("warm_failures", Level::Bad, "programs"),
    ("warm_crashes", Level::Warning, "programs"),
    ("worker_crashes", Level::Warning, "programs"),
    ("worker_liars", Level::Warning, "programs"),
];

/// What happened since the facts before; to be asked every second.
pub(crate) fn events(alarms: &mut Alarms, before: &ServerVitals, now: &ServerVitals, now_ms: u64) {
    let since = now.counters.since(&before.counters);
    for metric in since.metrics() {
        let name = metric.name;
        let known = EVENTS.iter().find(|(known, ..)| *known == name);
        let (level, page) = match known {
            Some((_, level, page)) => (*level, *page),
            None if !name.starts_with("limit_") || QUIET.contains(&name) => continue,
            None if REFUSING.contains(&name) => (Level::Bad, page_of(name)),
            None => (Level::Notice, page_of(name)),
        };
        let help = metric.help.trim_end_matches('.');
        alarms.event(name, now_ms, metric.value, |count| Finding {
            level,
            text: format!("{help}: {count} lately ({name})"),
            page,
        });
    }
}

fn page_of(name: &str) -> &'static str {
    let is_of_programs = [
        "limit_program",
        "limit_resident",
        "limit_workers",
        "limit_starts",
    ];
    match is_of_programs.iter().any(|prefix| name.starts_with(prefix)) {
        true => "programs",
        false => "connections",
    }
}

/// Limits that are near, and what is wrong now; to be asked every second.
pub(crate) fn levels(alarms: &mut Alarms, facts: &ServerVitals, now_ms: u64) {
    let limits = [
        (
            "descriptors",
            facts.descriptors,
            facts.descriptors_max,
            "environment",
        ),
        (
            "connections",
            facts.connections,
            Some(facts.connections_max),
            "connections",
        ),
        (
            "workers",
            facts.workers,
            Some(facts.workers_max),
            "programs",
        ),
    ];
    for (what, used, most, page) in limits {
        let Some(most) = most.filter(|most| *most > 0) else {
            continue;
        };
        let used = LimitUsage {
            key: &format!("level {what}"),
            share: used as f64 / most as f64,
            looks: LOOKS_QUICK,
            text: format!("{what}: {used} of {most}"),
            page,
        };
        alarms.level(used, now_ms);
    }
    now(alarms, facts, now_ms);
    pools(alarms, facts, now_ms);
    certificates(alarms, facts, now_ms);
}

/// What goes wrong at this moment.
fn now(alarms: &mut Alarms, facts: &ServerVitals, now_ms: u64) {
    let (errors, requests) = (facts.errors, facts.requests);
    let is_failing = errors >= ERRORS_MIN && errors.saturating_mul(ERRORS_ONE_IN) >= requests;
    let failing = is_failing.then(|| Finding {
        level: Level::Bad,
        text: format!("{errors} of the last {requests} requests failed"),
        page: "history",
    });
    alarms.tell("errors", now_ms, failing);
    let waiting = (facts.queued > 0 && facts.idle == 0).then(|| Finding {
        level: Level::Warning,
        text: format!(
            "{} requests wait for a worker; {} are busy",
            facts.queued, facts.busy
        ),
        page: "programs",
    });
    alarms.tell("queue", now_ms, waiting);
    let blind = facts.is_blind.then(|| Finding {
        level: Level::Notice,
        text: "`activity` is off in the config: there are no rates, times, graphs and alerts on errors"
            .to_owned(),
        page: "config",
    });
    alarms.tell("activity", now_ms, blind);
    let unwritten = facts.failed_write.as_ref().map(|why| Finding {
        level: Level::Warning,
        text: format!("history or activity could not be written to its file: {why}"),
        page: "history",
    });
    alarms.tell("file", now_ms, unwritten);
}

fn pools(alarms: &mut Alarms, facts: &ServerVitals, now_ms: u64) {
    let mut keys = Vec::new();
    for pool in &facts.pools {
        let (queue, start) = (
            format!("pool queue {}", pool.name),
            format!("pool start {}", pool.name),
        );
        let (waiting, most) = (pool.waiting, pool.waiting_max);
        let is_near = most > 0 && waiting as f64 >= most as f64 * SHARE_ON;
        let level = match waiting >= most {
            true => Level::Bad,
            false => Level::Warning,
        };
        let page = "programs";
        let near = is_near.then(|| Finding {
            level,
            text: format!(
                "{}: {waiting} of {most} places in its queue are taken",
                pool.name
            ),
            page,
        });
        alarms.tell(&queue, now_ms, near);
        let failing = (pool.failures > 0 && !pool.last_failure.is_empty()).then(|| Finding {
            level: Level::Bad,
            text: format!(
                "{}: its workers do not start ({} in a row): {}",
                pool.name,
                pool.failures,
                cause(&pool.last_failure)
            ),
            page,
        });
        alarms.tell(&start, now_ms, failing);
        keys.extend([queue, start]);
    }
    alarms.keep("pool ", &keys);
}

fn certificates(alarms: &mut Alarms, facts: &ServerVitals, now_ms: u64) {
    let now_s = (now_ms / 1000).cast_signed();
    let page = "certificates";
    let mut keys = Vec::new();
    for one in &facts.certificates {
        let life_s = one.until_unix_s.saturating_sub(one.from_unix_s);
        // Those that live a few days are renewed within them.
        let told_from_s =
            one.until_unix_s - (CERTIFICATE_DAYS * DAY_S).min(life_s / CERTIFICATE_LIFE_PART);
        let days = (one.until_unix_s - now_s).div_euclid(DAY_S);
        let finding = (now_s >= told_from_s).then(|| Finding {
            level: match days < CERTIFICATE_BAD_DAYS {
                true => Level::Bad,
                false => Level::Warning,
            },
            text: match days {
                ..0 => format!("the certificate of {} has ended", one.name),
                0 => format!("the certificate of {} ends today", one.name),
                days => format!("the certificate of {} ends in {days} days", one.name),
            },
            page,
        });
        let key = format!("certificate end {}", one.name);
        alarms.tell(&key, now_ms, finding);
        keys.push(key);
    }
    for (name, why) in &facts.refused_certificates {
        let key = format!("certificate refused {name}");
        let text = format!("no certificate for {name}: {why}");
        let level = Level::Warning;
        alarms.tell(&key, now_ms, Some(Finding { level, text, page }));
        keys.push(key);
    }
    alarms.keep("certificate ", &keys);
}

/// What a minute shows of the machine.
pub(crate) fn machine<'l>(
    alarms: &mut Alarms,
    minute: &Minute,
    links: impl Iterator<Item = (&'l str, Option<u64>)>,
    now_ms: u64,
) {
    for (place, (name, speed)) in links.enumerate() {
        let link = &minute.links[place];
        for (does, bytes_s) in [("receives", link.bytes_in_s), ("sends", link.bytes_out_s)] {
            let Some(speed) = speed else { continue };
            let bits_s = bytes_s.saturating_mul(8);
            let (used, most) = (bits_s / 1_000_000, speed / 1_000_000);
            let level = LimitUsage {
                key: &format!("link {name} {does}"),
                share: bits_s as f64 / speed as f64,
                looks: LOOKS_MINUTES,
                text: format!("{name} {does} {used} of {most} Mbit/s"),
                page: "environment",
            };
            alarms.level(level, now_ms);
        }
        let packets = u64::from(link.packets_in_s) + u64::from(link.packets_out_s);
        let is_many = u64::from(link.drops) * 1000 > packets * 60 * DROPS_PERMILLE;
        let drops = if is_many { link.drops.into() } else { 0 };
        alarms.event(&format!("drops {name}"), now_ms, drops, |count| Finding {
            level: Level::Warning,
            text: format!("{name} has dropped {count} packets lately"),
            page: "environment",
        });
    }
    shares(alarms, minute, now_ms);
    let full = u64::from(minute.listen_overflows);
    alarms.event("listen overflows", now_ms, full, |count| Finding {
        level: Level::Bad,
        text: format!(
            "{count} connections to this machine found a full queue lately: raise `backlog` and \
             net.core.somaxconn, or look why they are not accepted"
        ),
        page: "environment",
    });
}

/// Shares of time and memory.
fn shares(alarms: &mut Alarms, minute: &Minute, now_ms: u64) {
    let softirq = LimitUsage {
        key: "softirq",
        share: f64::from(minute.softirq_permille) / 1000.0,
        looks: LOOKS_MINUTES,
        text: format!(
            "one CPU spends {} % of its time in soft interrupts, most of it network",
            minute.softirq_permille / 10
        ),
        page: "environment",
    };
    alarms.level(softirq, now_ms);
    let memory = minute
        .memory_wait_permille
        .max(minute.server.memory_wait_permille);
    let waits = [
        (
            "memory",
            memory,
            PRESSURE_PERMILLE,
            "the machine is short of it",
        ),
        (
            "a disk",
            minute.disk_wait_permille,
            DISK_PERMILLE,
            "it is slow or busy",
        ),
    ];
    for (what, permille, most, why) in waits {
        let finding = (permille >= most).then(|| Finding {
            level: Level::Warning,
            text: format!(
                "processes waited for {what} {} % of a minute: {why}",
                permille / 10
            ),
            page: "environment",
        });
        alarms.tell(&format!("wait {what}"), now_ms, finding);
    }
}

/// Whether the cache is too small, of what was counted in a minute.
pub(crate) fn cache(
    alarms: &mut Alarms,
    before: (&Snapshot, &Holdings),
    now: (&Snapshot, &Holdings),
    now_ms: u64,
) {
    let since = now.0.since(before.0);
    let evicted = now.1.evictions.saturating_sub(before.1.evictions);
    let asked = since.cache_hits + since.cache_misses;
    let hit = (since.cache_hits * 1000).checked_div(asked).unwrap_or(1000);
    let is_asked = asked >= CACHE_ASKED_MIN && hit < CACHE_HIT_PERMILLE_MIN;
    let is_small = is_asked && evicted > asked / CACHE_EVICTED_ONE_IN;
    let finding = is_small.then(|| Finding {
        level: Level::Notice,
        text: format!(
            "the cache is too small: {} % of its questions are answered, and {evicted} files a \
             minute leave it (`cache.bytes` is {} MiB)",
            hit / 10,
            now.1.bytes_max >> 20
        ),
        page: "cache",
    });
    alarms.tell("cache small", now_ms, finding);
}

#[cfg(test)]
mod tests;
