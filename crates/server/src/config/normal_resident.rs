//! `resident` as text in its normal form.

use std::fmt;

use super::normal::quoted;
use super::units::{duration_text, size_text};
use super::{Resident, ResidentRuns};

impl Resident {
    pub(super) fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.runs {
            ResidentRuns::Command(words) => writeln!(f, "resident.run = {words:?}")?,
            ResidentRuns::Hosted {
                host,
                what,
                interpreter,
            } => {
                writeln!(f, "resident.{} = {}", host.key(), quoted(what))?;
                writeln!(f, "resident.interpreter = {}", quoted(interpreter))?;
            }
        }
        writeln!(f, "resident.dir = {}", quoted(self.dir.display()))?;
        writeln!(
            f,
            "resident.document_root = {}",
            quoted(self.document_root.display())
        )?;
        let pass = self.pass_authorization;
        writeln!(f, "resident.pass_authorization = {pass}")?;
        writeln!(f, "resident.dev = {}", self.dev)?;
        writeln!(f, "resident.watch = {:?}", self.watch)?;
        writeln!(f, "resident.carrier = {}", quoted(self.carrier.word()))?;
        let shared = self.shared;
        let chunk = size_text(shared.chunk_bytes as u64);
        writeln!(f, "resident.shared.chunks = {}", shared.chunk_count)?;
        writeln!(f, "resident.shared.chunk = {chunk}")?;
        self.fmt_workers(f)?;
        writeln!(f, "resident.queue.max = {}", self.queue)?;
        writeln!(f, "resident.queue.wait = {}", duration_text(self.wait))?;
        let timeout = &self.timeout;
        for (name, time) in [
            ("start", timeout.start),
            ("first_byte", timeout.first_byte),
            ("total", timeout.total),
            ("progress", timeout.progress),
            ("tunnel", timeout.tunnel),
        ] {
            writeln!(f, "resident.timeout.{name} = {}", duration_text(time))?;
        }
        writeln!(f, "resident.grace = {}", duration_text(self.grace))
    }

    fn fmt_workers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workers = &self.workers;
        writeln!(f, "resident.workers.min = {}", workers.min)?;
        match workers.max {
            Some(max) => writeln!(f, "resident.workers.max = {max}")?,
            None => writeln!(f, "resident.workers.max = twice the cores")?,
        }
        let concurrency = workers.concurrency;
        writeln!(f, "resident.workers.concurrency = {concurrency}")?;
        let idle = duration_text(workers.idle_timeout);
        writeln!(f, "resident.workers.idle_timeout = {idle}")?;
        let requests = workers.max_requests;
        writeln!(f, "resident.workers.max_requests = {requests}")?;
        let age = duration_text(workers.max_age);
        writeln!(f, "resident.workers.max_age = {age}")?;
        let memory = size_text(workers.max_memory);
        writeln!(f, "resident.workers.max_memory = {memory}")
    }
}
