//! What a server brings to its config: its handlers, whose keys stand in routes.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::build_after::Answering;
use crate::build_site::OnSection;
use crate::check::{PathLookups, SiteSpots};
use crate::fault::{Faults, Spot};
use crate::key::{Preset, SchemaKey, SchemaTable, ValueType, joined};
use crate::program::Programs;
use crate::schema::{
    ROUTE_KEYS, ROUTE_PATH, SITE_ANSWERS, SITE_KEYS, SNIPPETS, Schema, TOP_KEYS, defaults, route,
    routes, site, site_answers, sites, top_level,
};
use crate::tls::UpstreamTls;
use crate::tree::Section;
use crate::{Config, SiteConfig};

/// What the config says of who answers a route: one of a server's handlers.
pub trait Handlers: Clone + Debug + PartialEq + Sized {
    /// Where the parts of one stand, as far as they are looked at later.
    type Spots;
    /// A folder whose files a program may have sent.
    type Folder: Clone + Debug + PartialEq + AsRef<Path>;

    /// Every key, those of handlers among them.
    fn schema() -> &'static Schema;

    /// Reads the section of a route's handler; where it has none, some handler is given.
    fn read(
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (Self, Self::Spots);

    /// The handler of the route that a site's `root` is short for.
    fn of_root(site: &Section, faults: &mut Faults<'_>) -> (Self, Self::Spots);

    /// A folder whose files a route's program may have sent.
    fn sent_from(
        root: PathBuf,
        spot: Spot,
        answering: Answering<'_>,
        faults: &mut Faults<'_>,
    ) -> Self::Folder;

    /// Tells what the top level says wrongly of what handlers share.
    fn check_top_keys(root: &Section, faults: &mut Faults<'_>);

    /// Tells what a site says wrongly of all its handlers of a kind.
    fn check_site_keys(site: &Section, faults: &mut Faults<'_>);

    /// Tells what is wrong with the handlers of a site beside other keys and each other, and what
    /// of theirs is not there on the disk.
    fn check(
        config: &Config<Self>,
        site: (&SiteConfig<Self>, &SiteSpots<Self>),
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    );

    /// The folder whose files it serves by their names.
    fn root(&self) -> Option<&Path>;

    /// It leaves requests that it has nothing for to the routes behind it.
    fn leaves_to_next(&self) -> bool {
        false
    }

    /// Which of the config's programs it runs.
    fn program(&self) -> Option<usize> {
        None
    }

    /// Routes whose programs it calls: indexes of the site, and of the route there.
    fn calls(&self) -> Vec<(usize, usize)> {
        Vec::new()
    }

    /// TLS that it speaks with servers of other people.
    fn upstream_tls(&self) -> Option<&UpstreamTls> {
        None
    }

    /// How long what it runs may take to end.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }
}

/// No handler at all: what is the server's own in a config, its sites without their routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHandlers;

static SCHEMA: Schema = Schema {
    root: &ROOT,
    site: &SITE,
    route: &ROUTE,
    handlers: &[],
    words: &[],
};
static ROOT: SchemaTable = top_level(&ROOT_KEYS);
static ROOT_KEYS: [SchemaKey; TOP_KEYS.len() + 3] =
    joined(&[TOP_KEYS, &[sites(&SITE), DEFAULTS_KEY, SNIPPETS]]);
const DEFAULTS_KEY: SchemaKey =
    SchemaKey::new("defaults", ValueType::Table(&DEFAULTS), Preset::Nothing(""));
static DEFAULTS: SchemaTable = defaults(&ANSWERS);
static ANSWERS: SchemaTable = site_answers(SITE_ANSWERS);
static SITE: SchemaTable = site(&ANSWERS, &KEYS_OF_SITE);
static KEYS_OF_SITE: [SchemaKey; SITE_KEYS.len() + 1] = joined(&[SITE_KEYS, &[routes(&ROUTE)]]);
static ROUTE: SchemaTable = route("A path pattern.", &KEYS_OF_ROUTE);
static KEYS_OF_ROUTE: [SchemaKey; ROUTE_PATH.len() + ROUTE_KEYS.len()] =
    joined(&[ROUTE_PATH, ROUTE_KEYS]);

impl Handlers for NoHandlers {
    type Spots = ();
    type Folder = PathBuf;

    fn schema() -> &'static Schema {
        &SCHEMA
    }

    fn read(
        _on: &OnSection<'_>,
        _programs: &mut Programs<'_>,
        _faults: &mut Faults<'_>,
    ) -> (NoHandlers, ()) {
        (NoHandlers, ())
    }

    fn of_root(_site: &Section, _faults: &mut Faults<'_>) -> (NoHandlers, ()) {
        (NoHandlers, ())
    }

    fn sent_from(
        root: PathBuf,
        _spot: Spot,
        _answering: Answering<'_>,
        _faults: &mut Faults<'_>,
    ) -> PathBuf {
        root
    }

    fn check_top_keys(_root: &Section, _faults: &mut Faults<'_>) {}

    fn check_site_keys(_site: &Section, _faults: &mut Faults<'_>) {}

    fn check(
        _config: &Config<NoHandlers>,
        _site: (&SiteConfig<NoHandlers>, &SiteSpots<NoHandlers>),
        _looked: &mut PathLookups<'_>,
        _faults: &mut Faults<'_>,
    ) {
    }

    fn root(&self) -> Option<&Path> {
        None
    }
}
