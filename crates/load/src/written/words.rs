//! Words for a page: moments, command lines, sentences, and the raw figures without what no person
//! reads.

use serde_json::Value;

/// Takes histograms away.
pub(super) fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("histogram");
            fields.remove("histograms");
            fields.values_mut().for_each(strip);
        }
        Value::Array(all) => all.iter_mut().for_each(strip),
        _ => {}
    }
}

/// A command line that a shell reads as it was.
pub(super) fn shell(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&byte);
        match !word.is_empty() && word.bytes().all(is_plain) {
            true => (*word).to_owned(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// A moment of UTC for people, of seconds since 1970: `2024-02-29 12:34:56 UTC`.
pub fn moment(seconds: u64) -> String {
    let days = seconds / 86_400;
    // Days since the first of March of the year 0, in cycles of 400 years.
    let shifted = days + 719_468;
    let (cycle, of_cycle) = (shifted / 146_097, shifted % 146_097);
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + cycle * 400 + carry;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        assert_eq!(moment(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(1_709_210_096), "2024-02-29 12:34:56 UTC");
        assert_eq!(moment(4_102_444_799), "2099-12-31 23:59:59 UTC");
    }

    #[test]
    fn command_is_quoted_where_a_shell_needs_it() {
        assert_eq!(
            shell(&["hob", "bench", "http://a/?b", "p99>5ms", "it's", ""]),
            "hob bench 'http://a/?b' 'p99>5ms' 'it'\\''s' ''"
        );
    }
}
