//! What is known of scripts and of their interpreters. Whoever shows the page asks for it and gets
//! what is known by now; what is not, or is old, a thread of its own learns, one thing after the
//! other. The thread ends when nothing is left: without a look at the page nothing is learned.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hob_http::thread::Crew;
use hob_trace::Mutex;

use super::runner::{Runner, runner_of};
use super::start_cost::{self, BareStart, Unmeasured};
use hob_server::handle::cgi::{Cgi, Runs};
use hob_server::handle::files::open::Root;

/// How long what is known of a script, and that its interpreter has not changed, is believed.
const RECHECK: Duration = Duration::from_secs(60);
/// How long an interpreter that could not be measured is left alone, unless it changes.
const FAILED_AGAIN: Duration = Duration::from_secs(600);
/// How long one is left alone that could not be started at that moment.
const PASSING_AGAIN: Duration = Duration::from_secs(2);
/// Scripts that are known; when there are more, those not looked at for a while go.
const SCRIPTS_MAX: usize = 1024;
/// Interpreters that are measured, each once for every handler whose settings differ.
pub(crate) const COSTS_MAX: usize = 64;

/// A script of a handler.
#[derive(Clone)]
pub(crate) struct ScriptRef {
    pub(crate) cgi: Arc<Cgi>,
    pub(crate) file: Box<[u8]>,
}

/// What is known of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Learned {
    /// Who runs it.
    pub(crate) runner: Result<Runner, String>,
    /// CPU time of a bare start of that, in microseconds.
    pub(crate) start_us: Result<u64, String>,
}

/// All that is known.
#[derive(Default)]
pub(crate) struct Learner(Mutex<LearnerState>);

#[derive(Default)]
struct LearnerState {
    scripts: HashMap<Key, LearnedScript>,
    costs: HashMap<(PathBuf, u64), Cost>,
    wanted: VecDeque<ScriptRef>,
    is_learning: bool,
}

/// A script: the number of the way it runs, and its file.
type Key = (u64, Box<[u8]>);

struct LearnedScript {
    learned: Learned,
    at: Instant,
    /// It was the moment's fault that no more is known: who asks has it learned again soon.
    is_passing: bool,
}

impl LearnedScript {
    fn is_old(&self) -> bool {
        let believed = match self.is_passing {
            true => PASSING_AGAIN,
            false => RECHECK,
        };
        self.at.elapsed() >= believed
    }
}

/// What a bare start of a file costs, as the file was at a moment.
struct Cost {
    changed: Option<SystemTime>,
    at: Instant,
    start_us: Result<u64, String>,
}

impl Learner {
    /// What is known of a script. What is not, or may have changed, is learned from now on.
    pub(crate) fn ask(
        self: &Arc<Learner>,
        subject: &ScriptRef,
        crew: &Arc<Crew>,
    ) -> Option<Learned> {
        let mut state = self.0.lock();
        let key = (subject.cgi.way, subject.file.clone());
        let known = state.scripts.get(&key);
        let is_old = known.is_none_or(LearnedScript::is_old);
        let learned = known.map(|known| known.learned.clone());
        if is_old && !state.wanted.iter().any(|one| one.is(&key)) {
            if state.wanted.len() < SCRIPTS_MAX {
                state.wanted.push_back(subject.clone());
            }
            if !state.is_learning {
                state.is_learning = self.start(crew);
            }
        }
        learned
    }

    /// Has a thread learn. It is waited for by nobody: each of its waits ends, and what it would
    /// still have learned is of no use to a server that stops.
    fn start(self: &Arc<Learner>, crew: &Arc<Crew>) -> bool {
        let (learner, crew) = (Arc::clone(self), Arc::clone(crew));
        let thread = std::thread::Builder::new().name("hob-advice".to_owned());
        let started = thread.spawn(move || learner.learn(&crew));
        started
            .inspect_err(|error| tracing::error!(%error, "nothing is learned of interpreters"))
            .is_ok()
    }

