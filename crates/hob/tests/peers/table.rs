//! Reads `requests.txt`.
//!
//! ```text
//! :: name            a reason that several cases share, in the indented lines below it
//! == claim           a case begins
//! > text             a line of the request, sent with CRLF
//! >> text            bytes of the request, sent as they are
//! < 200 404          the statuses of hob's answers; `-` for none
//! ! nginx field: ours | theirs
//!   why              the reason, of all lines `!` above without one; `(name)` is a shared one
//! ```
//!
//! In requests `\r \n \t \0 \\ \xNN` stand for bytes, `{etag}`, `{weak-etag}` and `{modified}` for
//! the validators of /plain.txt as the server gave them, `{a*9000}` for 9000 times `a`,
//! `{lines*99}` for 99 short header fields. `field` is one of those in compare.rs; `2.status` is
//! that of the second answer.

use crate::servers::{Peer, Validators};

/// One conversation and what is known about its differences.
#[derive(Debug)]
pub(crate) struct Case {
    /// What it shows.
    pub(crate) name: String,
    /// Request text, with escapes.
    request: String,
    /// hob's statuses.
    pub(crate) statuses: String,
    /// The differences that there are.
    pub(crate) differences: Vec<Difference>,
}

/// One way in which a peer answers otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) peer: Peer,
    pub(crate) field: String,
    pub(crate) ours: String,
    pub(crate) theirs: String,
    /// Why it is so, and why that is right.
    pub(crate) reason: String,
}

/// The whole table.
pub(crate) fn cases() -> Vec<Case> {
    let mut shared: Vec<(String, String)> = Vec::new();
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in include_str!("requests.txt").lines().enumerate() {
        let wrong = |what: &str| -> ! { panic!("requests.txt:{}: {what}: {line}", index + 1) };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix(":: ") {
            shared.push((name.to_owned(), String::new()));
            continue;
        }
        if let Some(name) = line.strip_prefix("== ") {
            cases.push(Case::named(name));
            continue;
        }
        let Some(case) = cases.last_mut() else {
            match (line.strip_prefix("  "), shared.last_mut()) {
                (Some(text), Some((_, reason))) => push_words(reason, text),
                _ => wrong("a case begins with =="),
            }
            continue;
        };
        if let Some(bytes) = line.strip_prefix(">> ") {
            case.request += bytes;
        } else if let Some(text) = line.strip_prefix('>') {
            case.request += text.strip_prefix(' ').unwrap_or(text);
            case.request += "\\r\\n";
        } else if let Some(statuses) = line.strip_prefix("< ") {
            case.statuses = statuses.to_owned();
        } else if let Some(difference) = line.strip_prefix("! ") {
            match Difference::read(difference) {
                Some(difference) => case.differences.push(difference),
                None => wrong("a difference is `! peer field: ours | theirs`"),
            }
        } else if let Some(reason) = line.strip_prefix("  ") {
            case.explain(reason, &shared);
        } else {
            wrong("not a line of a case");
        }
    }
    for case in &cases {
        let bare = case.differences.iter().find(|one| one.reason.is_empty());
        assert!(
            bare.is_none(),
            "requests.txt: {}: no reason for {bare:?}",
            case.name
        );
        assert!(
            !case.statuses.is_empty(),
            "requests.txt: {}: no `<`",
            case.name
        );
    }
    cases
}

impl Case {
    fn named(name: &str) -> Case {
        Case {
            name: name.to_owned(),
            request: String::new(),
            statuses: String::new(),
            differences: Vec::new(),
        }
    }

    /// Gives a line of reason to all differences above that had none when it began.
    fn explain(&mut self, line: &str, shared: &[(String, String)]) {
        let name = line
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'));
        let known = name.map(|name| {
            let found = shared.iter().find(|(known, _)| known == name);
            let (_, reason) =
                found.unwrap_or_else(|| panic!("requests.txt: no reason is called {name}"));
            reason.as_str()
        });
        let last = self
            .differences
            .last()
            .map(|one| one.reason.clone())
            .unwrap_or_default();
        let begun = self
            .differences
            .iter_mut()
            .rev()
            .take_while(|one| one.reason == last);
        for difference in begun {
            push_words(&mut difference.reason, known.unwrap_or(line));
        }
    }

    /// The request as text for the report.
    pub(crate) fn shown(&self) -> String {
        let mut shown = String::new();
        for line in self.request.split_inclusive("\\r\\n") {
            shown += &format!("    {line}\n");
        }
        shown
    }

    /// The bytes to send to a server with these validators.
    pub(crate) fn bytes(&self, validators: &Validators) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = self.request.as_str();
        while let Some(character) = rest.chars().next() {
            match character {
                '\\' => rest = unescape(&rest[1..], &mut bytes),
                '{' => {
                    let (name, after) = rest[1..]
                        .split_once('}')
                        .unwrap_or_else(|| panic!("{rest}: no }}"));
                    insert(name, validators, &mut bytes);
                    rest = after;
                }
                _ => {
                    let (text, after) = rest.split_at(character.len_utf8());
                    bytes.extend_from_slice(text.as_bytes());
                    rest = after;
                }
            }
        }
        bytes
    }
}

impl Difference {
    fn read(text: &str) -> Option<Difference> {
        let (peer, rest) = text.split_once(' ')?;
        let (field, values) = rest.split_once(": ")?;
        let (ours, theirs) = values.split_once(" | ")?;
        Some(Difference {
            peer: Peer::of_name(peer)?,
            field: field.to_owned(),
            ours: ours.to_owned(),
            theirs: theirs.to_owned(),
            reason: String::new(),
        })
    }
}

fn push_words(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more.trim());
}

/// Appends what an escape stands for and returns what follows it.
fn unescape<'a>(rest: &'a str, bytes: &mut Vec<u8>) -> &'a str {
    let (code, after) = rest.split_at(1);
    match code {
        "r" => bytes.push(b'\r'),
        "n" => bytes.push(b'\n'),
        "t" => bytes.push(b'\t'),
        "0" => bytes.push(0),
        "\\" => bytes.push(b'\\'),
        "x" => {
            let (digits, after) = after.split_at(2);
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            return after;
        }
        other => panic!("requests.txt: \\{other} stands for nothing"),
    }
    after
}

fn insert(name: &str, validators: &Validators, bytes: &mut Vec<u8>) {
    let text = match (name, name.split_once('*')) {
        ("etag", _) => validators.entity_tag.clone(),
        ("weak-etag", _) => format!("W/{}", validators.entity_tag),
        ("modified", _) => validators.modified.clone(),
        (_, Some(("lines", count))) => {
            let count: usize = count.parse().unwrap();
            (0..count)
                .map(|number| format!("X-{number}: a\r\n"))
                .collect()
        }
        (_, Some((text, count))) => text.repeat(count.parse().unwrap()),
        _ => panic!("requests.txt: {{{name}}} stands for nothing"),
    };
    bytes.extend_from_slice(text.as_bytes());
}
