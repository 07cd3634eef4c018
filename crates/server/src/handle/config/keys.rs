//! Every key of a config: the server's own, with those of the handlers put in.

use hob_config::Schema;
use hob_config::key::{Preset, SchemaKey, SchemaTable, ValueType, joined};
use hob_config::schema::{
    ROUTE_KEYS, ROUTE_PATH, SITE_ANSWERS, SITE_KEYS, SNIPPETS, TOP_KEYS, defaults, route, routes,
    site, site_answers, sites, top_level,
};

use super::words::WORDS;
use crate::handle::files::config::SITE_FILES;
use crate::handle::page::keys::DATABASES;
use crate::handle::upstream::keys::UPSTREAMS;
use crate::handle::{HANDLER_KEYS, HANDLERS};

/// Every key that can stand in a config.
pub static SCHEMA: Schema = Schema {
    root: &ROOT,
    site: &SITE,
    route: &ROUTE,
    handlers: HANDLERS,
    words: WORDS,
};

pub(super) static ROOT: SchemaTable = top_level(&ROOT_KEYS);

static ROOT_KEYS: [SchemaKey; TOP_KEYS.len() + 5] = joined(&[
    TOP_KEYS,
    &[UPSTREAMS, DATABASES, sites(&SITE), DEFAULTS_KEY, SNIPPETS],
]);

const DEFAULTS_KEY: SchemaKey =
    SchemaKey::new("defaults", ValueType::Table(&DEFAULTS), Preset::Nothing(""));

static DEFAULTS: SchemaTable = defaults(&ANSWERS);

static ANSWERS: SchemaTable = site_answers(&KEYS_OF_ANSWERS);

static KEYS_OF_ANSWERS: [SchemaKey; SITE_ANSWERS.len() + 1] =
    joined(&[SITE_ANSWERS, &[SITE_FILES]]);

pub(super) static SITE: SchemaTable = site(&ANSWERS, &KEYS_OF_SITE);

static KEYS_OF_SITE: [SchemaKey; SITE_KEYS.len() + 1] = joined(&[SITE_KEYS, &[routes(&ROUTE)]]);

pub(super) static ROUTE: SchemaTable = route(
    "A path pattern and one handler. Routes are tried in order and the first that matches answers, \
     so a narrow pattern stands before a wide one. Keys of `[[site]]` about answers may stand here \
     too and hold for the route.",
    &KEYS_OF_ROUTE,
);

static KEYS_OF_ROUTE: [SchemaKey; ROUTE_PATH.len() + HANDLER_KEYS.len() + ROUTE_KEYS.len()] =
    joined(&[ROUTE_PATH, HANDLER_KEYS, ROUTE_KEYS]);

#[cfg(test)]
mod tests;
