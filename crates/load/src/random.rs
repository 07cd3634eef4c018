//! Numbers that look random and are the same for the same seed: gaps between arrivals.

/// A small generator (SplitMix64): one multiplication chain per number, any seed is good.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers that follow from a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next one, of 64 bits.
    #[expect(clippy::should_implement_trait, reason = "there is no end of them")]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A share in [0, 1), all alike.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A gap of an exponential distribution with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // 53 bits in (0, 1]: the logarithm is finite.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -uniform.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_gaps_have_mean_and_deviation_one() {
        let mut random = Random::new(7);
        let gaps: Vec<f64> = (0..200_000).map(|_| random.exponential()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((square - 2.0).abs() < 0.05, "{square}");
    }
}
