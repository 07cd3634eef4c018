//! What clients do besides asking in good order and reading what comes: as visitors of the real
//! world leave in the middle of an answer, and look with HEAD whether something has changed.

use std::num::NonZeroU64;

use crate::entry::RequestSpec;
use crate::error::LoadError;
use crate::expect::Expectation;
use crate::plan::{BenchPlan, LoadModel, Protocol};
use crate::quantity::plain_number;

/// Reads `5`, `0.5` or `5%`, from nothing to 100.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = plain_number(text.strip_suffix('%').unwrap_or(text));
    number.filter(|percent| *percent <= 100.0).ok_or_else(|| {
        format!("{text:?} is no share of requests; write a percentage from 0 to 100")
    })
}

/// Reads `800`, `64k` or `1.5M`: bytes per second, at least one.
pub fn parse_bytes_per_second(text: &str) -> Result<NonZeroU64, String> {
    let (number, scale) = match text.char_indices().next_back() {
        Some((at, 'k')) => (&text[..at], 1e3),
        Some((at, 'M')) => (&text[..at], 1e6),
        _ => (text, 1.0),
    };
    let bytes = plain_number(number).map(|number| number * scale);
    let bytes = bytes.filter(|bytes| *bytes <= READ_RATE_MAX);
    let bytes = bytes.and_then(|bytes| NonZeroU64::new(bytes as u64));
    bytes.ok_or_else(|| {
        format!("{text:?} is no number of bytes per second; write 800, 64k or 1.5M, at most 1000M")
    })
}

/// Reading faster is reading all that comes.
const READ_RATE_MAX: f64 = 1e9;

/// SHA-256 of nothing.
const EMPTY_SHA256: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// The plan with a second entry for each one of GET that is to be asked for with HEAD now and then:
/// what is drawn is a kind of request as others are, with a row of its own in the result.
pub(crate) fn mixed(mut plan: BenchPlan) -> Result<BenchPlan, LoadError> {
    check(&plan).map_err(|text| LoadError::Arguments(text.to_owned()))?;
    let share = plan.acts.head_percent / 100.0;
    if share == 0.0 {
        return Ok(plan);
    }
    let mut entries = Vec::new();
    for entry in &plan.entries {
        if !is_get(&plan, entry) {
            entries.push(entry.clone());
            continue;
        }
        if share < 1.0 {
            let weight = entry.weight * (1.0 - share);
            entries.push(RequestSpec {
                weight,
                ..entry.clone()
            });
        }
        entries.push(head_of(&plan, entry, share));
    }
    plan.entries = entries;
    Ok(plan)
}

/// What is not done together.
fn check(plan: &BenchPlan) -> Result<(), &'static str> {
    let has_head = plan.acts.head_percent > 0.0;
    if plan.page.is_some() && (has_head || plan.acts.break_percent > 0.0) {
        return Err(
            "pages are loaded as browsers do it, whole and with GET: leave --head and --break out, \
             or --page",
        );
    }
    let is_slow = plan.acts.read_rate.is_some() || plan.acts.is_varied;
    if is_slow && plan.protocol == Protocol::H3 {
        return Err(
            "--read-rate and --vary say how sockets of TCP are read: leave them out, or --http 3",
        );
    }
    if has_head && matches!(plan.pace, LoadModel::Log(_)) {
        return Err("a log says itself which requests are HEAD: leave --head out, or --replay");
    }
    if has_head && !plan.entries.iter().any(|entry| is_get(plan, entry)) {
        return Err("--head has requests with GET made with HEAD, and there are none with GET");
    }
    Ok(())
}

fn is_get(plan: &BenchPlan, entry: &RequestSpec) -> bool {
    plan.method_of(entry) == "GET" && plan.body_of(entry).is_none()
}

/// The same request with HEAD. What its body must be holds for GET: here it must be empty.
fn head_of(plan: &BenchPlan, entry: &RequestSpec, share: f64) -> RequestSpec {
    let mut expectations = entry.expectations.clone();
    let of_all = &plan.expectations;
    let wants = |kind: fn(&Expectation) -> bool| entry.expectations.iter().chain(of_all).any(kind);
    let has_size = wants(|one| matches!(one, Expectation::Size(_)));
    let has_hash = wants(|one| matches!(one, Expectation::Sha256(_)));
    let is_of_body =
        |one: &Expectation| matches!(one, Expectation::Size(_) | Expectation::Sha256(_));
    expectations.retain(|one| !is_of_body(one));
    expectations.extend(has_size.then_some(Expectation::Size(0)));
    expectations.extend(has_hash.then_some(Expectation::Sha256(EMPTY_SHA256)));
    RequestSpec {
        name: entry.name.as_ref().map(|name| format!("HEAD {name}")),
        weight: entry.weight * share,
        method: Some("HEAD".to_owned()),
        expectations,
        ..entry.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_go_from_nothing_to_a_hundred() {
        assert_eq!(parse_percent("0"), Ok(0.0));
        assert_eq!(parse_percent("0.5"), Ok(0.5));
        assert_eq!(parse_percent("100%"), Ok(100.0));
        for wrong in ["", "%", "101", "100.1", "-1", "1e1", "half"] {
            assert!(parse_percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_per_second_are_at_least_one() {
        let read = |text: &str| parse_bytes_per_second(text).map(NonZeroU64::get);
        assert_eq!(read("800"), Ok(800));
        assert_eq!(read("64k"), Ok(64_000));
        assert_eq!(read("1.5M"), Ok(1_500_000));
        for wrong in ["", "0", "0.5", "k", "64K", "-1", "1e3", "1001M", "64kB"] {
            assert!(parse_bytes_per_second(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hash_of_nothing_is_that_of_no_bytes() {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, b"");
        assert_eq!(digest.as_ref(), EMPTY_SHA256);
    }
}
