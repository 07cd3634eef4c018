//! A place for one request: over HTTP/1 one for each connection, over HTTP/2 and HTTP/3 as many as
//! a connection is to carry at once.
//!
//! ```text
//! Idle --> (Opening) --> (Queued) --> Sending --> Waiting --> Idle | Paused
//! ```

use crate::replay::Logged;
use crate::request::H1Request;

/// What a lane is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// Nothing: no request.
    Idle,
    /// A request waits for its connection.
    Opening,
    /// A request waits because the server takes no more at once on this connection.
    Queued,
    /// The request is on its way, in part.
    Sending,
    /// The request is sent, its answer is not complete.
    Waiting,
    /// Between two requests: the time to think, or the pause after a failed connection.
    Paused,
}

/// One lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) state: LaneState,
    /// Whether the request counts: it was due after the warm-up.
    pub(crate) is_measured: bool,
    /// Whether it was counted already that the request did not leave when it was due.
    pub(crate) is_delayed: bool,
    /// After which share of its answer the request is broken off; none where it is not.
    pub(crate) break_at: Option<f32>,
    /// How often the request was sent again, because the server had not looked at it.
    pub(crate) again_count: u8,
    /// The kind of request.
    pub(crate) kind: u32,
    /// The connection that carries it.
    pub(crate) conn: u32,
    /// What a log says of the request, where there is one.
    pub(crate) logged: Option<Box<Logged>>,
    /// Over HTTP/1, the request with the target of the log, but for a long body.
    pub(crate) bytes: Vec<u8>,
    /// When the request was due, and when it was begun, in nanoseconds of the run.
    pub(crate) intended_ns: u64,
    pub(crate) begun_ns: u64,
    /// Measured answers.
    pub(crate) answered: u64,
}

impl Lane {
    pub(crate) fn new() -> Lane {
        Lane {
            state: LaneState::Idle,
            is_measured: false,
            is_delayed: false,
            break_at: None,
            again_count: 0,
            kind: 0,
            conn: 0,
            logged: None,
            bytes: Vec::new(),
            intended_ns: 0,
            begun_ns: 0,
            answered: 0,
        }
    }

    /// The bytes of its request over HTTP/1, with those of all kinds of requests at hand; a long
    /// body of a request of a log comes behind them.
    pub(crate) fn request<'a>(&'a self, all: &'a [H1Request]) -> &'a [u8] {
        match self.logged {
            None => &all[self.kind as usize].bytes,
            Some(_) => &self.bytes,
        }
    }

    /// What of its request is still to be sent, where so many bytes were and these are the first.
    pub(crate) fn rest<'a>(&self, first: &'a [u8], all: &'a [H1Request], sent: usize) -> &'a [u8] {
        let long_body = match self.logged {
            None => &[][..],
            Some(_) => all[self.kind as usize].long_body(),
        };
        match sent.checked_sub(first.len()) {
            Some(of_body) => &long_body[of_body..],
            None => &first[sent..],
        }
    }

    /// Is there a request?
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.state, LaneState::Idle | LaneState::Paused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_of_a_log_has_its_first_bytes_and_then_the_long_body_of_its_kind() {
        let body = vec![b'x'; 40_000];
        let all = [H1Request::of_parts(b"POST  HTTP/1.1\r\n\r\n", 5, &body)];
        let mut lane = Lane::new();
        all[0].write_to(b"/a", &mut lane.bytes);
        lane.logged = Some(Box::new(Logged {
            kind: 0,
            status: 0,
            target: b"/a"[..].into(),
        }));
        let mut sent = Vec::new();
        // As much as a socket has room for: less than the head, then across the edge and beyond.
        for room in [7, 100, 20_000, 100_000, 1] {
            let rest = lane.rest(lane.request(&all), &all, sent.len());
            sent.extend_from_slice(&rest[..rest.len().min(room)]);
        }
        assert_eq!(sent, [b"POST /a HTTP/1.1\r\n\r\n", &body[..]].concat());
        // Without a log everything is in one piece.
        lane.logged = None;
        let first = lane.request(&all);
        assert_eq!(lane.rest(first, &all, 0).len(), first.len());
        assert!(lane.rest(first, &all, first.len()).is_empty());
    }
}
