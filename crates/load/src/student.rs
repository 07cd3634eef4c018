//! Student's t-distribution: how far a mean of few values may be from the true one.

/// Two-sided 95 % quantiles for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The two-sided 95 % quantile of so many degrees of freedom, which need not be whole (Welch).
/// Beyond the table by the first terms of its expansion around the normal one; below 1 it is that
/// of 1.
pub(crate) fn student_t(freedom: f64) -> f64 {
    let below = freedom.max(1.0).floor();
    let index = below as usize - 1;
    match QUANTILES.get(index..=index + 1) {
        Some(pair) => pair[0] + (freedom.max(1.0) - below) * (pair[1] - pair[0]),
        None => {
            let z = 1.959_964_f64;
            let first = (z.powi(3) + z) / 4.0;
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            z + first / freedom + second / freedom.powi(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_published_ones_within_and_beyond_the_table() {
        for (freedom, quantile) in [(1.0, 12.706), (3.0, 3.182), (29.0, 2.045), (30.0, 2.042)] {
            assert!((student_t(freedom) - quantile).abs() < 0.001, "{freedom}");
        }
        for (freedom, quantile) in [(40.0, 2.021), (120.0, 1.980), (1e9, 1.960)] {
            assert!((student_t(freedom) - quantile).abs() < 0.001, "{freedom}");
        }
        assert!(student_t(2.5) < student_t(2.0) && student_t(2.5) > student_t(3.0));
        assert_eq!(student_t(0.5), student_t(1.0));
    }
}
