//! Conditions. Whole numbers are compared as numbers of any length, everything else as bytes.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::tree::{Comparison, Condition};

use super::runner::{Ran, RunFile, Runner};

impl Runner<'_> {
    pub(super) fn holds(
        &mut self,
        file: &Rc<RunFile>,
        at: u32,
        condition: &Condition,
    ) -> Ran<bool> {
        self.step(file, at)?;
        match condition {
            Condition::Any(conditions) => {
                for condition in conditions {
                    if self.holds(file, at, condition)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::All(conditions) => {
                for condition in conditions {
                    if !self.holds(file, at, condition)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Not(condition) => Ok(!self.holds(file, at, condition)?),
            Condition::Holds(operand) => Ok(!self.operand_text(file, operand)?.is_empty()),
            Condition::Compares(left, comparison, right) => {
                let left = self.operand_text(file, left)?;
                let right = self.operand_text(file, right)?;
                let order = order(left.bytes(), right.bytes());
                Ok(match comparison {
                    Comparison::Equal => order.is_eq(),
                    Comparison::Unequal => order.is_ne(),
                    Comparison::Less => order.is_lt(),
                    Comparison::Greater => order.is_gt(),
                    Comparison::AtMost => order.is_le(),
                    Comparison::AtLeast => order.is_ge(),
                })
            }
        }
    }
}

fn order(left: &[u8], right: &[u8]) -> Ordering {
    let (Some(left_number), Some(right_number)) = (whole(left), whole(right)) else {
        return left.cmp(right);
    };
    let by_size = |a: &[u8], b: &[u8]| a.len().cmp(&b.len()).then_with(|| a.cmp(b));
    match (left_number, right_number) {
        ((false, a), (false, b)) => by_size(a, b),
        ((true, a), (true, b)) => by_size(b, a),
        ((is_negative, _), _) => match is_negative {
            true => Ordering::Less,
            false => Ordering::Greater,
        },
    }
}

/// Whether it is below zero, and its digits without zeros before them.
fn whole(bytes: &[u8]) -> Option<(bool, &[u8])> {
    let (is_negative, digits) = match bytes.first()? {
        b'-' => (true, &bytes[1..]),
        b'+' => (false, &bytes[1..]),
        _ => (false, bytes),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let digits = &digits[zeros..];
    Some((is_negative && !digits.is_empty(), digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_compare_as_numbers_and_all_else_as_bytes() {
        for (left, right, wanted) in [
            ("9", "10", Ordering::Less),
            ("-9", "-10", Ordering::Greater),
            ("007", "7", Ordering::Equal),
            ("-0", "0", Ordering::Equal),
            ("-1", "0", Ordering::Less),
            (
                "99999999999999999999999",
                "100000000000000000000000",
                Ordering::Less,
            ),
            ("9.5", "10.5", Ordering::Greater),
            ("9 ", "10", Ordering::Greater),
            ("a", "b", Ordering::Less),
            ("", "0", Ordering::Less),
        ] {
            let found = order(left.as_bytes(), right.as_bytes());
            assert_eq!(found, wanted, "{left:?} {right:?}");
        }
    }
}
