//! How often something may happen: a bucket holds so many tokens and gets so many back a second.

/// A bucket's size, and what it gets back a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketRate {
    pub(crate) most: u32,
    pub(crate) per_second: u32,
}

/// Tokens, in thousandths, so that milliseconds give some.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: BucketRate,
    milli_tokens: u32,
    filled_ms: u64,
}

impl Bucket {
    /// A full one.
    pub(crate) fn new(rate: BucketRate, now_ms: u64) -> Bucket {
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
        let rate = BucketRate {
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
