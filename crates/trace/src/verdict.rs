//! Where a request's time went, and the one verdict in words a slow request gets.
//!
//! ```text
//!  started ---------------- head of the answer ------------------ last byte
//!  | queue | start | program | (the server) | rest of the program, or a client who takes nothing |
//!            '-- a wait for the client's body may lie anywhere before, or within the program --'
//! ```
//!
//! A program that has said its head and goes on writing is not timed piece by piece: what is left
//! after the head, less the waits for the client, is the program's.

use std::fmt;

use crate::Record;

/// From this total on a request is slow and gets a verdict, in microseconds.
pub const SLOW_US: u64 = 100_000;

/// A request's time, split: the parts add up to the total. All in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// From start to end.
    pub total_us: u64,
    /// Waited in a program's queue.
    pub queue_us: u64,
    /// Until the program's process ran, or a worker had taken the request.
    pub start_us: u64,
    /// The program worked on it.
    pub program_us: u64,
    /// Waited for a disk.
    pub disk_us: u64,
    /// Waited for the client to take what was ready.
    pub take_us: u64,
    /// Waited for the client's body.
    pub body_us: u64,
    /// Everything else: the server's own.
    pub own_us: u64,
}

impl Split {
    /// Splits a record's total.
    pub fn of(record: &Record) -> Split {
        let mut left_us = record.total_us;
        let mut take = |wanted_us: u64| {
            let taken_us = wanted_us.min(left_us);
            left_us -= taken_us;
            taken_us
        };
        let take_us = take(record.client_take_us);
        let queue_us = take(record.queue_us);
        let disk_us = take(record.disk_wait_us);
        let is_program = record.handler.runs_program();
        let rest_us = match is_program {
            true => {
                let after_head_us = record.total_us.saturating_sub(record.first_byte_us);
                after_head_us.saturating_sub(record.client_take_us)
            }
            false => 0,
        };
        let program_us = take(record.program_us.saturating_add(rest_us));
        // What nobody else claims may have been the wait for the body; more of that wait than this
        // lay within the program's time.
        let body_us = take(record.client_body_us);
        let own_us = left_us;
        let overlap_us = (record.client_body_us - body_us).min(program_us);
        let program_us = program_us - overlap_us;
        let start_us = record.start_us.min(program_us);
        Split {
            total_us: record.total_us,
            queue_us,
            start_us,
            program_us: program_us - start_us,
            disk_us,
            take_us,
            body_us: body_us + overlap_us,
            own_us,
        }
    }

    /// The server's part: its own time and its queues, in microseconds.
    pub fn server_us(&self) -> u64 {
        self.own_us + self.queue_us
    }

    /// The parts by their words, the largest first; of equal ones the first of the list.
    fn largest(&self) -> (&'static str, u64) {
        let parts = [
            ("network", self.take_us),
            ("client's body", self.body_us),
            ("queue", self.queue_us),
            ("start", self.start_us),
            ("program", self.program_us),
            ("disk", self.disk_us),
            ("server", self.own_us),
        ];
        let mut largest = parts[0];
        for part in parts {
            if part.1 > largest.1 {
                largest = part;
            }
        }
        largest
    }
}

/// What took most of a slow request's time: `program: 950 of 980 ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlownessVerdict {
    /// `network`, `client's body`, `queue`, `start`, `program`, `disk` or `server`.
    pub part: &'static str,
    /// How long that took, in microseconds.
    pub part_us: u64,
    /// Of so much in all, in microseconds.
    pub total_us: u64,
}

impl SlownessVerdict {
    /// The verdict on a finished request; `None` for one that was not slow.
    pub fn of(record: &Record) -> Option<SlownessVerdict> {
        if record.total_us < SLOW_US {
            return None;
        }
        let (part, part_us) = Split::of(record).largest();
        Some(SlownessVerdict {
            part,
            part_us,
            total_us: record.total_us,
        })
    }
}

