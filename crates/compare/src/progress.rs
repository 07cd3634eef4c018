//! How far a comparison is: one line that changes, for a person who watches, and else one line
//! for each row.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use crate::rows::ComparisonRow;

/// Tells on standard error.
pub(crate) struct ProgressPrinter {
    is_watched: bool,
    begun: Instant,
    row: String,
    /// How much longer it takes, once that can be told.
    left: String,
}

impl ProgressPrinter {
    pub(crate) fn new() -> ProgressPrinter {
        ProgressPrinter {
            is_watched: io::stderr().is_terminal(),
            begun: Instant::now(),
            row: String::new(),
            left: String::new(),
        }
    }

    pub(crate) fn row(&mut self, index: usize, count: usize, row: &ComparisonRow) {
        let done = 20 * index / count.max(1);
        let bar = format!("{}{}", "#".repeat(done), "-".repeat(20 - done));
        self.row = format!("[{bar}] {} of {count}, {}", index + 1, row.id);
        if index > 0 {
            let left = self.begun.elapsed() * (count - index) as u32 / index as u32;
            self.left = format!(", about {} min left", left.as_secs().div_ceil(60));
        }
        if !self.is_watched {
            // Somebody who reads a log wants to know too; nobody may be there.
            let _ = writeln!(io::stderr(), "{} of {count}: {}", index + 1, row.id);
        }
    }

    /// A row once more: how many there will be is not known.
    pub(crate) fn again(&mut self, row: &ComparisonRow) {
        self.row = format!("again, {}", row.id);
        self.left.clear();
        if !self.is_watched {
            let _ = writeln!(io::stderr(), "{}", self.row);
        }
    }

    pub(crate) fn cell(&self, label: &str, round: usize) {
        if !self.is_watched {
            return;
        }
        let seconds = self.begun.elapsed().as_secs();
        let round = match round {
            0 => "is prepared".to_owned(),
            round => format!("round {round}"),
        };
        let line = format!(
            "\r\x1b[K{} {label} {round} ({}:{:02}{})",
            self.row,
            seconds / 60,
            seconds % 60,
            self.left
        );
        let _ = io::stderr().write_all(line.as_bytes());
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.is_watched {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
