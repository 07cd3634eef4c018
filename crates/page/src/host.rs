//! What a run asks of whoever runs it. Pages open nothing, start nothing and read no clock.
//!
//! `Host` names one of each; [`Absent`] is one that has nothing of the kind and says so.

use std::sync::Arc;

use crate::fault::{FunctionFault, code};
use crate::sql::Database;
use crate::tree::Page;
use crate::value::{Table, Text};

/// Finds included files, read and kept; paths are resolved below the folders it allows.
pub trait Sources {
    /// A file included among declarations.
    fn declarations(&self, name: &str) -> Result<Arc<Page>, SourceFault>;
    /// A file included inside a block.
    fn body(&self, name: &str) -> Result<Arc<Page>, SourceFault>;
}

/// Why there is no such file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SourceFault {
    /// It is not there, or may not be read.
    Missing,
    /// It is there and wrong.
    Wrong(crate::fault::PageFault),
}

/// The environment of the request, as a program of the common gateway interface would have it.
pub trait PageEnvironment {
    /// The value of a variable.
    fn variable(&self, name: &[u8]) -> Option<Vec<u8>>;
}

impl PageEnvironment for Vec<(String, Vec<u8>)> {
    fn variable(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut variables = self.iter();
        let found = variables.find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, value)| value.clone())
    }
}

/// Runs programs: `%EXEC` variables, `DTW_SYSTEM`, `DTW_PERL`, `DTW_DIRECTCALL`.
pub trait PagePrograms {
    /// Runs a program and gives what it printed, and its exit code.
    fn run(&self, program: &ProgramCall) -> Result<ProgramAnswer, FunctionFault>;
}

/// A call of a program. Arguments were split before values were put in: a value is one argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramCall {
    /// `DTW_SYSTEM`, `DTW_PERL`, ..., or empty for an `%EXEC` variable.
    pub language: Box<str>,
    /// The program and its arguments.
    pub arguments: Vec<Text>,
    /// Parameters of the function: name, type as it was written, value.
    pub parameters: Vec<(Box<str>, Option<Box<str>>, Text)>,
    /// Tables among the parameters.
    pub tables: Vec<(Box<str>, Table)>,
}

/// What a program answered.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProgramAnswer {
    /// What it printed for the page.
    pub output: Vec<u8>,
    /// Parameters it set, by name.
    pub outs: Vec<(Box<str>, Vec<u8>)>,
    /// Its exit code.
    pub code: i64,
}

