//! Unix time to a UTC date and clock time, and numbers to digits: what log lines and rotated file
//! names need. No time zones, no leap seconds, no clock.

/// Milliseconds of a day.
pub(crate) const DAY_MS: u64 = 86_400_000;

/// A second in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) year: u32,
    /// From 1.
    pub(crate) month: u32,
    /// From 1.
    pub(crate) day: u32,
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
}

impl Moment {
    /// The last second that is told apart: the end of the year 9999.
    const UNIX_S_MAX: u64 = 253_402_300_799;

    /// The moment of a Unix time in seconds; later than the year 9999 is its last second.
    pub(crate) fn from_unix_s(unix_s: u64) -> Moment {
        let unix_s = unix_s.min(Self::UNIX_S_MAX);
        let in_day = (unix_s % 86_400) as u32;
        let (year, month, day) = date((unix_s / 86_400) as u32);
        Moment {
            year,
            month,
            day,
            hour: in_day / 3_600,
            minute: in_day / 60 % 60,
            second: in_day % 60,
        }
    }

    /// The English name of the month, three letters.
    pub(crate) fn month_name(self) -> &'static [u8; 3] {
        const NAMES: [&[u8; 3]; 12] = [
            b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
            b"Dec",
        ];
        NAMES[self.month as usize - 1]
    }
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year.
fn date(days: u32) -> (u32, u32, u32) {
    const DAYS_TO_0000_03_01: u32 = 719_468;
    const DAYS_PER_400_YEARS: u32 = 146_097;
    let days = days + DAYS_TO_0000_03_01;
    let era = days / DAYS_PER_400_YEARS;
    let in_era = days % DAYS_PER_400_YEARS;
    let year_in_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_in_era + u32::from(month <= 2);
    (year, month, day)
}

/// The two decimal digits of a number under 100.
pub(crate) fn two_digits(number: u32) -> [u8; 2] {
    debug_assert!(number < 100);
    [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(unix_s: u64) -> String {
        let m = Moment::from_unix_s(unix_s);
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            m.year, m.month, m.day, m.hour, m.minute, m.second
        )
    }

    #[test]
    fn known_moments_are_right() {
        assert_eq!(text(0), "1970-01-01 00:00:00");
        assert_eq!(text(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(text(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(text(1_795_295_587), "2026-11-21 21:13:07");
        assert_eq!(text(4_107_542_400), "2100-03-01 00:00:00");
        assert_eq!(text(u64::MAX), "9999-12-31 23:59:59");
    }

    #[test]
    fn every_day_of_400_years_follows_the_one_before() {
        let mut before = date(0);
        for days in 1..146_097 {
            let (year, month, day) = date(days);
            let next_day = (year, month) == (before.0, before.1) && day == before.2 + 1;
            let next_month = (year, month, day) == (before.0, before.1 + 1, 1) && before.2 >= 28;
            let next_year = (month, day) == (1, 1) && before == (year - 1, 12, 31);
            assert!(
                next_day || next_month || next_year,
                "{before:?} then {:?}",
                date(days)
            );
            before = (year, month, day);
        }
    }
}
