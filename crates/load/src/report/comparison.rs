//! Every field of a comparison of two results in JSON, once, as `fields` has those of a result.

use crate::layout::Field;
use crate::layout::Kind::{Integer, Number, Objects, Text, Texts, Truth};
use crate::layout::Null::{Never, Perhaps};

/// The fields of a comparison.
pub(super) const COMPARISON: &[Field] = &[
    ("format", Integer, Never, "version of this layout: 1"),
    (
        "confidence_percent",
        Number,
        Never,
        "share of cases in which an interval holds the true change",
    ),
    ("method", Text, Never, "how intervals were made"),
    ("figures", Objects, Never, "the figures both sides have"),
    ("figures[].name", Text, Never, "as thresholds name it"),
    (
        "figures[].before",
        Number,
        Never,
        "nanoseconds, answers per second, % or an index",
    ),
    ("figures[].after", Number, Never, "the same afterwards"),
    (
        "figures[].change_percent",
        Number,
        Perhaps,
        "the change; null where it was 0 before",
    ),
    (
        "figures[].low_percent",
        Number,
        Perhaps,
        "lower end of its interval; null without one",
    ),
    ("figures[].high_percent", Number, Perhaps, "upper end"),
    (
        "figures[].verdict",
        Text,
        Never,
        "`faster`, `slower`, `fewer`, `more`, `cheaper`, `dearer`, `fairer`, `less fair`, `cannot be told apart` or `not judged`",
    ),
    ("notes", Texts, Never, "what else is to be known"),
    (
        "thresholds",
        Objects,
        Never,
        "the conditions of `--fail-if`",
    ),
    ("thresholds[].text", Text, Never, "as it was written"),
    (
        "thresholds[].crossed",
        Truth,
        Never,
        "the change is beyond it and certain",
    ),
];
