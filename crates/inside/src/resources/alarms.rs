//! Alerts in words: what an operator should look at, since when, and where.
//!
//! A level is told of once it has been above its threshold for a while, and until it is clearly
//! below; what happens now and then is told of until it has not happened for a while.

use std::collections::BTreeMap;

pub use crate::api::{Alert, Level};

/// Share of a link or a limit from which it is told, once it lasts.
pub(crate) const SHARE_ON: f64 = 0.60;
/// Share from which it is bad.
pub(crate) const SHARE_BAD: f64 = 0.90;
/// Share below which it is no longer told.
pub(crate) const SHARE_OFF: f64 = 0.50;
/// How long an event is told of after it has happened last, in milliseconds.
pub(crate) const EVENT_MS: u64 = 10 * 60 * 1000;
/// Alerts at a time; more are counted in one.
pub(crate) const ALERT_COUNT_MAX: usize = 32;

/// What is so now, for one alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    pub(crate) text: String,
    pub(crate) page: &'static str,
}

/// How much of a link or a limit is used.
pub(crate) struct LimitUsage<'a> {
    /// What it is, for telling one from another.
    pub(crate) key: &'a str,
    /// Of 1.
    pub(crate) share: f64,
    /// Looks in a row that must be above the threshold before it is told.
    pub(crate) looks: u32,
    /// In words: how much of what.
    pub(crate) text: String,
    /// The page that tells more.
    pub(crate) page: &'static str,
}

/// Everything that is watched.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    on: BTreeMap<String, Alert>,
    levels: BTreeMap<String, Above>,
    events: BTreeMap<String, AlarmEvent>,
}

/// A level that is above its threshold.
#[derive(Debug)]
struct Above {
    since_ms: u64,
    looks: u32,
}

/// Something that happened.
#[derive(Debug)]
struct AlarmEvent {
    first_ms: u64,
    last_ms: u64,
    count: u64,
}

impl Alarms {
    /// Says what is so; what was so before keeps its begin.
    pub(crate) fn tell(&mut self, key: &str, now_ms: u64, finding: Option<Finding>) {
        self.tell_since(key, now_ms, finding);
    }

    fn tell_since(&mut self, key: &str, since_ms: u64, finding: Option<Finding>) {
        let Some(Finding { level, text, page }) = finding else {
            self.on.remove(key);
            return;
        };
        let since_unix_ms = self
            .on
            .get(key)
            .map_or(since_ms, |known| known.since_unix_ms);
        let alert = Alert {
            level,
            text,
            since_unix_ms,
            page: page.to_owned(),
        };
        self.on.insert(key.to_owned(), alert);
    }

    /// Says how much of something is used, now.
    pub(crate) fn level(&mut self, used: LimitUsage<'_>, now_ms: u64) {
        let is_on = self.on.contains_key(used.key);
        if used.share < if is_on { SHARE_OFF } else { SHARE_ON } {
            self.levels.remove(used.key);
            self.on.remove(used.key);
            return;
        }
        let above = self.levels.entry(used.key.to_owned()).or_insert(Above {
            since_ms: now_ms,
            looks: 0,
        });
        above.looks = above.looks.saturating_add(1);
        if above.looks < used.looks {
            return;
        }
        let since_ms = above.since_ms;
        let minutes = now_ms.saturating_sub(since_ms) / 60_000;
        let text = match minutes {
            0 => used.text,
            minutes => format!("{} for {minutes} min", used.text),
        };
        let level = match used.share >= SHARE_BAD {
            true => Level::Bad,
            false => Level::Warning,
        };
        let page = used.page;
        self.tell_since(used.key, since_ms, Some(Finding { level, text, page }));
    }

    /// Says that something has happened so often since the last time. `finding` tells it of a
    /// count.
    pub(crate) fn event(
        &mut self,
        key: &str,
        now_ms: u64,
        count: u64,
        finding: impl FnOnce(u64) -> Finding,
    ) {
        if count > 0 {
            let event = self.events.entry(key.to_owned()).or_insert(AlarmEvent {
                first_ms: now_ms,
                last_ms: now_ms,
                count: 0,
            });
            event.last_ms = now_ms;
            event.count = event.count.saturating_add(count);
        }
        let Some(event) = self.events.get(key) else {
            return;
        };
        if now_ms.saturating_sub(event.last_ms) > EVENT_MS {
            self.events.remove(key);
            self.on.remove(key);
            return;
        }
        let (first_ms, finding) = (event.first_ms, finding(event.count));
        self.tell_since(key, first_ms, Some(finding));
    }

    /// No longer tells of what begins with this and is not one of `kept`.
    pub(crate) fn keep(&mut self, prefix: &str, kept: &[String]) {
        let stays = |key: &String| !key.starts_with(prefix) || kept.contains(key);
        self.on.retain(|key, _| stays(key));
        self.levels.retain(|key, _| stays(key));
        self.events.retain(|key, _| stays(key));
    }

