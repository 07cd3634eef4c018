//! Which rows there are: what is asked of whom, and which old figures stand beside it.

mod cost;
mod files;
mod programs;

use hob_load::Reuse;

use crate::server::{Extra, Installed};
use crate::site::Site;

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
    /// Files that no server keeps in its own memory.
    Uncached,
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
    /// The same in short, among others of its group.
    pub(crate) short: String,
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
    /// What the kernel keeps of the file is thrown away before each request.
    pub(crate) is_cold: bool,
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

/// All rows for these servers and what they can serve, in the order in which they are measured.
pub(crate) fn rows(servers: &[Installed], site: &Site) -> Vec<Row> {
    let mut rows = files::rows(servers, site);
    rows.extend(programs::rows(servers, site));
    rows.extend(cost::rows());
    rows.sort_by_key(|row| row.group);
    rows
}

/// The rows that were asked for: of a scope, or those whose id has the words of one of these texts
/// beside each other (`c1` is no part of `c10`).
pub(crate) fn chosen(rows: Vec<Row>, scope: Scope, only: &[String]) -> Vec<Row> {
    let is_chosen = |row: &Row| match only {
        [] => row.scope <= scope,
        // Whoever names a row means it, in whatever scope it is.
        only => only.iter().any(|part| has_words(&row.id, part)),
    };
    rows.into_iter().filter(is_chosen).collect()
}

fn has_words(id: &str, part: &str) -> bool {
    let words: Vec<&str> = part.split('.').filter(|word| !word.is_empty()).collect();
    let all: Vec<&str> = id.split('.').collect();
    !words.is_empty() && all.windows(words.len()).any(|some| some == words)
}

impl Row {
    /// A row in clear text over kept connections; more is said of it where it is made.
    fn new(id: String, title: String, group: Group, connections: usize) -> Row {
        let title = format!("{title}, {}", connections_text(connections));
        Row {
            id,
            short: title.clone(),
            title,
            group,
            scope: Scope::Usual,
            connections,
            reuse: Reuse::KeepAlive,
            is_secure: false,
            is_single: false,
            is_cold: false,
            per: Per::Request,
            then: vec![],
            entrants: vec![],
            unmeasured: None,
        }
    }

    /// Puts the figures of these ids beside it, where there are any.
    fn beside(&mut self, ids: impl IntoIterator<Item = String>) {
        let is_known = |id: &String| crate::history::figures(id).next().is_some();
        self.then.extend(ids.into_iter().filter(is_known));
    }
}

fn connections_text(count: usize) -> String {
    match count {
        1 => "1 connection".to_owned(),
        count => format!("{count} connections"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Kind;
    use std::path::PathBuf;

    fn site() -> Site {
        Site {
            root: PathBuf::from("/w"),
            cgi: PathBuf::from("/c"),
            certificate: Some(crate::site::Pair {
                certificate: "c".to_owned(),
                key: "k".to_owned(),
            }),
            c: Some(PathBuf::from("/c/program")),
            module: Some(PathBuf::from("/m")),
            resident: Some(PathBuf::from("/c/resident")),
            interpreters: vec!["sh", "perl", "python3"],
            lacks: vec![],
        }
    }

    fn servers() -> Vec<Installed> {
        let all = [
            ("hob", Kind::Hob),
            ("nginx", Kind::Nginx),
            ("apache", Kind::Apache),
        ];
        all.map(|(name, kind)| Installed {
            name: name.to_owned(),
            kind,
            program: PathBuf::from(name),
            version: "1.0".to_owned(),
        })
        .into()
    }

    #[test]
    fn every_row_has_a_name_of_its_own_and_hob_in_it_first() {
        let rows = rows(&servers(), &site());
        let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rows.len());
        for row in &rows {
            match row.unmeasured {
                Some(_) => assert!(row.entrants.is_empty(), "{}", row.id),
                None => assert_eq!(row.entrants[0].server, "hob", "{}", row.id),
            }
        }
    }

    #[test]
    fn every_printed_figure_has_a_row_beside_which_it_stands() {
        let rows = rows(&servers(), &site());
        let shown: Vec<&String> = rows.iter().flat_map(|row| &row.then).collect();
        for then in crate::history::THEN {
            // Ratios stand beside the table of ratios.
            let is_elsewhere = then.id.starts_with("E.");
            let is_shown = shown.iter().any(|id| *id == then.id);
            assert!(is_shown || is_elsewhere, "{}", then.id);
        }
    }

    #[test]
    fn scopes_grow_and_names_choose_whole_words() {
        let all = rows(&servers(), &site());
        let count = |scope| chosen(all.clone(), scope, &[]).len();
        assert!(count(Scope::Quick) < count(Scope::Usual));
        assert!(count(Scope::Usual) < count(Scope::Full));
        assert_eq!(count(Scope::Full), all.len());
        let of = |part: &str| chosen(all.clone(), Scope::Quick, &[part.to_owned()]);
        assert_eq!(of("file.h1.clear.keep.1k.c1").len(), 1);
        assert!(of(".clear.").len() > of("file.h1.clear").len());
        assert_eq!(of("nonsense"), []);
        assert_eq!(of("."), []);
    }
}
