//! Unix time to a UTC date and clock time and back, and numbers to digits: the one calendar of log
//! lines, names of rotated files and HTTP dates. No time zones, no leap seconds, no clock.

/// Milliseconds of a day.
pub(crate) const DAY_MS: u64 = 86_400_000;

/// A second in UTC, as people write it. Compares in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcDateTime {
    /// Year, from 0.
    pub year: u32,
    /// Month, from 1.
    pub month: u32,
    /// Day of the month, from 1.
    pub day: u32,
    /// Hour.
    pub hour: u32,
    /// Minute.
    pub minute: u32,
    /// Second.
    pub second: u32,
}

impl UtcDateTime {
    /// The first second that is told apart: the begin of the year 0.
    pub const UNIX_S_MIN: i64 = -62_167_219_200;
    /// The last second that is told apart: the end of the year 9999.
    pub const UNIX_S_MAX: i64 = 253_402_300_799;

    /// The moment of a Unix time in seconds; years beyond 0 to 9999 are cut off.
    pub fn from_unix_s(unix_s: i64) -> UtcDateTime {
        // Counted from a moment before the first, so that nothing is negative.
        let counted = (unix_s.clamp(Self::UNIX_S_MIN, Self::UNIX_S_MAX) + BEFORE_S) as u64;
        let in_day = (counted % DAY_S) as u32;
        let (year, month, day) = date((counted / DAY_S) as u32);
        UtcDateTime {
            year: year - BEFORE_YEARS,
            month,
            day,
            hour: in_day / 3_600,
            minute: in_day / 60 % 60,
            second: in_day % 60,
        }
    }

    /// Its Unix time in seconds; `None` when there is no such day or time. A leap second is the
    /// first second of the next minute.
    pub fn to_unix_s(self) -> Option<i64> {
        let is_day = self.day >= 1 && self.day <= days_of_month(self.year, self.month)?;
        if !is_day || self.hour > 23 || self.minute > 59 || self.second > 60 {
            return None;
        }
        let year_from_march = self.year.checked_add(BEFORE_YEARS)? - u32::from(self.month <= 2);
        let in_era = year_from_march % YEARS_PER_ERA;
        let in_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        let day = in_era * 365 + in_era / 4 - in_era / 100 + in_year;
        let days =
            u64::from(year_from_march / YEARS_PER_ERA) * u64::from(DAYS_PER_ERA) + u64::from(day);
        let in_day = self.hour * 3_600 + self.minute * 60 + self.second;
        Some((days * DAY_S + u64::from(in_day)).cast_signed() - BEFORE_S)
    }

    /// The English name of the month, three letters.
    pub fn month_name(self) -> &'static [u8; 3] {
        MONTHS[self.month as usize - 1]
    }
}

/// The English name of the day of a Unix time in seconds.
pub fn day_name(unix_s: i64) -> &'static str {
    // The first of January 1970 was a Thursday.
    DAYS[(unix_s.div_euclid(DAY_S.cast_signed()) + 4).rem_euclid(7) as usize]
}

/// The number of a month by its English name of three letters, from 1.
pub fn month_of(name: &[u8]) -> Option<u32> {
    (1..)
        .zip(MONTHS)
        .find_map(|(number, known)| (*known == *name).then_some(number))
}

/// English names of days, Sunday first.
pub const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

const DAY_S: u64 = 86_400;
/// In 400 years the calendar comes round.
const YEARS_PER_ERA: u32 = 400;
const DAYS_PER_ERA: u32 = 146_097;
/// Days are counted from the first of March of the year -400.
const BEFORE_YEARS: u32 = YEARS_PER_ERA;
const DAYS_TO_0000_03_01: u32 = 719_468;
const BEFORE_S: i64 = (DAYS_TO_0000_03_01 + DAYS_PER_ERA) as i64 * DAY_S as i64;

/// Year, month and day of a number of days since the first of March of a year 0.
///
/// Years are counted from March, so that the leap day is the last of its year.
fn date(days: u32) -> (u32, u32, u32) {
    let era = days / DAYS_PER_ERA;
    let in_era = days % DAYS_PER_ERA;
    let year_in_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * YEARS_PER_ERA + year_in_era + u32::from(month <= 2);
    (year, month, day)
}

fn days_of_month(year: u32, month: u32) -> Option<u32> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if is_leap { 29 } else { 28 }),
        _ => None,
    }
}

/// The two decimal digits of a number under 100.
pub fn two_digits(number: u32) -> [u8; 2] {
    debug_assert!(number < 100);
    [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(unix_s: i64) -> String {
        let m = UtcDateTime::from_unix_s(unix_s);
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
        assert_eq!(text(-1), "1969-12-31 23:59:59");
        assert_eq!(text(i64::MIN), "0000-01-01 00:00:00");
        assert_eq!(text(i64::MAX), "9999-12-31 23:59:59");
        assert_eq!(day_name(0), "Thursday");
        assert_eq!(day_name(-1), "Wednesday");
        assert_eq!(day_name(951_782_400), "Tuesday");
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

    #[test]
    fn every_moment_leads_back_to_its_time() {
        for day in (-719_000..2_900_000).step_by(97) {
            let unix_s = day * 86_400 + (day * 7_919_i64).rem_euclid(86_400);
            assert_eq!(UtcDateTime::from_unix_s(unix_s).to_unix_s(), Some(unix_s));
        }
        for unix_s in [UtcDateTime::UNIX_S_MIN, -1, 0, UtcDateTime::UNIX_S_MAX] {
            assert_eq!(UtcDateTime::from_unix_s(unix_s).to_unix_s(), Some(unix_s));
        }
    }

    #[test]
    fn what_no_calendar_has_is_no_moment() {
        let noon = UtcDateTime {
            year: 2023,
            month: 2,
            day: 28,
            hour: 12,
            minute: 0,
            second: 0,
        };
        assert!(noon.to_unix_s().is_some());
        for wrong in [
            UtcDateTime { day: 29, ..noon },
            UtcDateTime { day: 0, ..noon },
            UtcDateTime { month: 0, ..noon },
            UtcDateTime { month: 13, ..noon },
            UtcDateTime { hour: 24, ..noon },
            UtcDateTime { minute: 60, ..noon },
            UtcDateTime { second: 61, ..noon },
        ] {
            assert_eq!(wrong.to_unix_s(), None, "{wrong:?}");
        }
    }
}
