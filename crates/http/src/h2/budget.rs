//! Floods: what costs a client nothing to send and us something to read is counted.
//!
//! Each kind has a bucket that holds so many tokens and gets so many back a second. Some get more
//! back for what the client cannot do for nothing: windows grow because we send. An empty bucket
//! ends the connection with ENHANCE_YOUR_CALM.

use crate::limits;

/// What a client did too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Requests taken back, or sent so that they had to be refused.
    Resets,
    /// Frames and bytes of one field block.
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
            Flood::Continuation => "h2_continuation: a field block has too many pieces",
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

/// A bucket's size, and what it gets back a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) most: u32,
    pub(crate) per_second: u32,
}

/// Tokens, in thousandths, so that milliseconds give some.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    milli_tokens: u32,
    filled_ms: u64,
}

impl Budgets {
    pub(super) fn new(now_ms: u64) -> Budgets {
        let bucket = |rate: Rate| Bucket::new(rate, now_ms);
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

impl Bucket {
    /// A full one.
    pub(crate) fn new(rate: Rate, now_ms: u64) -> Bucket {
        Bucket {
            rate,
            milli_tokens: rate.most * 1000,
            filled_ms: now_ms,
        }
    }

    /// Takes a token; false when there is none.
    pub(crate) fn take(&mut self, now_ms: u64) -> bool {
        if let Some(left) = self.milli_tokens.checked_sub(1000) {
            self.milli_tokens = left;
            return true;
        }
        let elapsed_ms = now_ms.saturating_sub(self.filled_ms);
        self.filled_ms = now_ms;
        let back = elapsed_ms.saturating_mul(u64::from(self.rate.per_second));
        let most = u64::from(self.rate.most) * 1000;
        self.milli_tokens = (u64::from(self.milli_tokens) + back).min(most) as u32;
        match self.milli_tokens.checked_sub(1000) {
            Some(left) => {
                self.milli_tokens = left;
                true
            }
            None => false,
        }
    }

    /// Gives some back.
    pub(crate) fn give(&mut self, tokens: u32) {
        let most = self.rate.most * 1000;
        self.milli_tokens = self.milli_tokens.saturating_add(tokens * 1000).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_is_empty_after_its_size_and_fills_with_time() {
        let rate = Rate {
            most: 3,
            per_second: 10,
        };
        let mut bucket = Bucket {
            rate,
            milli_tokens: 3000,
            filled_ms: 50,
        };
        let mut takes =
            |now_ms: u64, count: usize| (0..count).filter(|_| bucket.take(now_ms)).count();
        assert_eq!(takes(50, 5), 3);
        assert_eq!(takes(149, 5), 0);
        assert_eq!(takes(250, 5), 2, "elapsed time is counted once");
        assert_eq!(takes(10_000, 5), 3, "never more than its size");
        bucket.give(2);
        assert!(bucket.take(10_000) && bucket.take(10_000) && !bucket.take(10_000));
    }
}
