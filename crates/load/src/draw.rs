//! Draws by weight: an alias table, so that a draw costs one random number however many there are.

use crate::random::Random;

/// What may be drawn, by its number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draw {
    /// For each place: below this share of 2^64 it is itself that is drawn, else its other.
    places: Vec<(u64, u32)>,
}

impl Draw {
    /// A table of these weights, all finite and above nothing.
    pub(crate) fn new(weights: &[f64]) -> Draw {
        let count = weights.len();
        let sum: f64 = weights.iter().sum();
        let mut shares: Vec<f64> = weights
            .iter()
            .map(|weight| weight / sum * count as f64)
            .collect();
        let mut places: Vec<(u64, u32)> = (0..count as u32).map(|own| (u64::MAX, own)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|index| shares[*index] < 1.0);
        while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
            places[less] = ((shares[less] * 2f64.powi(64)) as u64, more as u32);
            shares[more] -= 1.0 - shares[less];
            if shares[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        Draw { places }
    }

    /// The next one.
    pub(crate) fn next(&self, random: &mut Random) -> usize {
        let wide = u128::from(random.next()) * self.places.len() as u128;
        let (place, share) = ((wide >> 64) as usize, wide as u64);
        let (own, other) = self.places[place];
        if share <= own { place } else { other as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_drawn_as_often_as_its_weight_says() {
        const DRAW_COUNT: usize = 400_000;
        for weights in [
            &[1.0][..],
            &[1.0, 1.0],
            &[70.0, 20.0, 9.0, 1.0],
            &[0.001, 5.0],
        ] {
            let table = Draw::new(weights);
            let mut random = Random::new(3);
            let mut counts = vec![0; weights.len()];
            for _ in 0..DRAW_COUNT {
                counts[table.next(&mut random)] += 1;
            }
            let sum: f64 = weights.iter().sum();
            for (count, weight) in counts.iter().zip(weights) {
                let share = weight / sum;
                let found = f64::from(*count) / DRAW_COUNT as f64;
                // Five standard deviations.
                let room = 5.0 * (share * (1.0 - share) / DRAW_COUNT as f64).sqrt();
                assert!((found - share).abs() <= room, "{weights:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn same_seed_draws_the_same() {
        let table = Draw::new(&[1.0, 2.0, 3.0]);
        let drawn = |seed| {
            let mut random = Random::new(seed);
            (0..100)
                .map(|_| table.next(&mut random))
                .collect::<Vec<_>>()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