    /// All alerts, the worst first, then the newest.
    pub(crate) fn alerts(&self) -> Vec<Alert> {
        let mut all: Vec<Alert> = self.on.values().cloned().collect();
        all.sort_by_key(|alert| std::cmp::Reverse((alert.level, alert.since_unix_ms)));
        if all.len() > ALERT_COUNT_MAX {
            let more = all.split_off(ALERT_COUNT_MAX - 1);
            let since = more.iter().map(|alert| alert.since_unix_ms).min();
            all.push(Alert {
                level: Level::Notice,
                text: format!("{} more alerts", more.len()),
                since_unix_ms: since.unwrap_or_default(),
                page: "overview".to_owned(),
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn level(alarms: &mut Alarms, share: f64, minute: u64) -> Vec<Alert> {
        let used = LimitUsage {
            key: "link eth0",
            share,
            looks: 5,
            text: format!("eth0 sends {} of 1000 Mbit/s", (share * 1000.0) as u64),
            page: "environment",
        };
        alarms.level(used, minute * MINUTE);
        alarms.alerts()
    }

    #[test]
    fn level_is_told_once_it_lasts_and_until_it_is_clearly_below() {
        let mut alarms = Alarms::default();
        for minute in 10..14 {
            assert_eq!(level(&mut alarms, 0.62, minute), []);
        }
        let told = level(&mut alarms, 0.62, 14);
        assert_eq!(told[0].text, "eth0 sends 620 of 1000 Mbit/s for 4 min");
        assert_eq!(told[0].since_unix_ms, 10 * MINUTE);
        assert_eq!(told[0].level, Level::Warning);
        assert_eq!(level(&mut alarms, 0.55, 15).len(), 1, "hysteresis");
        let told = level(&mut alarms, 0.95, 16);
        assert_eq!(
            (told[0].level, told[0].since_unix_ms),
            (Level::Bad, 10 * MINUTE)
        );
        assert_eq!(level(&mut alarms, 0.49, 17), []);
        assert_eq!(level(&mut alarms, 0.62, 18), [], "it begins anew");
    }

    #[test]
    fn pause_begins_the_count_anew() {
        let mut alarms = Alarms::default();
        for minute in 0..20 {
            let share = if minute % 5 == 4 { 0.55 } else { 0.8 };
            assert_eq!(level(&mut alarms, share, minute), []);
        }
    }

    #[test]
    fn event_is_told_until_it_has_not_happened_for_a_while() {
        let mut alarms = Alarms::default();
        let mut event = |minute: u64, count| {
            alarms.event("limit_body", minute * MINUTE, count, |count| Finding {
                level: Level::Notice,
                text: format!("{count} times"),
                page: "overview",
            });
            alarms.alerts()
        };
        assert_eq!(event(1, 0), []);
        assert_eq!(event(2, 3)[0].text, "3 times");
        let told = event(8, 4);
        assert_eq!(told[0].text, "7 times");
        assert_eq!(told[0].since_unix_ms, 2 * MINUTE);
        assert_eq!(event(18, 0).len(), 1);
        assert_eq!(event(19, 0), []);
        assert_eq!(event(20, 1)[0].text, "1 times");
    }

    #[test]
    fn state_keeps_its_begin_and_what_is_gone_is_not_told() {
        let mut alarms = Alarms::default();
        let finding = |text: &str| {
            Some(Finding {
                level: Level::Bad,
                text: text.to_owned(),
                page: "programs",
            })
        };
        alarms.tell("pool a", 1, finding("full"));
        alarms.tell("pool a", 5, finding("still full"));
        alarms.tell("pool b", 6, finding("full"));
        let told = alarms.alerts();
        assert_eq!(told[1].text, "still full");
        assert_eq!(told[1].since_unix_ms, 1);
        alarms.keep("pool ", &["pool b".to_owned()]);
        assert_eq!(alarms.alerts().len(), 1);
        alarms.tell("pool b", 7, None);
        assert_eq!(alarms.alerts(), []);
    }

    #[test]
    fn worst_come_first_and_too_many_are_counted() {
        let mut alarms = Alarms::default();
        for number in 0..100 {
            let level = if number == 50 {
                Level::Bad
            } else {
                Level::Notice
            };
            let text = format!("alert {number}");
            let page = "overview";
            alarms.tell(&text.clone(), number, Some(Finding { level, text, page }));
        }
        let told = alarms.alerts();
        assert_eq!(told.len(), ALERT_COUNT_MAX);
        assert_eq!(told[0].text, "alert 50");
        assert_eq!(told[1].text, "alert 99");
        assert_eq!(told[ALERT_COUNT_MAX - 1].text, "69 more alerts");
    }
}
