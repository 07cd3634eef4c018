//! Why a request has no good answer. One table; reports name the kinds as it does.

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No connection.
    Connect,
    /// A handshake that failed, or what is no TLS.
    Tls,
    /// A connection or stream that broke.
    Reset,
    /// A connection that ended too early.
    Closed,
    /// What is no answer.
    Malformed,
    /// None in time.
    Timeout,
    /// A request that was due and not sent.
    Unsent,
    /// Another status than expected.
    Status,
    /// Another size.
    Size,
    /// Another header field.
    Header,
    /// Another body.
    Hash,
}

/// Each kind with its name in reports and what it means, in the order of the enum.
pub(crate) const FAILURES: &[(FailureKind, &str, &str)] = &[
    (
        FailureKind::Connect,
        "connect",
        "no connection could be opened",
    ),
    (
        FailureKind::Tls,
        "tls",
        "the handshake failed, or what came later was no TLS",
    ),
    (
        FailureKind::Reset,
        "reset",
        "the connection, or the stream on it, broke while it was in use",
    ),
    (
        FailureKind::Closed,
        "closed",
        "the server ended the connection before the answer was complete",
    ),
    (
        FailureKind::Malformed,
        "malformed",
        "the answer is not one of HTTP",
    ),
    (
        FailureKind::Timeout,
        "timeout",
        "no complete answer came in time",
    ),
    (
        FailureKind::Unsent,
        "unsent",
        "the request was due, but no connection, or no stream on one, was free until the end",
    ),
    (
        FailureKind::Status,
        "status",
        "the answer has another status than expected",
    ),
    (
        FailureKind::Size,
        "size",
        "the body has another size than expected",
    ),
    (
        FailureKind::Header,
        "header",
        "the answer lacks an expected header field",
    ),
    (
        FailureKind::Hash,
        "hash",
        "the body has another hash than expected",
    ),
];

/// How many there were of each kind, and what the first of them was.
#[derive(Debug, Default)]
pub struct Failures {
    kinds: [(u64, Option<String>); FAILURES.len()],
}

impl Failures {
    pub(crate) fn add(&mut self, kind: FailureKind, example: impl FnOnce() -> String) {
        let (count, first) = &mut self.kinds[kind as usize];
        *count += 1;
        first.get_or_insert_with(example);
    }

    /// Has there been none of a kind?
    pub(crate) fn is_new(&self, kind: FailureKind) -> bool {
        self.kinds[kind as usize].0 == 0
    }

    pub(crate) fn merge(&mut self, other: Failures) {
        for (own, others) in self.kinds.iter_mut().zip(other.kinds) {
            own.0 += others.0;
            own.1 = own.1.take().or(others.1);
        }
    }

    /// All of them.
    pub fn count(&self) -> u64 {
        self.kinds.iter().map(|(count, _)| count).sum()
    }

    /// The kinds there were: name, count, first example.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64, &str)> {
        let kinds = FAILURES.iter().zip(&self.kinds);
        kinds
            .filter(|(_, (count, _))| *count > 0)
            .map(|((_, name, _), (count, first))| {
                (*name, *count, first.as_deref().unwrap_or_default())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_the_kinds() {
        for (index, (kind, ..)) in FAILURES.iter().enumerate() {
            assert_eq!(*kind as usize, index);
        }
    }

    #[test]
    fn first_example_of_a_kind_is_kept() {
        let mut failures = Failures::default();
        failures.add(FailureKind::Status, || "404".to_owned());
        failures.add(FailureKind::Status, || "503".to_owned());
        let mut others = Failures::default();
        others.add(FailureKind::Connect, || "refused".to_owned());
        failures.merge(others);
        let all: Vec<_> = failures.all().collect();
        assert_eq!(all, [("connect", 1, "refused"), ("status", 2, "404")]);
        assert_eq!(failures.count(), 3);
    }
}
