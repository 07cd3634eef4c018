//! What a visit keeps: a resident program's only worker.

use std::sync::Arc;

use crate::handle::resident::Resident;
use crate::handle::resident::bound::{Bond, BondEnd, BoundTo};
use crate::handle::resident::exchange::HeadSaid;
use crate::handle::script::stderr::one_line;
use crate::handle::script::visits::handle::shown;
use crate::handle::script::visits::said::{VisitSaid, WeakHandles};
use crate::handle::script::visits::status::ToldKept;
use crate::handle::script::visits::table::{KeepsVisit, KeptVisit, VisitTable};

/// A visit's process, and who asks it.
pub(crate) struct VisitProcess {
    pub(crate) resident: Arc<Resident>,
    /// Handles of it that can be guessed.
    pub(crate) weak: WeakHandles,
}

/// A visit that a process keeps.
pub(crate) type SessionVisit = KeptVisit<VisitProcess>;
/// The visits of one program.
pub(crate) type SessionTable = VisitTable<VisitProcess>;

impl KeepsVisit for VisitProcess {
    fn idle_since_ms(&self) -> Option<u64> {
        self.resident.pool.0.idle_since_ms()
    }

    fn end(&self) {
        self.resident.pool.0.unbind(&BondEnd::Ended);
    }

    fn told(&self) -> ToldKept {
        let worker = self.resident.pool.0.told().workers.pop();
        let worker = worker.unwrap_or_default();
        ToldKept {
            state: match worker.state.is_empty() {
                true => "starting".to_owned(),
                false => worker.state,
            },
            pid: worker.pid,
            memory_bytes: worker.memory_bytes,
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.told().memory_bytes
    }

    const BYTES_USUAL: u64 = 16 << 20;
    const COUNT_MOST: usize = 256;
}

impl BoundTo for SessionVisit {
    fn hear(&self, head: &HeadSaid, now_ms: u64) -> Bond {
        let said = match head {
            HeadSaid::Lines(_, lines) => VisitSaid::of_lines(lines),
            HeadSaid::Read(head) => VisitSaid::of(head.fields.iter()),
            HeadSaid::Tunnel(..) => return Bond::Unchanged,
        };
        let kept = match said.kept(self.keeps.weak) {
            Some(Ok(handle)) => self.own(handle),
            _ => None,
        };
        let kept = kept.and_then(|handle| self.keep(&handle, said.wait, now_ms));
        kept.map_or(Bond::Over, Bond::Kept)
    }

    fn let_go(&self, why: &BondEnd) {
        if !self.forget() {
            return;
        }
        let program = self.keeps.resident.settings.runs.name();
        let visit = shown(self.handle().as_bytes());
        match why {
            BondEnd::Answered => tracing::debug!(program, visit, "a visit is over"),
            BondEnd::Ended => tracing::info!(program, visit, "a visit was ended"),
            BondEnd::Idle => {
                tracing::info!(
                    program,
                    visit,
                    "a visit ended: its visitor did not come back"
                );
            }
            BondEnd::Age => tracing::info!(program, visit, "a visit ended: it was too old"),
            BondEnd::Died(how) => {
                let how = one_line(how);
                tracing::warn!(program, visit, "a visit ended with its program: {how}");
            }
        }
    }
}
