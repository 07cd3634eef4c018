//! Rows of hob alone: what it costs to have something on.

use super::{Entrant, Group, Row, Scope};
use crate::server::Extra;

pub(super) fn rows() -> Vec<Row> {
    let is_root = rustix::process::geteuid().is_root();
    // Only root may be served before others.
    let (level, nice) = match is_root {
        true => (-5, "nice level -5"),
        false => (5, "nice level 5"),
    };
    let all: [(&str, &str, Scope, Vec<(&str, Extra)>, Vec<&str>); 4] = [
        (
            "log",
            "an access log",
            Scope::Quick,
            vec![
                ("combined log", Extra::CombinedLog),
                ("log in a format of one's own", Extra::CustomLog),
            ],
            vec!["A.log.names.0k.c1"],
        ),
        (
            "routes",
            "many routes",
            Scope::Usual,
            vec![
                ("10 routes", Extra::Routes(10)),
                ("1,000 routes", Extra::Routes(1000)),
                ("10,000 routes", Extra::Routes(10_000)),
            ],
            vec![],
        ),
        (
            "nice",
            nice,
            Scope::Usual,
            vec![(nice, Extra::Nice(level))],
            vec![],
        ),
        (
            "cache",
            "no cache of files",
            Scope::Usual,
            vec![("cache off: the kernel's page cache", Extra::NoCache)],
            vec!["A.file.nocache.0k.c10", "A.file.cache.0k.c10"],
        ),
    ];
    all.into_iter()
        .map(|(name, title, scope, more, then)| {
            let id = format!("cost.{name}.clear.keep.0k.c10");
            let title = format!("hob with {title}, file of 0k");
            let mut row = Row::new(id, title, Group::Cost, 10);
            row.scope = scope;
            row.entrants = vec![entrant("hob", Extra::None)];
            row.entrants
                .extend(more.into_iter().map(|(label, extra)| entrant(label, extra)));
            row.beside(then.into_iter().map(str::to_owned));
            row
        })
        .collect()
}

fn entrant(label: &str, extra: Extra) -> Entrant {
    Entrant {
        label: label.to_owned(),
        server: "hob".to_owned(),
        extra,
        path: "/0k.txt".to_owned(),
        bytes: 0,
    }
}
