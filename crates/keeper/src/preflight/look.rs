//! A config with everything that is wrong with it on this machine.

use std::path::Path;

use super::programs::MachineWants;
use super::sight::{AccountAccess, Want};
use super::told::PreflightReport;
use super::{addresses, certificates, places, programs};
use crate::privileges::{self, UserIdentity};
use crate::servers::Runtime;
use hob_config::{Built, Config, ConfigSources, Disk, Errors, Faults, Warnings, load_built};

/// How far the look goes.
pub struct Extent<'a> {
    /// The control socket is opened where the config says.
    pub opens_control: bool,
    /// Where servers tell of themselves.
    pub runtime: Option<&'a Runtime>,
    /// Whether addresses are free is looked at too.
    pub running: Option<&'a dyn Fn() -> RunningAddresses>,
    /// Applications are started once, to see whether they do.
    pub starts: bool,
}

/// What is known of a hob that runs with the config.
pub enum RunningAddresses {
    /// It has these addresses; none when no hob runs.
    Has(Vec<String>),
    /// It cannot be asked: an address that is taken may be its own.
    Unknown,
}

/// Loads a config and looks at what it wants of the machine, as whoever runs this would start it.
///
/// # Errors
/// Every mistake in the sources, in their order.
pub fn load<H: MachineWants>(
    sources: &ConfigSources,
    disk: &dyn Disk,
    extent: &Extent<'_>,
) -> Result<(Config<H>, Warnings), Errors> {
    let (built, warnings) = load_for_start(sources, disk, extent)?;
    Ok((built.config, warnings))
}

/// The same, with where the parts of the config stand.
///
/// # Errors
/// Every mistake in the sources, in their order.
pub(crate) fn load_for_start<H: MachineWants>(
    sources: &ConfigSources,
    disk: &dyn Disk,
    extent: &Extent<'_>,
) -> Result<(Built<H>, Warnings), Errors> {
    load_built(sources, disk, &mut |built, faults| {
        look(built, extent, faults);
    })
}

fn look<H: MachineWants>(built: &Built<H>, extent: &Extent<'_>, faults: &mut Faults<'_>) {
    let mut told = PreflightReport::new(faults);
    let accounts = accounts(built, &mut told);
    certificates::look(built, &mut told);
    places::look(built, extent.opens_control, &mut told);
    programs::look(built, &accounts, &mut told);
    H::look_at_auth(built, &accounts, &mut told);
    if let Some(running) = extent.running {
        addresses::look(built, &running(), extent.runtime, &mut told);
    }
    if extent.starts {
        H::try_out(built, &accounts, &mut told);
    }
}

/// Who everything runs as; `None` is whoever starts hob.
pub struct Accounts {
    /// The server's.
    pub server: Option<UserIdentity>,
    /// By index of `Config::programs`; an error is told already.
    pub programs: Vec<Result<Option<UserIdentity>, ()>>,
}

impl Accounts {
    /// Whether a program may read a file, by its index. One whose account is not known may: that is
    /// told already.
    pub fn may_read(&self, program: usize, file: &Path) -> bool {
        match self.programs.get(program) {
            Some(Ok(account)) => {
                let sight = AccountAccess::of(account.as_ref());
                sight.denied(file, Want::Read).is_none()
            }
            _ => true,
        }
    }
}

fn accounts<H: MachineWants>(built: &Built<H>, told: &mut PreflightReport<'_, '_>) -> Accounts {
    let Built { config, spots } = built;
    let server = privileges::identity_for(config.user.as_deref(), config.group.as_deref());
    let server = match server {
        Ok(server) => server,
        Err(text) => {
            told.sentence(spots.own.user, &text);
            // Who programs run as hangs on it.
            let unknown = config.programs.iter().map(|_| Err(())).collect();
            return Accounts {
                server: None,
                programs: unknown,
            };
        }
    };
    let programs = config.programs.iter().zip(&spots.programs);
    let programs = programs.map(|(program, spots)| {
        privileges::identity_of(program, server.as_ref())
            .map_err(|text| told.sentence(spots.user, &text))
    });
    Accounts {
        programs: programs.collect(),
        server,
    }
}
