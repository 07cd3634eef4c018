//! What each of several client addresses got. Connections take them in turn, so what was counted of
//! each connection is all there is to know.

use super::BenchReport;
use super::result::Address;
use crate::measure::jain;
use crate::send::source_address;

impl BenchReport {
    /// How many answers each connection had: the first of those that belong to one client address
    /// is as far from the next as there are such addresses (`sources` of the plan).
    pub fn answered_by_connection(&self) -> &[u64] {
        &self.tally.by_connection
    }

    /// The client addresses in their order; none where the system chose.
    pub(super) fn addresses(&self) -> Vec<Address> {
        let count = match self.plan.sources {
            1 => 0,
            count => count,
        };
        let source = |number| Address {
            address: source_address(number).to_string(),
            connections: 0,
            answered: 0,
        };
        let mut all: Vec<Address> = (0..count).map(source).collect();
        if all.is_empty() {
            return all;
        }
        for (number, answered) in self.tally.by_connection.iter().enumerate() {
            let of = &mut all[number % count];
            of.connections += 1;
            of.answered += answered;
        }
        all
    }

    /// Jain's index over client addresses; none where the system chose.
    pub(super) fn fairness_over_addresses(&self) -> Option<f64> {
        let all = self.addresses();
        fairness_over(all.iter().map(|one| (one.connections, one.answered)))
    }
}

/// Jain's index over client addresses, of the answers of each beside its connections.
pub(crate) fn fairness_over(all: impl Iterator<Item = (u64, u64)>) -> Option<f64> {
    jain(all.map(|(connections, answered)| answered as f64 / connections.max(1) as f64))
}
