//! The thread `hob-otlp`: empties the rings, makes spans, sends batches.
//!
//! While a batch is on its way the rings fill; a ring that is full refuses. So what waits is
//! bounded by the rings and one batch, whatever the collector does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use hob_http::Bytes;
use hob_http::outbound::{OutboundClient, OutboundDestination, Reply};
use hob_trace::Mutex;
use hob_trace::metric::ThreadCounters;
use hob_trace::ring::{Consumer, Producer, ring};
use hob_trace::series::{SeriesName, SeriesRegistry};
use hob_trace::{Record, Texts};
use prost::Message;
use rustix::time::{ClockId, clock_gettime};

use super::message::{
    Export, Exported, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span,
};
use super::span::spans;
use crate::authorities::KEY;
use hob_config::Otlp;

/// Most times a batch is sent.
const TRIES_MAX: u32 = 3;
/// Pause before it is sent again, where the collector says nothing; doubled each time.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause a collector gets by asking for it.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The least time between two complaints.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Where traces go. When it is dropped, its thread sends what is left and ends.
pub struct Exporter {
    settings: Otlp,
    /// The text of `settings.ca`; empty without.
    roots: Vec<u8>,
    desk: Arc<ExporterInbox>,
    thread: Thread,
    /// Says that the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// What the thread is told.
#[derive(Default)]
struct ExporterInbox {
    new_rings: Mutex<Vec<Consumer>>,
    is_closing: AtomicBool,
}

impl Exporter {
    /// Starts the thread. `roots` is the text of `settings.ca`.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(
        settings: Otlp,
        roots: Vec<u8>,
        series: Arc<SeriesRegistry>,
        counters: Arc<ThreadCounters>,
    ) -> std::io::Result<Exporter> {
        let desk = Arc::new(ExporterInbox::default());
        let (end, ended) = channel();
        let sender = Work {
            settings: settings.clone(),
            roots: roots.clone(),
            series,
            counters,
            desk: Arc::clone(&desk),
            rings: Vec::new(),
            batch: Batch::default(),
            names: Vec::new(),
            unix_us: 0,
            told_at: None,
            _end: end,
        };
        let thread = thread::Builder::new()
            .name("hob-otlp".to_owned())
            .spawn(move || sender.run())?;
        Ok(Exporter {
            settings,
            roots,
            desk,
            thread: thread.thread().clone(),
            ended: Mutex::new(ended),
        })
    }

    /// As configured.
    pub(super) fn settings(&self) -> &Otlp {
        &self.settings
    }

    /// Whether it does what another with these would do.
    pub fn is(&self, settings: &Otlp, roots: &[u8]) -> bool {
        self.settings == *settings && self.roots == roots
    }

    /// A ring for one more thread.
    pub(super) fn new_ring(&self) -> Producer {
        let (producer, consumer) = ring(self.settings.queue_bytes);
        self.desk.new_rings.lock().push(consumer);
        self.thread.unpark();
        producer
    }

