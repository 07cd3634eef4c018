//! Reads the tables of requests.
//!
//! ```text
//! # comment
//! % BEGIN ... END       what is between differs each time and is not compared
//! @ field field         these fields hold the time of the answer
//! == claim              a case begins
//! > text                request line or header field
//! >> text               a line of the body
//! < 200                 the status of hob's answer
//! ~ text                its body has this text
//! ! apache field: ours | theirs
//!   why                 the reason, of all lines `!` above without one
//! ```

use crate::servers::Peer;

/// One table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Text before and after what differs each time.
    pub(crate) masks: Vec<(String, String)>,
    /// Fields whose value is the time of the answer.
    pub(crate) times: Vec<String>,
    pub(crate) cases: Vec<Case>,
}

/// One request and what is known about its answers.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) claim: String,
    pub(crate) head: Vec<String>,
    pub(crate) body: String,
    pub(crate) status: u16,
    pub(crate) words: Vec<String>,
    pub(crate) differences: Vec<Difference>,
}

/// One way in which a peer answers otherwise.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) peer: Peer,
    pub(crate) field: String,
    pub(crate) ours: String,
    pub(crate) theirs: String,
    reason: String,
}

impl Table {
    /// Reads a table; one that is wrong is a failed test.
    pub(crate) fn read(text: &str) -> Table {
        let mut table = Table::default();
        for (index, line) in text.lines().enumerate() {
            let read = table.line(line);
            read.unwrap_or_else(|| panic!("line {}: not a line of a table: {line}", index + 1));
        }
        for case in &table.cases {
            let bare = case.differences.iter().find(|one| one.reason.is_empty());
            assert!(bare.is_none(), "{}: no reason for {bare:?}", case.claim);
        }
        table
    }

    fn line(&mut self, line: &str) -> Option<()> {
        if line.is_empty() || line.starts_with('#') {
            return Some(());
        }
        let (sign, rest) = line.split_once(' ')?;
        if sign == "%" {
            let (begin, end) = rest.split_once(" ... ")?;
            self.masks.push((begin.to_owned(), end.to_owned()));
            return Some(());
        }
        if sign == "@" {
            self.times = rest.split(' ').map(str::to_owned).collect();
            return Some(());
        }
        if sign == "==" {
            self.cases.push(Case {
                claim: rest.to_owned(),
                ..Case::default()
            });
            return Some(());
        }
        let case = self.cases.last_mut()?;
        match sign {
            ">" => case.head.push(format!("{rest}{}", case.version())),
            ">>" => case.body += &format!("{rest}\n"),
            "<" => case.status = rest.parse().ok()?,
            "~" => case.words.push(rest.to_owned()),
            "!" => case.differences.push(Difference::read(rest)?),
            "" => case.explain(rest.trim()),
            _ => return None,
        }
        Some(())
    }
}

impl Case {
    /// What the line being read has to end with.
    fn version(&self) -> &'static str {
        match self.head.is_empty() {
            true => " HTTP/1.1",
            false => "",
        }
    }

    /// Gives a line of reason to the differences above without one, or with the last one's.
    fn explain(&mut self, line: &str) {
        let last = self.differences.last().map(|one| one.reason.clone());
        let above = self.differences.iter_mut().rev();
        for difference in above.take_while(|one| Some(&one.reason) == last.as_ref()) {
            difference.reason += line;
        }
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