/// Flat files (`DTWF_`), below the folders that are allowed. Codes are those of the language.
pub trait Files {
    /// The whole content of a file.
    fn read(&self, name: &str) -> Result<Vec<u8>, FunctionFault>;
    /// Replaces the whole content, or makes the file.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault>;
    /// Adds lines to the end, or makes the file.
    fn append(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault>;
    /// Replaces the content by what is made of it, which nobody else changes meanwhile.
    fn change(&self, name: &str, change: &mut ContentChange<'_>) -> Result<(), FunctionFault>;
    /// Whether there is such a file.
    fn exists(&self, name: &str) -> Result<bool, FunctionFault>;
    /// Removes a file.
    fn remove(&self, name: &str) -> Result<(), FunctionFault>;
}

/// Makes a new content of a file's old one.
pub type ContentChange<'c> = dyn FnMut(&[u8]) -> Result<Vec<u8>, FunctionFault> + 'c;

/// Key and value of an entry. An index is joined to the key by a NUL byte.
pub type RegistryEntry = (Vec<u8>, Vec<u8>);

/// Registries (`DTWR_`): named sets of entries that last.
pub trait Registries {
    /// Makes an empty registry.
    fn create(&self, registry: &str) -> Result<(), FunctionFault>;
    /// Removes a registry.
    fn delete(&self, registry: &str) -> Result<(), FunctionFault>;
    /// All entries.
    fn entries(&self, registry: &str) -> Result<Vec<RegistryEntry>, FunctionFault>;
    /// Changes entries, which nobody else changes meanwhile.
    fn change(&self, registry: &str, change: &RegistryChange<'_>) -> Result<(), FunctionFault>;
}

/// A change of a registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegistryChange<'c> {
    /// Adds an entry with this key and value, which is not there.
    Add(&'c [u8], &'c [u8]),
    /// Gives the entry with this key, which is there, a value.
    Update(&'c [u8], &'c [u8]),
    /// Removes the entry with this key, which is there.
    Remove(&'c [u8]),
    /// Removes all.
    Clear,
}

impl RegistryChange<'_> {
    /// Changes these entries, or says why not.
    pub fn apply(&self, entries: &mut Vec<RegistryEntry>) -> Result<(), FunctionFault> {
        let place = |key: &[u8]| entries.iter().position(|(known, _)| known == key);
        let missing = || FunctionFault::new(code::NO_ENTRY, "the registry has no such entry");
        match *self {
            Self::Add(key, value) => match place(key) {
                None => entries.push((key.to_vec(), value.to_vec())),
                Some(_) => {
                    let message = "the registry has this entry already";
                    return Err(FunctionFault::new(code::EXISTS, message));
                }
            },
            Self::Update(key, value) => {
                let place = place(key).ok_or_else(missing)?;
                entries[place].1 = value.to_vec();
            }
            Self::Remove(key) => {
                let place = place(key).ok_or_else(missing)?;
                entries.remove(place);
            }
            Self::Clear => entries.clear(),
        }
        Ok(())
    }
}

/// A visit that lasts over several requests: what persistent macros ask for.
pub trait PageVisits {
    /// `@DTW_STATIC`: this macro lasts. Codes 8200 to 8202 say why not.
    fn keep(&self, seconds: Option<u64>) -> Result<(), FunctionFault>;
    /// `@DTW_RTVHANDLE`: the handle for links of the page.
    fn handle(&self) -> Result<String, FunctionFault>;
    /// `@DTW_ACCEPT`: another request may come within this time.
    fn accept(&self, handle: &[u8], seconds: Option<u64>) -> Result<(), FunctionFault>;
    /// `@DTW_TERMINATE`: this was the last request.
    fn terminate(&self) -> Result<(), FunctionFault>;
}

/// The clock of the caller.
pub trait PageClock {
    /// Microseconds since some moment.
    fn micros(&self) -> u64;
    /// What the calendar and the clock on the wall say.
    fn civil(&self) -> CivilTime;
    /// Why the run has to end now, if it has to.
    fn is_over(&self) -> Option<&'static str> {
        None
    }
}

/// A moment as people write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CivilTime {
    /// As in 2026.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 60.
    pub second: u8,
    /// 0 to 999,999.
    pub micros: u32,
}

/// Takes the output, piece by piece; it may wait until there is room.
pub trait Sink {
    /// Comes once, before the first piece, or at the end of a run that printed nothing.
    fn begin(&mut self, head: &PageHead) -> Result<(), SinkGone>;
    /// The next piece; what is left in the buffer is thrown away.
    fn piece(&mut self, bytes: &mut Vec<u8>) -> Result<(), SinkGone>;
}

/// Nobody reads any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SinkGone;

/// What is known before the first byte of the output.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PageHead {
    /// Whether the output begins with header fields of the page's own.
    pub header: OwnHeader,
    /// The block was an `%XML` block.
    pub is_xml: bool,
    /// Values of `Set-Cookie` fields.
    pub cookies: Vec<String>,
}

/// Whether a page prints its header itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OwnHeader {
    /// It does not say so.
    #[default]
    Unannounced,
    /// `DTW_PRINT_HEADER` is `NO`, and the output begins with a field that its author wrote.
    Printed,
    /// `DTW_PRINT_HEADER` is `NO`, and the output begins with something else.
    Missing,
}

/// Hears of what happens in a run.
pub trait Trace {
    /// Something happened.
    fn event(&mut self, event: TraceEvent<'_>);
}

/// Something that happened in a run.
#[derive(Debug)]
pub enum TraceEvent<'a> {
    /// A variable got a value.
    Variable {
        /// Where.
        place: TracePlace<'a>,
        /// Its name.
        name: &'a str,
        /// Its value, with who made it.
        value: &'a Text,
    },
    /// A database answered a statement.
    Statement {
        /// Where its function begins.
        place: TracePlace<'a>,
        /// The statement and its parameters.
        statement: &'a crate::sql::Statement,
        /// Rows it gave.
        rows: u64,
        /// How long it took, by the caller's clock.
        micros: u64,
        /// Why it failed.
        fault: Option<&'a FunctionFault>,
    },
    /// A function other than a statement gave a return code.
    Code {
        /// Where it was called.
        place: TracePlace<'a>,
        /// What it said.
        fault: &'a FunctionFault,
    },
    /// A value was left out of the output.
    Refused {
        /// Where it stood.
        place: TracePlace<'a>,
        /// Why.
        reason: &'static str,
    },
}

