//! Programs of routes: whether their accounts may work where they are to work and run what they are
//! to run, whether the first lines of scripts name somebody who is there, and limits that the
//! system does not give.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit};
use rustix::thread::CapabilitySet;

use super::look::Accounts;
use super::places::{cpus, entering, may};
use super::sight::{Sight, Want};
use super::told::Told;
use crate::advice::shebang::{LINE_BYTES_MAX, line_fault};
use crate::config::{
    Argument, Built, Cgi, CgiRuns, CgiSpots, Host, Program, ProgramSpots, Resident, ResidentRuns,
    ResidentSpots, Rlimits, Spot, candidates,
};
use crate::handle::script::build::resolve;

/// Files of a folder of programs that are looked at.
const FILES_MAX: usize = 1000;
/// Files of one folder that are told of.
const TOLD_MAX: usize = 5;

pub(super) fn look(built: &Built, accounts: &Accounts, told: &mut Told<'_, '_>) {
    let Built { config, spots } = built;
    let server = Sight::of(accounts.server.as_ref());
    for (program, spots) in config.programs.iter().zip(&spots.programs) {
        limits(&program.limits, spots, told);
        cpus(&program.cpus, spots.cpus, told);
    }
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        for (route, spots) in site.routes.iter().zip(&spots.routes) {
            let Some(index) = route.handler.program() else {
                continue;
            };
            let (Some(program), Some(Ok(account))) =
                (config.programs.get(index), accounts.programs.get(index))
            else {
                continue;
            };
            let mut look = Look {
                program,
                sight: Sight::of(account.as_ref()),
                told,
            };
            if let (Some(cgi), Some(spots)) = (route.handler.cgi(), &spots.handler.cgi) {
                look.cgi(cgi, spots, &server);
            }
            if let (Some(resident), Some(spots)) =
                (route.handler.resident(), &spots.handler.resident)
            {
                look.resident(resident, spots);
            }
        }
    }
}

/// A look at one program.
struct Look<'a, 't, 'f, 's> {
    program: &'a Program,
    /// Its account's.
    sight: Sight<'a>,
    told: &'t mut Told<'f, 's>,
}

impl Look<'_, '_, '_, '_> {
    fn cgi(&mut self, cgi: &Cgi, spots: &CgiSpots, server: &Sight<'_>) {
        let interpreters: &[_] = match &cgi.runs {
            CgiRuns::Folder {
                dir, interpreters, ..
            } => {
                // The server looks for the program there.
                if let Some((message, hint)) = entering(server, dir) {
                    self.told.error(spots.dir, &message, &hint);
                }
                self.enters(dir, spots.dir);
                self.files_of(dir, interpreters, spots.dir);
                interpreters
            }
            CgiRuns::Script { file, interpreters } => {
                let folder = file.parent().unwrap_or(Path::new("/"));
                match has_interpreter(file, interpreters) {
                    _ if !self.enters(folder, spots.script) => {}
                    true => self.needs(file, Want::Read, spots.script),
                    false => self.executes(file, spots.script),
                }
                interpreters
            }
            CgiRuns::Command { dir, arguments, .. } => {
                self.enters(dir, spots.dir);
                if let Some(Argument::Text(name)) = arguments.first() {
                    self.runs(name, spots.command);
                }
                &[]
            }
        };
        for ((_, words), spot) in interpreters.iter().zip(&spots.interpreters) {
            if let Some(name) = words.first() {
                self.runs(name, *spot);
            }
        }
    }

    fn resident(&mut self, resident: &Resident, spots: &ResidentSpots) {
        self.enters(&resident.dir, spots.dir);
        match &resident.runs {
            ResidentRuns::Command(_) => self.runs(resident.runs.program(), spots.what),
            ResidentRuns::Hosted { host, what, .. } => {
                self.runs(resident.runs.program(), spots.interpreter);
                match host {
                    Host::Wsgi | Host::Asgi => {}
                    Host::Scripts => {
                        self.enters(Path::new(what), spots.what);
                    }
                    Host::Psgi | Host::Python | Host::Perl => {
                        self.needs(Path::new(what), Want::Read, spots.what);
                    }
                }
            }
        }
    }

    /// False when its account cannot, which is told then.
    fn enters(&mut self, folder: &Path, spot: Spot) -> bool {
        let denied = entering(&self.sight, folder);
        if let Some((message, hint)) = &denied {
            self.told.error(spot, message, hint);
        }
        denied.is_none()
    }

    fn needs(&mut self, file: &Path, want: Want, spot: Spot) {
        if file.is_file()
            && let Some((message, hint)) = self.sight.denied(file, want)
        {
            self.told.error(spot, &message, &hint);
        }
    }

