//! What of two answers is compared.
//!
//! An answer becomes a list of named texts. Pages that every server words in its own way
//! (redirects, errors) count by status and media type; a body in parts counts by its parts, for
//! the border between them is each server's own.

use std::fmt::Write as _;

use crate::exchange::{Answer, Conversation};
use crate::servers::Peer;
use crate::table::{Case, Difference};

/// Named texts, in order; `-` is none.
pub(crate) type Facts = Vec<(String, String)>;

const NONE: &str = "-";

/// Everything about a conversation that is compared.
pub(crate) fn facts(conversation: &Conversation) -> Facts {
    let mut facts = Facts::new();
    let answers = &conversation.answers;
    for (index, answer) in answers.iter().enumerate() {
        let prefix = if index == 0 {
            String::new()
        } else {
            format!("{}.", index + 1)
        };
        for (name, value) in facts_of(answer) {
            facts.push((format!("{prefix}{name}"), value));
        }
    }
    if answers.is_empty() {
        facts.push(("status".to_owned(), NONE.to_owned()));
    }
    if !conversation.raw.is_empty() {
        facts.push(("raw".to_owned(), shown(&conversation.raw)));
    }
    let says_close = answers.last().is_some_and(announces_close);
    let connection = match (conversation.stays_open, says_close) {
        (true, false) => "open",
        (false, true) => "close",
        (false, false) => "close, not announced",
        (true, true) => "open, although close was announced",
    };
    facts.push(("connection".to_owned(), connection.to_owned()));
    facts
}

/// What to say about a case whose statuses are not those of the table.
pub(crate) fn statuses(case: &Case, facts: &Facts) -> String {
    let got = facts.iter().filter(|(name, _)| name.ends_with("status"));
    let got: Vec<&str> = got.map(|(_, value)| value.as_str()).collect();
    let got = got.join(" ");
    if got == case.statuses {
        return String::new();
    }
    format!(
        "{}\n{}  hob answers {got}; the table says {}\n\n",
        case.name,
        case.shown(),
        case.statuses
    )
}

