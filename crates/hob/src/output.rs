//! Standard output: who reads it may leave, and how wide it is where it is a terminal.

use std::io::{self, IsTerminal, Write};

use rustix::stdio::stdout;
use rustix::termios::tcgetwinsize;

/// What terminals that do not know their width have.
const COLUMNS: usize = 80;

/// Is it still read?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdoutReader {
    Reads,
    Gone,
}

/// Writes text. A reader that has left is no fault: `hob history | head` is meant to do that.
pub(crate) fn write(text: &str) -> StdoutReader {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => StdoutReader::Reads,
        Err(_) => StdoutReader::Gone,
    }
}

/// Writes a line.
pub(crate) fn line(text: &str) -> StdoutReader {
    write(&format!("{text}\n"))
}

/// Is it a terminal?
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Columns of the terminal; none where it is none, and lines may be as long as they are.
pub(crate) fn width() -> Option<usize> {
    is_terminal().then(|| {
        let size = tcgetwinsize(stdout()).map(|size| usize::from(size.ws_col));
        size.ok().filter(|columns| *columns > 0).unwrap_or(COLUMNS)
    })
}