    /// A program by its name; that there is none at all is told already.
    fn runs(&mut self, name: &str, spot: Spot) {
        let mut files = candidates(name, self.program.path()).into_iter();
        if name.is_empty() || !files.any(|file| file.is_file()) {
            return;
        }
        match resolve(name, self.program.path()) {
            Ok(file) => self.executes(&file, spot),
            Err(_) => self.told.error(
                spot,
                &format!("{name} is not executable"),
                "`chmod +x` it, or name another program",
            ),
        }
    }

    fn executes(&mut self, file: &Path, spot: Spot) {
        if !file.is_file() {
            return;
        }
        if !is_executable(file) {
            let message = format!("{} is not executable", file.display());
            return self.told.error(spot, &message, ALLOW_OR_NAME);
        }
        self.needs(file, Want::Execute, spot);
        if let Some(fault) = first_line_fault(file) {
            let message = format!("{} cannot be executed: {fault}", file.display());
            self.told.error(spot, &message, MEND_LINE);
        }
    }

    /// Scripts of a folder that look as if they were to be run and cannot be: among them may be
    /// files that nobody asks for.
    fn files_of(&mut self, dir: &Path, interpreters: &[(String, Vec<String>)], spot: Spot) {
        let Ok(entries) = fs::read_dir(dir) else {
            return;
        };
        let files = entries
            .take(FILES_MAX)
            .filter_map(|entry| Some(entry.ok()?.path()));
        let is_script = |file: &PathBuf| file.is_file() && !has_interpreter(file, interpreters);
        let mut scripts: Vec<PathBuf> = files.filter(is_script).collect();
        scripts.sort();
        let faults = scripts.iter().filter_map(|file| {
            let line = first_line_fault(file);
            match (is_executable(file), line) {
                (true, Some(fault)) => Some((
                    format!("{} cannot be executed: {fault}", file.display()),
                    MEND_LINE.to_owned(),
                )),
                (true, None) => self.sight.denied(file, Want::Execute),
                (false, _) if begins_as_script(file) => Some((
                    format!("{} is not executable", file.display()),
                    ALLOW_OR_NAME.to_owned(),
                )),
                (false, _) => None,
            }
        });
        for (message, hint) in faults.take(TOLD_MAX).collect::<Vec<_>>() {
            self.told.warn(spot, &message, &hint);
        }
    }
}

const MEND_LINE: &str = "mend its first line";
const ALLOW_OR_NAME: &str = "`chmod +x` it, or give its ending an interpreter";

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0)
}

fn has_interpreter(file: &Path, interpreters: &[(String, Vec<String>)]) -> bool {
    let name = file.as_os_str().as_encoded_bytes();
    let mut endings = interpreters.iter();
    endings.any(|(ending, _)| name.ends_with(ending.as_bytes()))
}

fn first_bytes(file: &Path) -> Option<Vec<u8>> {
    // Whoever owns the folder may put something else there, which must not keep us waiting.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(file, flags, Mode::empty()).ok()?);
    let is_file = file.metadata().is_ok_and(|facts| facts.is_file());
    let mut bytes = Vec::new();
    let mut begin = file.take(LINE_BYTES_MAX as u64);
    (is_file && begin.read_to_end(&mut bytes).is_ok()).then_some(bytes)
}

fn begins_as_script(file: &Path) -> bool {
    first_bytes(file).is_some_and(|bytes| bytes.starts_with(b"#!"))
}

fn first_line_fault(file: &Path) -> Option<String> {
    line_fault(&first_bytes(file)?, Path::exists)
}

/// Limits above the hard ones of who starts hob: every start would fail.
fn limits(limits: &Rlimits, spots: &ProgramSpots, told: &mut Told<'_, '_>) {
    let wanted = |key: &str| {
        let (resource, wanted) = match key {
            "as" => (Resource::As, limits.address_space),
            "core" => (Resource::Core, Some(limits.core)),
            "cpu" => (Resource::Cpu, limits.cpu.map(|time| time.as_secs())),
            "data" => (Resource::Data, limits.data),
            "fsize" => (Resource::Fsize, limits.file_size),
            "nofile" => (Resource::Nofile, limits.open_files),
            "nproc" => (Resource::Nproc, limits.processes),
            _ => (Resource::Stack, limits.stack),
        };
        Some((resource, wanted?))
    };
    let may_raise = may(CapabilitySet::SYS_RESOURCE);
    for (key, spot) in &spots.rlimits {
        let Some((resource, wanted)) = wanted(key) else {
            continue;
        };
        let hard = match (may_raise, resource) {
            (false, _) => getrlimit(resource).maximum,
            // What nobody may go beyond.
            (true, Resource::Nofile) => fs::read_to_string("/proc/sys/fs/nr_open")
                .ok()
                .and_then(|most| most.trim().parse().ok()),
            (true, _) => None,
        };
        if let Some(hard) = hard.filter(|hard| wanted > *hard) {
            let message = format!("the system gives `{key}` only up to {hard}, not {wanted}");
            let hint = "lower it, or have hob started with a higher limit (`ulimit -H`)";
            told.error(*spot, &message, hint);
        }
    }
}
