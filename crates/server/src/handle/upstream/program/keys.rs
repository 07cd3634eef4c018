//! Keys that all have who ask programs of upstreams.

use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::Map;
use crate::handle::config::key::{MapOf, MapValue, SchemaKey, joined};
use crate::handle::script::keys::{CONTROL, DEV, PASS_AUTHORIZATION};
use crate::handle::upstream::buffer::BUFFER;
use crate::handle::upstream::keys::{
    CHOICE_KEYS, HEAD, QUEUE, RETRY, SERVICE_MEMBERS, TIMEOUT, TLS, connections,
};

pub(in crate::handle) const PROGRAM_KEYS: &[SchemaKey] = &joined::<
    { OWN_KEYS.len() + CHOICE_KEYS.len() + ASKING_KEYS.len() },
>(&[OWN_KEYS, CHOICE_KEYS, ASKING_KEYS]);

/// What it is told, and who is told of failures.
const OWN_KEYS: &[SchemaKey] = &[PASS_AUTHORIZATION, DEV];

/// What every request has, where the protocol's table is not one of programs that hob runs.
pub(in crate::handle) const ENV: SchemaKey =
    SchemaKey::new("env", Map(&NAME_TO_VALUE), Nothing("none"))
        .says("Variables that every request has, before those of the request.")
        .example("{ APP_ENV = \"production\" }")
        .aka(&["param", "params"]);

/// How it is asked.
const ASKING_KEYS: &[SchemaKey] = &[
    SERVICE_MEMBERS,
    connections(256),
    QUEUE,
    TIMEOUT,
    RETRY,
    BUFFER,
    TLS,
    HEAD,
    CONTROL,
];

/// `env`
static NAME_TO_VALUE: MapOf = MapOf {
    key: "name",
    value: MapValue::Text,
};
