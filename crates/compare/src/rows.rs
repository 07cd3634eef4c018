//! Which rows there are: what is asked of whom, and which old figures stand beside it.

use hob_load::Reuse;

use crate::server::{Extra, Installed};
use crate::site::{FILES, Site, file_name};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The rows that say most, under two minutes.
    Quick,
    /// Those of the old tables, about ten minutes.
    Usual,
    /// All, under half an hour.
    Full,
}

/// Rows that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Files over HTTP/1.1 in clear text, connections kept.
    Files,
    /// The same with one connection per request.
    Close,
    /// Files over TLS.
    Secure,
    /// Files over HTTP/2 and HTTP/3.
    Later,
    /// Large files.
    Large,
    /// Programs.
    Scripts,
    /// One long answer of a program.
    Stream,
    /// hob with something switched on.
    Cost,
}

/// What CPU time is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Per {
    /// Answers.
    Request,
    /// Millions of bytes of bodies.
    Megabyte,
}

/// One row: the same work for several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Its name for `--only`, JSON and comparisons.
    pub(crate) id: String,
    /// What it is, for people.
    pub(crate) title: String,
    /// Where it belongs.
    pub(crate) group: Group,
    /// The smallest scope that has it.
    pub(crate) scope: Scope,
    /// Connections.
    pub(crate) connections: usize,
    /// Whether they are kept.
    pub(crate) reuse: Reuse,
    /// TLS or clear text.
    pub(crate) is_secure: bool,
    /// One answer is a round.
    pub(crate) is_single: bool,
    /// What CPU time is divided by.
    pub(crate) per: Per,
    /// Ids of old figures.
    pub(crate) then: Vec<String>,
    /// Who does the work; the first is what the others are compared with.
    pub(crate) entrants: Vec<Entrant>,
    /// Why the row has no figures yet.
    pub(crate) unmeasured: Option<&'static str>,
}

/// Who does the work of a row, and where it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
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

const NO_STREAMS: &str = "the load generator does not speak it yet";

/// All rows for these servers and what they can serve, in the order in which they are measured.
pub(crate) fn rows(servers: &[Installed], site: &Site) -> Vec<Row> {
    let mut rows = vec![];
    for connections in [1, 10] {
        for (name, bytes) in FILES.iter().filter(|(_, bytes)| *bytes <= 64 << 10) {
            let file = Small {
                name,
                bytes: *bytes,
                connections,
            };
            rows.push(file.row(servers, Group::Files, Reuse::KeepAlive));
            rows.push(file.row(servers, Group::Close, Reuse::PerRequest));
            if site.certificate.is_some() {
                rows.push(file.row(servers, Group::Secure, Reuse::KeepAlive));
                rows.push(file.row(servers, Group::Secure, Reuse::PerRequest));
            }
            rows.push(file.later("h2"));
            rows.push(file.later("h3"));
        }
    }
    rows.sort_by_key(|row| row.group);
    rows
}

/// A file of the small sizes.
struct Small {
    name: &'static str,
    bytes: u64,
    connections: usize,
}

impl Small {
    fn row(&self, servers: &[Installed], group: Group, reuse: Reuse) -> Row {
        let Small {
            name,
            bytes,
            connections,
        } = *self;
        let is_secure = group == Group::Secure;
        let carrier = if is_secure { "tls" } else { "clear" };
        let kept = if reuse == Reuse::KeepAlive {
            "keep"
        } else {
            "close"
        };
        let mut then = match (is_secure, reuse) {
            (false, Reuse::PerRequest) => vec![format!("A.file.cache.{name}.c{connections}")],
            _ => vec![format!("B.h1.{carrier}.{name}.c{connections}")],
        };
        then.retain(|id| crate::history::figures(id).next().is_some());
        let scope = match (group, reuse, name, connections) {
            (Group::Files, ..) => Scope::Quick,
            (Group::Close, _, "0k", 10) => Scope::Quick,
            (Group::Secure, _, "0k", 10) => Scope::Quick,
            (Group::Secure, Reuse::KeepAlive, "64k", 10) => Scope::Quick,
            _ => Scope::Usual,
        };
        let path = format!("/{}", file_name(name, bytes));
        Row {
            id: format!("file.h1.{carrier}.{kept}.{name}.c{connections}"),
            title: format!(
                "file of {name}, HTTP/1.1 {}, {}, {}",
                if is_secure {
                    "over TLS"
                } else {
                    "in clear text"
                },
                if reuse == Reuse::KeepAlive {
                    "connections kept"
                } else {
                    "one connection per request"
                },
                connections_text(connections),
            ),
            group,
            scope,
            connections,
            reuse,
            is_secure,
            is_single: false,
            per: Per::Request,
            then,
            entrants: everybody(servers, &path, bytes),
            unmeasured: None,
        }
    }

    fn later(&self, protocol: &str) -> Row {
        let Small {
            name, connections, ..
        } = *self;
        let mut row = self.row(&[], Group::Later, Reuse::KeepAlive);
        row.id = format!("file.{protocol}.tls.keep.{name}.c{connections}");
        row.title = format!(
            "file of {name}, HTTP/{} over TLS, {}",
            &protocol[1..],
            connections_text(connections)
        );
        row.is_secure = true;
        row.then = vec![format!("B.{protocol}.tls.{name}.c{connections}")];
        row.then
            .retain(|id| crate::history::figures(id).next().is_some());
        row.unmeasured = Some(NO_STREAMS);
        row
    }
}

/// Every server with the same path.
fn everybody(servers: &[Installed], path: &str, bytes: u64) -> Vec<Entrant> {
    let entrant = |server: &Installed| Entrant {
        label: server.name.clone(),
        server: server.name.clone(),
        extra: Extra::None,
        path: path.to_owned(),
        bytes,
    };
    servers.iter().map(entrant).collect()
}

fn connections_text(count: usize) -> String {
    match count {
        1 => "1 connection".to_owned(),
        count => format!("{count} connections"),
    }
}

/// The rows that were asked for: of a scope, and with one of these texts in their id or group.
pub(crate) fn chosen(rows: Vec<Row>, scope: Scope, only: &[String]) -> Vec<Row> {
    let is_chosen = |row: &Row| match only {
        [] => row.scope <= scope,
        // Whoever names a row means it, in whatever scope it is.
        only => only.iter().any(|part| row.id.contains(part.as_str())),
    };
    rows.into_iter().filter(is_chosen).collect()
}
