//! What a route's scripts are forked from, as the config has it.

use std::path::Path;
use std::sync::Arc;

use crate::handle::config::{ProgramConfig, Warm as Settings};
use crate::handle::warm::RouteHosts;
use crate::handle::warm::host::{Birth, WarmHost};
use crate::serve::ServerState;
use hob_keeper::process::{ProgramRef, Strings};

/// Hosts for a route: those that are there already, when they are what it wants. `interpreter` is
/// the program's file, `dir` the folder of the scripts.
pub(crate) fn build(
    settings: &Settings,
    interpreter: &[u8],
    dir: &Path,
    (program, reference): (&ProgramConfig, ProgramRef),
    shared: &ServerState,
) -> Result<RouteHosts, String> {
    let has_nul = |_| "a name of a module has a NUL character".to_owned();
    let mut arguments = Strings::new();
    arguments.push(interpreter).map_err(has_nul)?;
    for word in settings.words() {
        arguments.push(word.as_bytes()).map_err(has_nul)?;
    }
    let birth = Birth {
        language: settings.language,
        preload: settings.preload.clone(),
        compiles: settings.compile,
        interpreter: interpreter.to_vec(),
        arguments,
        dir: std::os::unix::ffi::OsStrExt::as_bytes(dir.as_os_str()).to_vec(),
    };
    let name = host_name(&birth, program, !settings.preload.is_empty());
    let host = |index| {
        let make = || WarmHost::new(birth.clone(), reference);
        let host = shared.hosts.find(format!("{index} {name}"), make);
        host.set_program(reference);
        host
    };
    Ok(RouteHosts {
        hosts: (0..settings.hosts)
            .map(host)
            .collect::<Vec<Arc<WarmHost>>>(),
    })
}

/// The same for hosts that would be the same: routes with other folders may share one, unless it
/// loads modules that may stand there.
fn host_name(birth: &Birth, program: &ProgramConfig, has_modules: bool) -> String {
    let same = ProgramConfig {
        roots: Vec::new(),
        folders: Vec::new(),
        files: Vec::new(),
        ..program.clone()
    };
    let mut birth = birth.clone();
    if !has_modules {
        birth.dir.clear();
    }
    format!("{birth:?} {same:?}")
}
