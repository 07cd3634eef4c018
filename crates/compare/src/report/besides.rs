//! What some rows tell besides CPU time and rates: how long bodies were, who got how much.

use hob_load::page::{count, three_digits};
use schemars::JsonSchema;
use serde::Serialize;

use crate::flow::Flow;
use crate::interval::median;
use crate::link::FrameCount;
use crate::measure::{EntrantResult, RowMeasurement};
use crate::rows::RowRequest;

/// Who got how much, over all rounds of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct FlowResult {
    /// Clients: addresses with several connections each, or connections where they have one.
    clients: usize,
    /// How many times as much as the one that got least the one that got most did, a median of
    /// rounds; null where one got nothing.
    spread: Option<f64>,
    /// Evenness over clients, by Jain's index, a median of rounds: 1 is even, 1/n all to one.
    fairness: f64,
    /// The same over connections.
    fairness_connections: f64,
}

impl FlowResult {
    pub(super) fn of(cell: &EntrantResult) -> Option<FlowResult> {
        let flows: Vec<&Flow> = cell
            .rounds
            .iter()
            .filter_map(|round| round.flow.as_ref())
            .collect();
        let first = flows.first()?;
        let of_rounds = |value: fn(&Flow) -> f64| {
            let values: Vec<f64> = flows.iter().map(|flow| value(flow)).collect();
            median(&values)
        };
        let spreads: Option<Vec<f64>> = flows.iter().map(|flow| flow.spread()).collect();
        Some(FlowResult {
            clients: first.clients,
            spread: spreads.and_then(|all| median(&all)),
            fairness: of_rounds(|flow| flow.fairness)?,
            fairness_connections: of_rounds(|flow| flow.fairness_connections)?,
        })
    }

    fn text(&self) -> String {
        let spread = match self.spread {
            Some(spread) => format!("{spread:.3} times as much to one as to another"),
            None => "nothing at all to one".to_owned(),
        };
        format!(
            "{} clients got {spread} at most, Jain's index {:.4}, over connections {:.4}",
            self.clients, self.fairness, self.fairness_connections
        )
    }
}

/// Bytes of the body of an answer as they came, where a row is about that.
pub(super) fn body_bytes(cell: &EntrantResult) -> Option<f64> {
    cell.median(|round| round.body_bytes)
}

/// Frames of the link in all rounds; none without one.
pub(super) fn link_frames(cell: &EntrantResult) -> Option<FrameCount> {
    FrameCount::sum(cell.rounds.iter().filter_map(|round| round.link_frames))
}

/// Lines below the figures of a row.
pub(super) fn lines(measured: &RowMeasurement) -> Vec<String> {
    let mut lines = vec![];
    if measured.row.request == RowRequest::Gzip {
        let told = |cell: &EntrantResult| {
            let bytes = count(body_bytes(cell)?.round() as u64);
            Some(format!("{} {bytes}", cell.entrant.label))
        };
        let told: Vec<String> = measured.cells.iter().filter_map(told).collect();
        if !told.is_empty() {
            lines.push(format!("bytes of a body on the wire: {}", told.join("; ")));
        }
    }
    let lost = |cell: &EntrantResult| {
        let frames = link_frames(cell)?;
        let (lost, all) = (frames.lost, frames.lost + frames.passed);
        Some(format!(
            "{} {} of {}",
            cell.entrant.label,
            count(lost),
            count(all)
        ))
    };
    let lost: Vec<String> = measured.cells.iter().filter_map(lost).collect();
    if !lost.is_empty() {
        lines.push(format!("frames that the link lost: {}", lost.join("; ")));
    }
    for cell in &measured.cells {
        if let Some(flow) = FlowResult::of(cell) {
            let bytes = cell.median(|round| round.bytes_per_second).unwrap_or(0.0);
            lines.push(format!(
                "{}: {}, {} MB/s in all",
                cell.entrant.label,
                flow.text(),
                three_digits(bytes / 1e6)
            ));
        }
    }
    lines
}
