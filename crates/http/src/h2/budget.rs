//! Floods: what costs a client nothing to send and us something to read is counted.
//!
//! Each kind has a bucket that holds so many tokens and gets so many back a second. Some get more
//! back for what the client cannot do for nothing: windows grow because we send. An empty bucket
//! ends the connection with ENHANCE_YOUR_CALM.

use crate::limits;
use crate::rate::{Bucket, BucketRate};

/// What a client did too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Requests taken back, or sent so that they had to be refused.
    Resets,
    /// Frames and bytes of one field block, and bytes of the fields it comes to.
    Continuation,
    /// SETTINGS.
    Settings,
    /// PING.
    Ping,
    /// DATA with little in it.
    TinyData,
    /// Frames that do nothing: empty DATA, PRIORITY, unknown ones.
    Empty,
    /// WINDOW_UPDATE, more than answers the bytes sent.
    Window,
}

impl Flood {
    /// What the record and the client are told.
    pub fn reason(self) -> &'static str {
        match self {
            Flood::Resets => "h2_resets: too many requests were taken back or had to be reset",
            Flood::Continuation => {
                "h2_continuation: a field block has too many pieces, or too much in it"
            }
            Flood::Settings => "h2_settings: too many SETTINGS frames",
            Flood::Ping => "h2_ping: too many PING frames",
            Flood::TinyData => "h2_tiny_data: too many DATA frames with little in them",
            Flood::Empty => "h2_empty: too many frames that do nothing",
            Flood::Window => "h2_window: too many WINDOW_UPDATE frames",
        }
    }
}

/// The buckets of one connection.
#[derive(Debug)]
pub(super) struct Budgets {
    resets: Bucket,
    settings: Bucket,
    ping: Bucket,
    tiny_data: Bucket,
    empty: Bucket,
    window: Bucket,
}

impl Budgets {
    pub(super) fn new(now_ms: u64) -> Budgets {
        let bucket = |rate: BucketRate| Bucket::new(rate, now_ms);
        Budgets {
            resets: bucket(limits::H2_RESETS),
            settings: bucket(limits::H2_SETTINGS),
            ping: bucket(limits::H2_PING),
            tiny_data: bucket(limits::H2_TINY_DATA),
            empty: bucket(limits::H2_EMPTY),
            window: bucket(limits::H2_WINDOW),
        }
    }

    /// Takes a token for this.
    pub(super) fn take(&mut self, flood: Flood, now_ms: u64) -> Result<(), Flood> {
        let bucket = match flood {
            Flood::Resets => &mut self.resets,
            Flood::Settings => &mut self.settings,
            Flood::Ping => &mut self.ping,
            Flood::TinyData => &mut self.tiny_data,
            Flood::Empty => &mut self.empty,
            Flood::Window => &mut self.window,
            // Counted where the block is.
            Flood::Continuation => return Ok(()),
        };
        if bucket.take(now_ms) {
            Ok(())
        } else {
            Err(flood)
        }
    }

    /// A DATA frame goes out that no tiny window made small: it may be answered.
    pub(super) fn sent_data(&mut self) {
        self.window.give(limits::H2_WINDOW_PER_DATA);
    }

    /// A request was answered: the client may say how urgent it is, and take one back.
    pub(super) fn answered(&mut self) {
        self.empty.give(limits::H2_EMPTY_PER_REQUEST);
        self.resets.give(1);
    }
}
