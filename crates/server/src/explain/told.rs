//! The explanation as data, in the order in which things are decided.

use std::path::PathBuf;

use super::answer::{ExplainedRule, Setting};
use crate::route::template::PathTemplate;
use crate::serve::captured::CapturedRequest;

/// What would answer a request, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) listeners: Vec<Listener>,
    /// Why the engine refuses the head.
    pub(crate) refused: Option<String>,
    pub(crate) host: String,
    pub(crate) path: Option<Path>,
    pub(crate) site: Option<ExplainedSite>,
    /// Routes tried, in order; the last is the one that matches, if one does.
    pub(crate) routes: Vec<ExplainedRoute>,
    /// Those of them that are not for who has signed in, by their indexes, and why not.
    pub(crate) left: Vec<(usize, String)>,
    /// Times a route was looked for.
    pub(crate) looks: usize,
    pub(crate) rewrite: Option<Rewrite>,
    /// The path that another route answers, of the file that was found: a folder's index, or a
    /// fallback.
    pub(crate) answered_as: Option<String>,
    pub(crate) handler: Option<Handler>,
    pub(crate) disk: Option<OnDisk>,
    /// What would run: the answer is its own.
    pub(crate) program: Option<ExplainedProgram>,
    /// Rules about clients that were asked, in order.
    pub(crate) rules: Vec<ExplainedRule>,
    pub(crate) answer: ExplainedAnswer,
    /// Largest request body, in bytes.
    pub(crate) body_bytes_max: Option<u64>,
    pub(crate) log: Option<Log>,
    /// What else should be known.
    pub(crate) notes: Vec<String>,
}

/// A listener the request can come in by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) address: String,
    /// The URL leads here, without a proxy in front.
    pub(crate) is_direct: bool,
    /// The listener's own log; `None` is none.
    pub(crate) log: Option<String>,
}

/// The request's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// As sent.
    pub(crate) raw: String,
    /// In normal form, or why there is none.
    pub(crate) normal: Result<String, String>,
}

/// The site, and why it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExplainedSite {
    /// Counted from zero.
    pub(crate) index: usize,
    pub(crate) names: Vec<String>,
    /// `name`, `wildcard` or `default`.
    pub(crate) by: &'static str,
    pub(crate) why: String,
    pub(crate) place: String,
}

/// A route that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExplainedRoute {
    /// Counted from zero.
    pub(crate) index: usize,
    pub(crate) path: String,
    pub(crate) place: String,
    /// Why it does not match; `None` when it does.
    pub(crate) mismatch: Option<String>,
    /// Its path matches, and its `when` does not hold.
    pub(crate) is_skipped: bool,
    /// What it captured: name and text.
    pub(crate) captures: Vec<(String, String)>,
}

/// What a rewrite makes of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rewrite {
    pub(crate) to: String,
    /// The new path, or why there is none.
    pub(crate) path: Result<String, String>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handler {
    pub(crate) name: &'static str,
    /// Its settings: key and value, as the config names them.
    pub(crate) settings: Vec<(String, Setting)>,
}

/// A program that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExplainedProgram {
    /// Its file, or the command.
    pub(crate) file: String,
    /// Its arguments, its name first.
    pub(crate) arguments: Vec<String>,
    /// Where it works.
    pub(crate) dir: String,
    /// What names it in the path, and what follows; a command is not told.
    pub(crate) parts: Option<(String, String)>,
}

/// What was found on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnDisk {
    pub(crate) outcome: DiskOutcome,
    /// What answers, or what was looked for.
    pub(crate) path: PathBuf,
    /// How it came to be this one, or what stands in the way.
    pub(crate) why: String,
    /// The file that answers.
    pub(crate) file: Option<FileFacts>,
}

/// What a look at the disk comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskOutcome {
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

    /// The path below its fixed folder that a template gives for a request; that there is none is
    /// told.
    pub(crate) fn captured_name(
        &mut self,
        asked: CapturedRequest<'_>,
        template: &PathTemplate,
    ) -> Option<Vec<u8>> {
        let name = asked.name(template).ok();
        if name.is_none() {
            self.note(
                "what the request gives for a capture is no name of a folder: empty, hidden, or \
                 with a slash or a control character in it"
                    .to_owned(),
            );
        }
        name
    }
}

impl DiskOutcome {
    pub(crate) fn word(self) -> &'static str {
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
pub(crate) struct FileFacts {
    pub(crate) bytes: u64,
    pub(crate) media_type: String,
    /// It answers because nothing else was found.
    pub(crate) is_fallback: bool,
    /// Compressed copies beside it: coding, path and bytes.
    pub(crate) siblings: Vec<(&'static str, PathBuf, u64)>,
    /// Codings it would be compressed in when asked for.
    pub(crate) compressed_on_demand: Vec<&'static str>,
}

/// The answer itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExplainedAnswer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body_bytes: Option<u64>,
    /// Why it is an error, in the words of the request's record.
    pub(crate) reason: Option<String>,
    /// The site's own page is the body.
    pub(crate) is_own_error_page: bool,
}

impl ExplainedAnswer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let field = self
            .fields
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }
}

/// Where the access log line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    /// Log and target; `None` is none. By listener where the listener decides.
    pub(crate) target: LogTarget,
    /// `route`, `site` or `listener`.
    pub(crate) by: &'static str,
}

/// One log, or as many as there are listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogTarget {
    Off,
    To(String),
    ByListener,
}
