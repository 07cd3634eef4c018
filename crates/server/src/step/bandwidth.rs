//! How fast answers leave: a body that gives its bytes in small pieces, each when its time has
//! come.
//!
//! Of an answer, of a client and of all, only the time is kept at which all that was given so far
//! would be out at their speed (as `rate` does it). A piece waits for the last of those times on a
//! timer of its thread. Files stay ranges of files, which leave by sendfile where they can.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hob_config::BandwidthSettings;
use hob_http::reactor::Timer;
use hob_http::{Body, BodyError, BodyStream, Chunk, Fields, FileBody, Request, Response};
use hob_trace::metric::ThreadCounters;

use super::rate::RateClients;
use super::request_key::{ClientNetwork, client_of, crowd_of};

/// The bandwidth of a site or a route.
#[derive(Debug)]
pub struct BandwidthLimit {
    /// What the config says.
    pub settings: BandwidthSettings,
    /// What clients have had: it outlives a reload.
    pub clients: Arc<RateClients>,
    /// What all have had together.
    pub all: Arc<RateClients>,
}

/// A body that is held back.
struct PacedBody {
    limit: Arc<BandwidthLimit>,
    counters: Arc<ThreadCounters>,
    request: Request,
    source: PacedSource,
    len: Option<u64>,
    /// The client and its network, where clients are counted.
    client: Option<(ClientNetwork, ClientNetwork)>,
    timer: Timer,
    /// A piece whose time has not come.
    held: Option<Chunk>,
    given_bytes: u64,
    /// When what was given of this answer is out at its own speed, in nanoseconds.
    answer_ns: u64,
    piece_bytes: usize,
}

enum PacedSource {
    File(FileBody),
    Stream(Box<dyn BodyStream>),
}

/// A piece is what leaves in so long a time at the lowest of the speeds, within bounds.
const PIECES_PER_SECOND: u64 = 20;
const PIECE_BYTES_MIN: u64 = 1024;
const PIECE_BYTES_MAX: u64 = 64 * 1024;
const SECOND_NS: u64 = 1_000_000_000;

/// An answer whose body leaves no faster than it may.
pub(crate) fn pace(
    limit: &Arc<BandwidthLimit>,
    counters: &Arc<ThreadCounters>,
    request: &Request,
    mut response: Response,
) -> Response {
    if matches!(response.body, Body::Empty | Body::Tunnel(_)) || response.body.is_empty() {
        return response;
    }
    let body = std::mem::replace(&mut response.body, Body::Empty);
    let len = body.len();
    let source = match body {
        Body::File(file) => PacedSource::File(file),
        body => PacedSource::Stream(body.into_stream()),
    };
    let settings = &limit.settings;
    let client = settings.client.map(|_| {
        let client = client_of(request, settings.v6_prefix);
        (client, crowd_of(request))
    });
    response.body = Body::Stream(Box::new(PacedBody {
        limit: Arc::clone(limit),
        counters: Arc::clone(counters),
        request: request.clone(),
        source,
        len,
        client,
        timer: request.reactor().timer(),
        held: None,
        given_bytes: 0,
        answer_ns: 0,
        piece_bytes: piece_bytes(settings),
    }));
    response
}

fn piece_bytes(settings: &BandwidthSettings) -> usize {
    let speeds = [settings.answer, settings.client, settings.all];
    let slowest = speeds.into_iter().flatten().min().unwrap_or(u64::MAX);
    let bytes = slowest / PIECES_PER_SECOND;
    bytes.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX) as usize
}

/// How long so many bytes take at a speed, in nanoseconds.
fn cost_ns(bytes: u64, per_second: u64) -> u64 {
    let cost = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(per_second.max(1));
    u64::try_from(cost).unwrap_or(u64::MAX)
}

