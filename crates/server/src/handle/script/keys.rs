//! Keys that several handlers of programs have.

use crate::handle::config::key::ValueType::{Flag, Integer};
use crate::handle::config::key::{Preset, SchemaKey};
use crate::handle::config::schema::{TIME_SOME, secs};

pub(in crate::handle) const PASS_AUTHORIZATION: SchemaKey =
    SchemaKey::new("pass_authorization", Flag, Preset::Flag(false))
        .says(
            "Programs see the `Authorization` field, with passwords in it, as \
                 `HTTP_AUTHORIZATION`. Those that log people in themselves need it.",
        )
        .example("true")
        .aka(&["authorization"]);
pub(in crate::handle) const DEV: SchemaKey = SchemaKey::new("dev", Flag, Preset::Flag(false))
    .says(
        "A program's failure is explained in the browser: why it failed, and what it \
                 printed on standard error. Only where no stranger can look.",
    )
    .example("true")
    .aka(&["debug", "development"]);

/// Of a table `queue`.
pub(in crate::handle) const QUEUE_KEYS: &[SchemaKey] = &[
    SchemaKey::new(
        "max",
        Integer {
            min: 0,
            max: 1_000_000,
        },
        Preset::Integer(1024),
    )
    .says("Requests that wait; more are answered with 503.")
    .example("100")
    .aka(&["backlog", "size"]),
    SchemaKey::new("wait", TIME_SOME, secs(10))
        .says("How long a request waits; then 503.")
        .example("\"2s\"")
        .aka(&["time", "timeout"]),
];

/// Of those whose programs run elsewhere.
pub(in crate::handle) const CONTROL: SchemaKey =
    SchemaKey::new("control", Flag, Preset::Flag(false))
        .says(
            "It may have hob send a file or what another path answers in the place of its own \
             answer (`X-Sendfile`, `X-Accel-Redirect`, `Script-Control`), as programs that hob \
             runs may. Else such fields are taken out; `X-Accel-Buffering` holds anyway.",
        )
        .example("true");
