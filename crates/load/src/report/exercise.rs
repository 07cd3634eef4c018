//! Every field of what mischief came to in JSON, once, as `fields` has those of a result.

use crate::layout::Field;
use crate::layout::Kind::{Integer, Number, Object, Objects, Text, Times, Truth};
use crate::layout::Null::{Never, Perhaps};

/// The fields of what mischief came to.
pub(super) const EXERCISE: &[Field] = &[
    ("format", Integer, Never, "version of this layout: 1"),
    ("url", Text, Never, "what was exercised"),
    ("address", Text, Never, "where the server was found"),
    ("protocol", Text, Never, "`h1`, `h2` or `h3`"),
    ("seed", Integer, Never, "what all acts follow from"),
    ("act", Integer, Perhaps, "the act that was repeated alone"),
    (
        "sequence",
        Text,
        Never,
        "two runs in which this is the same made the same acts",
    ),
    (
        "usual_status",
        Integer,
        Never,
        "what requests that behave are answered with",
    ),
    ("elapsed_s", Number, Never, "time of all acts"),
    ("interrupted", Truth, Never, "the run was ended by a signal"),
    (
        "acts",
        Objects,
        Never,
        "every act, in order of their numbers",
    ),
    ("acts[].number", Integer, Never, "its number, from 0"),
    ("acts[].name", Text, Never, "its kind"),
    (
        "acts[].detail",
        Text,
        Never,
        "what is special about this one",
    ),
    (
        "acts[].outcome",
        Text,
        Never,
        "statuses, resets and GOAWAY that came, else how it ended: `left` (by the act), `closed`, \
         `reset`, `no TLS`, `hung`, `no connection` or `malformed answer`",
    ),
    (
        "acts[].fault",
        Text,
        Perhaps,
        "what is wrong with that; null for an outcome that is allowed",
    ),
    ("acts[].took_ms", Number, Never, "how long it took"),
    ("acts[].repeat", Text, Never, "the command that repeats it"),
    (
        "outcomes",
        Objects,
        Never,
        "how often each kind of act had each outcome",
    ),
    ("outcomes[].act", Text, Never, "the kind"),
    (
        "outcomes[].outcome",
        Text,
        Never,
        "the outcome, with `x n` for however many alike",
    ),
    ("outcomes[].count", Integer, Never, "how often"),
    (
        "outcomes[].unexpected",
        Integer,
        Never,
        "how often of these it was not allowed",
    ),
    (
        "unexpected",
        Integer,
        Never,
        "acts with an outcome that is not allowed",
    ),
    (
        "beside",
        Object,
        Never,
        "requests that behaved, beside the acts",
    ),
    ("beside.due", Integer, Never, "requests that were due"),
    ("beside.good", Integer, Never, "those answered as usual"),
    ("beside.failed", Integer, Never, "those that were not"),
    ("beside.failures", Objects, Never, "by kind"),
    ("beside.failures[].kind", Text, Never, "see below"),
    ("beside.failures[].count", Integer, Never, "how often"),
    ("beside.failures[].first", Text, Never, "the first one"),
    ("beside.response", Times, Perhaps, "their response times"),
    (
        "beside.fault",
        Text,
        Perhaps,
        "why they ended before the acts did; null where they did not",
    ),
    (
        "afterwards",
        Integer,
        Perhaps,
        "the status when all was over; null for no answer",
    ),
    (
        "passed",
        Truth,
        Never,
        "nothing was unexpected, nothing failed beside, and the server answers as before",
    ),
];
