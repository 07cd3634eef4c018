//! The config with this server's handlers: the types of `hob_config` with them put in, all keys as
//! one schema (`keys`), `words` of other servers for them, and the disk that checks look at.

mod keys;
mod words;

use std::path::{Path, PathBuf};

pub use hob_config::*;

use crate::authorities;
pub use crate::handle::HandlerSettings as Handler;
pub use crate::handle::cgi::config::{Cgi, CgiRuns, ExitRule, RunLimits, parameter_pattern};
pub use crate::handle::files::config::{CacheMode, FilesSettings as Files, Symlinks};
pub use crate::handle::resident::config::{
    ApplicationKind, CarrierChoice, Resident, ResidentRuns, SharedSizes, Timeouts, Workers,
};
pub use crate::handle::warm::config::Warm;
use crate::step::country;
pub use keys::SCHEMA;

/// Everything a server runs on.
pub type Config = hob_config::Config<Handler>;
/// A virtual host.
pub type Site = hob_config::SiteConfig<Handler>;
/// A path pattern, settings and one handler.
pub type Route = hob_config::RouteConfig<Handler>;
/// A config that is not checked yet, and where its parts stand.
pub type Built = hob_config::Built<Handler>;
/// Where the parts of a config stand.
pub type Spots = hob_config::Spots<Handler>;
/// Where the parts of a site stand.
pub type SiteSpots = check::SiteSpots<Handler>;
/// Where the parts of a route stand.
pub type RouteSpots = check::RouteSpots<Handler>;

/// The config the sources describe, checked against the disk.
///
/// # Errors
/// Every mistake in the sources, in their order.
pub fn load(sources: &ConfigSources) -> Result<(Config, Warnings), Errors> {
    load_with(sources, &RealDisk)
}

/// As [`load`], with another answer to what is on the disk.
///
/// # Errors
/// Every mistake in the sources, in their order.
pub fn load_with(sources: &ConfigSources, disk: &dyn Disk) -> Result<(Config, Warnings), Errors> {
    hob_config::load_with(sources, disk)
}

/// The disk of this machine; files of authorities and certificates are read.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn look(&self, path: &Path) -> PathStatus {
        hob_config::RealDisk.look(path)
    }

    fn authorities_fault(&self, path: &Path, key: &str) -> Option<String> {
        authorities::read(path, key).err()
    }

    fn certificate_fault(&self, certificate: &Path, key: &Path) -> Option<String> {
        authorities::certificate_fault(certificate, key)
    }

    fn countries_fault(&self, path: &Path) -> Option<String> {
        country::countries_fault(path)
    }

    fn find_file(&self, root: &Path, wanted: &mut dyn FnMut(&Path) -> bool) -> Option<PathBuf> {
        hob_config::RealDisk.find_file(root, wanted)
    }
}
