//! The audit log: who did what, from where, and what came of it. The last entries are kept in
//! memory; each is told in the diagnostics, and appended to a file where the config names one.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hob_http::{Answered, unix_ms};
use hob_trace::Mutex;
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::reply;
use crate::api::{AuditEntry, AuditLog};
use hob_server::cache::disk_threads::DiskThreads;

/// Entries kept in memory; at one more the oldest goes.
const ENTRIES_MAX: usize = 1000;
/// Lines that wait for the disk; more are told in the diagnostics only.
const LINES_MAX: usize = 1000;
/// Longest part of an entry, in characters.
const PART_CHARS_MAX: usize = 500;
/// The lane of the file pool in which the file is written.
const LANE: u64 = u64::MAX - 2;

/// The audit log.
pub struct Audit {
    state: Arc<Mutex<AuditLogState>>,
    pool: DiskThreads,
}

#[derive(Default)]
struct AuditLogState {
    entries: VecDeque<AuditEntry>,
    file: Option<Arc<File>>,
    lines: VecDeque<String>,
    is_writing: bool,
    lost: AtomicU64,
}

/// Something that was done, or tried.
#[derive(Clone, Debug)]
pub struct Action {
    /// Name of who did it.
    pub who: String,
    /// Where they are.
    pub from: String,
    /// What.
    pub action: String,
    /// What came of it.
    pub outcome: String,
}

impl Audit {
    /// Nothing has happened yet; a file is written by this pool.
    pub fn new(pool: &DiskThreads) -> Audit {
        Audit {
            state: Arc::default(),
            pool: pool.for_lane(LANE),
        }
    }

    /// Writes to this file from now on.
    pub fn set_file(&self, file: Option<File>) {
        self.state.lock().file = file.map(Arc::new);
    }

    /// Takes an entry in.
    pub fn add(&self, action: Action) {
        let cut = |text: String| text.chars().take(PART_CHARS_MAX).collect::<String>();
        let entry = AuditEntry {
            unix_ms: unix_ms(),
            who: cut(action.who),
            from: cut(action.from),
            action: cut(action.action),
            outcome: cut(action.outcome),
        };
        // As JSON, so that no control character gets to a terminal.
        let quoted = |text: &str| Value::from(text).to_string();
        tracing::info!(
            who = %quoted(&entry.who),
            from = %entry.from,
            action = %quoted(&entry.action),
            outcome = %quoted(&entry.outcome),
            "admin action"
        );
        let mut state = self.state.lock();
        if state.file.is_some() {
            match state.lines.len() < LINES_MAX {
                true => state.lines.push_back(format!("{}\n", json!(entry))),
                false => drop(state.lost.fetch_add(1, Ordering::Relaxed)),
            }
        }
        if state.entries.len() >= ENTRIES_MAX {
            state.entries.pop_front();
        }
        state.entries.push_back(entry);
        let must_write = !state.lines.is_empty() && !state.is_writing;
        state.is_writing |= must_write;
        drop(state);
        let shared = Arc::clone(&self.state);
        if must_write && self.pool.run(move || write_lines(&shared)).is_err() {
            self.state.lock().is_writing = false;
        }
    }

    /// Lines that are not in the file.
    pub(super) fn lost(&self) -> u64 {
        self.state.lock().lost.load(Ordering::Relaxed)
    }

    fn told(&self) -> AuditLog {
        let state = self.state.lock();
        AuditLog {
            entries: state.entries.iter().rev().cloned().collect(),
            lost: state.lost.load(Ordering::Relaxed),
        }
    }
}

/// Opens the file of an audit log.
///
/// # Errors
/// Why it cannot be written, with its path.
pub fn open(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).mode(0o600).open(path);
    opened.map_err(|error| format!("admin.audit: cannot write {}: {error}", path.display()))
}

/// One job writes at a time, so lines keep their order.
fn write_lines(state: &Mutex<AuditLogState>) {
    loop {
        let mut locked = state.lock();
        let (Some(line), Some(file)) = (locked.lines.pop_front(), locked.file.clone()) else {
            locked.is_writing = false;
            return;
        };
        drop(locked);
        if let Err(error) = (&*file).write_all(line.as_bytes()) {
            tracing::error!(%error, "a line of the audit log could not be written");
            state.lock().lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// `GET /v1/audit`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    Answered::Ready(reply::object(200, &json!(ask.admin.audit.told())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(number: usize) -> Action {
        Action {
            who: "anna\u{1b}[31m".to_owned(),
            from: "127.0.0.1".to_owned(),
            action: format!("stop {number}"),
            outcome: "done".repeat(1000),
        }
    }

    #[test]
    fn the_last_entries_are_kept_and_long_parts_cut() {
        let audit = Audit::new(&DiskThreads::default());
        (0..=ENTRIES_MAX).for_each(|number| audit.add(action(number)));
        let told = audit.told();
        let entries = &told.entries;
        assert_eq!(entries.len(), ENTRIES_MAX);
        assert_eq!(entries[0].action, format!("stop {ENTRIES_MAX}"));
        assert_eq!(entries[0].outcome.len(), PART_CHARS_MAX);
        assert!(!json!(told).to_string().contains('\u{1b}'));
    }

    #[test]
    fn lines_are_written_in_order_until_they_cannot_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let state = AuditLogState {
            file: Some(Arc::new(open(&path).unwrap())),
            lines: (0..3).map(|number| format!("{number}\n")).collect(),
            is_writing: true,
            ..AuditLogState::default()
        };
        let state = Mutex::new(state);
        write_lines(&state);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n1\n2\n");
        assert!(!state.lock().is_writing);
        state.lock().file = Some(Arc::new(File::open(&path).unwrap()));
        state.lock().lines.push_back("3\n".to_owned());
        write_lines(&state);
        assert_eq!(state.lock().lost.load(Ordering::Relaxed), 1);
        assert!(open(folder.path()).unwrap_err().contains("admin.audit"));
    }
}
