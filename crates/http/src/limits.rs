//! Every limit of this crate. Those a user may set are in [`HttpLimits`]; the rest are constants
//! here.

use std::time::Duration;

use crate::rate::BucketRate;

/// Limits of connections and requests, as set by the user.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Longest request target, in bytes (414).
    pub target_bytes: usize,
    /// Longest request head, in bytes (431).
    pub head_bytes: usize,
    /// Most header fields of a request (431).
    pub header_count: usize,
    /// Time for a whole head from its first byte, and for a new connection's first byte.
    pub head_time: Duration,
    /// Longest pause between two pieces of a request body.
    pub body_progress: Duration,
    /// Longest pause in which a client takes no byte of an answer.
    pub write_progress: Duration,
    /// How long a connection may stay idle between requests.
    pub idle: Duration,
    /// How long input is read and dropped before a connection with unread input closes.
    pub linger: Duration,
    /// Open connections of all threads together.
    pub connection_count: usize,
    /// Open files of connections: their sockets, those to servers elsewhere, and ends of pipes.
    pub connection_files: usize,
    /// Open connections of one client address; 0 is no limit.
    pub connection_count_per_client: usize,
    /// Time for a whole TLS handshake, from the connection's begin.
    pub handshake_time: Duration,
    /// Bytes a client may send before its TLS handshake is complete.
    pub handshake_bytes: usize,
    /// TLS handshakes of all threads under way at a time.
    pub handshake_count: usize,
    /// Time for a whole header of the PROXY protocol, from the connection's begin.
    pub proxy_protocol_time: Duration,
    /// Longest such header of version 2, in bytes; at most 64 KiB are looked at.
    pub proxy_protocol_bytes: usize,
    /// Bytes of bodies over HTTP/3 that nobody reads, of all connections. One may have as many of
    /// them as are left: few connections with many do not take the room of many with few (503).
    pub h3_unread_bytes: usize,
    /// Largest request body unless the answer says otherwise, in bytes (413).
    pub body_bytes: u64,
    /// HTTP/2 clients may open tunnels by extended CONNECT: set where an answer knows what to do
    /// with one.
    pub h2_connect_protocol: bool,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            target_bytes: 8 * 1024,
            head_bytes: 64 * 1024,
            header_count: 100,
            head_time: Duration::from_secs(10),
            body_progress: Duration::from_secs(30),
            write_progress: Duration::from_secs(60),
            idle: Duration::from_secs(75),
            linger: Duration::from_secs(5),
            connection_count: 10_000,
            connection_files: usize::MAX,
            connection_count_per_client: 0,
            handshake_time: Duration::from_secs(10),
            handshake_bytes: 64 * 1024,
            handshake_count: 4096,
            proxy_protocol_time: Duration::from_secs(5),
            proxy_protocol_bytes: 2 * 1024,
            h3_unread_bytes: 128 * 1024 * 1024,
            body_bytes: 1024 * 1024,
            h2_connect_protocol: false,
        }
    }
}

/// What another hob adds to a head that it passes on: so much more than the limits a user sets is
/// read at listeners for such.
const CARRIED_FIELDS: usize = 8;
const CARRIED_BYTES: usize = 64 * 1024;

impl HttpLimits {
    /// The same for heads to which another hob has added what it says of its client.
    pub(crate) fn for_carried(&self) -> HttpLimits {
        HttpLimits {
            header_count: self.header_count + CARRIED_FIELDS,
            head_bytes: self.head_bytes + CARRIED_BYTES,
            ..self.clone()
        }
    }
}