    fn learn(&self, crew: &Arc<Crew>) {
        while let Some(subject) = self.next() {
            let runner = runner_of(&subject.cgi, &subject.file);
            let start_us = match &runner {
                Ok(runner) => self.start_us(&subject.cgi, runner, crew),
                Err(text) => Err(Unmeasured::Its(text.clone())),
            };
            let is_passing = matches!(start_us, Err(Unmeasured::Passing(_)));
            let start_us = start_us.map_err(|why| match why {
                Unmeasured::Its(text) | Unmeasured::Passing(text) => text,
            });
            let known = LearnedScript {
                learned: Learned { runner, start_us },
                at: Instant::now(),
                is_passing,
            };
            let mut state = self.0.lock();
            if state.scripts.len() >= SCRIPTS_MAX {
                state
                    .scripts
                    .retain(|_, one| one.at.elapsed() < 2 * RECHECK);
            }
            if state.scripts.len() < SCRIPTS_MAX {
                let key = (subject.cgi.way, subject.file);
                state.scripts.insert(key, known);
            }
        }
    }

    /// The next one that is wanted; when there is none, the thread is over.
    fn next(&self) -> Option<ScriptRef> {
        let mut state = self.0.lock();
        let next = state.wanted.pop_front();
        state.is_learning = next.is_some();
        next
    }

    /// What a bare start costs: what is known, unless the file has changed since.
    fn start_us(&self, cgi: &Cgi, runner: &Runner, crew: &Arc<Crew>) -> Result<u64, Unmeasured> {
        let path = runner.path();
        let Ok(found) = std::fs::metadata(path) else {
            let text = format!("{} is not there", path.display());
            return Err(Unmeasured::Its(text));
        };
        let changed = found.modified().ok();
        let key = (path.to_owned(), cgi.way);
        if let Some(cost) = self.0.lock().costs.get(&key)
            && cost.changed == changed
            && (cost.start_us.is_ok() || cost.at.elapsed() < FAILED_AGAIN)
        {
            return cost.start_us.clone().map_err(Unmeasured::Its);
        }
        let mut state = self.0.lock();
        if state.costs.len() >= COSTS_MAX && !state.costs.contains_key(&key) {
            // Those of earlier configs and of pages that nobody opens any more.
            state
                .costs
                .retain(|_, cost| cost.at.elapsed() < FAILED_AGAIN);
        }
        if state.costs.len() >= COSTS_MAX && !state.costs.contains_key(&key) {
            return Err(Unmeasured::Its(format!(
                "{COSTS_MAX} interpreters have been measured, which is as many as are kept"
            )));
        }
        drop(state);
        let start = BareStart {
            program: cgi.program,
            path: std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec(),
            dir: dir_of(cgi),
        };
        let told = |text| format!("{} could not be measured: {text}", path.display());
        let start_us = match start_cost::measure(crew, &start) {
            Ok(start_us) => Ok(start_us),
            Err(Unmeasured::Its(text)) => Err(told(text)),
            Err(Unmeasured::Passing(text)) => return Err(Unmeasured::Passing(told(text))),
        };
        let cost = Cost {
            changed,
            at: Instant::now(),
            start_us: start_us.clone(),
        };
        self.0.lock().costs.insert(key, cost);
        start_us.map_err(Unmeasured::Its)
    }
}

impl ScriptRef {
    fn is(&self, key: &Key) -> bool {
        (self.cgi.way, &self.file) == (key.0, &key.1)
    }
}

/// A folder that a handler's programs may work in.
fn dir_of(cgi: &Cgi) -> Vec<u8> {
    let of = |root: &Root| std::os::unix::ffi::OsStrExt::as_bytes(root.path().as_os_str()).to_vec();
    match &cgi.runs {
        Runs::Folder(folder) => of(&folder.root),
        Runs::Captured(captured) => of(&captured.folders.fixed),
        Runs::Script(script) => {
            let slash = script.file.iter().rposition(|byte| *byte == b'/');
            script.file[..slash.unwrap_or(0).max(1)].to_vec()
        }
        Runs::Command(command) => command.dir.clone(),
    }
}
