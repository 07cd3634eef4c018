//! Requests of an open loop that have a lane, but wait for room at the server: as much a backlog as
//! those that wait for a lane.

use super::lane::{Lane, LaneState};
use super::thread::Thread;
use crate::measure::FailureKind;
use crate::plan::Protocol;

impl Thread<'_> {
    /// Requests of an open loop that wait because the server takes no more on their connections.
    pub(super) fn queued_count(&self) -> usize {
        if !self.prepared.is_open || self.prepared.protocol == Protocol::H1 {
            return 0;
        }
        let queued = |lane: &&Lane| lane.state == LaneState::Queued;
        self.lanes.iter().filter(queued).count()
    }

    /// The time for sending is over: requests of an open loop that still wait are not sent.
    pub(super) fn give_up_queued(&mut self, now: u64) {
        if self.queued_count() == 0 {
            return;
        }
        for conn in 0..self.conn_count {
            let Some(many) = &mut self.conns[conn].many else {
                continue;
            };
            for lane in std::mem::take(&mut many.waiting) {
                if self.lanes[lane as usize].state == LaneState::Queued {
                    let text = || "all streams were in use; more --connections may help".to_owned();
                    self.failed(lane as usize, (FailureKind::Unsent, true), now, text);
                } else {
                    self.wait(lane as usize, conn);
                }
            }
        }
    }
}
