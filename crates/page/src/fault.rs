//! What is wrong with a page, and where: file, line, column and one sentence.

use std::error::Error;
use std::fmt;

/// What kind of trouble it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageFaultKind {
    /// The text of a page is not of the language.
    Syntax,
    /// A page does what cannot be done.
    Page,
    /// A file that a page includes is not there, or may not be read.
    Include,
    /// A limit was reached; its name is that of the field in [`crate::limits::PageLimits`].
    Limit(&'static str),
    /// What a database ran in has crashed.
    Crash,
    /// Whoever reads the output has gone away.
    Gone,
}

/// Trouble that ends the reading or the run of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageFault {
    /// The file as it was named when it was read.
    pub file: Box<str>,
    /// Counted from one.
    pub line: usize,
    /// Counted from one, in bytes.
    pub column: usize,
    /// What kind of trouble it is.
    pub kind: PageFaultKind,
    /// One sentence, lower case, without a full stop.
    pub message: String,
}

impl fmt::Display for PageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, line, column) = (&self.file, self.line, self.column);
        write!(f, "{file}:{line}:{column}: {}", self.message)
    }
}

impl Error for PageFault {}

/// A return code of a function and what it means, for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionFault {
    /// As the language numbers it; see the reference.
    pub code: i64,
    /// `SQLSTATE`, if a database told one.
    pub sql_state: Option<Box<str>>,
    /// One sentence for the log; a page shows it only if its author asks for it.
    pub message: String,
}

impl FunctionFault {
    /// A failure with this code.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            sql_state: None,
            message: message.into(),
        }
    }
}

/// Return codes of files and registries; the language has them but for those below -1 other than
/// `LIMIT`, which are what databases say of the same.
pub mod code {
    /// More bytes, rows or calls than a run may use.
    pub const LIMIT: i64 = -1001;
    /// The disk is full.
    pub const DISK_FULL: i64 = -968;
    /// The system failed.
    pub const SYSTEM: i64 = -902;
    /// Nothing may be written.
    pub const READ_ONLY: i64 = -817;
    /// The server's user may not, or it is no file.
    pub const REFUSED: i64 = -551;
    /// No program ran to its end.
    pub const NOT_RUN: i64 = -1;
    /// A value that is not fit for what it is given to.
    pub const BAD_VALUE: i64 = 1007;
    /// There is no such file, or no such program.
    pub const NO_FILE: i64 = 2000;
    /// Another run has the file or registry, and has for too long.
    pub const BUSY: i64 = 2001;
    /// There is no such registry.
    pub const NO_REGISTRY: i64 = 3001;
    /// There is no such entry.
    pub const NO_ENTRY: i64 = 3002;
    /// There is such a registry or entry already.
    pub const EXISTS: i64 = 3003;
    /// The page does not last.
    pub const NO_VISIT: i64 = 8200;
    /// It is said of a visit too late, twice, or of another one.
    pub const OUT_OF_SEQUENCE: i64 = 8201;
    /// No visit is kept.
    pub const VISIT_REFUSED: i64 = 8202;
}

/// Line and column of a byte, both counted from one.
pub(crate) fn line_and_column(source: &[u8], at: usize) -> (usize, usize) {
    let before = &source[..at.min(source.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |end| end + 1) + 1;
    (line, column)
}
