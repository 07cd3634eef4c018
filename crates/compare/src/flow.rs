//! Who got how much: bytes to each client of a round, and how even that was.

use schemars::JsonSchema;
use serde::Serialize;

/// What the clients of a round got. A client is an address with its connections.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Flow {
    /// Clients.
    pub(crate) clients: usize,
    /// Bytes of bodies to the one that got least.
    pub(crate) least_bytes: u64,
    /// To the one that got most.
    pub(crate) most_bytes: u64,
    /// Evenness over clients, by Jain's index: 1 is even, 1/n all to one.
    pub(crate) fairness: f64,
    /// The same over connections.
    pub(crate) fairness_connections: f64,
}

impl Flow {
    /// Of the answers of each connection, each of so many bytes, where connections come from so
    /// many addresses in turn; none where nobody got anything.
    pub(crate) fn of(answers: &[u64], bytes: u64, sources: usize) -> Option<Flow> {
        let mut clients = vec![0; sources.min(answers.len())];
        let count = clients.len();
        for (number, answers) in answers.iter().enumerate() {
            clients[number % count] += answers * bytes;
        }
        Some(Flow {
            clients: count,
            least_bytes: *clients.iter().min()?,
            most_bytes: *clients.iter().max()?,
            fairness: evenness(&clients)?,
            fairness_connections: evenness(answers)?,
        })
    }

    /// How many times as much as the one that got least did the one that got most get? None where
    /// the former got nothing.
    pub(crate) fn spread(&self) -> Option<f64> {
        (self.least_bytes > 0).then(|| self.most_bytes as f64 / self.least_bytes as f64)
    }
}

fn evenness(shares: &[u64]) -> Option<f64> {
    hob_load::jain(shares.iter().map(|share| *share as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_belong_to_clients_in_turn() {
        let flow = Flow::of(&[1, 2, 3, 4, 5], 10, 2).unwrap();
        // 1 + 3 + 5 and 2 + 4.
        assert_eq!(
            (flow.clients, flow.least_bytes, flow.most_bytes),
            (2, 60, 90)
        );
        assert_eq!(flow.spread(), Some(1.5));
        assert!((flow.fairness - 150.0f64.powi(2) / (2.0 * (8100.0 + 3600.0))).abs() < 1e-12);
        assert!((flow.fairness_connections - 225.0 / (5.0 * 55.0)).abs() < 1e-12);
    }

    #[test]
    fn who_gets_nothing_is_seen() {
        let flow = Flow::of(&[4, 0], 10, 2).unwrap();
        assert_eq!((flow.spread(), flow.fairness), (None, 0.5));
        assert_eq!(Flow::of(&[0, 0], 10, 2), None);
        assert_eq!(Flow::of(&[], 10, 6), None);
        // Fewer connections than addresses.
        assert_eq!(Flow::of(&[3], 10, 6).unwrap().clients, 1);
    }
}
