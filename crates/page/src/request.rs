//! Requests: what a path asks for, and which variables a client may set.

use crate::fault::{PageFault, PageFaultKind};
use crate::tree::NameKind;

/// `/<macro, may have slashes>/<block>` behind the invocation path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invocation<'a> {
    /// The macro's path, without a slash at its start.
    pub page: &'a str,
    /// The block's name.
    pub block: &'a str,
}

impl<'a> Invocation<'a> {
    /// Reads what stands behind the invocation path. A path that could lead elsewhere is none.
    pub fn parse(path: &'a str) -> Option<Self> {
        let path = path.trim_start_matches('/');
        let (page, block) = path.trim_end_matches('/').rsplit_once('/')?;
        let is_bad = |part: &str| part.is_empty() || part == "." || part == "..";
        let has_bad_byte = path.bytes().any(|byte| byte == 0 || byte == b'\\');
        if page.split('/').any(is_bad) || is_bad(block) || has_bad_byte {
            return None;
        }
        Some(Self { page, block })
    }
}

/// Variables that control processing; a client never sets them.
pub const CONTROL_VARIABLES: &[&str] = &[
    "ALIGN",
    "DATABASE",
    "DB_CASE",
    "LOCATION",
    "LOGIN",
    "NULL_RPT_FIELD",
    "PASSWORD",
    "RETURN_CODE",
    "SHOWSQL",
    "SQL_CODE",
    "SQL_STATE",
    "TRANSACTION_SCOPE",
];

/// Variables that control processing and are a client's to set, to whole numbers.
pub const PAGING_VARIABLES: &[&str] = &["RPT_MAX_ROWS", "START_ROW_NUM"];

/// Whether a client may set a variable with this name.
pub fn is_for_clients(name: &str) -> bool {
    let is_control = |control: &&str| control.eq_ignore_ascii_case(name);
    let is_ours = name
        .get(..4)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("DTW_"));
    !is_ours
        && !CONTROL_VARIABLES.iter().any(is_control)
        && NameKind::of(name) == NameKind::Plain
        && NameKind::of(&name.to_ascii_uppercase()) == NameKind::Plain
}

/// What a client may give as the value of a variable that it may set.
pub(crate) fn is_fit(name: &str, value: &[u8]) -> bool {
    if !PAGING_VARIABLES.contains(&name) {
        return true;
    }
    let is_all = name == "RPT_MAX_ROWS" && value.eq_ignore_ascii_case(b"ALL");
    is_all || (!value.is_empty() && value.len() <= 9 && value.iter().all(u8::is_ascii_digit))
}

/// Everything a run is told of its request.
#[derive(Clone, Default, Debug)]
pub struct PageRequest {
    /// The block to be run.
    pub block: String,
    /// Names and values of query and form, in their order.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Names and values of cookies.
    pub cookies: Vec<(String, Vec<u8>)>,
}

impl PageRequest {
    /// Fields of `name=value&...`, as a query or a form has them.
    pub fn add_fields(&mut self, encoded: &[u8], count_max: usize) -> Result<(), PageFault> {
        for pair in encoded
            .split(|byte| *byte == b'&')
            .filter(|pair| !pair.is_empty())
        {
            if self.fields.len() >= count_max {
                return Err(PageFault {
                    file: "request".into(),
                    line: 1,
                    column: 1,
                    kind: PageFaultKind::Limit("fields_max"),
                    message: format!("the request has more than {count_max} fields"),
                });
            }
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            let name = decoded(parts.next().unwrap_or_default());
            let value = decoded(parts.next().unwrap_or_default());
            if let Ok(name) = String::from_utf8(name) {
                self.fields.push((name, value));
            }
        }
        Ok(())
    }
}

/// Percent signs and `+` decoded.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3);
        let hex = hex.filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match (byte, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 2;
            }
            (b'+', _) => decoded.push(b' '),
            _ => decoded.push(*byte),
        }
        at += 1;
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_a_path_is_the_block() {
        let invocation = Invocation::parse("/shop/parts.d2w/REPORT");
        let wanted = Invocation {
            page: "shop/parts.d2w",
            block: "REPORT",
        };
        assert_eq!(invocation, Some(wanted));
        for path in [
            "/parts.d2w",
            "/../parts.d2w/list",
            "/a//b/list",
            "/a\\b/list",
            "",
        ] {
            assert_eq!(Invocation::parse(path), None, "{path}");
        }
    }

    #[test]
    fn names_that_control_a_run_are_not_for_clients() {
        for name in [
            "DATABASE",
            "login",
            "DTW_HTML_TABLE",
            "dtw_x",
            "V_ID",
            "v_id",
            "ROW_NUM",
        ] {
            assert!(!is_for_clients(name), "{name}");
        }
        for name in ["q", "START_ROW_NUM", "RPT_MAX_ROWS", "customer"] {
            assert!(is_for_clients(name), "{name}");
        }
        assert!(is_fit("START_ROW_NUM", b"6") && !is_fit("START_ROW_NUM", b"6 OR 1"));
    }

    #[test]
    fn fields_are_decoded() {
        let mut request = PageRequest::default();
        request
            .add_fields(b"q=a%20b+c&kind=%&x", 10)
            .expect("they are few");
        let values: Vec<_> = request.fields.iter().map(|(_, value)| &value[..]).collect();
        assert_eq!(values, [&b"a b c"[..], b"%", b""]);
        assert!(request.add_fields(b"a&b&c&d&e&f&g&h", 10).is_err());
    }
}