impl PacedBody {
    /// How long a piece of so many bytes has to wait.
    fn reserve(&mut self, bytes: u64) -> Duration {
        let now_ns = self.request.reactor().now_us().saturating_mul(1000);
        let BandwidthLimit {
            settings,
            clients,
            all,
        } = &*self.limit;
        let mut wait_ns = 0;
        let before = self.given_bytes;
        self.given_bytes += bytes;
        if let Some(speed) = settings.answer {
            let counted = self.given_bytes.saturating_sub(before.max(settings.after));
            let due_ns = self.answer_ns.max(now_ns);
            wait_ns = due_ns - now_ns;
            self.answer_ns = due_ns.saturating_add(cost_ns(counted, speed));
        }
        if let (Some(speed), Some((client, crowd))) = (settings.client, &self.client) {
            let cost = cost_ns(bytes, speed);
            let (client_ns, is_alone) = clients.reserve(client, crowd, cost, now_ns);
            wait_ns = wait_ns.max(client_ns);
            if !is_alone && before == 0 {
                self.counters.limit_bandwidth_keys.add(1);
            }
        }
        if let Some(speed) = settings.all {
            let (all_ns, _) = all.reserve(b"", b"", cost_ns(bytes, speed), now_ns);
            wait_ns = wait_ns.max(all_ns);
        }
        // The timer knows milliseconds: never early.
        Duration::from_millis(wait_ns.div_ceil(1_000_000))
    }

    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        match &mut self.source {
            PacedSource::Stream(stream) => stream.poll_chunk(cx, max),
            PacedSource::File(file) if file.len == 0 => Poll::Ready(None),
            PacedSource::File(file) => {
                let len = file.len.min(max as u64);
                let piece = FileBody {
                    source: file.source.clone(),
                    offset: file.offset,
                    len,
                };
                file.offset += len;
                file.len -= len;
                Poll::Ready(Some(Ok(Chunk::File(piece))))
            }
        }
    }
}

impl BodyStream for PacedBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        if self.held.is_none() {
            let max = max.min(self.piece_bytes);
            let chunk = match ready!(self.poll_source(cx, max)) {
                Some(Ok(chunk)) => chunk,
                end => return Poll::Ready(end),
            };
            let wait = self.reserve(chunk.len());
            if wait.is_zero() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            self.counters.bandwidth_held.add(1);
            self.counters.bandwidth_held_us.add(wait.as_micros() as u64);
            self.timer.set_precise(wait);
            self.held = Some(chunk);
        }
        ready!(self.timer.poll_elapsed(cx));
        Poll::Ready(self.held.take().map(Ok))
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn trailers(&mut self) -> Option<Fields> {
        match &mut self.source {
            PacedSource::Stream(stream) => stream.trailers(),
            PacedSource::File(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_small_for_low_speeds() {
        let settings = |answer, all| BandwidthSettings {
            answer,
            client: None,
            all,
            after: 0,
            v6_prefix: 64,
            keys: 100,
        };
        for (answer, all, bytes) in [
            (Some(1024), None, 1024),
            (Some(256 << 10), Some(1 << 30), 13_107),
            (None, Some(1 << 40), 65_536),
        ] {
            assert_eq!(piece_bytes(&settings(answer, all)), bytes);
        }
    }

    #[test]
    fn time_of_bytes_is_exact() {
        assert_eq!(cost_ns(1 << 20, 1 << 18), 4 * SECOND_NS);
        assert_eq!(cost_ns(1, 1 << 40), 0);
        assert_eq!(cost_ns(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn all_that_is_reserved_takes_as_long_as_it_costs() {
        let clients = RateClients::new(100);
        let waits = (0..10).map(|_| clients.reserve(b"a", b"", SECOND_NS / 10, SECOND_NS).0);
        let waits: Vec<_> = waits.collect();
        let expected = (0..10).map(|count| count * SECOND_NS / 10);
        assert_eq!(waits, expected.collect::<Vec<_>>());
        // Who was silent for long enough waits for nothing, and has no more than that.
        assert_eq!(clients.reserve(b"a", b"", SECOND_NS, 9 * SECOND_NS).0, 0);
        assert_eq!(
            clients.reserve(b"a", b"", SECOND_NS, 9 * SECOND_NS).0,
            SECOND_NS
        );
        assert_eq!(clients.reserve(b"b", b"", 1, 9 * SECOND_NS).0, 0);
    }
}
