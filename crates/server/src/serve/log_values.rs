//! Which values the formats of access logs ask for beside what every record has, by the logs'
//! numbers. Most ask for none: a request of such a log meets one branch here.

use std::sync::Arc;

use hob_trace::format::AskedValue;

/// What is asked of the requests of each log. Logs of configs that are no more in force are among
/// them as long as requests may bear their numbers.
#[derive(Clone, Debug, Default)]
pub struct LogValues {
    /// Bit `n % 64` is set where the log `n` asks for something.
    any: u64,
    /// The same for what is asked of answers.
    of_answers: u64,
    /// Those that ask, by number.
    logs: Vec<(u16, Arc<[AskedValue]>)>,
}

impl LogValues {
    /// The values of these logs; those without any are left out.
    pub fn new(logs: impl IntoIterator<Item = (u16, Arc<[AskedValue]>)>) -> LogValues {
        let mut all = LogValues::default();
        let logs = logs.into_iter().filter(|(_, values)| !values.is_empty());
        all.logs.extend(logs);
        all.logs.sort_by_key(|(log, _)| *log);
        for (log, values) in &all.logs {
            all.any |= bit(*log);
            if values.iter().any(is_of_answer) {
                all.of_answers |= bit(*log);
            }
        }
        all
    }

    /// What this log asks for, if it does.
    #[inline]
    pub(crate) fn of(&self, log: u16) -> Option<&[AskedValue]> {
        match self.any & bit(log) {
            0 => None,
            _ => self.find(log),
        }
    }

    /// What this log asks for, if something of it comes from answers.
    #[inline]
    pub(crate) fn of_answer(&self, log: u16) -> Option<&[AskedValue]> {
        match self.of_answers & bit(log) {
            0 => None,
            _ => self
                .find(log)
                .filter(|values| values.iter().any(is_of_answer)),
        }
    }

    #[cold]
    fn find(&self, log: u16) -> Option<&[AskedValue]> {
        let found = self.logs.binary_search_by_key(&log, |(log, _)| *log);
        found.ok().map(|at| &*self.logs[at].1)
    }
}

fn bit(log: u16) -> u64 {
    1 << (log % 64)
}

fn is_of_answer(value: &AskedValue) -> bool {
    matches!(value, AskedValue::Response(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_that_ask_are_told_from_those_that_do_not() {
        let header = || AskedValue::Header("accept".into());
        let response = || AskedValue::Response("etag".into());
        let values = LogValues::new([
            (70, vec![response()].into()),
            (3, vec![].into()),
            (5, vec![header()].into()),
        ]);
        assert_eq!(values.of(5), Some(&[header()][..]));
        assert_eq!(values.of(70), Some(&[response()][..]));
        for log in [0, 3, 4, 69, 133, 134] {
            assert_eq!(values.of(log), None, "{log}");
        }
        assert_eq!(values.of_answer(5), None);
        assert_eq!(values.of_answer(70), Some(&[response()][..]));
        assert_eq!(values.of_answer(134), None);
    }
}
