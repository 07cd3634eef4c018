//! One program under hob and under a peer, asked what its table says.
//!
//! Compared are status, body and the fields that are the program's. Framing and connection are each
//! server's own, and so are `Date` and `Server`. The address of a server in a body or field is
//! replaced, for each has its own port.

use std::fmt::Write as _;

use crate::ask::{Answer, ask};
use crate::place::Place;
use crate::servers::{self, Mount, PEERS, Peer, Server};
use crate::table::{Case, Difference, Table};

/// Fields that are not the program's.
const OF_SERVER: &[&str] = &[
    "accept-ranges",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
];
const NONE: &str = "-";
const ADDRESS: &str = "HOST";
const TIME: &str = "a time";

/// Named texts in order.
type Facts = Vec<(String, String)>;

/// Runs a table over hob and each peer.
pub(crate) fn by_table(place: &Place, mount: &Mount, text: &str) {
    let table = Table::read(text);
    let hob = servers::hob(place, mount);
    let ours: Vec<Facts> = table
        .cases
        .iter()
        .map(|case| asked(&hob, case, &table))
        .collect();
    let mut report = String::new();
    for (case, facts) in table.cases.iter().zip(&ours) {
        report += &claims(case, facts);
    }
    if let Some(warm) = servers::warm_hob(place, mount) {
        for (case, ours) in table.cases.iter().zip(&ours) {
            for ((name, cgi), (_, warm)) in ours.iter().zip(&asked(&warm, case, &table)) {
                if cgi != warm {
                    let (cgi, warm) = (first_other(cgi, warm), first_other(warm, cgi));
                    let _ = writeln!(report, "{}\n  warm: {name}: {cgi} | {warm}", case.claim);
                }
            }
        }
    }
    for peer in PEERS {
        let Some(server) = servers::peer(peer, place, mount) else {
            continue;
        };
        for (case, ours) in table.cases.iter().zip(&ours) {
            let theirs = asked(&server, case, &table);
            report += &differences(case, peer, ours, &theirs);
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

fn asked(server: &Server, case: &Case, table: &Table) -> Facts {
    let answer = ask(server.port, &case.head, case.body.as_bytes());
    facts(&answer, server.port, table)
}

fn facts(answer: &Answer, port: u16, table: &Table) -> Facts {
    let address = format!("127.0.0.1:{port}");
    let mut facts = vec![("status".to_owned(), answer.status.to_string())];
    let mut names: Vec<&String> = answer.fields.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names
        .into_iter()
        .filter(|name| !OF_SERVER.contains(&name.as_str()))
    {
        let values = answer.fields.iter().filter(|(known, _)| known == name);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        // hob says so where it would compress for a client that asked for it.
        if name == "vary" && values == ["Accept-Encoding"] {
            continue;
        }
        let value = match table.times.contains(name) {
            true => TIME.to_owned(),
            false => masked(&values.join(", ").replace(&address, ADDRESS), &table.masks),
        };
        facts.push((name.clone(), value));
    }
    let body = String::from_utf8_lossy(&answer.body).replace(&address, ADDRESS);
    facts.push(("body".to_owned(), masked(&body, &table.masks)));
    facts
}

/// The text without what lies between the two ends of a mask.
fn masked(text: &str, masks: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (begin, end) in masks {
        let mut from = 0;
        while let Some(at) = text[from..].find(begin.as_str()) {
            let start = from + at + begin.len();
            let Some(len) = text[start..].find(end.as_str()) else {
                break;
            };
            text.replace_range(start..start + len, "");
            from = start;
        }
    }
    text
}

fn value<'a>(facts: &'a Facts, name: &str) -> &'a str {
    let found = facts.iter().find(|(known, _)| known == name);
    found.map_or(NONE, |(_, value)| value)
}

/// What is not as the table says of hob.
fn claims(case: &Case, facts: &Facts) -> String {
    let mut text = String::new();
    let (status, body) = (value(facts, "status"), value(facts, "body"));
    if status != case.status.to_string() {
        let _ = writeln!(text, "  hob answers {status}, not {}", case.status);
    }
    for words in case
        .words
        .iter()
        .filter(|words| !body.contains(words.as_str()))
    {
        let _ = writeln!(text, "  hob's body has no {words:?}");
    }
    if text.is_empty() {
        return text;
    }
    let shown: String = body.chars().take(2000).collect();
    format!(
        "{}\n{text}  {facts:?}\n",
        case.claim,
        facts = &facts[..facts.len() - 1]
    ) + &shown
        + "\n\n"
}

/// Differences that are not explained, and explained ones that are not there.
fn differences(case: &Case, peer: Peer, ours: &Facts, theirs: &Facts) -> String {
    let mut text = String::new();
    let is_same = |one: &&Difference| one.peer == peer;
    let mut known: Vec<&Difference> = case.differences.iter().filter(is_same).collect();
    let mut names: Vec<&str> = ours
        .iter()
        .chain(theirs)
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (mine, other) = (value(ours, name), value(theirs, name));
        if mine == other {
            continue;
        }
        let (mine, other) = (first_other(mine, other), first_other(other, mine));
        let found = known.iter().position(|one| {
            (one.field.as_str(), one.ours.as_str(), one.theirs.as_str()) == (name, mine, other)
        });
        match found {
            Some(index) => drop(known.remove(index)),
            None => {
                let _ = writeln!(
                    text,
                    "  not explained:\n! {} {name}: {mine} | {other}",
                    peer.name()
                );
            }
        }
    }
    for one in known {
        let (field, ours, theirs) = (&one.field, &one.ours, &one.theirs);
        let _ = writeln!(text, "  explained, but not so: {field}: {ours} | {theirs}");
    }
    match text.is_empty() {
        true => text,
        false => format!("{}\n{text}\n", case.claim),
    }
}

/// The first line of a text that is not the same in another.
fn first_other<'a>(text: &'a str, other: &str) -> &'a str {
    let mut others = other.lines();
    let mut lines = text.lines();
    lines.find(|line| others.next() != Some(line)).unwrap_or("")
}
