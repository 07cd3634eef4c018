//! Durations, bit rates and lists of CPUs as people write them on a command line.

use std::time::Duration;

use crate::limits::{BIT_RATE_MAX, BIT_RATE_MIN, DURATION_MAX, THREAD_COUNT_MAX};

/// Units, longest names first so that `ms` is not read as `s`.
const UNITS: &[(&str, f64)] = &[
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// Reads `10s`, `1.5s`, `250ms`, `80us`, `2m` or `1h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write 10s, 250ms, 80us, 2m or 1h");
    let at = text.find(|byte: char| byte.is_ascii_alphabetic());
    let (number, unit) = text.split_at(at.ok_or_else(wrong)?);
    let scale = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, scale) = scale.ok_or_else(wrong)?;
    let seconds = plain_number(number).ok_or_else(wrong)? * scale;
    if seconds > DURATION_MAX.as_secs_f64() {
        return Err(format!("{text:?} is too long; 24h is the most"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Units of bit rates; as network cards have them, in thousands.
const BIT_RATE_UNITS: &[(&str, f64)] = &[("Gbit", 1e9), ("Mbit", 1e6), ("Kbit", 1e3), ("bit", 1.0)];

/// Reads bits a second: `1Gbit`, `2.5Gbit`, `100Mbit`, `56Kbit` or `9600bit`.
pub fn parse_bit_rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no rate; write 1Gbit, 100Mbit, 56Kbit or 9600bit");
    let at = text.find(|byte: char| byte.is_ascii_alphabetic());
    let (number, unit) = text.split_at(at.ok_or_else(wrong)?);
    let scale = BIT_RATE_UNITS.iter().find(|(name, _)| *name == unit);
    let (_, scale) = scale.ok_or_else(wrong)?;
    let rate = plain_number(number).ok_or_else(wrong)? * scale;
    match rate as u64 {
        BIT_RATE_MIN..=BIT_RATE_MAX => Ok(rate as u64),
        _ => Err(format!(
            "{text:?} is out of range; {BIT_RATE_MIN}bit to {}Gbit",
            BIT_RATE_MAX / 1_000_000_000
        )),
    }
}

/// Reads digits with an optional fraction; no sign, no exponent, no infinity.
pub(crate) fn plain_number(text: &str) -> Option<f64> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let begins = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain && begins)
}

/// Reads `0,2-3` as CPUs 0, 2 and 3.
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("{text:?} is no list of CPUs; write 1, 0,1 or 2-5");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.parse().map_err(|_| wrong())?;
        let last: usize = last.parse().map_err(|_| wrong())?;
        if first > last || last >= THREAD_COUNT_MAX {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        let read = |text| parse_duration(text).ok().map(|found| found.as_micros());
        assert_eq!(read("10s"), Some(10_000_000));
        assert_eq!(read("1.5s"), Some(1_500_000));
        assert_eq!(read("250ms"), Some(250_000));
        assert_eq!(read("80us"), Some(80));
        assert_eq!(read("2m"), Some(120_000_000));
        assert_eq!(read("24h"), Some(86_400_000_000));
        for wrong in [
            "", "10", "s", "-1s", "1e3s", ".s", "25h", "10 s", "1d", "infs",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bit_rates_have_a_number_and_a_unit() {
        assert_eq!(parse_bit_rate("1Gbit"), Ok(1_000_000_000));
        assert_eq!(parse_bit_rate("2.5Mbit"), Ok(2_500_000));
        assert_eq!(parse_bit_rate("56Kbit"), Ok(56_000));
        assert_eq!(parse_bit_rate("9600bit"), Ok(9600));
        for wrong in [
            "", "1", "Gbit", "1gbit", "1Gbit/s", "-1Gbit", "1e3Mbit", "999bit", "101Gbit", "0Mbit",
        ] {
            assert!(parse_bit_rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cpus_are_numbers_and_ranges() {
        assert_eq!(parse_cpus("1"), Ok(vec![1]));
        assert_eq!(parse_cpus("3,0-1,1"), Ok(vec![0, 1, 3]));
        for wrong in ["", "a", "2-1", "1,", "0-99999"] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }
}
