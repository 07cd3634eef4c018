//! The explanation as data, in the order in which things are decided.

use std::path::PathBuf;

/// What would answer a request, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) listeners: Vec<Listener>,
    /// Why the engine refuses the head.
    pub(super) refused: Option<String>,
    pub(super) host: String,
    pub(super) path: Option<Path>,
    pub(super) site: Option<Site>,
    /// Routes tried, in order; the last is the one that matches, if one does.
    pub(super) routes: Vec<Route>,
    pub(super) rewrite: Option<Rewrite>,
    pub(super) handler: Option<Handler>,
    pub(super) disk: Option<OnDisk>,
    /// What would run: the answer is its own.
    pub(super) program: Option<Program>,
    pub(super) answer: Answer,
    /// Largest request body, in bytes.
    pub(super) body_bytes_max: Option<u64>,
    pub(super) log: Option<Log>,
    /// What else should be known.
    pub(super) notes: Vec<String>,
}

/// A listener the request can come in by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) address: String,
    /// The URL leads here, without a proxy in front.
    pub(super) is_direct: bool,
    /// The listener's own log; `None` is none.
    pub(super) log: Option<String>,
}

/// The request's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// As sent.
    pub(super) raw: String,
    /// In normal form, or why there is none.
    pub(super) normal: Result<String, String>,
}

/// The site, and why it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// Counted from zero.
    pub(super) index: usize,
    pub(super) names: Vec<String>,
    /// `name`, `wildcard` or `default`.
    pub(super) by: &'static str,
    pub(super) why: String,
    pub(super) place: String,
}

/// A route that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Counted from zero.
    pub(super) index: usize,
    pub(super) path: String,
    pub(super) place: String,
    /// Why it does not match; `None` when it does.
    pub(super) mismatch: Option<String>,
    /// What it captured: name and text.
    pub(super) captures: Vec<(String, String)>,
}

/// What a rewrite makes of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    pub(super) to: String,
    /// The new path, or why there is none.
    pub(super) path: Result<String, String>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handler {
    pub(super) name: &'static str,
    /// Its settings: key and value, as the config names them.
    pub(super) settings: Vec<(&'static str, Setting)>,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Flag(bool),
    Number(u64),
    Text(String),
    Texts(Vec<String>),
}

/// A program that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Its file, or the command.
    pub(super) file: String,
    /// Its arguments, its name first.
    pub(super) arguments: Vec<String>,
    /// Where it works.
    pub(super) dir: String,
    /// What names it in the path, and what follows; a command is not told.
    pub(super) parts: Option<(String, String)>,
}

/// What was found on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OnDisk {
    pub(super) outcome: DiskOutcome,
    /// What answers, or what was looked for.
    pub(super) path: PathBuf,
    /// How it came to be this one, or what stands in the way.
    pub(super) why: String,
    /// The file that answers.
    pub(super) file: Option<FileFacts>,
}

/// What a look at the disk comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskOutcome {
    File,
    Listing,
    AddSlash,
    Folder,
    Missing,
    Forbidden,
    Hidden,
    Failed,
}

impl Explanation {
    /// Adds what else should be known.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }
}

impl DiskOutcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            DiskOutcome::File => "file",
            DiskOutcome::Listing => "listing",
            DiskOutcome::AddSlash => "add-slash",
            DiskOutcome::Folder => "folder",
            DiskOutcome::Missing => "missing",
            DiskOutcome::Forbidden => "forbidden",
            DiskOutcome::Hidden => "hidden",
            DiskOutcome::Failed => "failed",
        }
    }
}

/// A file that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileFacts {
    pub(super) bytes: u64,
    pub(super) media_type: String,
    /// It answers because nothing else was found.
    pub(super) is_fallback: bool,
    /// Compressed copies beside it: coding, path and bytes.
    pub(super) siblings: Vec<(&'static str, PathBuf, u64)>,
    /// Codings it would be compressed in when asked for.
    pub(super) compressed_on_demand: Vec<&'static str>,
}

/// The answer itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body_bytes: Option<u64>,
    /// Why it is an error, in the words of the request's record.
    pub(super) reason: Option<String>,
    /// The site's own page is the body.
    pub(super) is_own_error_page: bool,
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let field = self
            .fields
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }
}

/// Where the access log line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Log {
    /// Log and target; `None` is none. By listener where the listener decides.
    pub(super) target: LogTarget,
    /// `route`, `site` or `listener`.
    pub(super) by: &'static str,
}

/// One log, or as many as there are listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogTarget {
    Off,
    To(String),
    ByListener,
}
