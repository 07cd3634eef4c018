//! What a head says of the body behind it, alike in every version of HTTP.

use crate::head::{Known, RequestHead};
use crate::refusal::Refusal;

//= rfc9110#10.1.1
pub(crate) fn expects_continue(head: &RequestHead) -> Result<bool, Refusal> {
    let Some(first) = head.value(Known::Expect) else {
        return Ok(false);
    };
    let is_known = |value: &[u8]| value.eq_ignore_ascii_case(b"100-continue");
    if is_known(first) && (!head.is_repeated(Known::Expect) || head.values(b"expect").all(is_known))
    {
        Ok(true)
    } else {
        Err(Refusal::of(417, "an expectation other than 100-continue"))
    }
}

/// Digits only, no sign, no list, no overflow.
pub(crate) fn read_decimal(value: &[u8]) -> Result<u64, Refusal> {
    const BAD: Refusal = Refusal::bad("Content-Length is not a number");
    if value.is_empty() || value.len() > 19 {
        return Err(BAD);
    }
    value.iter().try_fold(0u64, |sum, byte| match byte {
        b'0'..=b'9' => Ok(sum * 10 + u64::from(byte - b'0')),
        _ => Err(BAD),
    })
}
