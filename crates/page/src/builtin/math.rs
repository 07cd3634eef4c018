//! Arithmetic with decimal numbers.
//!
//! A number that was computed of data is data: `5 -$(n)` with `-1` for `n` would begin a comment of
//! SQL, and a statement's text would be another one for each number.

use crate::fault::FunctionFault;
use crate::value::Text;

use super::call::{Answer, BuiltInCall, bad_value};
use super::decimal::{Decimal, PRECISION_DEFAULT, PRECISION_MAX};

const EXPRESSION_DEPTH_MAX: u32 = 50;

fn number(call: &BuiltInCall<'_>, index: usize) -> Result<Decimal, FunctionFault> {
    let text = call.string(index);
    match Decimal::parse(&text) {
        Some(number) => Ok(number),
        None => bad_value(format!("argument {} is {text:?}, and no number", index + 1)),
    }
}

fn precision(call: &BuiltInCall<'_>, index: usize) -> Result<u32, FunctionFault> {
    let default = PRECISION_DEFAULT as usize;
    match u32::try_from(call.count_or(index, default)?) {
        Ok(digits @ 1..) => Ok(digits.min(PRECISION_MAX)),
        _ => bad_value("the precision is not one of 1 to 18"),
    }
}

type Operation = fn(Decimal, Decimal, u32) -> Option<Decimal>;

fn compute(call: &BuiltInCall<'_>, operation: Operation) -> Answer {
    let digits = precision(call, 2)?;
    let result = operation(number(call, 0)?, number(call, 1)?, digits);
    match result {
        Some(number) => Ok(computed(call, number.written(digits))),
        None => bad_value("there is no such number; was it a division by zero?"),
    }
}

/// A result, which is data if any argument is.
fn computed(call: &BuiltInCall<'_>, text: String) -> Text {
    let mut origins = (0..call.arguments.len()).filter_map(|index| call.text(index).data_origin());
    match origins.next() {
        Some(origin) => Text::of_data(text, origin),
        None => Text::of_macro(text),
    }
}

pub(super) fn add(call: &mut BuiltInCall<'_>) -> Answer {
    compute(call, |a, b, digits| Some(a.add(b, digits)))
}

pub(super) fn subtract(call: &mut BuiltInCall<'_>) -> Answer {
    compute(call, |a, b, digits| Some(a.add(b.negated(), digits)))
}

pub(super) fn multiply(call: &mut BuiltInCall<'_>) -> Answer {
    compute(call, |a, b, digits| Some(a.multiply(b, digits)))
}

pub(super) fn divide(call: &mut BuiltInCall<'_>) -> Answer {
    compute(call, Decimal::divide)
}

pub(super) fn intdiv(call: &mut BuiltInCall<'_>) -> Answer {
    compute(call, |a, b, digits| Some(a.divide_whole(b, digits)?.0))
}

pub(super) fn divrem(call: &mut BuiltInCall<'_>) -> Answer {
    compute(call, |a, b, digits| Some(a.divide_whole(b, digits)?.1))
}

pub(super) fn power(call: &mut BuiltInCall<'_>) -> Answer {
    compute(call, |a, b, digits| a.power(b.whole()?, digits))
}

/// Blanks before it and digits behind the point, as many as are asked for.
pub(super) fn format(call: &mut BuiltInCall<'_>) -> Answer {
    let digits = precision(call, 5)?;
    let number = number(call, 0)?.rounded(digits);
    let text = match call.has(2) {
        true => {
            let fraction = call.count(2)?.min(PRECISION_MAX as usize);
            number.with_fraction(fraction as u32)
        }
        false => number.written(digits),
    };
    if !call.has(1) {
        return Ok(computed(call, text));
    }
    let before = call.count(1)?;
    let whole = text.find('.').unwrap_or(text.len());
    if before < whole || before > 1_000 {
        return bad_value("the number has more digits before the point");
    }
    let text = format!("{}{text}", " ".repeat(before - whole));
    Ok(computed(call, text))
}

/// An expression with `+ - * / % // **` and parentheses.
pub(super) fn eval(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.string(0);
    let mut expression = Expression {
        rest: text.trim(),
        depth: 0,
    };
    let result = expression.sum()?;
    match expression.rest.is_empty() {
        true => Ok(computed(call, result.written(PRECISION_DEFAULT))),
        false => bad_syntax(),
    }
}

fn bad_syntax<T>() -> Result<T, FunctionFault> {
    Err(FunctionFault::new(4003, "the expression is no arithmetic"))
}

struct Expression<'a> {
    rest: &'a str,
    depth: u32,
}

impl Expression<'_> {
    fn eat(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Result<Decimal, FunctionFault> {
        let mut sum = self.product()?;
        loop {
            if self.eat("+") {
                sum = sum.add(self.product()?, PRECISION_DEFAULT);
            } else if self.eat("-") {
                sum = sum.add(self.product()?.negated(), PRECISION_DEFAULT);
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<Decimal, FunctionFault> {
        let mut product = self.power()?;
        loop {
            if self.eat("*") {
                product = product.multiply(self.power()?, PRECISION_DEFAULT);
                continue;
            }
            let kind = match () {
                () if self.eat("//") => 2,
                () if self.eat("/") => 0,
                () if self.eat("%") => 1,
                () => return Ok(product),
            };
            let divisor = self.power()?;
            let whole = || product.divide_whole(divisor, PRECISION_DEFAULT);
            let quotient = match kind {
                _ if divisor.is_zero() => None,
                0 => product.divide(divisor, PRECISION_DEFAULT),
                1 => whole().map(|(whole, _)| whole),
                _ => whole().map(|(_, rest)| rest),
            };
            product = match quotient {
                Some(quotient) => quotient,
                None => return Err(FunctionFault::new(4004, "a division by zero")),
            };
        }
    }

    fn power(&mut self) -> Result<Decimal, FunctionFault> {
        let base = self.factor()?;
        if !self.rest.starts_with("**") {
            return Ok(base);
        }
        self.eat("**");
        let exponent = self.factor()?;
        let power = exponent.whole();
        match power.and_then(|power| base.power(power, PRECISION_DEFAULT)) {
            Some(power) => Ok(power),
            None => bad_syntax(),
        }
    }

    fn factor(&mut self) -> Result<Decimal, FunctionFault> {
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH_MAX {
            return bad_syntax();
        }
        let factor = if self.eat("-") {
            self.factor()?.negated()
        } else if self.eat("+") {
            self.factor()?
        } else if self.eat("(") {
            let inner = self.sum()?;
            if !self.eat(")") {
                return bad_syntax();
            }
            inner
        } else {
            let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            self.rest = rest.trim_start();
            match Decimal::parse(digits) {
                Some(number) => number,
                None => return bad_syntax(),
            }
        };
        self.depth -= 1;
        Ok(factor)
    }
}