impl fmt::Display for SlownessVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, part_us, total_us) = (self.part, self.part_us, self.total_us);
        if total_us < 1_000_000 {
            let ms = |us: u64| (us + 500) / 1000;
            return write!(f, "{part}: {} of {} ms", ms(part_us), ms(total_us));
        }
        let tenths = |us: u64| {
            let tenths = (us + 50_000) / 100_000;
            (tenths / 10, tenths % 10)
        };
        let ((part_s, part_tenths), (total_s, total_tenths)) = (tenths(part_us), tenths(total_us));
        write!(
            f,
            "{part}: {part_s}.{part_tenths} of {total_s}.{total_tenths} s"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HandlerKind;

    /// A record with these times, in milliseconds.
    fn record(total: u64, times: &[(&str, u64)]) -> Record {
        let mut record = Record::empty();
        record.total_us = total * 1000;
        record.first_byte_us = record.total_us;
        if times.iter().any(|(name, _)| *name == "program") {
            record.handler = HandlerKind::Cgi;
        }
        for (name, ms) in times {
            let us = ms * 1000;
            match *name {
                "first" => record.first_byte_us = us,
                "queue" => record.queue_us = us,
                "start" => record.start_us = us,
                "program" => record.program_us = us,
                "disk" => record.disk_wait_us = us,
                "take" => record.client_take_us = us,
                "body" => record.client_body_us = us,
                name => panic!("{name}"),
            }
        }
        record
    }

    #[test]
    fn verdict_names_what_took_longest() {
        for (total, times, expected) in [
            (99, &[("program", 98)][..], None),
            (100, &[("program", 95)], Some("program: 95 of 100 ms")),
            (980, &[("program", 950)], Some("program: 950 of 980 ms")),
            (
                2000,
                &[("take", 1800), ("first", 10)],
                Some("network: 1.8 of 2.0 s"),
            ),
            (500, &[("body", 450)], Some("client's body: 450 of 500 ms")),
            (
                500,
                &[("queue", 400), ("program", 90)],
                Some("queue: 400 of 500 ms"),
            ),
            (
                500,
                &[("start", 300), ("program", 400)],
                Some("start: 300 of 500 ms"),
            ),
            (999, &[("disk", 900)], Some("disk: 900 of 999 ms")),
            (12_340, &[], Some("server: 12.3 of 12.3 s")),
            // The head came at once, the rest of the answer slowly.
            (
                3000,
                &[("program", 10), ("first", 11)],
                Some("program: 3.0 of 3.0 s"),
            ),
            // The same, because the client took nothing.
            (
                3000,
                &[("program", 10), ("first", 11), ("take", 2900)],
                Some("network: 2.9 of 3.0 s"),
            ),
            // The program waited for a body that came slowly.
            (
                1000,
                &[("program", 990), ("body", 900)],
                Some("client's body: 0.9 of 1.0 s"),
            ),
            // The body was collected before the program began.
            (
                1000,
                &[("program", 600), ("body", 390)],
                Some("program: 0.6 of 1.0 s"),
            ),
        ] {
            let verdict = SlownessVerdict::of(&record(total, times));
            let told = verdict.map(|verdict| verdict.to_string());
            assert_eq!(told.as_deref(), expected, "{total} {times:?}");
        }
    }

    #[test]
    fn parts_add_up_to_the_total_whatever_the_record_says() {
        let times = [0, 1, 400, 5000];
        for take in times {
            for body in times {
                for program in times {
                    for queue in times {
                        let record = record(
                            1000,
                            &[
                                ("take", take),
                                ("body", body),
                                ("program", program),
                                ("start", 300),
                                ("queue", queue),
                                ("first", 200),
                                ("disk", 7),
                            ],
                        );
                        let split = Split::of(&record);
                        let sum = split.queue_us
                            + split.start_us
                            + split.program_us
                            + split.disk_us
                            + split.take_us
                            + split.body_us
                            + split.own_us;
                        assert_eq!(sum, split.total_us, "{split:?}");
                    }
                }
            }
        }
    }
}
