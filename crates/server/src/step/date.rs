//! HTTP dates: seconds since 1970 (UTC) to text and back.
//!
//! Written is IMF-fixdate only; read are all three forms. Days are counted in the Gregorian
//! calendar without time zones; a leap second is the first second of the next minute.

/// A moment as Unix time in seconds.
pub type UnixSeconds = i64;

/// Length of a written date, in bytes.
pub const DATE_BYTES: usize = 29;

/// Writes a date in the form `Sun, 06 Nov 1994 08:49:37 GMT`; years beyond 0 to 9999 are cut off.
//= rfc9110#5.6.7
pub fn format_http_date(time: UnixSeconds) -> [u8; DATE_BYTES] {
    let time = time.clamp(YEAR_0, YEAR_9999_END);
    let civil = Civil::from_unix(time);
    let mut out = *b"Thu, 00 Jan 0000 00:00:00 GMT";
    let weekday = time.div_euclid(DAY).rem_euclid(7) as usize;
    out[..3].copy_from_slice(&DAYS[weekday].as_bytes()[..3]);
    two_digits(&mut out[5..7], civil.day);
    out[8..11].copy_from_slice(MONTHS[civil.month as usize - 1]);
    two_digits(&mut out[12..14], civil.year as u32 / 100);
    two_digits(&mut out[14..16], civil.year as u32 % 100);
    two_digits(&mut out[17..19], civil.hour);
    two_digits(&mut out[20..22], civil.minute);
    two_digits(&mut out[23..25], civil.second);
    out
}

/// Writes a date in the form `1994-11-06T08:49:37Z`; years beyond 0 to 9999 are cut off.
//= rfc3339#5.6
pub fn format_rfc3339(time: UnixSeconds) -> [u8; 20] {
    let civil = Civil::from_unix(time.clamp(YEAR_0, YEAR_9999_END));
    let mut out = *b"0000-00-00T00:00:00Z";
    two_digits(&mut out[..2], civil.year as u32 / 100);
    two_digits(&mut out[2..4], civil.year as u32 % 100);
    two_digits(&mut out[5..7], civil.month);
    two_digits(&mut out[8..10], civil.day);
    two_digits(&mut out[11..13], civil.hour);
    two_digits(&mut out[14..16], civil.minute);
    two_digits(&mut out[17..19], civil.second);
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
    let year = i64::from(number(&text[12..14])? * 100 + number(&text[14..16])?);
    Civil {
        year,
        month: month(&text[8..11])?,
        day: number(&text[5..7])?,
        hour,
        minute,
        second,
    }
    .to_unix()
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
    let (month, day) = (month(&rest[5..8])?, number(&rest[2..4])?);
    let in_year = |year| Civil {
        year,
        month,
        day,
        hour,
        minute,
        second,
    };
    let latest = Civil::from_unix(now.clamp(YEAR_0, YEAR_9999_END));
    let latest = Civil {
        year: latest.year + 50,
        ..latest
    };
    let mut year = latest.year.div_euclid(100) * 100 + i64::from(number(&rest[9..11])?);
    // More than 50 years ahead means the most recent year in the past with these digits.
    while in_year(year) > latest {
        year -= 100;
    }
    in_year(year).to_unix()
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
    let year = i64::from(number(&text[20..22])? * 100 + number(&text[22..24])?);
    Civil {
        year,
        month: month(&text[4..7])?,
        day,
        hour,
        minute,
        second,
    }
    .to_unix()
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

fn month(text: &[u8]) -> Option<u32> {
    (1..)
        .zip(MONTHS)
        .find_map(|(number, name)| (*name == *text).then_some(number))
}

fn is_short_day(text: &[u8]) -> bool {
    DAYS.iter().any(|day| &day.as_bytes()[..3] == text)
}

fn two_digits(out: &mut [u8], value: u32) {
    out[0] = b'0' + (value / 10 % 10) as u8;
    out[1] = b'0' + (value % 10) as u8;
}

const DAY: i64 = 86_400;
const YEAR_0: i64 = -62_167_219_200;
const YEAR_9999_END: i64 = 253_402_300_799;

/// The first of January 1970 was a Thursday.
const DAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// A date as people write it. Compares in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Civil {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl Civil {
    /// Years are counted from March, so the leap day is the last of its year, and in blocks of 400
    /// years, which all have 146,097 days.
    fn from_unix(time: UnixSeconds) -> Civil {
        let second_of_day = time.rem_euclid(DAY) as u32;
        let days = time.div_euclid(DAY) + DAYS_TO_1970;
        let block = days.div_euclid(BLOCK_DAYS);
        let day_of_block = days.rem_euclid(BLOCK_DAYS);
        let year_of_block = (day_of_block - day_of_block / 1460 + day_of_block / 36_524
            - day_of_block / 146_096)
            / 365;
        let day_of_year =
            day_of_block - (365 * year_of_block + year_of_block / 4 - year_of_block / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        Civil {
            year: block * 400 + year_of_block + i64::from(month <= 2),
            month: month as u32,
            day: (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32,
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }

    /// `None` when there is no such day or time.
    fn to_unix(self) -> Option<UnixSeconds> {
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = self;
        if day == 0 || day > days_of_month(year, month)? || hour > 23 || minute > 59 || second > 60
        {
            return None;
        }
        let year_from_march = year - i64::from(month <= 2);
        let year_of_block = year_from_march.rem_euclid(400);
        let month_from_march = i64::from((month + 9) % 12);
        let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
        let day_of_block =
            365 * year_of_block + year_of_block / 4 - year_of_block / 100 + day_of_year;
        let days = year_from_march.div_euclid(400) * BLOCK_DAYS + day_of_block - DAYS_TO_1970;
        Some(days * DAY + i64::from(hour * 3600 + minute * 60 + second))
    }
}

/// Days in 400 years.
const BLOCK_DAYS: i64 = 146_097;
/// Days from the first of March of the year 0 to the first of January 1970.
const DAYS_TO_1970: i64 = 719_468;

fn days_of_month(year: i64, month: u32) -> Option<u32> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if is_leap { 29 } else { 28 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-06-15 12:00:00 UTC
    const NOW: UnixSeconds = 1_781_524_800;

    fn text(time: UnixSeconds) -> String {
        String::from_utf8(format_http_date(time).to_vec()).unwrap()
    }

    fn parsed(text: &str) -> Option<UnixSeconds> {
        parse_http_date(text.as_bytes(), NOW)
    }

    #[test]
    fn dates_are_written_as_imf_fixdate() {
        let cases = [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (YEAR_0, "Sat, 01 Jan 0000 00:00:00 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ];
        for (time, expected) in cases {
            assert_eq!(text(time), expected);
        }
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
            let time = day * DAY + (day * 7919).rem_euclid(DAY);
            assert_eq!(parsed(&text(time)), Some(time), "{}", text(time));
        }
    }

    #[test]
    fn two_digit_years_are_at_most_fifty_years_ahead() {
        let year_of =
            |text: &str, now| Civil::from_unix(parse_http_date(text.as_bytes(), now).unwrap()).year;
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
