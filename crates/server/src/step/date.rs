//! HTTP dates as clients send them: all three forms are read. Writing them is `http`'s, and the
//! calendar is `trace`'s.

use hob_http::date::DATE_BYTES;
use hob_trace::calendar::{DAYS, UtcDateTime, month_of, two_digits};

/// A moment as Unix time in seconds.
pub type UnixSeconds = i64;

/// Writes a date in the form `1994-11-06T08:49:37Z`; years beyond 0 to 9999 are cut off.
//= rfc3339#5.6
pub fn format_rfc3339(time: UnixSeconds) -> [u8; 20] {
    let moment = UtcDateTime::from_unix_s(time);
    let mut out = *b"0000-00-00T00:00:00Z";
    out[..2].copy_from_slice(&two_digits(moment.year / 100));
    out[2..4].copy_from_slice(&two_digits(moment.year % 100));
    out[5..7].copy_from_slice(&two_digits(moment.month));
    out[8..10].copy_from_slice(&two_digits(moment.day));
    out[11..13].copy_from_slice(&two_digits(moment.hour));
    out[14..16].copy_from_slice(&two_digits(moment.minute));
    out[17..19].copy_from_slice(&two_digits(moment.second));
    out
}

/// Reads a date in any of the three forms; `None` when it is none of them. `now` decides which
/// century the two-digit years of the oldest form mean.
//= rfc9110#5.6.7
pub fn parse_http_date(text: &[u8], now: UnixSeconds) -> Option<UnixSeconds> {
    match memchr::memchr(b',', text) {
        Some(3) => parse_imf(text),
        Some(comma) => parse_rfc850(text, comma, now),
        None => parse_asctime(text),
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn parse_imf(text: &[u8]) -> Option<UnixSeconds> {
    if text.len() != DATE_BYTES || !is_short_day(&text[..3]) {
        return None;
    }
    let gaps = [(3, 2), (7, 1), (11, 1), (16, 1), (25, 4)];
    let expected = [&b", "[..], b" ", b" ", b" ", b" GMT"];
    if gaps
        .iter()
        .zip(expected)
        .any(|(&(at, len), gap)| text[at..at + len] != *gap)
    {
        return None;
    }
    let (hour, minute, second) = clock(&text[17..25])?;
    let year = number(&text[12..14])? * 100 + number(&text[14..16])?;
    UtcDateTime {
        year,
        month: month_of(&text[8..11])?,
        day: number(&text[5..7])?,
        hour,
        minute,
        second,
    }
    .to_unix_s()
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn parse_rfc850(text: &[u8], comma: usize, now: UnixSeconds) -> Option<UnixSeconds> {
    let (day_name, rest) = text.split_at(comma);
    if rest.len() != 24 || !DAYS.iter().any(|day| day.as_bytes() == day_name) {
        return None;
    }
    let gaps_hold = rest.starts_with(b", ")
        && (rest[4], rest[8], rest[11]) == (b'-', b'-', b' ')
        && rest.ends_with(b" GMT");
    if !gaps_hold {
        return None;
    }
    let (hour, minute, second) = clock(&rest[12..20])?;
    let (month, day) = (month_of(&rest[5..8])?, number(&rest[2..4])?);
    let in_year = |year| UtcDateTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
    };
    let latest = UtcDateTime::from_unix_s(now);
    let latest = UtcDateTime {
        year: latest.year + 50,
        ..latest
    };
    let mut year = latest.year / 100 * 100 + number(&rest[9..11])?;
    // More than 50 years ahead means the most recent year in the past with these digits.
    while in_year(year) > latest {
        year = year.checked_sub(100)?;
    }
    in_year(year).to_unix_s()
}

/// `Sun Nov  6 08:49:37 1994`
fn parse_asctime(text: &[u8]) -> Option<UnixSeconds> {
    if text.len() != 24 || !is_short_day(&text[..3]) {
        return None;
    }
    if [3, 7, 10, 19].iter().any(|&gap| text[gap] != b' ') {
        return None;
    }
    let day = match &text[8..10] {
        [b' ', digit] => number(&[b'0', *digit])?,
        digits => number(digits)?,
    };
    let (hour, minute, second) = clock(&text[11..19])?;
    let year = number(&text[20..22])? * 100 + number(&text[22..24])?;
    UtcDateTime {
        year,
        month: month_of(&text[4..7])?,
        day,
        hour,
        minute,
        second,
    }
    .to_unix_s()
}

/// `08:49:37`
fn clock(text: &[u8]) -> Option<(u32, u32, u32)> {
    let &[_, _, b':', _, _, b':', _, _] = text else {
        return None;
    };
    Some((
        number(&text[..2])?,
        number(&text[3..5])?,
        number(&text[6..])?,
    ))
}

/// Exactly two digits.
fn number(text: &[u8]) -> Option<u32> {
    let &[tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = text else {
        return None;
    };
    Some(u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
}

fn is_short_day(text: &[u8]) -> bool {
    DAYS.iter().any(|day| &day.as_bytes()[..3] == text)
}

#[cfg(test)]
mod tests {
    use hob_http::date::imf_fixdate;

    use super::*;

    /// 2026-06-15 12:00:00 UTC
    const NOW: UnixSeconds = 1_781_524_800;

    fn parsed(text: &str) -> Option<UnixSeconds> {
        parse_http_date(text.as_bytes(), NOW)
    }

    #[test]
    fn rfc3339_is_written() {
        assert_eq!(&format_rfc3339(784_111_777), b"1994-11-06T08:49:37Z");
    }

    #[test]
    fn all_three_forms_are_read() {
        //= rfc9110#5.6.7
        for form in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parsed(form), Some(784_111_777), "{form}");
        }
        assert_eq!(parsed("Wed Nov 16 08:49:37 1994"), Some(784_975_777));
        assert_eq!(parsed("Sat, 31 Dec 2016 23:59:60 GMT"), Some(1_483_228_800));
    }

    #[test]
    fn a_written_date_is_read_as_the_same_time() {
        for day in (-719_000..2_900_000).step_by(97) {
            let time = day * 86_400 + (day * 7919_i64).rem_euclid(86_400);
            let written = imf_fixdate(time);
            assert_eq!(parse_http_date(&written, NOW), Some(time), "{written:?}");
        }
    }

    #[test]
    fn two_digit_years_are_at_most_fifty_years_ahead() {
        let year_of = |text: &str, now| {
            UtcDateTime::from_unix_s(parse_http_date(text.as_bytes(), now).unwrap()).year
        };
        let cases = [
            ("Monday, 15-Jun-26 12:00:00 GMT", 2026),
            ("Monday, 15-Jun-76 12:00:00 GMT", 2076),
            ("Monday, 15-Jun-76 12:00:01 GMT", 1976),
            ("Monday, 01-Jan-77 00:00:00 GMT", 1977),
            ("Monday, 31-Dec-99 00:00:00 GMT", 1999),
            ("Monday, 01-Jan-00 00:00:00 GMT", 2000),
        ];
        for (text, year) in cases {
            assert_eq!(year_of(text, NOW), year, "{text}");
        }
        let in_2090 = NOW + 64 * 31_557_600;
        assert_eq!(year_of("Monday, 01-Jan-10 00:00:00 GMT", in_2090), 2110);
    }

    #[test]
    fn what_is_no_date_is_not_guessed() {
        for wrong in [
            "",
            ",",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Xxx, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Wed, 29 Feb 2023 08:49:37 GMT",
            "Sun, 06 Nov 1994 +8:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sunday, 06 Nov 94 08:49:37 GMT",
            "Sun Nov 06 08:49:37 94",
            "Sun Nov 6 08:49:37 1994",
            "784111777",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        assert!(parsed("Thu, 29 Feb 2024 08:49:37 GMT").is_some());
    }
}
