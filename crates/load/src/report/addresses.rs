//! What each of several client addresses got. Connections take them in turn, so what was counted of
//! each connection is all there is to know.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::Report;
use crate::measure::jain;
use crate::send::source_address;

/// One client address.
pub(super) struct Source {
    pub(super) address: Ipv4Addr,
    /// Connections that it had at once, or visitors.
    pub(super) connections: u64,
    pub(super) answered: u64,
}

impl Report {
    /// The client addresses in their order; none where the system chose.
    pub(super) fn addresses(&self) -> Vec<Source> {
        let count = match self.plan.sources {
            1 => 0,
            count => count,
        };
        let source = |number| Source {
            address: source_address(number),
            connections: 0,
            answered: 0,
        };
        let mut all: Vec<Source> = (0..count).map(source).collect();
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

    /// The client addresses as JSON.
    pub(super) fn addresses_json(&self) -> Vec<Value> {
        let one = |one: &Source| {
            json!({
                "address": one.address.to_string(),
                "connections": one.connections,
                "answered": one.answered,
            })
        };
        self.addresses().iter().map(one).collect()
    }
}

/// Jain's index over client addresses, of the answers of each beside its connections.
pub(crate) fn fairness_over(all: impl Iterator<Item = (u64, u64)>) -> Option<f64> {
    jain(all.map(|(connections, answered)| answered as f64 / connections.max(1) as f64))
}
