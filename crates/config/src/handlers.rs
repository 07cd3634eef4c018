//! What a server brings to its config: its handlers, whose keys stand in routes.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use crate::build_after::Answering;
use crate::build_site::OnSection;
use crate::check::{Looked, SiteSpots};
use crate::fault::{Faults, Spot};
use crate::program::Programs;
use crate::schema::Schema;
use crate::tree::Section;
use crate::{Config, Site};

/// What the config says of who answers a route: one of a server's handlers.
pub trait Handlers: Clone + Debug + PartialEq + Sized {
    /// Where the parts of one stand, as far as they are looked at later.
    type Spots;
    /// A folder whose files a program may have sent.
    type Folder: Clone + Debug + PartialEq;

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

    /// Tells what a site says wrongly of all its handlers of a kind.
    fn check_site_keys(site: &Section, faults: &mut Faults<'_>);

    /// Tells what is wrong with the handlers of a site beside other keys and each other, and what
    /// of theirs is not there on the disk.
    fn check(
        config: &Config<Self>,
        site: (&Site<Self>, &SiteSpots<Self>),
        looked: &mut Looked<'_>,
        faults: &mut Faults<'_>,
    );

    /// The folder whose files it serves by their names.
    fn root(&self) -> Option<&Path>;
}
