//! Conditional requests: the five precondition fields in their order of precedence.
//!
//! Only for answers that would be successful without them: an error is sent whatever the
//! conditions. A field that cannot be understood never turns a request into a success of another
//! kind: a broken date is ignored, a broken list of entity tags matches as far as it was read.
//= rfc9110#13.2.1

use super::date::{UnixSeconds, parse_http_date};

/// What a request's method means for its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalMethod {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// Any other.
    Unsafe,
}

/// The fields of a request that set conditions, as they came.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'a> {
    /// `If-Match`
    pub if_match: Option<&'a [u8]>,
    /// `If-None-Match`
    pub if_none_match: Option<&'a [u8]>,
    /// `If-Modified-Since`
    pub if_modified_since: Option<&'a [u8]>,
    /// `If-Unmodified-Since`
    pub if_unmodified_since: Option<&'a [u8]>,
    /// `If-Range`
    pub if_range: Option<&'a [u8]>,
    /// `Range`; only whether it is there counts.
    pub range: Option<&'a [u8]>,
}

/// What is known about the representation that would be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Validators<'a> {
    /// The entity tag with its quotes, and `W/` before them when it is weak.
    pub entity_tag: Option<&'a [u8]>,
    /// When it was changed last.
    pub modified: Option<UnixSeconds>,
    /// `modified` as it is sent in `Last-Modified`: most clients return just that.
    pub modified_text: Option<&'a [u8]>,
}

/// What the conditions ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreconditionOutcome {
    /// Answer as if there were no conditions; a `Range` counts.
    Proceed,
    /// 304
    NotModified,
    /// 412
    PreconditionFailed,
    /// Answer with the whole representation although there is a `Range`.
    IgnoreRange,
}

/// Decides by all conditions at once. `now` is needed for two-digit years and young
/// representations.
//= rfc9110#13.2.2
pub fn evaluate(
    method: ConditionalMethod,
    conditions: &Conditions<'_>,
    current: &Validators<'_>,
    now: UnixSeconds,
) -> PreconditionOutcome {
    if let Some(tags) = conditions.if_match {
        if !any_tag_matches(tags, current.entity_tag, TagComparison::Strong) {
            return PreconditionOutcome::PreconditionFailed;
        }
    } else if let Some(date) = conditions.if_unmodified_since
        && modified_since(date, current, now) == Some(true)
    {
        return PreconditionOutcome::PreconditionFailed;
    }
    let is_retrieval = method != ConditionalMethod::Unsafe;
    if let Some(tags) = conditions.if_none_match {
        if any_tag_matches(tags, current.entity_tag, TagComparison::Weak) {
            return if is_retrieval {
                PreconditionOutcome::NotModified
            } else {
                PreconditionOutcome::PreconditionFailed
            };
        }
    } else if let Some(date) = conditions.if_modified_since
        && is_retrieval
        && modified_since(date, current, now) == Some(false)
    {
        return PreconditionOutcome::NotModified;
    }
    range_verdict(method, conditions, current, now)
}

/// Steps 5 and 6: does a `Range` count?
//= rfc9110#14.2
fn range_verdict(
    method: ConditionalMethod,
    conditions: &Conditions<'_>,
    current: &Validators<'_>,
    now: UnixSeconds,
) -> PreconditionOutcome {
    if conditions.range.is_none() {
        return PreconditionOutcome::Proceed;
    }
    let counts = method == ConditionalMethod::Get
        && conditions
            .if_range
            .is_none_or(|value| is_unchanged(value, current, now));
    if counts {
        PreconditionOutcome::Proceed
    } else {
        PreconditionOutcome::IgnoreRange
    }
}

/// `If-Range`: a strong entity tag or the exact date of a representation old enough to be told by
/// it.
//= rfc9110#13.1.5
fn is_unchanged(value: &[u8], current: &Validators<'_>, now: UnixSeconds) -> bool {
    if value.starts_with(b"\"") || value.starts_with(b"W/") {
        let mut rest = value;
        let tag = next_tag(&mut rest);
        return rest.is_empty()
            && tag
                .zip(current.entity_tag)
                .is_some_and(|(one, other)| TagComparison::Strong.holds(one, other));
    }
    // A representation changed in this very second may change again and keep its date.
    //= rfc9110#8.8.2.2
    let Some(modified) = current.modified.filter(|&modified| modified < now) else {
        return false;
    };
    current.modified_text == Some(value) || parse_http_date(value, now) == Some(modified)
}

/// Whether the representation changed after a date; `None` when one of the two is not known.
//= rfc9110#13.1.3
//= rfc9110#13.1.4
fn modified_since(date: &[u8], current: &Validators<'_>, now: UnixSeconds) -> Option<bool> {
    let modified = current.modified?;
    if current.modified_text == Some(date) {
        return Some(false);
    }
    Some(modified > parse_http_date(date, now)?)
}

/// How entity tags are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagComparison {
    /// Equal, and neither is weak.
    Strong,
    /// Equal apart from weakness.
    Weak,
}

impl TagComparison {
    //= rfc9110#8.8.3.2
    fn holds(self, one: &[u8], other: &[u8]) -> bool {
        match self {
            TagComparison::Strong => one == other && !one.starts_with(b"W/"),
            TagComparison::Weak => opaque(one) == opaque(other),
        }
    }
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Whether a list of entity tags, or `*`, matches. `*` matches every representation there is.
//= rfc9110#13.1.1
//= rfc9110#13.1.2
fn any_tag_matches(list: &[u8], current: Option<&[u8]>, comparison: TagComparison) -> bool {
    if list == b"*" {
        return true;
    }
    let Some(current) = current else { return false };
    if comparison == TagComparison::Weak && list == current {
        return true;
    }
    let mut rest = list;
    while let Some(tag) = next_tag(&mut rest) {
        if comparison.holds(tag, current) {
            return true;
        }
    }
    false
}

/// Takes the next entity tag off a list; `None` at its end and where it stops being one.
//= rfc9110#8.8.3
fn next_tag<'a>(list: &mut &'a [u8]) -> Option<&'a [u8]> {
    let begin = list
        .iter()
        .position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
    let text = &list[begin..];
    let quote = if text.starts_with(b"W/") { 2 } else { 0 };
    let inner = text.get(quote..)?.strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', inner)?;
    if !inner[..end]
        .iter()
        .all(|byte| matches!(byte, 0x21..=0x7e | 0x80..))
    {
        return None;
    }
    let (tag, rest) = text.split_at(quote + 1 + end + 1);
    let rest = rest.trim_ascii_start();
    if !rest.is_empty() && !rest.starts_with(b",") {
        return None;
    }
    *list = rest;
    Some(tag)
}

#[cfg(test)]
mod tests;
