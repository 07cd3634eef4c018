//! What a run from a terminal has besides files and a database: a clock and a visit of one request.
//! Programs, flat files and registries are not there, and say so.

use std::cell::Cell;
use std::time::Instant;

use hob_page::fault::FunctionFault;
use hob_page::host::{
    CivilTime, Files, PageClock, PagePrograms, PageVisits, ProgramAnswer, ProgramCall, Registries,
    RegistryEntry,
};
use hob_server::local_time;

/// The surroundings of a run.
pub(super) struct Terminal {
    start: Instant,
    /// `@DTW_STATIC` was called, and `@DTW_TERMINATE` was not.
    lasts: Cell<bool>,
}

impl Terminal {
    pub(super) fn new() -> Terminal {
        Terminal {
            start: Instant::now(),
            lasts: Cell::new(false),
        }
    }

    /// Whether the page waits for another request of its visit.
    pub(super) fn lasts(&self) -> bool {
        self.lasts.get()
    }
}

impl PageClock for Terminal {
    fn micros(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn civil(&self) -> CivilTime {
        local_time::civil()
    }
}

impl PageVisits for Terminal {
    fn keep(&self, _: Option<u64>) -> Result<(), FunctionFault> {
        self.lasts.set(true);
        Ok(())
    }

    fn handle(&self) -> Result<String, FunctionFault> {
        Ok("terminal".to_owned())
    }

    fn accept(&self, _: &[u8], _: Option<u64>) -> Result<(), FunctionFault> {
        Ok(())
    }

    fn terminate(&self) -> Result<(), FunctionFault> {
        self.lasts.set(false);
        Ok(())
    }
}

impl PagePrograms for Terminal {
    fn run(&self, program: &ProgramCall) -> Result<ProgramAnswer, FunctionFault> {
        let name = program.arguments.first();
        let name = name.map_or_else(String::new, |name| name.to_str().into_owned());
        Err(FunctionFault::new(
            -1,
            format!("`hob page run` starts no programs: {name:?} is a server's to start"),
        ))
    }
}

fn no_files<T>(name: &str) -> Result<T, FunctionFault> {
    let message =
        format!("`hob page run` has no flat files: {name:?} is a server's to open, by FFI_PATH");
    Err(FunctionFault::new(2000, message))
}

impl Files for Terminal {
    fn read(&self, name: &str) -> Result<Vec<u8>, FunctionFault> {
        no_files(name)
    }

    fn write(&self, name: &str, _: &[u8]) -> Result<(), FunctionFault> {
        no_files(name)
    }

    fn append(&self, name: &str, _: &[u8]) -> Result<(), FunctionFault> {
        no_files(name)
    }

    fn exists(&self, name: &str) -> Result<bool, FunctionFault> {
        no_files(name)
    }

    fn remove(&self, name: &str) -> Result<(), FunctionFault> {
        no_files(name)
    }
}

fn no_registries<T>(registry: &str) -> Result<T, FunctionFault> {
    let message = format!("`hob page run` has no registries: {registry:?} is a server's to open");
    Err(FunctionFault::new(3001, message))
}

impl Registries for Terminal {
    fn create(&self, registry: &str) -> Result<(), FunctionFault> {
        no_registries(registry)
    }

    fn delete(&self, registry: &str) -> Result<(), FunctionFault> {
        no_registries(registry)
    }

    fn entries(&self, registry: &str) -> Result<Vec<RegistryEntry>, FunctionFault> {
        no_registries(registry)
    }

    fn set(&self, registry: &str, _: &[u8], _: Option<&[u8]>) -> Result<(), FunctionFault> {
        no_registries(registry)
    }
}
