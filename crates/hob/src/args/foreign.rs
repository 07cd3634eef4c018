//! Flags of other servers, and those that are gone: what is written in their place.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags, the command they are given to, and what is said of them.
type Row = (&'static [&'static str], &'static str, &'static str);

/// Flags that other servers have, the command here, and what is written there.
const FLAGS: &[Row] = &[
    (
        &[
            "--port",
            "-p",
            "--bind",
            "-b",
            "--address",
            "--addr",
            "--http",
        ],
        "serve",
        "--listen",
    ),
    (&["-c", "--conf", "-f", "--file"], "serve", "--config"),
    (&["--access-log", "--access-logfile"], "serve", "--log"),
    (&["-c", "--conf", "-f", "--file"], "check", "--config"),
];

/// Flags that are gone, the command that had them, and where what they did is now.
const GONE: &[Row] = &[(
    &["--exercise", "--act", "--i-own-this-host"],
    "bench",
    "clients that misbehave are a program of hob's sources now: \
     'cargo run -p hob-mischief -- URL', see conformance/mischief/README.md",
)];

/// The same error; where a flag is another server's, with ours, and where it is gone, with what has
/// taken its place.
pub(super) fn told(mut error: Error, arguments: impl Iterator<Item = String>) -> Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let given = given.split('=').next().unwrap_or(given).to_owned();
    let arguments: Vec<String> = arguments.collect();
    let command = arguments.get(1).map(String::as_str).unwrap_or_default();
    let found = |table: &'static [Row]| {
        let mut rows = table.iter();
        let row = rows.find(|(flags, of, _)| *of == command && flags.contains(&given.as_str()));
        row.map(|(.., text)| *text)
    };
    let tip = match (found(GONE), found(FLAGS)) {
        (Some(gone), _) => gone.to_owned(),
        (None, Some(ours)) => renamed(ours, &given, &arguments),
        (None, None) => return error,
    };
    error.remove(ContextKind::SuggestedArg);
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![StyledStr::from(tip)]),
    );
    error
}

/// How a flag is written here, with the value that it was given.
fn renamed(ours: &str, given: &str, arguments: &[String]) -> String {
    let at = arguments
        .iter()
        .position(|argument| argument == given || argument.starts_with(&format!("{given}=")));
    let value = at.and_then(|at| match arguments[at].split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => arguments
            .get(at + 1)
            .filter(|next| !next.starts_with('-'))
            .cloned(),
    });
    match value {
        Some(value) => format!("write '{ours} {value}'"),
        None => format!("'{ours}' is what it is called here"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    #[test]
    fn flags_of_other_servers_are_told_ours() {
        for (line, tip) in [
            ("hob serve --port 8097", "tip: write '--listen 8097'"),
            ("hob serve --port=8097", "tip: write '--listen 8097'"),
            (
                "hob serve . -p",
                "tip: '--listen' is what it is called here",
            ),
            ("hob check -c a.toml", "tip: write '--config a.toml'"),
            (
                "hob bench http://127.0.0.1/ --exercise --seed 7",
                "tip: clients that misbehave are a program of hob's sources now",
            ),
            ("hob serve --kettle", "tip: to pass '--kettle' as a value"),
            ("hob status --port 1", "unexpected argument '--port' found"),
        ] {
            let arguments = || line.split(' ').map(str::to_owned);
            let error = Cli::try_parse_from(arguments()).err().expect("it is wrong");
            let text = told(error, arguments()).to_string();
            assert!(text.contains(tip), "{text}");
        }
    }
}
