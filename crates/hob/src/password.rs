//! `hob password`: the hash of a password, for `[[admin.user]]` of a config, or in a file of
//! accounts for `[[auth]]`.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};

use hob_inside::admin::door::password;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::args::PasswordOptions;
use crate::replace::replace;
use crate::{CommandFailure, output};

/// The process that asks PAM about one password. It tells whoever started it what has come of it.
pub(crate) fn run_pam() -> Result<(), CommandFailure> {
    hob_pam::process::run().map_err(|error| CommandFailure {
        code: 1,
        text: format!("this process is started by `hob`, not by hand: {error}"),
    })
}

/// Sets or deletes the password of an account in a file, or prints a hash.
pub(crate) fn run(options: &PasswordOptions) -> Result<(), CommandFailure> {
    let (Some(file), Some(name)) = (&options.file, &options.name) else {
        output::line(&hash()?);
        return Ok(());
    };
    if name.is_empty() || name.contains(':') || name.contains(char::is_control) {
        return Err(CommandFailure {
            code: 2,
            text: format!("{name:?} cannot be the name of an account: it has no colons"),
        });
    }
    let broken = |error: io::Error| CommandFailure {
        code: 1,
        text: format!("{}: {error}", file.display()),
    };
    let known = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !options.delete => String::new(),
        Err(error) => return Err(broken(error)),
    };
    let line = match options.delete {
        true => None,
        false => Some(format!("{name}:{}", hash()?)),
    };
    let Some((text, was_there)) = with_account(&known, name, line.as_deref()) else {
        return Err(CommandFailure {
            code: 2,
            text: format!("{}: {name} has no account there", file.display()),
        });
    };
    replace(file, text.as_bytes()).map_err(broken)?;
    output::line(match (options.delete, was_there) {
        (true, _) => "the account is deleted",
        (false, true) => "the password is changed",
        (false, false) => "the account is added",
    });
    Ok(())
}

/// The text of a file of accounts with an account's line in it, or without one, and whether it was
/// there; nothing where one is to be deleted that is not.
fn with_account(known: &str, name: &str, line: Option<&str>) -> Option<(String, bool)> {
    let is_own = |text: &str| {
        let rest = text.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(':'))
    };
    let was_there = known.lines().any(is_own);
    if !was_there && line.is_none() {
        return None;
    }
    let mut line = line;
    let mut text = String::new();
    for old in known.lines() {
        // Who stands there more than once stands there once now.
        let new = match is_own(old) {
            true => line.take(),
            false => Some(old),
        };
        text.extend(new.into_iter().flat_map(|new| [new, "\n"]));
    }
    text.extend(line.into_iter().flat_map(|new| [new, "\n"]));
    Some((text, was_there))
}

/// The hash of a password that is asked for, twice at a terminal.
fn hash() -> Result<String, CommandFailure> {
    let broken = |error: io::Error| CommandFailure {
        code: 1,
        text: format!("no password can be read: {error}"),
    };
    let first = ask("password: ").map_err(broken)?;
    if io::stdin().is_terminal() && ask("again: ").map_err(broken)? != first {
        return Err(CommandFailure {
            code: 2,
            text: "these were two different passwords".to_owned(),
        });
    }
    password::hash(&first).map_err(|text| CommandFailure { code: 2, text })
}

/// A line of standard input; at a terminal it is asked for and not shown.
fn ask(prompt: &str) -> io::Result<String> {
    let stdin = io::stdin();
    let _hidden = match stdin.is_terminal() {
        true => {
            eprint!("{prompt}");
            io::stderr().flush()?;
            Some(Hidden::begin()?)
        }
        false => None,
    };
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// While it lives, the terminal does not show what is typed.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> io::Result<Hidden> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Hidden(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
        eprintln!();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_an_account_is_added_replaced_and_taken_out() {
        let known = "# people\nann:1\nannette:2\n ann:3\nbob:4";
        let with = |known: &str, name: &str, line: Option<&str>| with_account(known, name, line);
        let found = with(known, "ann", Some("ann:new"));
        let wanted = "# people\nann:new\nannette:2\nbob:4\n";
        assert_eq!(found, Some((wanted.to_owned(), true)));
        let found = with(known, "cid", Some("cid:5"));
        assert_eq!(found, Some((format!("{known}\ncid:5\n"), false)));
        let found = with(known, "ann", None);
        assert_eq!(
            found,
            Some(("# people\nannette:2\nbob:4\n".to_owned(), true))
        );
        assert_eq!(with(known, "an", None), None);
        assert_eq!(
            with("", "a", Some("a:1")),
            Some(("a:1\n".to_owned(), false))
        );
    }
}
