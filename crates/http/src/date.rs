//! Dates as HTTP writes them, and the `Date` line, made once a second (RFC 9110 section 6.6.1).

use std::time::Duration;

use hob_trace::calendar::{UtcDateTime, day_name, two_digits};

/// `Date: <IMF-fixdate>CRLF CRLF`: the last line of a head and the empty line after it.
#[derive(Clone)]
pub struct DateLine {
    bytes: [u8; Self::LEN],
}

impl DateLine {
    const LEN: usize = 6 + 29 + 4;

    /// The line for this time since the Unix epoch.
    pub fn new(unix: Duration) -> DateLine {
        let mut bytes = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        bytes[6..35].copy_from_slice(&imf_fixdate(unix.as_secs().cast_signed()));
        DateLine { bytes }
    }

    /// The line with the empty line that ends a head.
    pub fn ending_head(&self) -> &[u8] {
        &self.bytes
    }

    /// The date alone.
    pub fn date(&self) -> &[u8; DATE_BYTES] {
        self.bytes[6..]
            .first_chunk()
            .expect("a line is longer than a date")
    }

    /// The line alone.
    pub fn line(&self) -> &[u8] {
        &self.bytes[..Self::LEN - 2]
    }
}

/// Length of a date, in bytes.
pub const DATE_BYTES: usize = 29;

/// A Unix time in seconds as IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`; years beyond 0 to 9999
/// are cut off.
//= rfc9110#5.6.7
pub fn imf_fixdate(unix_s: i64) -> [u8; DATE_BYTES] {
    let unix_s = unix_s.clamp(UtcDateTime::UNIX_S_MIN, UtcDateTime::UNIX_S_MAX);
    let moment = UtcDateTime::from_unix_s(unix_s);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(&day_name(unix_s).as_bytes()[..3]);
    text[5..7].copy_from_slice(&two_digits(moment.day));
    text[8..11].copy_from_slice(moment.month_name());
    text[12..14].copy_from_slice(&two_digits(moment.year / 100));
    text[14..16].copy_from_slice(&two_digits(moment.year % 100));
    text[17..19].copy_from_slice(&two_digits(moment.hour));
    text[20..22].copy_from_slice(&two_digits(moment.minute));
    text[23..25].copy_from_slice(&two_digits(moment.second));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_calendar_s() {
        let cases: [(i64, &str); 9] = [
            (i64::MIN, "Sat, 01 Jan 0000 00:00:00 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_795_305_600, "Sun, 22 Nov 2026 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ];
        for (unix, text) in cases {
            assert_eq!(std::str::from_utf8(&imf_fixdate(unix)).unwrap(), text);
        }
    }

    #[test]
    fn the_line_ends_the_head() {
        let line = DateLine::new(Duration::from_secs(0));
        assert_eq!(
            line.ending_head(),
            b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
        );
        assert_eq!(line.line(), b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
    }
}
