//! Numbers for people.

/// What a number counts, and so how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A count or a rate: `12,345`, `12.3`.
    Plain,
    /// Nanoseconds: `1.23 ms`.
    Nanoseconds,
    /// Seconds since a beginning: `90 s`.
    Seconds,
    /// Bytes: `12.3 MB`.
    Bytes,
    /// Percent: `99.9 %`.
    Percent,
    /// How many times as much: `1.25×`.
    Factor,
}

impl Unit {
    /// The number as text, with its unit.
    pub fn text(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        match self {
            Unit::Plain => rate(value),
            Unit::Nanoseconds => time(value),
            Unit::Seconds => format!("{} s", plain(value)),
            Unit::Bytes => bytes(value),
            Unit::Percent => format!("{} %", plain(value)),
            Unit::Factor => format!("{value:.2}×"),
        }
    }

    /// The same for a tick of an axis, whose values are round.
    pub(super) fn tick(self, value: f64) -> String {
        match self {
            Unit::Plain if value.abs() >= 1e4 => {
                let (scaled, unit) = if value.abs() >= 1e6 {
                    (value / 1e6, "M")
                } else {
                    (value / 1e3, "k")
                };
                format!("{}{unit}", plain(scaled))
            }
            Unit::Plain => plain(value),
            Unit::Nanoseconds if value == 0.0 => "0".to_owned(),
            Unit::Nanoseconds => {
                let (value, unit) = scaled(value);
                format!("{} {unit}", plain(value))
            }
            Unit::Bytes => {
                let (value, unit) = scaled_bytes(value);
                format!("{} {unit}", plain(value))
            }
            Unit::Factor => format!("{}×", plain(value)),
            Unit::Seconds | Unit::Percent => self.text(value),
        }
    }
}

/// A time for people, given in nanoseconds, with three digits that count: `1.23 ms`.
pub fn time(ns: f64) -> String {
    let (value, unit) = scaled(ns);
    format!("{} {unit}", three_digits(value))
}

/// The same, given in microseconds.
pub fn time_us(us: f64) -> String {
    time(us * 1e3)
}

/// The unit in which the number before it is below a thousand once it is rounded.
fn scaled(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        size if size < 999.5e3 => (ns / 1e3, "us"),
        size if size < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    }
}

/// A figure for people with three digits that count: `4.62`, `46.2`, `462`, `4,620`.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        size => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", count(size.round() as u64))
        }
    }
}

/// A count for people: `12,345`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate for people: whole from a hundred on.
pub fn rate(rate: f64) -> String {
    if rate >= 100.0 {
        count(rate.round() as u64)
    } else {
        format!("{rate:.1}")
    }
}

/// A number of bytes for people, in thousands.
pub fn bytes(bytes: f64) -> String {
    let (value, unit) = scaled_bytes(bytes);
    let digits = usize::from(unit != "B" && value < 100.0);
    format!("{value:.digits$} {unit}")
}

fn scaled_bytes(bytes: f64) -> (f64, &'static str) {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    (value, units[unit])
}

/// At most three digits behind the point, and no zeros at the end.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(time(1234.0), "1.23 us");
        assert_eq!(time(56_780_000.0), "56.8 ms");
        assert_eq!(time(2e9), "2.00 s");
        assert_eq!(time(999_600.0), "1.00 ms");
        assert_eq!(time(9_997.0), "10.0 us");
        assert_eq!(time_us(-12.34), "-12.3 us");
        assert_eq!(time_us(11_000.0), "11.0 ms");
        assert_eq!(three_digits(4.623), "4.62");
        assert_eq!(three_digits(46.23), "46.2");
        assert_eq!(three_digits(-1234.4), "-1,234");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(rate(12.34), "12.3");
        assert_eq!(rate(4999.6), "5,000");
        assert_eq!(bytes(999.0), "999 B");
        assert_eq!(bytes(12_340_000.0), "12.3 MB");
        assert_eq!(Unit::Plain.text(f64::NAN), "–");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(Unit::Plain.tick(0.25), "0.25");
        assert_eq!(Unit::Plain.tick(25_000.0), "25k");
        assert_eq!(Unit::Plain.tick(1_500_000.0), "1.5M");
        assert_eq!(Unit::Nanoseconds.tick(2e6), "2 ms");
        assert_eq!(Unit::Bytes.tick(2000.0), "2 kB");
        assert_eq!(Unit::Factor.tick(2.0), "2×");
    }
}