/// A place of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracePlace<'a> {
    /// The file.
    pub file: &'a str,
    /// The line, counted from one.
    pub line: usize,
}

/// Everything a run asks for.
#[derive(Clone, Copy)]
pub struct Host<'h> {
    /// The environment.
    pub environment: &'h dyn PageEnvironment,
    /// Included files.
    pub sources: &'h dyn Sources,
    /// The database, if there is one.
    pub database: Option<&'h dyn Database>,
    /// PagePrograms.
    pub programs: &'h dyn PagePrograms,
    /// Flat files.
    pub files: &'h dyn Files,
    /// Registries.
    pub registries: &'h dyn Registries,
    /// PageVisits.
    pub visits: &'h dyn PageVisits,
    /// The clock.
    pub clock: &'h dyn PageClock,
}

/// A host that has nothing of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Absent;

impl Sources for Absent {
    fn declarations(&self, _: &str) -> Result<Arc<Page>, SourceFault> {
        Err(SourceFault::Missing)
    }

    fn body(&self, _: &str) -> Result<Arc<Page>, SourceFault> {
        Err(SourceFault::Missing)
    }
}

impl PageEnvironment for Absent {
    fn variable(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

impl PagePrograms for Absent {
    fn run(&self, _: &ProgramCall) -> Result<ProgramAnswer, FunctionFault> {
        Err(FunctionFault::new(
            -1,
            "pages may start no program here; the config names those they may",
        ))
    }
}

fn no_files<T>() -> Result<T, FunctionFault> {
    Err(FunctionFault::new(
        code::NO_FILE,
        "pages may use no files here; `files` of the config names a folder where they may",
    ))
}

impl Files for Absent {
    fn read(&self, _: &str) -> Result<Vec<u8>, FunctionFault> {
        no_files()
    }

    fn write(&self, _: &str, _: &[u8]) -> Result<(), FunctionFault> {
        no_files()
    }

    fn append(&self, _: &str, _: &[u8]) -> Result<(), FunctionFault> {
        no_files()
    }

    fn change(&self, _: &str, _: &mut ContentChange<'_>) -> Result<(), FunctionFault> {
        no_files()
    }

    fn exists(&self, _: &str) -> Result<bool, FunctionFault> {
        Ok(false)
    }

    fn remove(&self, _: &str) -> Result<(), FunctionFault> {
        no_files()
    }
}

fn no_registries<T>() -> Result<T, FunctionFault> {
    Err(FunctionFault::new(
        code::NO_REGISTRY,
        "pages may use no registries here; `registries` of the config names a folder for them",
    ))
}

impl Registries for Absent {
    fn create(&self, _: &str) -> Result<(), FunctionFault> {
        no_registries()
    }

    fn delete(&self, _: &str) -> Result<(), FunctionFault> {
        no_registries()
    }

    fn entries(&self, _: &str) -> Result<Vec<RegistryEntry>, FunctionFault> {
        no_registries()
    }

    fn change(&self, _: &str, _: &RegistryChange<'_>) -> Result<(), FunctionFault> {
        no_registries()
    }
}

fn no_visits<T>() -> Result<T, FunctionFault> {
    Err(FunctionFault::new(
        code::NO_VISIT,
        "persistence is not on for this page",
    ))
}

impl PageVisits for Absent {
    fn keep(&self, _: Option<u64>) -> Result<(), FunctionFault> {
        Err(FunctionFault::new(
            code::VISIT_REFUSED,
            "no visit is kept: `session` of the config's `page` has visits kept, and the page itself \
             calls it, not a file that it includes",
        ))
    }

    fn handle(&self) -> Result<String, FunctionFault> {
        no_visits()
    }

    fn accept(&self, _: &[u8], _: Option<u64>) -> Result<(), FunctionFault> {
        no_visits()
    }

    fn terminate(&self) -> Result<(), FunctionFault> {
        no_visits()
    }
}
