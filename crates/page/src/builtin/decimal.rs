//! Decimal numbers as REXX computes with them: digits and a power of ten, rounded half up.

use std::cmp::Ordering;

/// Digits that are exact in the widest products.
pub(super) const PRECISION_MAX: u32 = 18;
/// Digits unless a call says otherwise.
pub(super) const PRECISION_DEFAULT: u32 = 9;
const EXPONENT_MAX: i32 = 999_999;

/// `mantissa` times ten to the power `exponent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decimal {
    mantissa: i128,
    exponent: i32,
}

impl Decimal {
    /// `[-+] digits [. digits] [E [-+] digits]`, with blanks around it. Digits past the largest
    /// precision are rounded.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (is_negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text[1..].trim_start()),
            b'+' => (false, text[1..].trim_start()),
            _ => (false, text),
        };
        let (digits, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], rest[at + 1..].parse::<i32>().ok()?),
            None => (rest, 0),
        };
        if exponent.abs() > EXPONENT_MAX {
            return None;
        }
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let mut number = Self {
            mantissa: 0,
            exponent: exponent - i32::try_from(fraction.len()).ok()?,
        };
        let mut dropped = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            if number.mantissa >= 10_i128.pow(PRECISION_MAX + 1) {
                dropped += 1;
                continue;
            }
            number.mantissa = number.mantissa * 10 + i128::from(digit - b'0');
        }
        number.exponent += dropped;
        if is_negative {
            number.mantissa = -number.mantissa;
        }
        Some(number)
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Rounded to this many digits.
    pub(super) fn rounded(self, precision: u32) -> Self {
        let limit = 10_u128.pow(precision.min(PRECISION_MAX));
        let mut number = self;
        let mut last = 0;
        while number.mantissa.unsigned_abs() >= limit {
            last = number.mantissa.unsigned_abs() % 10;
            number.mantissa /= 10;
            number.exponent += 1;
        }
        if last >= 5 {
            number.mantissa += if self.mantissa < 0 { -1 } else { 1 };
            if number.mantissa.unsigned_abs() >= limit {
                number.mantissa /= 10;
                number.exponent += 1;
            }
        }
        number
    }

    pub(super) fn negated(self) -> Self {
        Self {
            mantissa: -self.mantissa,
            ..self
        }
    }

    pub(super) fn add(self, other: Self, precision: u32) -> Self {
        let (mut large, mut small) = (self.rounded(precision), other.rounded(precision));
        if large.mantissa == 0 && large.exponent >= small.exponent {
            return small;
        }
        if large.exponent < small.exponent {
            (large, small) = (small, large);
        }
        let gap = (large.exponent - small.exponent) as u32;
        if gap > PRECISION_MAX {
            return if large.is_zero() { small } else { large };
        }
        let sum = Self {
            mantissa: large.mantissa * 10_i128.pow(gap) + small.mantissa,
            exponent: small.exponent,
        };
        sum.rounded(precision)
    }

    pub(super) fn multiply(self, other: Self, precision: u32) -> Self {
        let (a, b) = (self.rounded(precision), other.rounded(precision));
        let product = Self {
            mantissa: a.mantissa * b.mantissa,
            exponent: a.exponent + b.exponent,
        };
        product.rounded(precision)
    }

    /// The quotient, without zeros at its end; `None` for a division by zero.
    pub(super) fn divide(self, other: Self, precision: u32) -> Option<Self> {
        let (a, b) = (self.rounded(precision), other.rounded(precision));
        if b.is_zero() {
            return None;
        }
        let mut quotient = Self {
            mantissa: a.mantissa,
            exponent: a.exponent - b.exponent,
        };
        while quotient.mantissa != 0 && quotient.mantissa.unsigned_abs() < 10_u128.pow(36) {
            quotient.mantissa *= 10;
            quotient.exponent -= 1;
        }
        quotient.mantissa /= b.mantissa;
        let mut quotient = quotient.rounded(precision);
        while quotient.mantissa != 0 && quotient.mantissa % 10 == 0 && quotient.exponent < 0 {
            quotient.mantissa /= 10;
            quotient.exponent += 1;
        }
        if quotient.is_zero() {
            quotient.exponent = 0;
        }
        Some(quotient)
    }

    /// The whole part of the quotient, and what is left over.
    pub(super) fn divide_whole(self, other: Self, precision: u32) -> Option<(Self, Self)> {
        let (a, b) = (self.rounded(precision), other.rounded(precision));
        let exponent = a.exponent.min(b.exponent);
        let scaled = |number: Self| {
            let gap = u32::try_from(number.exponent - exponent).ok()?;
            number.mantissa.checked_mul(10_i128.checked_pow(gap)?)
        };
        let (dividend, divisor) = (scaled(a)?, scaled(b)?);
        let whole = dividend.checked_div(divisor)?;
        let rest = Self {
            mantissa: dividend % divisor,
            exponent,
        };
        let whole = Self {
            mantissa: whole,
            exponent: 0,
        };
        Some((whole, rest.rounded(precision)))
    }

    /// To the power of a whole number.
    pub(super) fn power(self, exponent: i32, precision: u32) -> Option<Self> {
        let one = Self {
            mantissa: 1,
            exponent: 0,
        };
        let (mut result, mut square) = (one, self);
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                result = result.multiply(square, precision);
            }
            left >>= 1;
            if left > 0 {
                square = square.multiply(square, precision);
            }
            if square.exponent.abs() > EXPONENT_MAX || result.exponent.abs() > EXPONENT_MAX {
                return None;
            }
        }
        match exponent < 0 {
            true => one.divide(result, precision),
            false => Some(result),
        }
    }

    /// As a whole number, if it is one.
    pub(super) fn whole(self) -> Option<i32> {
        let mut number = self;
        while number.exponent < 0 && number.mantissa % 10 == 0 {
            number.mantissa /= 10;
            number.exponent += 1;
        }
        let power = u32::try_from(number.exponent).ok()?;
        let whole = number.mantissa.checked_mul(10_i128.checked_pow(power)?)?;
        i32::try_from(whole).ok()
    }

    /// Rounded to this many digits behind the point, and written with all of them.
    pub(super) fn with_fraction(self, digits: u32) -> String {
        let digits = digits.min(PRECISION_MAX);
        let mut number = self;
        let wanted = -(digits as i32);
        let mut last = 0;
        while number.exponent < wanted && number.mantissa != 0 {
            last = number.mantissa.unsigned_abs() % 10;
            number.mantissa /= 10;
            number.exponent += 1;
        }
        if last >= 5 && number.exponent == wanted {
            number.mantissa += if self.mantissa < 0 { -1 } else { 1 };
        }
        while number.exponent > wanted && number.mantissa.unsigned_abs() < 10_u128.pow(36) {
            number.mantissa *= 10;
            number.exponent -= 1;
        }
        number.exponent = wanted;
        number.plain()
    }

    /// Without an exponent.
    fn plain(self) -> String {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let mut digits = self.mantissa.unsigned_abs().to_string();
        match self.exponent.cmp(&0) {
            Ordering::Greater if self.mantissa != 0 => {
                digits.extend((0..self.exponent).map(|_| '0'));
            }
            Ordering::Less => {
                let fraction = self.exponent.unsigned_abs() as usize;
                while digits.len() <= fraction {
                    digits.insert(0, '0');
                }
                digits.insert(digits.len() - fraction, '.');
            }
            _ => {}
        }
        format!("{sign}{digits}")
    }

    /// As REXX writes it: with an exponent only if it would be long without.
    pub(super) fn written(self, precision: u32) -> String {
        if self.mantissa == 0 {
            return "0".to_string();
        }
        let digits = self.mantissa.unsigned_abs().to_string();
        let left = digits.len() as i32 + self.exponent;
        let precision = precision as i32;
        if left <= precision && -self.exponent <= 2 * precision {
            return self.plain();
        }
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{point}{rest}E{:+}", left - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).expect("it is a number")
    }

    #[test]
    fn numbers_are_written_as_rexx_writes_them() {
        let quotient = |a: &str, b: &str| number(a).divide(number(b), 9).map(|n| n.written(9));
        assert_eq!(quotient("12345", "100").as_deref(), Some("123.45"));
        assert_eq!(quotient("2", "3").as_deref(), Some("0.666666667"));
        assert_eq!(quotient("10000", "100").as_deref(), Some("100"));
        assert_eq!(quotient("1", "0"), None);
        assert_eq!(number("1.50").add(number("1.50"), 9).written(9), "3.00");
        assert_eq!(
            number("99999").multiply(number("99999"), 9).written(9),
            "9.99980000E+9"
        );
        assert_eq!(number("-7").add(number("7"), 9).written(9), "0");
        assert_eq!(
            number("2").power(10, 9).map(|n| n.written(9)).as_deref(),
            Some("1024")
        );
        assert_eq!(
            number("2").power(-2, 9).map(|n| n.written(9)).as_deref(),
            Some("0.25")
        );
        assert_eq!(number("2.345").with_fraction(2), "2.35");
        assert_eq!(number("3").with_fraction(2), "3.00");
    }
}
