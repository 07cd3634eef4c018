//! Every field of an object of times in JSON, once, as `fields` has those of a result.

use crate::layout::Field;
use crate::layout::Kind::{Integer, Number, Text};
use crate::layout::Null::Never;

/// The fields of an object of times.
pub(super) const TIMES: &[Field] = &[
    ("count", Integer, Never, "times recorded"),
    ("mean_us", Number, Never, "their mean"),
    ("min_us", Number, Never, "the shortest"),
    ("p50_us", Number, Never, "half of them are at most this"),
    ("p75_us", Number, Never, "75 %"),
    ("p90_us", Number, Never, "90 %"),
    ("p95_us", Number, Never, "95 %"),
    ("p99_us", Number, Never, "99 %"),
    ("p99_9_us", Number, Never, "99.9 %"),
    ("p99_99_us", Number, Never, "99.99 %"),
    ("max_us", Number, Never, "the longest"),
    (
        "histogram",
        Text,
        Never,
        "all of them in nanoseconds: HdrHistogram's compressed V2 layout in base64",
    ),
];
