//! Which data source it is: `odbc:DSN=stock;UID=ann`, as ODBC has it behind the colon.

use std::fmt;

/// How a database is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct OdbcOptions {
    /// Keywords and values, in their order; no password.
    keys: Vec<(String, String)>,
    password: Option<String>,
    /// Nothing is written.
    pub is_read_only: bool,
    /// Memory that the process with the driver may have, in bytes.
    pub memory_bytes: u64,
}

/// The same where nothing is said of it.
pub const MEMORY_BYTES: u64 = 512 << 20;

/// Longest one, in bytes.
const BYTES_MAX: usize = 4_096;
/// Keywords that say where a database is, and nothing of who asks: the only ones that are shown.
const SHOWN: [&str; 4] = ["DSN", "DRIVER", "SERVER", "DATABASE"];

impl fmt::Debug for OdbcOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.place())
    }
}

impl OdbcOptions {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<OdbcOptions, String> {
        let rest = url.strip_prefix("odbc:").ok_or("write odbc:DSN=NAME")?;
        if rest.len() > BYTES_MAX || rest.contains('\0') {
            return Err(format!("it has up to {BYTES_MAX} bytes, and no NUL"));
        }
        let mut options = OdbcOptions {
            keys: Vec::new(),
            password: None,
            is_read_only: false,
            memory_bytes: MEMORY_BYTES,
        };
        for part in parts(rest)? {
            let (key, value) = part
                .split_once('=')
                .ok_or("its parts are KEYWORD=VALUE, divided by ;")?;
            let (key, value) = (key.trim(), unquoted(value.trim()));
            if key.is_empty() || key.contains(['{', '}']) {
                return Err("a part of it has no keyword before the =".to_owned());
            }
            match ["PWD", "PASSWORD"]
                .iter()
                .any(|one| one.eq_ignore_ascii_case(key))
            {
                true => options.password = Some(value),
                false => options.keys.push((key.to_owned(), value)),
            }
        }
        match ["DSN", "DRIVER", "FILEDSN"]
            .into_iter()
            .any(|key| options.value(key).is_some())
        {
            true => Ok(options),
            false => Err("it names neither a data source (DSN=) nor a driver (Driver=)".to_owned()),
        }
    }

    /// Whether a password is known.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Takes a password in the place of the one of the URL.
    pub fn set_password(&mut self, password: String) {
        self.password = Some(password);
    }

    /// Where it is, without who asks and what for.
    pub fn place(&self) -> String {
        let shown = self
            .keys
            .iter()
            .filter(|(key, _)| SHOWN.iter().any(|shown| shown.eq_ignore_ascii_case(key)));
        let shown: Vec<_> = shown
            .map(|(key, value)| format!("{key}={}", quoted(value)))
            .collect();
        format!("odbc:{}", shown.join(";"))
    }

    /// All of it, as a driver manager takes it.
    pub(crate) fn connection(&self) -> String {
        let mut text = String::new();
        let password = self.password.iter().map(|password| ("PWD", password));
        let keys = self.keys.iter().map(|(key, value)| (&**key, value));
        for (key, value) in keys.chain(password) {
            text += key;
            text.push('=');
            text += &quoted(value);
            text.push(';');
        }
        text
    }

    /// A text of a driver, without the password that it may repeat.
    pub(crate) fn without_password(&self, text: String) -> String {
        match &self.password {
            Some(password) if !password.is_empty() => text.replace(&**password, "***"),
            _ => text,
        }
    }

    fn value(&self, wanted: &str) -> Option<&str> {
        let mut keys = self.keys.iter();
        let found = keys.find(|(key, _)| key.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| &**value)
    }
}

/// The parts between semicolons; those in braces divide nothing.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let start = match rest.find(['=', ';']) {
            Some(at) if rest[at..].starts_with('=') => at + 1,
            _ => 0,
        };
        let value = &rest[start..];
        let blanks = value.len() - value.trim_start().len();
        let end = match value.trim_start().starts_with('{') {
            true => start + blanks + braces_end(value.trim_start())?,
            false => 0,
        };
        let end = rest[end..].find(';').map_or(rest.len(), |at| end + at);
        let part = &rest[..end];
        if !part.trim().is_empty() {
            parts.push(part);
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    Ok(parts)
}

/// Behind the brace that ends a value; a doubled one belongs to it.
fn braces_end(value: &str) -> Result<usize, String> {
    let mut at = 1;
    while let Some(found) = value[at..].find('}') {
        at += found + 1;
        if !value[at..].starts_with('}') {
            return Ok(at);
        }
        at += 1;
    }
    Err("a brace is not closed".to_owned())
}

fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('{')
        .and_then(|value| value.strip_suffix('}'));
    inner.map_or_else(|| value.to_owned(), |inner| inner.replace("}}", "}"))
}

/// In braces where it has to be.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| {
        !matches!(
            c,
            '{' | '}' | '[' | ']' | '(' | ')' | ',' | ';' | '?' | '*' | '=' | '!' | '@'
        )
    };
    match value.chars().all(is_plain) && value.trim() == value {
        true => value.to_owned(),
        false => format!("{{{}}}", value.replace('}', "}}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_source_and_keeps_its_password_to_itself() {
        for (url, connection, place) in [
            ("odbc:DSN=stock", "DSN=stock;", "odbc:DSN=stock"),
            ("odbc: dsn = stock ;", "dsn=stock;", "odbc:dsn=stock"),
            (
                "odbc:Driver={IBM i};PWD={a;}}b};Server=h;UID=ann",
                "Driver=IBM i;Server=h;UID=ann;PWD={a;}}b};",
                "odbc:Driver=IBM i;Server=h",
            ),
            (
                "odbc:DSN=s;X={a=b;c};Y={}",
                "DSN=s;X={a=b;c};Y=;",
                "odbc:DSN=s",
            ),
        ] {
            let options = OdbcOptions::parse(url).expect("it is read");
            assert_eq!(options.connection(), connection);
            assert_eq!(format!("{options:?}"), format!("{place:?}"));
        }
        let mut options = OdbcOptions::parse("odbc:DSN=s;Password=old").expect("it is read");
        options.set_password("n=w".to_owned());
        assert_eq!(options.connection(), "DSN=s;PWD={n=w};");
        assert_eq!(options.without_password("no n=w".to_owned()), "no ***");
    }

    #[test]
    fn what_is_wrong_with_a_url_is_told() {
        for (url, said) in [
            ("dsn=stock", "write odbc:DSN=NAME"),
            ("odbc:", "names neither"),
            ("odbc:UID=ann", "names neither"),
            ("odbc:stock", "its parts are KEYWORD=VALUE"),
            ("odbc:stock;DSN={s}", "its parts are KEYWORD=VALUE"),
            ("odbc:DSN=s;=x", "no keyword"),
            ("odbc:DSN={s", "a brace is not closed"),
            ("odbc:DSN={s}}", "a brace is not closed"),
            ("odbc:DSN=s\0", "no NUL"),
        ] {
            let found = OdbcOptions::parse(url).expect_err(url);
            assert!(found.contains(said), "{url}: {found}");
        }
    }
}
