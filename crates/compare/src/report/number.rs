//! Figures for people.

use crate::interval::Mean;

/// Three digits that count: `4.62`, `46.2`, `462`, `4,620`.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => whole(value),
    }
}

/// `12,345`.
pub(super) fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    if value < 0.0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Half of an interval in percent of its mean: `±1.2 %`.
pub(super) fn spread(mean: &Mean) -> String {
    match mean.percent() {
        None => "-".to_owned(),
        Some(percent) if percent < 10.0 => format!("±{percent:.1} %"),
        Some(percent) => format!("±{percent:.0} %"),
    }
}

/// A time in microseconds: `462 us`, `4.62 ms`, `1.20 s`.
pub(super) fn time(us: f64) -> String {
    match us {
        _ if us < 1e3 => format!("{} us", figure(us)),
        _ if us < 1e6 => format!("{} ms", figure(us / 1e3)),
        _ => format!("{} s", figure(us / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_that_count() {
        assert_eq!(figure(4.623), "4.62");
        assert_eq!(figure(46.23), "46.2");
        assert_eq!(figure(46_234.4), "46,234");
        assert_eq!(whole(-1234.0), "-1,234");
        assert_eq!(time(999.0), "999 us");
        assert_eq!(time(4620.0), "4.62 ms");
        assert_eq!(time(1_200_000.0), "1.20 s");
        let mean = |values: &[f64]| Mean::of(values).unwrap();
        assert_eq!(spread(&mean(&[1.0])), "-");
        assert_eq!(spread(&mean(&[1.0, 1.0])), "±0.0 %");
    }
}
