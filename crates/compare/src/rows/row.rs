//! What a row is.

use std::borrow::Cow;

use hob_load::{Protocol, Reuse};
use serde::{Deserialize, Serialize};

use crate::server::Extra;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// The rows that say most, under two minutes.
    Quick,
    /// Those of the old tables, about ten minutes.
    Usual,
    /// All, under half an hour.
    Full,
}

impl Scope {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scope::Quick => "quick",
            Scope::Usual => "usual",
            Scope::Full => "full",
        }
    }
}

/// Rows that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum RowGroup {
    /// Files over HTTP/1.1 in clear text, connections kept.
    Files,
    /// The same with one connection per request.
    Close,
    /// Files that no server keeps in its own memory.
    Uncached,
    /// Files over TLS.
    Secure,
    /// Files over HTTP/2 and HTTP/3.
    Multiplexed,
    /// Files that are sent compressed.
    Compressed,
    /// The same file on several file systems.
    Stored,
    /// Large files.
    Large,
    /// A large file to many clients at once.
    Flow,
    /// Programs.
    Scripts,
    /// Long answers and long requests of programs.
    Stream,
    /// Programs on another machine.
    Remote,
    /// Every way that hob has to make one answer.
    Ways,
    /// hob with something switched on.
    Cost,
    /// hob with other sizes of what carries answers.
    Sweep,
}

/// What CPU time is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Per {
    /// Answers as expected.
    Request,
    /// Millions of bytes of bodies, those of requests where they have some.
    Megabyte,
}

/// What is asked of an entrant's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RowRequest {
    /// All of it.
    Whole,
    /// The first bytes of it (`Range`): as many as its answer must have.
    Part,
    /// That it takes a body of so many bytes.
    Upload(u64),
    /// One of the many files below it, drawn at random.
    AnyFile,
    /// All of it, compressed with gzip where the server does so: as many bytes as its answer must
    /// have, or any number that is not that of the plain one where the entrant says none.
    Gzip,
    /// All of it, by somebody with a name and a password.
    SignedIn,
    /// All of it, by somebody with a token.
    Token,
}

/// One row: the same work for several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ComparisonRow {
    /// Its name for `--only`, JSON and comparisons.
    pub(crate) id: String,
    /// What it is, for people.
    pub(crate) title: String,
    /// The same in short, among others of its group.
    pub(crate) short: String,
    /// Where it belongs.
    pub(crate) group: RowGroup,
    /// The smallest scope that has it.
    pub(crate) scope: Scope,
    /// Connections.
    pub(crate) connections: usize,
    /// Client addresses that they come from in turn; 1 for the system's choice.
    pub(crate) sources: usize,
    /// Whether they are kept.
    pub(crate) reuse: Reuse,
    /// What is spoken.
    pub(crate) protocol: Protocol,
    /// Requests at once on each connection.
    pub(crate) streams: usize,
    /// TLS or clear text.
    pub(crate) is_secure: bool,
    /// One answer is a round.
    pub(crate) is_single: bool,
    /// What the kernel keeps of the file is thrown away before each request.
    pub(crate) is_cold: bool,
    /// What is asked for.
    pub(crate) request: RowRequest,
    /// What CPU time is divided by.
    pub(crate) per: Per,
    /// Ids of old figures.
    pub(crate) then: Vec<String>,
    /// What the old documents advised about it.
    pub(crate) advice: Cow<'static, str>,
    /// Who does the work; the first is what the others are compared with.
    pub(crate) entrants: Vec<Entrant>,
}

/// Who does the work of a row, and where it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entrant {
    /// What the table calls it.
    pub(crate) label: String,
    /// The server, by its name.
    pub(crate) server: String,
    /// What is switched on in it.
    pub(crate) extra: Extra,
    /// What is asked for.
    pub(crate) path: String,
    /// Bytes of the body that must come.
    pub(crate) bytes: u64,
}

impl ComparisonRow {
    /// A row in clear text over kept connections; more is said of it where it is made.
    pub(crate) fn new(
        id: String,
        title: String,
        group: RowGroup,
        connections: usize,
    ) -> ComparisonRow {
        let title = format!("{title}, {}", connections_text(connections));
        ComparisonRow {
            id,
            short: title.clone(),
            title,
            group,
            scope: Scope::Usual,
            connections,
            sources: 1,
            reuse: Reuse::KeepAlive,
            protocol: Protocol::H1,
            streams: 1,
            is_secure: false,
            is_single: false,
            is_cold: false,
            request: RowRequest::Whole,
            per: Per::Request,
            then: vec![],
            advice: Cow::Borrowed(""),
            entrants: vec![],
        }
    }

    /// Has other builds of hob do what the first one does, each in the same ways.
    pub(super) fn with_builds(&mut self, first: &str, others: &[&str]) {
        let own = self.entrants.iter().filter(|one| one.server == first);
        let own: Vec<Entrant> = own.cloned().collect();
        for other in others {
            let twin = |entrant: &Entrant| Entrant {
                label: match entrant.label.strip_prefix(first) {
                    Some(way) => format!("{other}{way}"),
                    None => format!("{other}: {}", entrant.label),
                },
                server: (*other).to_owned(),
                ..entrant.clone()
            };
            self.entrants.extend(own.iter().map(twin));
        }
    }

    /// Puts the figures of these ids beside it, where there are any.
    pub(super) fn beside(&mut self, ids: impl IntoIterator<Item = String>) {
        let is_known = |id: &String| hob_load::history::figures_of(id).next().is_some();
        self.then.extend(ids.into_iter().filter(is_known));
    }
}

/// In which way an entrant does the work: what its label says besides the server; empty where there
/// is but one.
pub(crate) fn way_of(entrant: &Entrant) -> &str {
    let label = entrant.label.as_str();
    let rest = label.strip_prefix(entrant.server.as_str());
    rest.map_or(label, |rest| rest.trim_start_matches([' ', ',', ':']))
}

/// The word for TLS or none in ids, and what titles say of it.
pub(super) fn carrier_text(is_secure: bool) -> (&'static str, &'static str) {
    match is_secure {
        true => ("tls", "over TLS"),
        false => ("clear", "in clear text"),
    }
}

/// The word for it in ids, and what titles say of it.
pub(super) fn reuse_text(reuse: Reuse) -> (&'static str, &'static str) {
    match reuse {
        Reuse::KeepAlive => ("keep", "connections kept"),
        Reuse::PerRequest => ("close", "one connection per request"),
    }
}

fn connections_text(count: usize) -> String {
    match count {
        1 => "1 connection".to_owned(),
        count => format!("{count} connections"),
    }
}
