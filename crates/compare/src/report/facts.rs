//! What lay between client and servers.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::ComparisonReport;
use crate::link::LinkSettings;
use crate::machine::Machine;
use crate::plan::ComparisonPlan;

/// What is known of the way to the servers' machine.
#[derive(Debug)]
pub(crate) struct TargetFacts {
    pub(crate) address: String,
    pub(crate) round_trip: Duration,
    /// What the slower network card of both machines says that it carries.
    pub(crate) card_bits_per_second: Option<u64>,
    /// Why it was no longer heard in the end.
    pub(crate) lost: Option<String>,
}

impl ComparisonReport {
    /// A report of nothing yet.
    pub(crate) fn new(plan: &ComparisonPlan, machine: Machine) -> ComparisonReport {
        ComparisonReport {
            begun_at: SystemTime::UNIX_EPOCH,
            elapsed: Duration::ZERO,
            scope: plan.scope,
            settings: plan.settings,
            is_interrupted: false,
            load_before: machine.load_before,
            machine,
            configurations: BTreeMap::new(),
            lacks: vec![],
            servers: vec![],
            missing: vec![],
            rows: vec![],
            has_one_cpu: false,
            link: None,
            target: None,
        }
    }

    /// Why the servers' machine was no longer heard, where it was lost in the middle.
    pub fn lost(&self) -> Option<&str> {
        self.target.as_ref()?.lost.as_deref()
    }

    /// What lies between client and servers, where its bandwidth is known: a link, or network
    /// cards.
    pub(crate) fn bandwidth(&self) -> Option<LinkSettings> {
        let target = self.target.as_ref();
        let cards = target.and_then(|target| {
            Some(LinkSettings {
                bits_per_second: Some(target.card_bits_per_second?),
                round_trip: target.round_trip,
            })
        });
        self.link.or(cards)
    }
}
