//! The program: arguments to command to exit code.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod check;
mod compare;
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
mod password;
mod request;
mod serve;
mod servers;
mod status;
mod table;
mod top;
mod watch;

use std::process::ExitCode;

use args::{Cli, Command, Surroundings};

fn main() -> ExitCode {
    let surroundings = match Surroundings::take() {
        Ok(surroundings) => surroundings,
        Err(text) => return fail(2, &text),
    };
    let cli = Cli::read();
    diagnostics::begin(surroundings.log_level.as_deref());
    let result = match cli.command {
        Command::Serve(options) => serve::run(options, surroundings),
        Command::Server => serve::run_server(),
        Command::Spawner => serve::run_spawner(),
        Command::Acme => serve::run_acme(),
        Command::CompressLog { path } => compress_log(&path),
        Command::Check(options) => check::run(&options, &surroundings),
        Command::Bench(options) => bench::run(*options, &surroundings),
        Command::Cost(options) => cost::run(options, &surroundings),
        Command::CostServe {
            parent,
            config,
            control,
        } => cost::run_serve(parent, &config, &control, &surroundings),
        Command::CostBare => cost::run_bare(),
        Command::Compare(options) => compare::run(*options, &surroundings),
        Command::CompareSupervisor => compare::run_supervisor(),
        Command::Explain(options) => explain::run(&options),
        Command::Manual { folder } => manual::write(&folder),
        Command::Native { command } => native::run(&command),
        Command::Password => password::run(),
        Command::Servers(options) => servers::run(&options, &surroundings),
        Command::Status(options) => status::run(&options, &surroundings),
        Command::Top(options) => top::run(&options, &surroundings),
        Command::History(options) => history::run(&options, &surroundings),
        Command::Watch(options) => watch::run(&options, &surroundings),
        Command::Reload(options) => control::act("reload", &options, &surroundings),
        Command::Recycle(options) => control::recycle(&options, &surroundings),
        Command::Upgrade(options) => control::act("upgrade", &options, &surroundings),
        Command::Stop(options) => control::act("stop", &options, &surroundings),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => fail(refusal.code, &refusal.text),
    }
}

/// Compresses a rotated log when the machine has nothing better to do.
fn compress_log(path: &std::path::Path) -> Result<(), Refusal> {
    let _ = rustix::thread::set_name(c"hob-compress");
    // Without it the compression only competes with others on equal terms.
    let _ = rustix::process::setpriority_process(None, 19);
    hob_trace::rotate::compress(path)
        .map(|_| ())
        .map_err(|error| Refusal {
            code: 1,
            text: format!("cannot compress {}: {error}", path.display()),
        })
}

/// Why a command did not do what it was asked for.
struct Refusal {
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
