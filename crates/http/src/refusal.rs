//! Requests that an engine refuses by itself: with which status, and why. Texts of limits name
//! them.

/// Why a request is refused by the engine, and with which status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The answer's status code.
    pub status: u16,
    /// Why, for the record.
    pub reason: &'static str,
}

impl Refusal {
    pub(crate) const fn bad(reason: &'static str) -> Refusal {
        Refusal {
            status: 400,
            reason,
        }
    }

    pub(crate) const fn of(status: u16, reason: &'static str) -> Refusal {
        Refusal { status, reason }
    }
}

/// Refusals that limits cause; their texts name the limit.
pub(crate) const TARGET_TOO_LONG: Refusal =
    Refusal::of(414, "limits.target: the request target is too long");
/// The head is longer than its limit.
pub(crate) const HEAD_TOO_LONG: Refusal =
    Refusal::of(431, "limits.head: the request head is too long");
/// There are more fields than allowed.
pub(crate) const TOO_MANY_HEADERS: Refusal =
    Refusal::of(431, "limits.headers: too many header fields");
/// The body is larger than its limit.
pub(crate) const BODY_TOO_LARGE: Refusal = Refusal::of(
    413,
    "limits.body: the request body is larger than its limit",
);
/// The head did not come in time.
pub(crate) const HEAD_TOO_SLOW: Refusal = Refusal::of(
    408,
    "limits.head_time: the request head did not come in time",
);
