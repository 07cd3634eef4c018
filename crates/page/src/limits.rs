//! How much one run of a page may use. Each limit is told by its name when it is reached.

use std::time::Duration;

/// The limits of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageLimits {
    /// Pieces of text, references, calls and conditions looked at; large values count as more.
    pub steps_max: u64,
    /// Turns of all `%WHILE` loops together.
    pub turns_max: u64,
    /// Bytes printed.
    pub output_bytes_max: u64,
    /// Rows taken from all results.
    pub rows_max: u64,
    /// Rows of one report, whatever `RPT_MAX_ROWS` says.
    pub report_rows_max: u64,
    /// Expansions, calls, includes and `%IF` inside each other.
    pub depth_max: u32,
    /// Files included.
    pub includes_max: u32,
    /// Programs called.
    pub programs_max: u32,
    /// Bytes of one value.
    pub value_bytes_max: usize,
    /// Variables.
    pub variables_max: usize,
    /// Cells of one table.
    pub cells_max: usize,
    /// Uses of flat files and registries.
    pub files_max: u32,
    /// Rows of one flat file that is read or changed.
    pub file_rows_max: usize,
    /// Bytes of all variables that a visit keeps for its next request.
    pub saved_bytes_max: usize,
    /// Bytes kept before they are handed on.
    pub piece_bytes: usize,
}

/// The limits of flat files and registries, whoever uses them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileLimits {
    /// Bytes of one file that is read or written.
    pub bytes_max: u64,
    /// Entries of one registry.
    pub entries_max: usize,
    /// How long a run waits for another that changes the same file or registry.
    pub lock_wait: Duration,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            bytes_max: 16 << 20,
            entries_max: 100_000,
            lock_wait: Duration::from_secs(5),
        }
    }
}

impl Default for PageLimits {
    fn default() -> Self {
        Self {
            steps_max: 50_000_000,
            turns_max: 1_000_000,
            output_bytes_max: 1 << 30,
            rows_max: 10_000_000,
            report_rows_max: 10_000_000,
            depth_max: 128,
            includes_max: 1_000,
            programs_max: 1_000,
            value_bytes_max: 16 << 20,
            variables_max: 20_000,
            cells_max: 1_000_000,
            files_max: 1_000,
            file_rows_max: 1_000_000,
            saved_bytes_max: 4 << 20,
            piece_bytes: 16 << 10,
        }
    }
}

/// What a run has used, to be counted and shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageUse {
    /// As `steps_max` counts them.
    pub steps: u64,
    /// Turns of loops.
    pub turns: u64,
    /// Bytes printed.
    pub output_bytes: u64,
    /// Rows taken from results.
    pub rows: u64,
    /// Files included.
    pub includes: u32,
    /// Programs called.
    pub programs: u32,
    /// Statements given to a database.
    pub statements: u32,
    /// Uses of flat files and registries.
    pub files: u32,
    /// Those that a limit refused.
    pub refused_files: u32,
    /// Values left out of the output because nothing makes them safe where they stood.
    pub refused_outputs: u32,
}

/// How deep blocks, strings and calls of a file may stand inside each other.
pub(crate) const PARSE_DEPTH_MAX: u32 = 200;
/// Bytes of one file.
pub const FILE_BYTES_MAX: usize = 16 << 20;
