//! The `Date` line, made once a second (RFC 9110 section 6.6.1).

use std::time::Duration;

const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

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
        bytes[6..35].copy_from_slice(&imf_fixdate(unix.as_secs()));
        DateLine { bytes }
    }

    /// The line with the empty line that ends a head.
    pub fn ending_head(&self) -> &[u8] {
        &self.bytes
    }

    /// The line alone.
    pub fn line(&self) -> &[u8] {
        &self.bytes[..Self::LEN - 2]
    }
}

/// A time since the Unix epoch as IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`.
//= rfc9110#5.6.7
pub fn imf_fixdate(unix_secs: u64) -> [u8; 29] {
    let (days, secs) = (unix_secs / 86_400, unix_secs % 86_400);
    let (year, month, day) = civil(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(DAYS[(days % 7) as usize]);
    two(&mut text[5..7], day);
    text[8..11].copy_from_slice(MONTHS[month as usize - 1]);
    two(&mut text[12..14], year / 100 % 100);
    two(&mut text[14..16], year % 100);
    two(&mut text[17..19], secs / 3600);
    two(&mut text[20..22], secs / 60 % 60);
    two(&mut text[23..25], secs % 60);
    text
}

fn two(out: &mut [u8], value: u64) {
    out[0] = b'0' + (value / 10) as u8;
    out[1] = b'0' + (value % 10) as u8;
}

/// Year, month and day of a day since 1970-01-01 in the proleptic Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01, where leap days come last in a year
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_calendar_s() {
        let cases: [(u64, &str); 6] = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_795_305_600, "Sun, 22 Nov 2026 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
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
