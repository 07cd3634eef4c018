//! Sizes and durations as they are written in a config: `"16KiB"`, `"1m30s"`.

use std::time::Duration;

const SIZE_UNITS: [(&str, u64); 5] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

const TIME_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Bytes of a text such as `16KiB`; the error says what would be right.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text);
    let Ok(number) = number.parse::<u64>() else {
        return Err("write a number and a unit, such as \"16KiB\"".to_owned());
    };
    let unit = unit.trim_start();
    let factor = match unit {
        "" => Some(1),
        unit => SIZE_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, factor)| *factor),
    };
    let Some(factor) = factor else {
        let first = unit.chars().next().unwrap_or(' ').to_ascii_uppercase();
        let meant = SIZE_UNITS.iter().find(|(name, _)| name.starts_with(first));
        return Err(match meant {
            Some((name, _)) => format!("units are B, KiB, MiB, GiB and TiB: \"{number}{name}\""),
            None => "units are B, KiB, MiB, GiB and TiB".to_owned(),
        });
    };
    number
        .checked_mul(factor)
        .ok_or_else(|| "that is more than can be counted".to_owned())
}

/// A text such as `10s`, `250ms` or `1m30s`; the error says what would be right.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const UNITS: &str = "units are ms, s, m, h and d, such as \"250ms\" or \"1m30s\"";
    let mut rest = text;
    let mut total_ms: u64 = 0;
    let mut last_factor = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = split_number(rest);
        let unit_len = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        let Ok(number) = number.parse::<u64>() else {
            return Err(format!("write a number and a unit; {UNITS}"));
        };
        if unit.is_empty() {
            return Err(format!("the unit is missing; {UNITS}"));
        }
        let Some((_, factor)) = TIME_UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(UNITS.to_owned());
        };
        if *factor >= last_factor {
            return Err("write larger units first and each once, as in \"1m30s\"".to_owned());
        }
        last_factor = *factor;
        let sum = number
            .checked_mul(*factor)
            .and_then(|ms| total_ms.checked_add(ms));
        total_ms = sum.ok_or_else(|| "that is more than can be counted".to_owned())?;
        rest = after;
    }
    if last_factor == u64::MAX {
        return Err(format!("write a number and a unit; {UNITS}"));
    }
    Ok(Duration::from_millis(total_ms))
}

/// The largest unit that divides the size: `65536` is `64KiB`, 0 is `0`.
pub fn size_text(bytes: u64) -> String {
    if bytes == 0 {
        return "0".to_owned();
    }
    let unit = SIZE_UNITS
        .iter()
        .find(|(_, factor)| bytes.is_multiple_of(*factor));
    let (name, factor) = unit.unwrap_or(&("B", 1));
    format!("{}{name}", bytes / factor)
}

/// The duration in one unit, the largest that divides it.
pub fn duration_text(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if ms == 0 {
        return "0s".to_owned();
    }
    let unit = TIME_UNITS
        .iter()
        .find(|(_, factor)| ms.is_multiple_of(*factor));
    let (name, factor) = unit.unwrap_or(&("ms", 1));
    format!("{}{name}", ms / factor)
}

fn split_number(text: &str) -> (&str, &str) {
    let len = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back_as_printed() {
        for (text, bytes) in [
            ("0", 0),
            ("1B", 1),
            ("1000B", 1000),
            ("16KiB", 16384),
            ("3MiB", 3 << 20),
        ] {
            assert_eq!(parse_size(text), Ok(bytes));
            assert_eq!(size_text(bytes), text);
        }
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("16 KiB"), Ok(16384));
    }

    #[test]
    fn wrong_size_says_the_right_unit() {
        let told = parse_size("16k").unwrap_err();
        assert_eq!(told, "units are B, KiB, MiB, GiB and TiB: \"16KiB\"");
        assert!(parse_size("").is_err());
        assert!(parse_size("-1").is_err());
        assert!(parse_size("99999999TiB").unwrap_err().contains("more than"));
    }

    #[test]
    fn durations_read_back_as_printed() {
        for (text, ms) in [
            ("0s", 0),
            ("250ms", 250),
            ("10s", 10_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)));
            assert_eq!(duration_text(Duration::from_millis(ms)), text);
        }
        assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
    }

    #[test]
    fn wrong_durations_are_refused() {
        for text in [
            "",
            "s",
            "10",
            "10sec",
            "-1s",
            "1s1s",
            "1s1m",
            "1.5s",
            "99999999999999d",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
