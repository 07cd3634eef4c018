//! Limits of this handler that nobody needs to set. Those a route sets are in
//! [`crate::handle::config::Resident`].

use std::time::Duration;

/// Bytes of a request's body that wait for their worker.
pub(super) const BODY_HELD_BYTES_MAX: usize = 64 * 1024;
/// Pieces of it: each costs more than its bytes.
pub(super) const BODY_PIECES_MAX: usize = 256;
/// Bytes of a request's body that a worker is sent before it says that it wants more.
pub(super) const BODY_WINDOW_BYTES: u32 = 64 * 1024;
/// Bytes of an answer that a worker sends over a socket before the client has taken some.
pub(super) const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// Connections of a thread whose requests' unchanging variables are kept for the next request.
pub(super) const BEGINNINGS_KEPT: usize = 256;
/// Buffers of requests' variables that a thread keeps for the next requests.
pub(super) const BLOCKS_KEPT: usize = 64;
/// Size of such a buffer, in bytes; larger ones are freed.
pub(super) const BLOCK_BYTES_KEPT: usize = 4096;
/// Pieces of an answer's body that wait for their client as they came; small ones behind them wait
/// as one, so that a window of single bytes takes no more than one of large pieces.
pub(super) const PIECES_APART_MAX: usize = 16;
/// Bytes from which a piece stays alone all the same.
pub(super) const PIECE_APART_BYTES_MIN: usize = 4 * 1024;
/// Of the chunks of a worker's shared memory, clients may hold one part in so many; what comes
/// while they hold more is copied, so that clients that take their time do not stop the worker.
pub(super) const CHUNKS_HELD_SHARE: usize = 2;
/// Files of one worker that are on their way to clients at a time.
pub(super) const FILES_HELD_MAX: usize = 128;
/// Descriptors that came over a worker's socket before the messages they belong to.
pub(super) const FILES_AHEAD_MAX: usize = 16;
/// Requests that a worker is handed ahead of those it works on, in shared memory, while it answers
/// within [`AHEAD_US_MAX`]. They can be taken back.
pub(super) const AHEAD_MAX: usize = 16;
/// Microseconds a request may take, smoothed, for more than none to be handed ahead.
pub(super) const AHEAD_US_MAX: u64 = 1000;
/// What a worker's first requests are taken to need.
pub(super) const SERVICE_US_FIRST: u64 = 10_000;
/// Milliseconds of work over which it is measured how long a request takes.
pub(super) const SERVICE_MS: u64 = 8;
/// How long a worker may be silent while requests wait that were handed to it ahead; then they are
/// taken back.
pub(super) const AHEAD_WAIT: Duration = Duration::from_millis(2);
/// Bytes for a worker that its socket did not take; more waits where it is.
pub(super) const OUT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of replies and windows for a worker that found no room on their way, because it does not
/// read; one that has more is ended. Far more than [`OUT_BYTES_MAX`], so that bodies before them do
/// not count for replies.
pub(super) const UNREAD_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of interim answers that one request may have, 64 counted for each besides its fields;
/// what comes after them is left out.
pub(super) const INTERIM_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a worker's messages read before others have their turn.
pub(super) const READ_BYTES_PER_TURN: usize = 1024 * 1024;
/// Such turns in which a worker that has closed its socket is read to the end: as much as all of
/// its shared memory holds.
pub(super) const CLOSED_TURNS_MAX: usize = 4;
/// Longest head of an answer that comes in lines.
pub(super) const LINES_HEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest head of another answer, in bytes, is the message's own limit; fields of one trailer too.
pub(super) const TRAILER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of what a worker printed last that are kept to explain its end.
pub(super) const LAST_WORDS_BYTES: usize = 4 * 1024;
/// Remarks of workers about all of them that are logged, each once.
pub(super) const REMARKS_MAX: usize = 16;
/// Requests of a worker with several at a time that lines of its output may name, the last ones.
pub(super) const LATELY_MAX: usize = 1024;
/// Lines of a worker that wait to be logged until it is ready, the last ones
/// (`program_stderr_dropped`).
pub(super) const HELD_LINES_MAX: usize = 100;
/// How long the end of a worker's process is waited for once its channel has ended, so that the
/// record can say how it ended.
pub(super) const EXIT_WAIT: Duration = Duration::from_millis(500);
/// How long a process that ended is listened to for what it printed.
pub(super) const LAST_WORDS_WAIT: Duration = Duration::from_millis(300);
/// How long a worker whose channel has ended may take to end by itself.
pub(super) const CLOSED_WAIT: Duration = Duration::from_secs(2);
/// How much longer than `grace` a server that ends waits for a worker: after SIGTERM and SIGKILL.
pub(super) const LEAVE_SLACK: Duration = Duration::from_secs(1);
/// Ends of workers that nobody asked for which are logged at once, and then each second; the others
/// are counted.
pub(super) const ENDS_AT_ONCE: u64 = 20;
/// See [`ENDS_AT_ONCE`].
pub(super) const ENDS_PER_SECOND: u64 = 1;
/// The first pause after a worker that ended before it was of use; it doubles each time.
pub(super) const BACKOFF_FIRST: Duration = Duration::from_millis(200);
/// The longest pause.
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// The longest after one that ended with its request.
pub(super) const BACKOFF_REQUEST_MAX: Duration = Duration::from_secs(1);
/// Most workers of a pool whose `workers.max` is not set.
pub(super) const UNSET_WORKERS_MAX: usize = 256;
/// Of the memory there is, the workers of such a pool may have one part in so many, once they are
/// more than twice the cores.
pub(super) const UNSET_MEMORY_SHARE: u64 = 2;
/// The longest time a client that was turned away is told to wait, in seconds.
pub(super) const RETRY_S_MAX: u64 = 600;
/// How often a pool with waiting requests asks whether one more worker would help.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Requests between two looks at a worker's memory.
pub(super) const MEMORY_EVERY: u64 = 64;
/// Folders of a program that are watched for changes; those after them are not.
pub(super) const WATCH_FOLDERS_MAX: usize = 4096;
/// How long nothing must change before a change is acted upon: editors write in several steps.
pub(super) const WATCH_QUIET: Duration = Duration::from_millis(50);
/// How long that is waited for while files go on to change.
pub(super) const WATCH_SETTLE_MAX: Duration = Duration::from_secs(1);
