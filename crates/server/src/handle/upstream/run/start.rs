//! What is executed. A shell puts the socket where the program looks for it, and is gone then: it
//! becomes the program.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::handle::config::program::{CommandLine, ProgramConfig, resolve};
use crate::handle::config::tree::Argument;
use crate::handle::upstream::run::config::{RunKind, RunSettings};
use hob_keeper::memory;
use hob_keeper::process::Strings;

/// What becomes the program.
pub(super) const SHELL: &str = "/bin/sh";
/// The name of the socket between hob and php-fpm: it finds it as descriptor 3, and looks at no
/// file.
const FPM_SOCKET: &str = "/hob";

/// The words of the shell, its name first.
fn words(settings: &RunSettings, path: &str) -> Vec<String> {
    let program = resolve(&settings.program, path);
    // One that is not there is told by who tries to start it.
    let program = program.map_or_else(
        |_| settings.program.clone(),
        |file| file.to_string_lossy().into_owned(),
    );
    let (moves, own): (_, &[&str]) = match settings.kind {
        // It does away with its standard input before it reads what it is told.
        RunKind::Fpm => (
            "exec \"$0\" \"$@\" 4<&0",
            &[
                "--nodaemonize",
                "--force-stderr",
                "--fpm-config",
                "/proc/self/fd/4",
            ],
        ),
        RunKind::PhpCgi | RunKind::Plain => ("exec \"$0\" \"$@\" <&3 3<&-", &[]),
    };
    let fixed = [SHELL, "-c", moves].map(str::to_owned).into_iter();
    let own = own.iter().map(|word| (*word).to_owned());
    let given = settings.words.iter().cloned();
    fixed.chain([program]).chain(own).chain(given).collect()
}

/// What may be started, and where it may work.
pub(super) fn allow(settings: &RunSettings, program: &mut ProgramConfig) {
    program.folders.push(settings.dir.clone());
    let words = words(settings, program.path()).into_iter();
    program.command_lines.push(CommandLine {
        name: SHELL.to_owned(),
        executables: vec![PathBuf::from(SHELL)],
        arguments: words.skip(1).map(Argument::Text).collect(),
        file_ending: None,
        host: None,
    });
    let own = match settings.kind {
        RunKind::Fpm => vec![("FPM_SOCKETS", format!("{FPM_SOCKET}=3"))],
        RunKind::PhpCgi => vec![
            ("PHP_FCGI_CHILDREN", settings.children.to_string()),
            ("PHP_FCGI_MAX_REQUESTS", settings.recycle.to_string()),
        ],
        RunKind::Plain => Vec::new(),
    };
    let own = own
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    program.own_env.extend(own);
}

/// The same words for a start.
///
/// # Errors
/// One holds a NUL byte.
pub(super) fn arguments(
    settings: &RunSettings,
    program: &ProgramConfig,
) -> Result<Strings, String> {
    let mut arguments = Strings::new();
    for word in words(settings, program.path()) {
        let pushed = arguments.push(word.as_bytes());
        pushed.map_err(|error| format!("an argument: {error}"))?;
    }
    Ok(arguments)
}

/// What php-fpm is told: its standard input; nothing for others.
///
/// # Errors
/// No memory.
pub(super) fn input(settings: &RunSettings) -> io::Result<Option<OwnedFd>> {
    match settings.kind {
        RunKind::Fpm => memory::sealed("php-fpm.conf", fpm(settings).as_bytes()).map(Some),
        RunKind::PhpCgi | RunKind::Plain => Ok(None),
    }
}

/// The environment is hob's already, and so is the account. Where it is not told how long its
/// children may finish what they have, it ends them right after it was asked to let them.
fn fpm(settings: &RunSettings) -> String {
    let RunSettings {
        children,
        recycle,
        grace,
        ..
    } = settings;
    let grace = grace.as_secs() + 1;
    format!(
        "[global]\nerror_log = /proc/self/fd/2\nlog_level = warning\ndaemonize = no\n\
         process_control_timeout = {grace}s\n\
         [hob]\nlisten = {FPM_SOCKET}\npm = static\npm.max_children = {children}\n\
         pm.max_requests = {recycle}\nclear_env = no\ncatch_workers_output = yes\n\
         decorate_workers_output = no\n"
    )
}
