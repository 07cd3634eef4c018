//! Every limit of a comparison, with its unit in its name.

use std::time::Duration;

/// Longest wait for a server until it answers.
pub(crate) const START: Duration = Duration::from_secs(20);
/// How long a server that was asked to end may take before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
/// Longest wait for an answer in a round.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// Shortest and longest time in which connections that are kept are used before a round counts.
pub(crate) const WARM_UP_MIN: Duration = Duration::from_millis(5);
pub(crate) const WARM_UP_MAX: Duration = Duration::from_millis(50);
/// Its share of a round between them, as a divisor.
pub(crate) const WARM_UP_SHARE: u32 = 10;
/// Longest wait for the head of an answer to who looks at a server, and its longest head.
pub(crate) const ONLOOKER_PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const ONLOOKER_HEAD_BYTES_MAX: usize = 16 << 10;
/// Longest wait of a supervisor until another machine takes a connection.
pub(crate) const REACH: Duration = Duration::from_secs(5);
/// Pause before a server that does not answer yet is asked again.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// A server that uses less than a share of one CPU over this time has settled.
pub(crate) const SETTLE_PERIOD: Duration = Duration::from_millis(100);
/// That share, as a divisor.
pub(crate) const SETTLE_SHARE: u64 = 100;
/// Bytes of what a server printed that are shown when it does not start.
pub(crate) const PRINTED_BYTES_MAX: usize = 2000;
/// Rounds of one cell, without those that are repeated.
pub(crate) const ROUND_COUNT_MAX: usize = 100;
/// Rounds without which there is no interval worth printing.
pub(crate) const ROUND_COUNT_MIN: usize = 3;
/// Rounds of a cell at least: one bad round of fewer makes the interval as wide as itself.
pub(crate) const ROUND_COUNT_STEADY: usize = 4;
/// Repeated rounds of one row; a machine that is always disturbed is measured all the same.
pub(crate) const REPEAT_COUNT_MAX: usize = 6;
/// Percent of a round's CPU time that the host may give to others before it is repeated.
pub(crate) const STEAL_PERCENT_MAX: f64 = 1.0;
/// What is left over on a CPU beside what was counted is taken for a server's where it is more than
/// this share of what was counted, as a divisor, and more than so many ticks.
pub(crate) const STRAY_SHARE_MIN: u64 = 5;
pub(crate) const STRAY_TICKS_MIN: u64 = 3;
/// Half of the 95 % interval, in percent of the mean, above which a cell is no figure to compare.
pub(crate) const DOUBT_PERCENT: f64 = 50.0;
/// Processes that wanted to run in the minute before, above which a machine is busy.
pub(crate) const LOAD_MAX: f64 = 1.0;
/// Half of the 95 % interval, in percent of the mean, at which a cell is done.
pub(crate) const INTERVAL_PERCENT: f64 = 2.0;
/// Bytes of a packet of the kernel on its way over a link, with what stands before it: it may be
/// many of the link's own.
pub(crate) const PACKET_BYTES_MAX: usize = (64 << 10) + 256;
/// Packets under way in each direction of it; one more is lost.
pub(crate) const PACKET_COUNT_MAX: usize = 1000;
/// Bytes that wait in each direction until a link of some rate sends them; what comes then is lost,
/// as at the port of a switch.
pub(crate) const LINK_QUEUE_BYTES_MAX: u64 = 1 << 20;
/// Longest time that a link adds to a round trip.
pub(crate) const LINK_DELAY_MAX: Duration = Duration::from_secs(10);
/// How long nothing need be heard on a connection between two machines before the kernel asks
/// whether the other one is still there.
pub(crate) const DISTANT_ALIVE: Duration = Duration::from_secs(30);
/// How often it is looked whether this side is told to end, while it waits for the other one.
pub(crate) const DISTANT_LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Longest wait until what is said is taken.
pub(crate) const DISTANT_WRITE: Duration = Duration::from_secs(20);
/// Longest wait for a client's first word, and until the other machine is reached.
pub(crate) const DISTANT_HELLO: Duration = Duration::from_secs(5);
/// Longest silence of a client after that: a round may take as long as somebody says.
pub(crate) const DISTANT_SILENCE: Duration = Duration::from_secs(60 * 60);
/// Longest wait until the other machine has made everything ready, programs in C built.
pub(crate) const DISTANT_PREPARE: Duration = Duration::from_secs(5 * 60);
/// Longest wait until it has started a server, or ended one.
pub(crate) const DISTANT_START: Duration = Duration::from_secs(2 * 60);
/// Longest wait for its other answers.
pub(crate) const DISTANT_ANSWER: Duration = Duration::from_secs(30);
/// Bytes of a line of a client, and of one of the other side, which may hold all rows.
pub(crate) const DISTANT_ASK_BYTES_MAX: usize = 64 << 10;
pub(crate) const DISTANT_ANSWER_BYTES_MAX: usize = 16 << 20;
/// Servers of one client that run at once.
pub(crate) const DISTANT_SERVER_COUNT_MAX: usize = 64;
/// Questions of which the one that is answered soonest tells the round trip.
pub(crate) const DISTANT_PING_COUNT: usize = 5;
