//! Programs of the config, and what handlers of routes want of the machine: whether the accounts of
//! programs may work where they are to work and run what they are to run, whether the first lines
//! of scripts name somebody who is there, and limits that the system does not give.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hob_config::program::resolve;
use hob_config::{Built, Handlers, ProgramConfig, ProgramSpots, Rlimits, Spot, candidates};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit};
use rustix::thread::CapabilitySet;

use super::look::Accounts;
use super::places::{cpus, entering, may};
use super::sight::{AccountAccess, Denied, Want};
use super::told::PreflightReport;
use crate::shebang::{LINE_BYTES_MAX, line_fault};

/// What a server's handlers want of the machine.
pub trait MachineWants: Handlers {
    /// Tells what is in the way of a route's handler.
    fn look(&self, spots: &Self::Spots, look: &mut ProgramCheck<'_, '_, '_>);

    /// Tells what is wrong with what people sign in with.
    fn look_at_auth(built: &Built<Self>, accounts: &Accounts, told: &mut PreflightReport<'_, '_>);

    /// Starts what stays once, to see whether it does.
    fn try_out(built: &Built<Self>, accounts: &Accounts, told: &mut PreflightReport<'_, '_>);
}

pub(super) fn look<H: MachineWants>(
    built: &Built<H>,
    accounts: &Accounts,
    told: &mut PreflightReport<'_, '_>,
) {
    let Built { config, spots } = built;
    for (program, spots) in config.programs.iter().zip(&spots.programs) {
        limits(&program.limits, spots, told);
        cpus(&program.cpus, spots.cpus, told);
    }
    let none = ProgramConfig::default();
    let server = AccountAccess::of(accounts.server.as_ref());
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        for (route, spots) in site.routes.iter().zip(&spots.routes) {
            // The server sends from there, whoever the program is.
            for (folder, spot) in route.sendfile.iter().zip(&spots.sendfile) {
                if let Some((message, hint)) = entering(&server, folder.as_ref()) {
                    told.error(*spot, &message, &hint);
                }
            }
            let (program, account) = match route.handler.program() {
                None => (&none, accounts.server.as_ref()),
                Some(index) => match (config.programs.get(index), accounts.programs.get(index)) {
                    (Some(program), Some(Ok(account))) => (program, account.as_ref()),
                    _ => continue,
                },
            };
            let mut look = ProgramCheck {
                program,
                sight: AccountAccess::of(account),
                server: &server,
                told,
            };
            route.handler.look(&spots.handler, &mut look);
        }
    }
}

/// What a handler looks at: as the account of its program, or as the server where it has none.
pub struct ProgramCheck<'a, 'f, 's> {
    program: &'a ProgramConfig,
    sight: AccountAccess<'a>,
    server: &'a AccountAccess<'a>,
    told: &'a mut PreflightReport<'f, 's>,
}

impl ProgramCheck<'_, '_, '_> {
    /// The server may enter a folder; false when it may not, which is told then.
    pub fn server_enters(&mut self, folder: &Path, spot: Spot) -> bool {
        let denied = entering(self.server, folder);
        self.is_allowed(denied, spot)
    }

    /// The server may write to a folder, which is told when it may not.
    pub fn server_writes(&mut self, folder: &Path, spot: Spot) {
        let denied = self.server.denied(folder, Want::Write);
        self.is_allowed(denied, spot);
    }

    /// False when its account may not enter a folder, which is told then.
    pub fn enters(&mut self, folder: &Path, spot: Spot) -> bool {
        let denied = entering(&self.sight, folder);
        self.is_allowed(denied, spot)
    }

    fn is_allowed(&mut self, denied: Option<Denied>, spot: Spot) -> bool {
        if let Some((message, hint)) = &denied {
            self.told.error(spot, message, hint);
        }
        denied.is_none()
    }

    /// Its account may do this with a file that is there.
    pub fn needs(&mut self, file: &Path, want: Want, spot: Spot) {
        if file.is_file() {
            let denied = self.sight.denied(file, want);
            self.is_allowed(denied, spot);
        }
    }

    /// A program by its name; that there is none at all is told already.
    pub fn runs(&mut self, name: &str, spot: Spot) {
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

    /// A file that is to be executed, if it is there.
    pub fn executes(&mut self, file: &Path, spot: Spot) {
        if !file.is_file() {
            return;
        }
        if !is_executable(file) {
            let (message, hint) = not_executable(file);
            return self.told.error(spot, &message, &hint);
        }
        self.needs(file, Want::Execute, spot);
        if let Some((message, hint)) = line_wrong(file) {
            self.told.error(spot, &message, &hint);
        }
    }

    /// Why a file that looks as if it were to be run cannot be.
    pub fn unrunnable(&self, file: &Path) -> Option<Denied> {
        match is_executable(file) {
            true => line_wrong(file).or_else(|| self.sight.denied(file, Want::Execute)),
            false => begins_as_script(file).then(|| not_executable(file)),
        }
    }

    /// A library of C that is loaded when it is needed, and how one gets it.
    pub fn loads(&mut self, library: &str, hint: &str, spot: Spot) {
        self.told.loads(library, hint, spot);
    }

    /// What it serves with all the same.
    pub fn warn(&mut self, spot: Spot, message: &str, hint: &str) {
        self.told.warn(spot, message, hint);
    }
}

fn not_executable(file: &Path) -> Denied {
    (
        format!("{} is not executable", file.display()),
        "`chmod +x` it, or give its ending an interpreter".to_owned(),
    )
}

fn line_wrong(file: &Path) -> Option<Denied> {
    let fault = line_fault(&first_bytes(file)?, Path::exists)?;
    Some((
        format!("{} cannot be executed: {fault}", file.display()),
        "mend its first line".to_owned(),
    ))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0)
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

/// Limits above the hard ones of who starts hob: every start would fail.
fn limits(limits: &Rlimits, spots: &ProgramSpots, told: &mut PreflightReport<'_, '_>) {
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
