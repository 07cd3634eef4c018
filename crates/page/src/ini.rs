//! The initialization file `db2www.ini`: a statement a line, `NAME value` or `NAME = value`.
//!
//! Comments are as in macros, and lines that begin with `#` or `;`. Paths are lists divided by
//! `;`. What a name means is the server's to know; here they are only read.

use crate::fault::{PageFault, PageFaultKind};
use crate::tree::fault_in;

/// A statement of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IniEntry {
    /// Upper case.
    pub name: String,
    /// Without blanks at both ends.
    pub value: String,
}

/// The file, as it was read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ini {
    entries: Vec<IniEntry>,
}

impl Ini {
    /// Reads the file's text.
    pub fn parse(file: &str, text: &[u8]) -> Result<Ini, PageFault> {
        let mut entries = Vec::new();
        let mut at = 0;
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(end) = comment_end(rest) {
                let Some(end) = end else {
                    let message = "this comment has no end; `%}` ends it".to_string();
                    return Err(fault_in(file, text, at, PageFaultKind::Syntax, message));
                };
                at += end;
                rest = &rest[end..];
                continue;
            }
            let end = rest.iter().position(|byte| *byte == b'\n');
            let end = end.map_or(rest.len(), |end| end + 1);
            let comment = memchr::memmem::find(&rest[..end], b"%{").unwrap_or(end);
            let line = String::from_utf8_lossy(&rest[..comment]);
            entries.extend(entry(line.trim()));
            at += comment;
            rest = &rest[comment..];
        }
        Ok(Ini { entries })
    }

    /// The last value of a name, whatever its case.
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut entries = self.entries.iter().rev();
        let entry = entries.find(|entry| entry.name.eq_ignore_ascii_case(name));
        entry.map(|entry| &*entry.value)
    }

    /// Folders of a path, in their order.
    pub fn paths(&self, name: &str) -> Vec<&str> {
        let value = self.value(name).unwrap_or_default();
        let paths = value.split(';').map(str::trim);
        paths.filter(|path| !path.is_empty()).collect()
    }

    /// Whether a switch says yes.
    pub fn is_on(&self, name: &str) -> bool {
        let value = self.value(name).unwrap_or_default();
        ["YES", "Y", "ON", "1"]
            .iter()
            .any(|yes| value.eq_ignore_ascii_case(yes))
    }

    /// All statements.
    pub fn entries(&self) -> &[IniEntry] {
        &self.entries
    }
}

/// Where the comment ends that stands here; the inner `None` if it does not.
fn comment_end(rest: &[u8]) -> Option<Option<usize>> {
    let blanks = rest
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    let comment = rest[blanks..].strip_prefix(b"%{")?;
    let end = memchr::memmem::find(comment, b"%}");
    Some(end.map(|end| blanks + 2 + end + 2))
}

fn entry(line: &str) -> Option<IniEntry> {
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    let is_name_end = |c: char| c == '=' || c.is_whitespace();
    let end = line.find(is_name_end).unwrap_or(line.len());
    let (name, value) = line.split_at(end);
    let value = value.trim_start();
    let value = value.strip_prefix('=').unwrap_or(value).trim();
    Some(IniEntry {
        name: name.to_ascii_uppercase(),
        value: value.trim_matches('"').to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_is() {
        let text = b"%{ paths\n%}\nMACRO_PATH /a;/b ;\nEXEC_PATH = /c %{ old %}\n# no\n\
                     DTW_SHOWSQL Yes\nENVIRONMENT(DTW_SQL) dtwsql (IN DATABASE)\n";
        let ini = Ini::parse("db2www.ini", text).expect("the file is read");
        assert_eq!(ini.paths("macro_path"), ["/a", "/b"]);
        assert_eq!(ini.paths("EXEC_PATH"), ["/c"]);
        assert!(ini.is_on("DTW_SHOWSQL"));
        assert_eq!(
            ini.value("ENVIRONMENT(DTW_SQL)"),
            Some("dtwsql (IN DATABASE)")
        );
        let fault = Ini::parse("db2www.ini", b"A b\n%{ no end").expect_err("it has no end");
        assert_eq!((fault.line, fault.column), (2, 1));
    }
}