/// Bytes read from one connection before others have their turn; also the size of a read.
pub(crate) const READ_BYTES_PER_TURN: usize = 64 * 1024;
/// Requests answered on one connection before others have their turn.
pub(crate) const REQUESTS_PER_TURN: usize = 32;
/// Bytes of one bulk answer before other bulk answers have their turn.
pub(crate) const BULK_BYTES_PER_TURN: usize = 256 * 1024;
/// Bytes that a bulk answer may have in its turn besides, if they are its last.
pub(crate) const BULK_BYTES_OVER: u64 = 16 * 1024;
/// Bytes of all bulk answers before new events are looked at: how long a small request waits
/// beside them (bench/results/fairness-turns.md has what other values cost).
pub(crate) const BULK_BYTES_PER_ROUND: usize = 512 * 1024;
/// What a turn in the queue counts for besides the bytes it sent: it may have read much.
pub(crate) const BULK_BYTES_TURN_MIN: usize = 16 * 1024;
const _: () = assert!(BULK_BYTES_PER_ROUND >= BULK_BYTES_PER_TURN);
/// Tasks of a thread polled before other events have their turn.
pub(crate) const TASKS_PER_TURN: usize = 256;
/// Connections accepted before other events have their turn.
pub(crate) const ACCEPTS_PER_TURN: usize = 64;
/// How long a thread accepts nothing after it could not, in milliseconds: there are no descriptors,
/// or no memory, and asking again at once would keep a processor busy.
pub(crate) const ACCEPT_PAUSE_MS: u64 = 100;
/// How long the log is told nothing more of that.
pub(crate) const ACCEPT_ERROR_QUIET_MS: u64 = 10_000;
/// Bytes of an answer out of a pipe after which it counts as bulk: it has its turns in the queue.
pub(crate) const PIPE_SMALL_BYTES: usize = 64 * 1024;
/// Size of the pipe of a long answer, and how many pipes of a thread are that large at a time.
pub(crate) const LARGE_PIPE_BYTES: usize = 256 * 1024;
pub(crate) const LARGE_PIPES_MAX: usize = 64;
/// Bytes of a body out of one socket from which on it goes to another by a pipe, if the thread has
/// one.
pub const SPLICED_BYTES_MIN: u64 = 64 * 1024;
/// Size of such a pipe, how many a thread has in use, and how many it keeps besides. Each is two
/// descriptors.
pub(crate) const SPLICE_PIPE_BYTES: usize = 64 * 1024;
pub(crate) const SPLICE_PIPES_MAX: usize = 64;
pub(crate) const SPLICE_PIPES_IDLE_MAX: usize = 8;
/// Request body bytes held for a handler that has not read them yet.
pub(crate) const BODY_WINDOW_BYTES: usize = 64 * 1024;
/// Answer bytes taken from a stream and not yet taken by the kernel.
pub(crate) const OUT_WINDOW_BYTES: usize = 256 * 1024;
/// Bodies up to this size are copied behind their head and leave in one write.
pub(crate) const COPY_BYTES_MAX: usize = 8 * 1024;
/// Bytes of an answer sealed before they are handed to the kernel; what it does not take is held.
/// 64 KiB and their head leave in one call.
pub(crate) const SEAL_BYTES_PER_CALL: usize = 80 * 1024;
/// Records of a long answer are small until so many bytes have left: a browser sees the begin of a
/// page before all of a large record has come.
pub(crate) const SMALL_RECORDS_BYTES: u32 = 16 * 1024;
/// Text in a small record: three packets.
pub(crate) const SMALL_RECORD_BYTES: usize = 4 * 1024;
/// After a pause this long records of a connection are small again.
pub(crate) const SMALL_AFTER_MS: u64 = 1000;
/// An unread request body up to this size is read and dropped to keep the connection.
pub(crate) const DISCARD_BYTES_MAX: u64 = 256 * 1024;
/// Bytes of chunk extensions and size lines in one request body.
pub(crate) const CHUNK_OVERHEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest single chunk-size line with its extensions.
pub(crate) const CHUNK_LINE_BYTES_MAX: usize = 4 * 1024;
/// Most header fields of a request whatever the user sets: they are numbered with 16 bits.
pub(crate) const HEADER_COUNT_MAX: usize = u16::MAX as usize - 1;
/// Header fields parsed without an allocation.
pub(crate) const HEADERS_INLINE: usize = 128;
/// Open connections of listeners that stand aside from the limits a user sets: over TCP, and over
/// Unix sockets.
pub(crate) const ASIDE_CONNECTIONS_MAX: usize = 64;
/// Connections over their limit that a thread still reads from, so that their client sees the 503.
pub(crate) const REFUSED_CONNECTIONS_MAX: usize = 64;
/// How long such a client is waited for to say which protocol it speaks, in milliseconds.
pub(crate) const REFUSED_GREETING_MS: u64 = 500;
/// Requests kept for re-use per thread.
pub(crate) const REQUEST_POOL_MAX: usize = 64;
/// A head buffer larger than this is not kept for re-use, in bytes.
pub(crate) const HEAD_KEPT_BYTES_MAX: usize = 8 * 1024;
/// Streams of one HTTP/2 connection that are open at a time: requests answered side by side.
pub(crate) const H2_STREAMS_MAX: usize = 128;
/// HTTP/2 requests taken back by their client, or reset by us for a fault in them. One that was
/// answered gives one back.
pub(crate) const H2_RESETS: BucketRate = rate(200, 20);
/// SETTINGS frames of a connection.
pub(crate) const H2_SETTINGS: BucketRate = rate(32, 1);
/// PING frames of a connection.
pub(crate) const H2_PING: BucketRate = rate(64, 10);
/// DATA frames of a connection that are tiny and not the last of their body.
pub(crate) const H2_TINY_DATA: BucketRate = rate(4000, 1000);
/// A DATA frame with fewer bytes is tiny.
pub(crate) const H2_TINY_DATA_BYTES: usize = 256;
/// Tiny DATA frames of the answers of a connection that leave as soon as there is something, where
/// the client has nothing more to say; the next one waits for more, so long at most. Clients count
/// them as we do: the library of hyper bears 133 of a connection that its user has not read yet.
pub(crate) const H2_TINY_DATA_OUT: BucketRate = rate(50, 200);
pub(crate) const H2_TINY_DATA_HELD: Duration = Duration::from_millis(5);
/// Frames of a connection that do nothing: empty DATA, PRIORITY and PRIORITY_UPDATE, unknown ones.
pub(crate) const H2_EMPTY: BucketRate = rate(1000, 50);
/// A request that was answered gives so many of them back.
pub(crate) const H2_EMPTY_PER_REQUEST: u32 = 2;
/// WINDOW_UPDATE frames of a connection.
pub(crate) const H2_WINDOW: BucketRate = rate(4000, 200);
/// A DATA frame that goes out gives so many of them back, unless a window made it small.
pub(crate) const H2_WINDOW_PER_DATA: u32 = 4;
/// HEADERS and CONTINUATION frames of one field block.
pub(crate) const H2_BLOCK_FRAMES_MAX: u32 = 32;
/// Bytes of fields that one field block may come to, in longest heads ([`HttpLimits::head_bytes`]):
/// a head longer than one is refused, and the rest of its block is read for the tables alone.
pub(crate) const H2_BLOCK_HEADS_MAX: usize = 4;
/// Bytes of the heads of one connection's requests that are under way side by side, over HTTP/2 and
/// 3. Heads up to [`HEAD_KEPT_BYTES_MAX`] are not asked: all streams full of them are no more.
pub(crate) const HEADS_BYTES_MAX: usize = 1024 * 1024;
const _: () = assert!(HEAD_KEPT_BYTES_MAX * H2_STREAMS_MAX <= HEADS_BYTES_MAX);
/// Streams that a client has named the urgency of before it opened them.
pub(crate) const H2_EARLY_PRIORITIES_MAX: usize = 16;
/// Streams reset by us whose last frames, still on their way, are passed over.
pub(crate) const H2_RESETS_REMEMBERED: usize = 64;
/// Window of a whole connection: it grows as bytes come, each stream's as they are read.
pub(crate) const H2_CONNECTION_WINDOW_BYTES: i64 = 1024 * 1024;
/// Largest window of a stream: it begins with 64 KiB and doubles while its body is read as fast as
/// it comes.
pub(crate) const H2_STREAM_WINDOW_BYTES_MAX: i64 = 1024 * 1024;
/// Bytes by which all windows of streams of a connection may have grown.
pub(crate) const H2_WINDOW_GROWTH_BYTES_MAX: i64 = 2 * 1024 * 1024;
/// Fields of an answer that another server gives, whatever version of HTTP it speaks.
pub const ANSWER_FIELDS_MAX: usize = 256;
/// Interim answers before one.
pub const ANSWER_INTERIM_MAX: usize = 32;
/// Bytes of answers made for one connection before they are handed to the kernel.
pub(crate) const H2_FILL_BYTES: usize = 64 * 1024;
/// Streams of one HTTP/3 connection that are open at a time: requests answered side by side. The
/// library keeps a place for each from the begin, so there are as many as RFC 9114 asks for and
/// not one more: with the next constant they fit a table of 128.
//= rfc9114#6.1
pub(crate) const H3_STREAMS_MAX: u32 = 100;
/// Streams of one HTTP/3 connection that go one way: three are of use, others are tried out.
pub(crate) const H3_UNI_STREAMS_MAX: u32 = 8;
/// HTTP/3 requests taken back by their client, or reset by us for a fault in them. One that was
/// answered gives one back.
pub(crate) const H3_RESETS: BucketRate = rate(200, 20);
/// Datagrams to one thread's socket for connections it does not have, whose clients are told so
/// (stateless resets). Enough for a crowd whose server has just died; more is left to try again.
pub(crate) const H3_STATELESS_RESETS: BucketRate = rate(10_000, 10_000);
/// Pieces of DATA frames of an HTTP/3 connection that are tiny and not the last of their body.
pub(crate) const H3_TINY_DATA: BucketRate = rate(4000, 1000);
/// Frames of an HTTP/3 connection that do nothing: empty DATA, PRIORITY_UPDATE, unknown ones.
pub(crate) const H3_EMPTY: BucketRate = rate(1000, 50);
/// Longest frame of an HTTP/3 control stream that is read.
pub(crate) const H3_CONTROL_BYTES_MAX: u64 = 4 * 1024;
/// Bytes of a request's stream that may be on their way or not read yet. The library has one number
/// for all streams of a connection, and it stays; all of them together are what a client that sends
/// bodies nobody reads can make us hold.
pub(crate) const H3_STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The same of a connection. Bytes that nobody reads use it up, so there is room for all streams
/// that may be open, full: no set of them holds up the head of another request. The library gives
/// room back in steps of an eighth, so up to an eighth of it may not be told yet: the rest is
/// enough.
pub(crate) const H3_CONNECTION_WINDOW_BYTES: u32 =
    (H3_STREAMS_MAX + H3_UNI_STREAMS_MAX) * H3_STREAM_WINDOW_BYTES.div_ceil(7) * 8;
