//! A config with everything that is wrong with it on this machine.

use super::told::Told;
use super::{addresses, certificates, places, programs, trial};
use crate::config::{self, Built, Config, Errors, Faults, RealDisk, Sources, Warnings};
use crate::life::privileges::{self, Identity};
use crate::life::servers::Runtime;

/// How far the look goes.
pub struct Extent<'a> {
    /// The control socket is opened where the config says.
    pub opens_control: bool,
    /// Where servers tell of themselves.
    pub runtime: Option<&'a Runtime>,
    /// Whether addresses are free is looked at too.
    pub running: Option<&'a dyn Fn() -> Running>,
    /// Applications are started once, to see whether they do.
    pub starts: bool,
}

/// What is known of a hob that runs with the config.
pub enum Running {
    /// It has these addresses; none when no hob runs.
    Has(Vec<String>),
    /// It cannot be asked: an address that is taken may be its own.
    Unknown,
}

/// Loads a config and looks at what it wants of the machine, as whoever runs this would start it.
///
/// # Errors
/// Every mistake in the sources, in their order.
pub fn load(sources: &Sources, extent: &Extent<'_>) -> Result<(Config, Warnings), Errors> {
    let (built, warnings) = load_for_start(sources, extent)?;
    Ok((built.config, warnings))
}

/// The same, with where the parts of the config stand.
///
/// # Errors
/// Every mistake in the sources, in their order.
pub(crate) fn load_for_start(
    sources: &Sources,
    extent: &Extent<'_>,
) -> Result<(Built, Warnings), Errors> {
    config::load_built(sources, &RealDisk, &mut |built, faults| {
        look(built, extent, faults);
    })
}

fn look(built: &Built, extent: &Extent<'_>, faults: &mut Faults<'_>) {
    let mut told = Told::new(faults);
    let accounts = accounts(built, &mut told);
    certificates::look(built, &mut told);
    places::look(
        built,
        accounts.server.as_ref(),
        extent.opens_control,
        &mut told,
    );
    programs::look(built, &accounts, &mut told);
    if let Some(running) = extent.running {
        addresses::look(built, &running(), extent.runtime, &mut told);
    }
    if extent.starts {
        trial::look(built, &accounts, &mut told);
    }
}

/// Who everything runs as; `None` is whoever starts hob.
pub(super) struct Accounts {
    pub(super) server: Option<Identity>,
    /// By index of `Config::programs`; an error is told already.
    pub(super) programs: Vec<Result<Option<Identity>, ()>>,
}

fn accounts(built: &Built, told: &mut Told<'_, '_>) -> Accounts {
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
        let (user, group) = (program.user.as_deref(), program.group.as_deref());
        privileges::program_identity(user, group, server.as_ref())
            .map_err(|text| told.sentence(spots.user, &text))
    });
    Accounts {
        programs: programs.collect(),
        server,
    }
}