/// What to say about a case with differences that are not explained, or explained and not there.
pub(crate) fn report(case: &Case, peer: Peer, ours: &Facts, theirs: &Facts) -> String {
    let found = differences(ours, theirs);
    let known: Vec<&Difference> = case
        .differences
        .iter()
        .filter(|one| one.peer == peer)
        .collect();
    let mut text = String::new();
    for (field, ours, theirs) in &found {
        let is_known = known
            .iter()
            .any(|one| (&one.field, &one.ours, &one.theirs) == (field, ours, theirs));
        if !is_known {
            let _ = writeln!(
                text,
                "  not explained:\n! {} {field}: {ours} | {theirs}",
                peer.name()
            );
        }
    }
    for one in known {
        let is_found = found.iter().any(|(field, ours, theirs)| {
            (&one.field, &one.ours, &one.theirs) == (field, ours, theirs)
        });
        if !is_found {
            let (field, ours, theirs) = (&one.field, &one.ours, &one.theirs);
            let _ = writeln!(
                text,
                "  explained, but not so (any more): {field}: {ours} | {theirs}"
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "{}\n{}{text}  hob{}\n  {}{}\n\n",
        case.name,
        case.shown(),
        listed(ours),
        peer.name(),
        listed(theirs)
    )
}

fn differences(ours: &Facts, theirs: &Facts) -> Vec<(String, String, String)> {
    let value = |facts: &Facts, name: &str| {
        let found = facts.iter().find(|(known, _)| known == name);
        found.map_or(NONE.to_owned(), |(_, value)| value.clone())
    };
    let names = ours.iter().chain(theirs).map(|(name, _)| name);
    let mut found: Vec<(String, String, String)> = Vec::new();
    for name in names {
        let (mine, other) = (value(ours, name), value(theirs, name));
        // Two answers with different statuses are different answers: what they say of themselves
        // cannot agree.
        let status = format!(
            "{}status",
            name.split_inclusive('.')
                .next()
                .filter(|part| part.ends_with('.'))
                .unwrap_or_default()
        );
        let is_of_answer = name != "connection" && name != "raw" && *name != status;
        let is_other_answer = is_of_answer && value(ours, &status) != value(theirs, &status);
        let is_listed = found.iter().any(|(known, ..)| known == name);
        if mine != other && !is_other_answer && !is_listed {
            found.push((name.clone(), mine, other));
        }
    }
    found
}

fn listed(facts: &Facts) -> String {
    let said = facts.iter().filter(|(_, value)| value != NONE);
    said.map(|(name, value)| format!("\n    {name}: {value}"))
        .collect()
}

fn facts_of(answer: &Answer) -> Facts {
    let mut facts = Facts::new();
    let mut add = |name: &str, value: Option<String>| {
        facts.push((name.to_owned(), value.unwrap_or_else(|| NONE.to_owned())));
    };
    let field = |name: &str| answer.field(name);
    add("version", Some(answer.version.clone()));
    add("status", Some(answer.status.to_string()));
    let is_page = answer.status >= 300;
    let parts = parts(answer);
    let media_type = field("content-type").map(|value| match &parts {
        Some(_) => "multipart/byteranges".to_owned(),
        None if is_page => value.split(';').next().unwrap_or_default().to_owned(),
        None => value,
    });
    add("content-type", media_type);
    if !is_page && parts.is_none() {
        add("content-length", field("content-length"));
    }
    add("content-encoding", field("content-encoding"));
    add("content-range", field("content-range"));
    add(
        "etag",
        field("etag").map(|tag| {
            if tag.starts_with("W/") {
                "weak"
            } else {
                "strong"
            }
            .into()
        }),
    );
    add("last-modified", field("last-modified"));
    add("accept-ranges", field("accept-ranges"));
    add(
        "location",
        field("location").map(|location| without_host(&location)),
    );
    add("allow", field("allow").map(|list| sorted(&list)));
    add(
        "vary",
        field("vary").map(|list| sorted(&list.to_lowercase())),
    );
    match parts {
        Some(parts) => add("parts", Some(parts)),
        None if is_page => {}
        None => add("body", Some(shown(&answer.body))),
    }
    facts
}

//= rfc9112#9.3
fn announces_close(answer: &Answer) -> bool {
    let options = answer
        .field("connection")
        .unwrap_or_default()
        .to_lowercase();
    let has = |option: &str| options.split(',').any(|one| one.trim() == option);
    has("close") || (answer.version == "HTTP/1.0" && !has("keep-alive"))
}

fn without_host(location: &str) -> String {
    match location
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('/'))
    {
        Some((_, path)) => format!("/{path}"),
        None => location.to_owned(),
    }
}

fn sorted(list: &str) -> String {
    let mut words: Vec<&str> = list.split(',').map(str::trim).collect();
    words.sort_unstable();
    words.dedup();
    words.join(", ")
}

/// The parts of a `multipart/byteranges` body, one a line: their fields and what they hold.
fn parts(answer: &Answer) -> Option<String> {
    let content_type = answer.field("content-type")?;
    let border = content_type.strip_prefix("multipart/byteranges; boundary=")?;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    let body = format!("\r\n{body}");
    let border = format!("\r\n--{border}");
    let mut pieces = body.split(&border);
    let before = pieces.next().unwrap_or_default();
    let mut shown_parts = if before.trim().is_empty() {
        vec![]
    } else {
        vec![format!("before {before:?}")]
    };
    for piece in pieces {
        if piece == "--\r\n" {
            shown_parts.push("end".to_owned());
            continue;
        }
        let (head, content) = piece.split_once("\r\n\r\n").unwrap_or((piece, ""));
        let mut fields: Vec<String> = head
            .split("\r\n")
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| format!("{}={value}", name.to_lowercase()))
            .collect();
        fields.sort_unstable();
        shown_parts.push(format!(
            "{} {}",
            fields.join(" "),
            shown(content.as_bytes())
        ));
    }
    let text = shown_parts.join("; ");
    if shown_parts.len() > 8 {
        return Some(format!(
            "{} parts, {}",
            shown_parts.len() - 1,
            shown(text.as_bytes())
        ));
    }
    Some(text)
}

/// Short bytes as text, long ones by length and a sum.
fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= 80 {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    // FNV-1a: two bodies of one length that differ give another sum.
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{} bytes, sum {sum:016x}", bytes.len())
}
