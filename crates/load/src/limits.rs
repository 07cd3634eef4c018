//! Every limit of the load generator, with its unit in its name.

use std::time::Duration;

/// Requests at once on one connection.
pub const STREAM_COUNT_MAX: usize = 10_000;
/// Requests at once in one run.
pub const LANE_COUNT_MAX: usize = 4_000_000;
/// How often a request is sent again that the server has refused to begin.
pub const AGAIN_COUNT_MAX: u8 = 10;
/// Threads of one run.
pub const THREAD_COUNT_MAX: usize = 1024;
/// Connections of one run.
pub const CONNECTION_COUNT_MAX: usize = 1_000_000;
/// Client addresses that the connections of one run come from.
pub const SOURCE_COUNT_MAX: usize = 10_000;
/// Kinds of requests of one run: URLs, or lines of a list.
pub const URL_COUNT_MAX: usize = 100_000;
/// Connections times rows of results, on one thread, up to which rows tell how fairly connections
/// were answered.
pub const CELL_COUNT_MAX: usize = 1 << 20;
/// Longest list of URLs.
pub const LIST_BYTES_MAX: u64 = 64 << 20;
/// Longest line of a list of URLs.
pub const LIST_LINE_BYTES_MAX: usize = 16 * 1024;
/// Longest line of an access log; a longer one is counted and left out.
pub const LOG_LINE_BYTES_MAX: usize = 64 * 1024;
/// Longest target in one.
pub const LOG_TARGET_BYTES_MAX: usize = 16 * 1024;
/// Requests of one second of a log that are spread over it; the rest of it is due at its end.
pub const LOG_SECOND_COUNT_MAX: usize = 1 << 18;
/// Bytes of their targets.
pub const LOG_SECOND_BYTES_MAX: usize = 64 << 20;
/// Lines of a log that a thread is handed at once.
pub const LOG_BATCH_LINES: usize = 64;
/// Bytes of their targets.
pub const LOG_BATCH_BYTES: usize = 64 * 1024;
/// Such batches that a thread has ahead.
pub const LOG_BATCH_COUNT_MAX: usize = 64;
/// Methods that are sent of a log.
pub const LOG_METHOD_COUNT_MAX: usize = 16;
/// Bytes of targets of a log that are due and wait for a connection, on one thread.
pub const BACKLOG_BYTES_MAX: usize = 256 << 20;
/// How long is waited for the first lines of a log, and at the end for whoever reads it.
pub const LOG_WAIT: Duration = Duration::from_millis(500);
/// How often a thread looks for more of a log that is not read that far.
pub const LOG_LOOK_PERIOD: Duration = Duration::from_millis(1);
/// Rows of results that they are told apart in.
pub const ROW_COUNT_MAX: usize = 1000;
/// Steps of a rate.
pub const STEP_COUNT_MAX: usize = 1000;
/// Highest rate, in requests per second.
pub const RATE_MAX: f64 = 1e8;
/// Longest duration of anything: what the histograms can hold.
pub const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// Fewest and most bits a second of a link.
pub const BIT_RATE_MIN: u64 = 1_000;
/// Most of them.
pub const BIT_RATE_MAX: u64 = 100_000_000_000;
/// Largest body of a request.
pub const BODY_BYTES_MAX: u64 = 1 << 30;
/// Largest body that is put behind the head of each request of a log; larger ones are sent from the
/// one place where they are.
pub const COPIED_BODY_BYTES_MAX: usize = 16 * 1024;
/// Longest head of an answer; a longer one is a failure of the answer.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest line that begins a chunk, with its extensions.
pub const CHUNK_LINE_BYTES_MAX: usize = 4096;
/// Longest trailer section of an answer.
pub const TRAILER_BYTES_MAX: usize = 64 * 1024;
/// Interim answers before the final one.
pub const INTERIM_COUNT_MAX: u32 = 100;
/// Requests of one thread that are due and wait for a connection; later ones are not sent.
pub const BACKLOG_COUNT_MAX: usize = 1 << 20;
/// Bytes taken from one connection before the others have their turn.
pub const TURN_BYTES_MAX: usize = 1 << 20;
/// Pause before a connection that could not be opened is tried again.
pub const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Pause before a Unix socket is tried again whose backlog is full.
pub const KNOCK_PAUSE: Duration = Duration::from_millis(1);
/// How often a thread looks for requests whose time is up and for the end of the run.
pub const TICK: Duration = Duration::from_millis(100);
/// A request sent later than this after it was due, with a connection free, was sent late.
pub const LATE: Duration = Duration::from_millis(1);
/// Stretches of time that are told apart in a result; in longer runs they are longer.
pub const INTERVAL_COUNT_MAX: usize = 600;
/// Machines that carry out one plan together.
pub const SHARD_COUNT_MAX: u32 = 10_000;
/// Descriptors kept for everything but connections.
pub const OTHER_DESCRIPTOR_COUNT: u64 = 64;
/// Connections of one visitor over HTTP/1, as browsers have them for one server.
pub const VISITOR_CONNECTION_COUNT: usize = 6;
/// Requests at once of one visitor over HTTP/2 and HTTP/3.
pub const VISITOR_STREAM_COUNT: usize = 100;
/// Visitors of one run.
pub const VISITOR_COUNT_MAX: usize = 10_000;
/// Assets of one page, those of its stylesheets and frames included; others are not loaded.
pub const ASSET_COUNT_MAX: usize = 1000;
/// Assets that one thread tells apart in its results; those found later are counted together.
pub const ASSET_TOLD_COUNT_MAX: usize = 2000;
/// Other servers that results name.
pub const ORIGIN_COUNT_MAX: usize = 100;
/// Bytes of a document or stylesheet that are looked at, decoded.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
/// Attributes of one tag that are looked at.
pub const ATTRIBUTE_COUNT_MAX: usize = 256;
/// Longest path and query of an asset.
pub const TARGET_BYTES_MAX: usize = 8 * 1024;
/// Redirects from one address to the next, as browsers follow them.
pub const REDIRECT_COUNT_MAX: u8 = 20;
