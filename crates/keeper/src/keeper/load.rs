//! From the sources of a config to what the first process has of it: the keys of handlers are read
//! by types of whoever answers requests, which are dropped here.

use std::time::Duration;

use hob_config::{ConfigSources, Disk, Errors, Spot, TrustedDisk, Warnings, load_built};

use crate::Config;
use crate::preflight::{self, Extent, MachineWants};

/// Makes a config of its sources; the extent is how far the look at the machine goes.
pub type Load = Box<
    dyn Fn(&ConfigSources, PreflightScope, &Extent<'_>) -> Result<(OwnConfig, Warnings), Errors>,
>;

/// What a config is held against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PreflightScope {
    /// All that it wants of this machine, as `hob check` does.
    Machine,
    /// Files and folders that it names: it was served before, and is to be served again whatever
    /// has become of its programs.
    Disk,
    /// Nothing: it was, when it was loaded first.
    Nothing,
}

/// What the first process has of a config: nothing of its routes.
pub struct OwnConfig {
    pub(super) config: Config,
    /// How long programs that stay may take to end, the slowest of them.
    pub(super) grace: Duration,
    /// Where the addresses of the listeners stand, in their order.
    pub(super) addresses: Vec<Spot>,
}

/// A [`Load`] that knows the keys of these handlers; `disk` is what is looked at.
pub fn loads<H: MachineWants>(disk: &'static dyn Disk) -> Load {
    Box::new(|sources, scope, extent| {
        let (built, warnings) = match scope {
            PreflightScope::Machine => preflight::load_for_start::<H>(sources, disk, extent)?,
            PreflightScope::Disk => load_built::<H>(sources, disk, &mut |_, _| {})?,
            PreflightScope::Nothing => load_built::<H>(sources, &TrustedDisk, &mut |_, _| {})?,
        };
        let routes = built.config.sites.iter().flat_map(|site| &site.routes);
        let graces = routes.map(|route| route.handler.grace());
        let loaded = OwnConfig {
            grace: graces.max().unwrap_or_default(),
            addresses: built.spots.listeners.iter().map(|at| at.address).collect(),
            config: built.config.without_routes(),
        };
        Ok((loaded, warnings))
    })
}