const _: () = assert!(
    H3_CONNECTION_WINDOW_BYTES as u64 / 8 * 7
        >= (H3_STREAMS_MAX + H3_UNI_STREAMS_MAX) as u64 * H3_STREAM_WINDOW_BYTES as u64
);
/// Bytes of answers of one HTTP/3 connection that the client has not acknowledged: at least, and
/// at most. In between twice the congestion window counts.
pub(crate) const H3_SEND_WINDOW_BYTES_MIN: u64 = 128 * 1024;
pub(crate) const H3_SEND_WINDOW_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Bytes of a body in one DATA frame of HTTP/3.
pub(crate) const H3_PIECE_BYTES: usize = 32 * 1024;
/// Calls that read datagrams from a socket before others have their turn.
pub(crate) const H3_READS_PER_TURN: usize = 4;
/// How often a client whose answer takes long is asked for a sign of life, in milliseconds.
pub(crate) const H3_PING_MS: u64 = 10_000;
/// How long a connection over QUIC is kept that has ended, at most, in microseconds. It is to be
/// three times its probe timeout, and a client may make that as long as it likes: this is three
/// times the one of a connection whose round trips are not known.
//= rfc9000#10.2
pub(crate) const H3_ENDED_US_MAX: u64 = 3_000_000;
/// How long a server that ends waits for signs of life from an HTTP/3 client whose answers are all
/// handed over, in milliseconds; it is asked for them. Over TCP the kernel would wait after us.
pub(crate) const H3_LEAVE_MS: u64 = 5_000;
/// Connections there was no room for, or whose handshake failed at once, that each socket
/// remembers: every datagram of one is refused and one of them counted.
pub(crate) const H3_REFUSED_REMEMBERED: usize = 16;
/// HTTP/3 handshakes ask for proof of the client's address from this part of
/// [`HttpLimits::handshake_count`] on.
pub(crate) const H3_RETRY_PART: usize = 2;

const fn rate(most: u32, per_second: u32) -> BucketRate {
    BucketRate { most, per_second }
}
