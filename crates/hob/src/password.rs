//! `hob password`: the hash of a password, for `[[admin.user]]` of a config.

use std::io::{self, BufRead, IsTerminal, Write};

use hob_inside::admin::door::password;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::{CommandFailure, output};

/// Asks for a password, twice at a terminal, and prints its hash.
pub(crate) fn run() -> Result<(), CommandFailure> {
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
    let hash = password::hash(&first).map_err(|text| CommandFailure { code: 2, text })?;
    output::line(&hash);
    Ok(())
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
