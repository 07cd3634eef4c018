//! How long answers wait for their client, and what the network was like when they were slow. The
//! clock is read where something blocks, and nowhere else.

use hob_trace::verdict::SLOW_US;
use hob_trace::{Outcome, Record};

use crate::clock::clock_us;
use crate::network::NetworkProbe;
use crate::request::{IncomingState, Request};
use crate::response::Responder;
use crate::thread::conn::{OutputPiece, SocketConnection};
use crate::thread::run::Thread;
use crate::thread::send::note_first_byte;

impl<A: Responder + 'static> Thread<A> {
    /// The socket takes no more for now: from here on it is the client's time that runs.
    pub(super) fn note_blocked(&self, conn: &mut SocketConnection) {
        conn.core.wait_for_write(self.turn.now_ms);
        if conn.take_since_us == 0 {
            conn.take_since_us = clock_us();
        }
    }

    /// The socket has taken some bytes.
    pub(super) fn note_sent(&self, conn: &mut SocketConnection) {
        note_first_byte(conn);
        conn.core.wrote_some(self.turn.now_ms);
        if conn.take_since_us != 0 {
            self.note_taken(conn);
        }
    }

    /// The socket takes bytes again, or never will: whose bytes waited is told.
    #[cold]
    pub(super) fn note_taken(&self, conn: &mut SocketConnection) {
        let since_us = std::mem::take(&mut conn.take_since_us);
        if since_us == 0 {
            return;
        }
        let queued = conn.out.pieces.iter().filter_map(|piece| match piece {
            OutputPiece::End(request) => Some(request),
            _ => None,
        });
        for request in queued.chain(&conn.request).chain(&self.finishing) {
            note_wait(&mut request.record_mut(), since_us, self.turn.now_us);
        }
    }

    /// Completes a record but for its total: waits that have not ended do so now, and who was slow
    /// is asked why.
    pub(super) fn note_waits(&self, request: &Request, end_us: u64, way: &dyn NetworkProbe) {
        let mut record = request.record_mut();
        {
            let mut body = request.exchange.body.borrow_mut();
            let since_us = std::mem::take(&mut body.wait_since_us);
            let is_cut_off = matches!(body.state, IncomingState::Broken(_))
                || record.outcome != Outcome::Complete;
            // A body that the answer did without was not waited for.
            if since_us != 0 && is_cut_off {
                record.client_body_us += end_us.saturating_sub(since_us);
            }
        }
        if (record.total_us >= SLOW_US || record.client_take_us > 0)
            && let Some(network) = way.network()
        {
            network.note(&mut record);
        }
    }
}

/// An answer's bytes have waited for its client since then.
pub(super) fn note_wait(record: &mut Record, since_us: u64, until_us: u64) {
    let since_us = since_us.max(record.started_us);
    record.client_take_us += until_us.saturating_sub(since_us);
}

/// Begins or ends the wait of a stream's answer for its client.
pub(super) fn set_wait(wait_since_us: &mut u64, is_waiting: bool, now_us: u64, request: &Request) {
    match (*wait_since_us, is_waiting) {
        (0, true) => *wait_since_us = now_us,
        (0, false) | (_, true) => {}
        (since_us, false) => {
            *wait_since_us = 0;
            note_wait(&mut request.record_mut(), since_us, now_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_counts_from_the_request_s_own_begin() {
        let mut record = Record::empty();
        record.started_us = 1000;
        note_wait(&mut record, 400, 1500);
        assert_eq!(record.client_take_us, 500);
        note_wait(&mut record, 1600, 1700);
        assert_eq!(record.client_take_us, 600);
        note_wait(&mut record, 1800, 1700);
        assert_eq!(record.client_take_us, 600);
    }
}
