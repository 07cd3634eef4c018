//! The program: arguments to command to exit code.
#![forbid(unsafe_code)]

mod args;
mod ban;
mod bench;
mod check;
mod compare;
mod config;
mod control;
mod cost;
mod diagnostics;
mod escape;
mod explain;
mod facts;
mod filter;
mod history;
mod manual;
mod native;
mod output;
mod page;
mod password;
mod replace;
mod request;
mod serve;
mod servers;
mod sign;
mod status;
mod table;
mod top;
mod watch;

use std::process::ExitCode;

use args::{Cli, CliCommand, Surroundings};

fn main() -> ExitCode {
    let surroundings = match Surroundings::take() {
        Ok(surroundings) => surroundings,
        Err(text) => return fail(2, &text),
    };
    let cli = Cli::read();
    diagnostics::begin(surroundings.log_level.as_deref());
    let result = match cli.command {
        CliCommand::Serve(options) => serve::run(options, surroundings),
        CliCommand::Server => serve::run_server(),
        CliCommand::Spawner => serve::run_spawner(),
        CliCommand::Acme => serve::run_acme(),
        CliCommand::Odbc => page::run_odbc(),
        CliCommand::Pam => password::run_pam(),
        CliCommand::CompressLog { path } => compress_log(&path),
        CliCommand::Check(options) => check::run(&options, &surroundings),
        CliCommand::Bench(options) => bench::run(*options, &surroundings),
        CliCommand::Cost(options) => cost::run(options, &surroundings),
        CliCommand::CostServe {
            parent,
            config,
            control,
        } => cost::run_serve(parent, &config, &control, &surroundings),
        CliCommand::CostBare => cost::run_bare(),
        CliCommand::Compare(options) => compare::run(*options, &surroundings),
        CliCommand::CompareSupervisor => compare::run_supervisor(),
        CliCommand::CompareFuse { folder } => compare::run_fuse(&folder),
        CliCommand::Explain(options) => explain::run(&options),
        CliCommand::Ban { command } => ban::run(&command, &surroundings),
        CliCommand::Maintenance { command } => control::maintenance(&command, &surroundings),
        CliCommand::Manual { folder } => manual::write(&folder),
        CliCommand::Native { command } => native::run(&command),
        CliCommand::Page { command } => page::run(&command, &surroundings),
        CliCommand::Password(options) => password::run(&options),
        CliCommand::Sign(options) => sign::run(&options),
        CliCommand::Servers(options) => servers::run(&options, &surroundings),
        CliCommand::Status(options) => status::run(&options, &surroundings),
        CliCommand::Top(options) => top::run(&options, &surroundings),
        CliCommand::History(options) => history::run(&options, &surroundings),
        CliCommand::Watch(options) => watch::run(&options, &surroundings),
        CliCommand::Config { command } => config::run(&command, &surroundings),
        CliCommand::Reload(options) => control::act("reload", &options, &surroundings),
        CliCommand::Recycle(options) => control::recycle(&options, &surroundings),
        CliCommand::Upstream { command } => control::upstream(&command, &surroundings),
        CliCommand::Visit { command } => control::visit(&command, &surroundings),
        CliCommand::Upgrade(options) => control::act("upgrade", &options, &surroundings),
        CliCommand::Stop(options) => control::act("stop", &options, &surroundings),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => fail(refusal.code, &refusal.text),
    }
}

/// Compresses a rotated log when the machine has nothing better to do.
fn compress_log(path: &std::path::Path) -> Result<(), CommandFailure> {
    let _ = rustix::thread::set_name(c"hob-compress");
    // Without it the compression only competes with others on equal terms.
    let _ = rustix::process::setpriority_process(None, 19);
    hob_trace::rotate::compress(path)
        .map(|_| ())
        .map_err(|error| CommandFailure {
            code: 1,
            text: format!("cannot compress {}: {error}", path.display()),
        })
}

/// Why a command did not do what it was asked for.
struct CommandFailure {
    /// Exit code, as `hob --help` lists them.
    code: u8,
    /// For people, on standard error; empty when everything was said already.
    text: String,
}

fn fail(code: u8, text: &str) -> ExitCode {
    if !text.is_empty() {
        eprintln!("hob: {text}");
    }
    ExitCode::from(code)
}
