//! `mischief URL`: misbehaves against a server as a seed has it, and says what the server did that
//! it should not. `cargo run -p hob-mischief -- --help` lists its flags.
#![forbid(unsafe_code)]
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use hob_load::{LoadError, Protocol, Url, parse_duration};
use hob_mischief::{Exercise, exercise, schema};

const EXIT_CODES: &str = "\
Exit codes:
  0  every outcome is one that is allowed
  1  the server cannot be exercised, or the system refused something
  2  the arguments are wrong
  6  an outcome is not allowed, a request beside failed, or the server answers no more";

/// An outcome that is not allowed.
const MISBEHAVED: u8 = 6;

/// Exercise a server: clients that misbehave beside others that do not.
#[derive(Parser)]
#[command(name = "mischief", version, after_help = EXIT_CODES)]
struct Arguments {
    /// What is asked for: http[s]://HOST[:PORT]/PATH
    #[arg(required_unless_present = "schema")]
    url: Option<Url>,
    /// What requests are written in
    #[arg(long, value_name = "VERSION", default_value = "1.1")]
    http: Version,
    /// Unix socket to connect to instead of the URL's host
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Number that all acts follow from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Acts
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 200)]
    count: u64,
    /// After this time no act begins
    #[arg(long = "for", short = 'd', value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    duration: Duration,
    /// Repeat one act alone, by its number
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["count", "duration"])]
    act: Option<u64>,
    /// Longest wait for what comes of an act
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    timeout: Duration,
    /// Exercise a server at an address that is not loopback: you answer for it
    #[arg(long)]
    i_own_this_host: bool,
    /// A line for every act first
    #[arg(long)]
    plain: bool,
    /// Result as JSON
    #[arg(long)]
    json: bool,
    /// Print the JSON schema of a result instead
    #[arg(long, conflicts_with_all = ["url", "json"])]
    schema: bool,
}

/// Versions of HTTP.
#[derive(Clone, Copy, ValueEnum)]
enum Version {
    #[value(name = "1.1", alias = "1")]
    One,
    #[value(name = "2")]
    Two,
    #[value(name = "3")]
    Three,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Some(url) = arguments.url else {
        return print(&format!("{:#}\n", schema()), ExitCode::SUCCESS);
    };
    let exercised = exercise(Exercise {
        url,
        unix: arguments.unix,
        protocol: match arguments.http {
            Version::One => Protocol::H1,
            Version::Two => Protocol::H2,
            Version::Three => Protocol::H3,
        },
        seed: arguments.seed,
        count: arguments.count,
        only: arguments.act,
        duration: arguments.duration,
        timeout: arguments.timeout,
        is_owned: arguments.i_own_this_host,
    });
    let exercised = match exercised {
        Ok(exercised) => exercised,
        Err(error) => {
            eprintln!("mischief: {error}");
            return ExitCode::from(match error {
                LoadError::Arguments(_) => 2,
                LoadError::Server(_) | LoadError::System { .. } => 1,
            });
        }
    };
    let text = match (arguments.json, arguments.plain) {
        (true, _) => format!("{}\n", exercised.json()),
        (false, true) => format!("{}\n{}", exercised.sequence(), exercised.table()),
        (false, false) => exercised.table(),
    };
    print(
        &text,
        match exercised.has_failed() {
            true => ExitCode::from(MISBEHAVED),
            false => ExitCode::SUCCESS,
        },
    )
}

/// Prints, and ends with this code where that goes well.
fn print(text: &str, code: ExitCode) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(error) => {
            eprintln!("mischief: standard output: {error}");
            ExitCode::FAILURE
        }
    }
}
