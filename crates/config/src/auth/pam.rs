//! `pam` of `[[auth]]`: the accounts of the system.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fault::Faults;
use crate::program::{CommandLine, ProgramConfig, ProgramSpots, Programs, Sandbox};
use crate::tree::{Argument, Section};

/// Where the services of PAM are, unless `services` says so; the first that has one counts.
pub const PAM_SERVICES: [&str; 2] = ["/etc/pam.d", "/usr/lib/pam.d"];

/// Longest name of a service, in bytes.
const SERVICE_BYTES_MAX: usize = 64;

/// How PAM is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PamRules {
    /// Its service.
    pub service: String,
    /// Where its services are; `None` is where the system has them.
    pub services: Option<PathBuf>,
    /// So long an answer is waited for, and for one's turn.
    pub timeout: Duration,
    /// Most conversations at a time.
    pub processes: u16,
    /// So long a password that was right is not asked about again.
    pub remember: Duration,
    /// Index in [`crate::Config::programs`] of what talks to it.
    pub program: usize,
}

impl PamRules {
    /// The files that the service may be.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.services {
            Some(folder) => vec![folder.join(&self.service)],
            None => PAM_SERVICES
                .map(|folder| Path::new(folder).join(&self.service))
                .into(),
        }
    }
}

/// How the PAM of an `[[auth]]` is asked.
pub(super) fn read_pam(
    section: &Section,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> PamRules {
    let service = section.text("service");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = service.len() <= SERVICE_BYTES_MAX
        && service.chars().all(is_plain)
        && service.starts_with(|c: char| c.is_ascii_alphanumeric());
    if section.given("service").is_some() && !is_name {
        faults
            .error(
                section.spot("service"),
                format!("{service:?} is no name of a service"),
            )
            .hint("it is the name of a file in /etc/pam.d: letters, digits, `-`, `_` and `.`");
    }
    // It is hob itself, in another process and as another account.
    let program = ProgramConfig {
        user: section.optional_text("user").map(str::to_owned),
        sandbox: Sandbox {
            no_new_privileges: true,
            ..Sandbox::default()
        },
        folders: vec![PathBuf::from("/")],
        command_lines: vec![CommandLine {
            name: "hob".to_owned(),
            executables: vec![PathBuf::from(PAM_PROGRAM)],
            arguments: vec![Argument::Text(PAM_COMMAND.to_owned())],
            file_ending: None,
            host: None,
        }],
        ..ProgramConfig::default()
    };
    let spots = ProgramSpots {
        user: section.spot("user"),
        cpus: section.header,
        rlimits: Vec::new(),
    };
    PamRules {
        service: service.to_owned(),
        services: section.optional_path("services").cloned(),
        timeout: section.time("timeout"),
        processes: section.number("processes"),
        remember: section.time("remember"),
        program: programs.add_own(program, spots),
    }
}

/// The program of whoever starts it, also when its file was replaced meanwhile.
pub const PAM_PROGRAM: &str = "/proc/self/exe";
/// What it is told to be.
pub const PAM_COMMAND: &str = "pam";
