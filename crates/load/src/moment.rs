//! Moments as people, logs and command lines write them, in seconds since 1970.

/// Months as logs name them.
const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// A moment of UTC, taken apart.
struct UtcParts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl UtcParts {
    /// Seconds since 1970; none where there is no such moment.
    fn seconds(&self) -> Option<i64> {
        let is_sound = (1..=12).contains(&self.month)
            && (1..=31).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            // A leap second is counted as the one behind it.
            && self.second <= 60;
        // The year begins in March, so that the leap day is its last.
        let (year, month) = match self.month > 2 {
            true => (self.year, self.month - 3),
            false => (self.year - 1, self.month + 9),
        };
        let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
            + year.div_euclid(400)
            + (153 * month + 2) / 5
            + self.day
            - 1
            - 719_468;
        let in_day = self.hour * 3600 + self.minute * 60 + self.second;
        is_sound.then_some(days * 86_400 + in_day)
    }
}

/// Digits at a place; none where something else is there.
fn number(bytes: &[u8], from: usize, to: usize) -> Option<i64> {
    let digits = bytes.get(from..to)?;
    let mut number = 0;
    for byte in digits {
        number = number * 10 + i64::from(char::from(*byte).to_digit(10)?);
    }
    Some(number)
}

fn has_marks(bytes: &[u8], marks: &[(usize, u8)]) -> bool {
    marks.iter().all(|(at, mark)| bytes.get(*at) == Some(mark))
}

/// Seconds that a zone is ahead of UTC: `Z`, `+hhmm` or `+hh:mm`.
fn zone(bytes: &[u8]) -> Option<i64> {
    let (sign, minutes_at) = match (bytes, bytes.len()) {
        ([b'Z'], _) => return Some(0),
        ([b'+', ..], 5) => (1, 3),
        ([b'-', ..], 5) => (-1, 3),
        ([b'+', _, _, b':', ..], 6) => (1, 4),
        ([b'-', _, _, b':', ..], 6) => (-1, 4),
        _ => return None,
    };
    let (hours, minutes) = (
        number(bytes, 1, 3)?,
        number(bytes, minutes_at, minutes_at + 2)?,
    );
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Reads `10/Oct/2000:13:55:36 -0700`, as access logs have it.
pub(crate) fn common(bytes: &[u8]) -> Option<i64> {
    const MARKS: &[(usize, u8)] = &[
        (2, b'/'),
        (6, b'/'),
        (11, b':'),
        (14, b':'),
        (17, b':'),
        (20, b' '),
    ];
    if bytes.len() != 26 || !has_marks(bytes, MARKS) {
        return None;
    }
    let month = MONTHS.iter().position(|month| *month == &bytes[3..6])?;
    let parts = UtcParts {
        year: number(bytes, 7, 11)?,
        month: month as i64 + 1,
        day: number(bytes, 0, 2)?,
        hour: number(bytes, 12, 14)?,
        minute: number(bytes, 15, 17)?,
        second: number(bytes, 18, 20)?,
    };
    Some(parts.seconds()? - zone(&bytes[21..])?)
}

/// Reads `2026-01-31T12:00:00.250Z` as microseconds since 1970, and says whether it has a fraction.
pub(crate) fn iso(text: &str) -> Option<(i64, bool)> {
    const MARKS: &[(usize, u8)] = &[(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let bytes = text.as_bytes();
    if !has_marks(bytes, MARKS) {
        return None;
    }
    let parts = UtcParts {
        year: number(bytes, 0, 4)?,
        month: number(bytes, 5, 7)?,
        day: number(bytes, 8, 10)?,
        hour: number(bytes, 11, 13)?,
        minute: number(bytes, 14, 16)?,
        second: number(bytes, 17, 19)?,
    };
    let (fraction_us, rest) = match &bytes[19..] {
        [b'.', rest @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let known = digits.min(6);
            let scale = 10i64.pow(6 - known as u32);
            (Some(number(rest, 0, known)? * scale), &rest[digits..])
        }
        rest => (None, rest),
    };
    let seconds = parts.seconds()? - zone(rest)?;
    Some((
        seconds * 1_000_000 + fraction_us.unwrap_or(0),
        fraction_us.is_some(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_logs_are_read() {
        assert_eq!(common(b"10/Oct/2000:13:55:36 -0700"), Some(971_211_336));
        assert_eq!(common(b"01/Jan/1970:01:30:00 +0130"), Some(0));
        assert_eq!(iso("1970-01-01T00:00:00Z"), Some((0, false)));
        assert_eq!(
            iso("2024-02-29T14:34:56.5+02:00"),
            Some((1_709_210_096_500_000, true))
        );
        assert_eq!(iso("1969-12-31T23:59:59.1234567Z"), Some((-876_544, true)));
        for wrong in [
            "",
            "10/Oct/2000:13:55:36",
            "10/Oct/2000:13:55:36 0700x",
            "32/Oct/2000:13:55:36 -0700",
            "10/oct/2000:13:55:36 -0700",
            "10/Oct/2000:13:55:61 -0700",
            "1a/Oct/2000:13:55:36 -0700",
            "10/Oct/2000:13:55:36 -2460",
        ] {
            assert_eq!(common(wrong.as_bytes()), None, "{wrong}");
        }
        for wrong in [
            "",
            "2024-02-29",
            "2024-02-29T12:00:00",
            "2024-13-29T12:00:00Z",
        ] {
            assert_eq!(iso(wrong), None, "{wrong}");
        }
    }
}