    /// Has what is left sent. False if that takes longer than this.
    pub fn close(&self, patience: Duration) -> bool {
        self.desk.is_closing.store(true, Ordering::Release);
        self.thread.unpark();
        let ended = self.ended.lock().recv_timeout(patience);
        ended == Err(RecvTimeoutError::Disconnected)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.desk.is_closing.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// The thread's state.
struct Work {
    settings: Otlp,
    roots: Vec<u8>,
    series: Arc<SeriesRegistry>,
    counters: Arc<ThreadCounters>,
    desk: Arc<ExporterInbox>,
    rings: Vec<ExportRing>,
    batch: Batch,
    names: Vec<Arc<SeriesName>>,
    /// From the monotonic clock to Unix time, in microseconds.
    unix_us: i64,
    told_at: Option<Instant>,
    _end: Sender<()>,
}

struct ExportRing {
    consumer: Consumer,
    /// Its losses that are counted already.
    dropped_seen: u64,
}

/// Spans that wait to be sent.
#[derive(Default)]
struct Batch {
    spans: Vec<Span>,
    /// Requests they are of.
    requests: usize,
    since: Option<Instant>,
}

/// What became of a batch that was sent.
enum ExportOutcome {
    Taken,
    /// Trying again may help, after this if the collector says so.
    Later(String, Option<Duration>),
    Refused(String),
}

impl Work {
    fn run(mut self) {
        let destination = &self.settings.destination;
        let destination = OutboundDestination {
            url: destination.url.clone(),
            fields: destination.fields.clone(),
            timeout: destination.timeout,
        };
        let client = match OutboundClient::new(destination, &self.roots, KEY) {
            Ok(client) => Some(client),
            Err(error) => {
                tracing::error!(error, "traces cannot be sent");
                None
            }
        };
        loop {
            // What is pushed before this is looked at is seen by the drain that follows.
            let is_closing = self.desk.is_closing.load(Ordering::Acquire);
            self.take_rings();
            self.set_clock();
            for index in 0..self.rings.len() {
                self.drain(index, client.as_ref());
            }
            let is_due = self
                .batch
                .since
                .is_some_and(|since| since.elapsed() >= self.settings.interval);
            if is_due || is_closing {
                self.send(client.as_ref());
            }
            self.count_losses();
            if is_closing {
                return;
            }
            thread::park_timeout(self.pause());
        }
    }

    fn pause(&self) -> Duration {
        let waited = self
            .batch
            .since
            .map_or(Duration::ZERO, |since| since.elapsed());
        self.settings
            .interval
            .saturating_sub(waited)
            .max(Duration::from_millis(1))
    }

    fn take_rings(&mut self) {
        for consumer in self.desk.new_rings.lock().drain(..) {
            consumer.attach(thread::current());
            self.rings.push(ExportRing {
                consumer,
                dropped_seen: 0,
            });
        }
    }

    fn set_clock(&mut self) {
        let us = |clock| {
            let now = clock_gettime(clock);
            now.tv_sec * 1_000_000 + now.tv_nsec / 1000
        };
        self.unix_us = us(ClockId::Realtime) - us(ClockId::Monotonic);
    }

    /// Empties a ring, and sends each batch that gets full.
    fn drain(&mut self, index: usize, client: Option<&OutboundClient>) {
        let mut taken = Vec::new();
        let (series, names, unix_us) = (&self.series, &mut self.names, self.unix_us);
        self.rings[index]
            .consumer
            .drain(|record: &Record, texts: Texts<'_>| {
                let number = usize::from(record.series);
                if number >= names.len() {
                    *names = series.names();
                }
                if let Some(name) = names.get(number) {
                    taken.push(spans(record, &texts, name, unix_us));
                }
            });
        for spans in taken {
            self.batch.spans.extend(spans);
            self.batch.requests += 1;
            self.batch.since.get_or_insert_with(Instant::now);
            if self.batch.requests >= self.settings.batch {
                self.send(client);
            }
        }
    }

    /// Sends what waits; afterwards nothing does.
    fn send(&mut self, client: Option<&OutboundClient>) {
        let batch = std::mem::take(&mut self.batch);
        if batch.requests == 0 {
            return;
        }
        let span_count = batch.spans.len() as u64;
        let body = Bytes::from(self.export(batch.spans).encode_to_vec());
        let mut pause = PAUSE;
        for tried in 1..=TRIES_MAX {
            let sent = match client {
                Some(client) => judge(client.post("application/x-protobuf", body.clone())),
                None => break,
            };
            match sent {
                ExportOutcome::Taken => return self.counters.otlp_spans.add(span_count),
                ExportOutcome::Refused(why) => {
                    self.counters.otlp_failures.add(1);
                    self.complain(&why);
                    break;
                }
                ExportOutcome::Later(why, asked) => {
                    self.counters.otlp_failures.add(1);
                    self.complain(&why);
                    let is_last = tried == TRIES_MAX;
                    if is_last || self.wait(asked.unwrap_or(pause).min(PAUSE_MAX)) {
                        break;
                    }
                    pause *= 2;
                }
            }
        }
        self.counters.otlp_dropped.add(batch.requests as u64);
    }

    /// Waits, unless the end comes before: then it says so.
    fn wait(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            if self.desk.is_closing.load(Ordering::Acquire) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left);
        }
    }

    fn export(&self, spans: Vec<Span>) -> Export {
        let version = env!("CARGO_PKG_VERSION");
        let host = rustix::system::uname();
        let attributes = vec![
            KeyValue::text("service.name", self.settings.service.as_str()),
            KeyValue::text("host.name", host.nodename().to_string_lossy()),
            KeyValue::number("process.pid", u64::from(std::process::id())),
        ];
        let scope = Scope {
            name: "hob".to_owned(),
            version: version.to_owned(),
        };
        Export {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope),
                    spans,
                }],
            }],
        }
    }

    fn count_losses(&mut self) {
        for ring in &mut self.rings {
            let dropped = ring.consumer.dropped();
            self.counters.otlp_dropped.add(dropped - ring.dropped_seen);
            ring.dropped_seen = dropped;
        }
        self.rings.retain(|ring| !ring.consumer.is_finished());
    }

    fn complain(&mut self, why: &str) {
        if self
            .told_at
            .is_none_or(|told| told.elapsed() >= COMPLAIN_EVERY)
        {
            self.told_at = Some(Instant::now());
            let url = &self.settings.destination.url;
            tracing::warn!(url, why, "the collector did not take traces");
        }
    }
}

/// What an answer means.
fn judge(answer: Result<Reply, String>) -> ExportOutcome {
    let reply = match answer {
        Ok(reply) => reply,
        Err(why) => return ExportOutcome::Later(why, None),
    };
    match reply.status {
        200..=299 => {
            let partial = Exported::decode(reply.body).unwrap_or_default().partial;
            match partial {
                Some(partial) if partial.rejected_spans > 0 => ExportOutcome::Refused(format!(
                    "it rejected {} spans: {}",
                    partial.rejected_spans, partial.message
                )),
                _ => ExportOutcome::Taken,
            }
        }
        429 | 502 | 503 | 504 => {
            let pause = reply.retry_after_s.map(Duration::from_secs);
            ExportOutcome::Later(format!("it answered {}", reply.status), pause)
        }
        status => ExportOutcome::Refused(format!("it answered {status}")),
    }
}
