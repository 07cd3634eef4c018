//! Limits of looking at the server and how often each was reached: those of the admin pages, of
//! streams of events, of watchers, of searches and of names. They are counted where they are, off
//! the serving threads' cells, and told with all the other counters.

use hob_trace::watch::Hub;

use super::Admin;

/// One limit.
pub(crate) struct Limit {
    /// Its name in `hob status` and, without `limit_`, in `/metrics`.
    pub(crate) name: &'static str,
    /// What happened.
    pub(crate) text: &'static str,
    /// How often.
    count: fn(&Admin) -> u64,
}

/// All of them.
pub(crate) static LIMITS: &[Limit] = &[
    Limit {
        name: "limit_admin_logins",
        text: "Logins refused: as many of this client had failed as may (429).",
        count: |admin| admin.door.count(|tally| &tally.logins_limited),
    },
    Limit {
        name: "limit_admin_checks",
        text: "Logins refused: as many passwords were being checked as may be (503).",
        count: |admin| admin.door.count(|tally| &tally.checks_limited),
    },
    Limit {
        name: "limit_admin_addresses",
        text: "Clients with failed logins forgotten: more than are remembered.",
        count: |admin| admin.door.count(|tally| &tally.addresses_limited),
    },
    Limit {
        name: "limit_admin_tokens",
        text: "Printed URLs of the admin pages no longer good: newer ones were printed.",
        count: |admin| admin.door.count(|tally| &tally.tokens_limited),
    },
    Limit {
        name: "limit_admin_sessions",
        text: "Sessions ended to make room for another.",
        count: |admin| admin.door.count(|tally| &tally.sessions_limited),
    },
    Limit {
        name: "limit_admin_bodies",
        text: "Requests to the admin API refused: body larger than it may be (413).",
        count: |admin| admin.door.count(|tally| &tally.bodies_limited),
    },
    Limit {
        name: "limit_disk_time",
        text: "Looks at files given up for the admin pages: the disk did not answer in time (503).",
        count: |admin| admin.shared.pool.hung(),
    },
    Limit {
        name: "limit_admin_readers",
        text: "Streams of events refused: as many were open as may be (503).",
        count: |admin| admin.readers.limited(),
    },
    Limit {
        name: "limit_admin_events",
        text: "Events left out: their reader was behind by as much as may wait.",
        count: |admin| admin.readers.dropped(),
    },
    Limit {
        name: "limit_admin_topics",
        text: "Streams refused: as many pages with queries of their own were made as may (503).",
        count: |admin| admin.live.limited(),
    },
    Limit {
        name: "limit_admin_audit",
        text: "Lines missing in the audit log's file: too many waited for its disk, or it failed.",
        count: |admin| admin.audit.lost(),
    },
    Limit {
        name: "limit_watchers",
        text: "Watchers refused: as many watched as may (503).",
        count: |admin| hub(admin).refused(),
    },
    Limit {
        name: "limit_watch_events",
        text: "Events of watched requests left out: their watcher was behind by as much as may wait.",
        count: |admin| hub(admin).dropped(),
    },
    Limit {
        name: "limit_history_search",
        text: "Searches of the history that ended before they had looked at everything.",
        count: |admin| admin.inside.cut_searches(),
    },
    Limit {
        name: "limit_names_entries",
        text: "Names of clients forgotten to make room for others.",
        count: |admin| admin.names.limits().entries,
    },
    Limit {
        name: "limit_names_wait",
        text: "Lines logged without a name, or with one that may be out of date: the log had waited \
               for names as long as it may.",
        count: |admin| admin.names.limits().wait,
    },
];

impl Limit {
    /// How often it was reached.
    pub(crate) fn count(&self, admin: &Admin) -> u64 {
        (self.count)(admin)
    }
}

fn hub(admin: &Admin) -> &Hub {
    &admin.shared.watching.hub
}

#[cfg(test)]
mod tests {
    use hob_trace::metric::Snapshot;

    use super::*;

    #[test]
    fn names_are_those_of_no_other_counter_and_texts_are_sentences() {
        let counters: Vec<_> = Snapshot::default().metrics().map(|one| one.name).collect();
        for (index, limit) in LIMITS.iter().enumerate() {
            let place = LIMITS.iter().position(|other| other.name == limit.name);
            assert_eq!(place, Some(index), "{}", limit.name);
            assert!(!counters.contains(&limit.name), "{}", limit.name);
            assert!(limit.name.starts_with("limit_") && limit.text.ends_with('.'));
        }
    }
}
