//! One line of an access log: when, what was asked for, and how it was answered.
//!
//! ```text
//! 127.0.0.1 - ann [10/Oct/2000:13:55:36 -0700] "GET /a?b HTTP/1.0" 200 2326 "-" "agent"
//! {"time":"2026-11-21T21:13:07.250Z","method":"GET","target":"/a?b","status":200}
//! ```
//!
//! What stands before the time and behind the status may be anything: names of virtual hosts, ...

use serde_json::Value;

use crate::limits::LOG_TARGET_BYTES_MAX;
use crate::moment;

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Microseconds since 1970.
    pub at_us: i64,
    /// The time has a fraction of a second; without one it is known to the second alone.
    pub is_exact: bool,
    /// The method.
    pub method: String,
    /// Path and query as they were asked for.
    pub target: String,
    /// The status of the answer; 0 where the line has none.
    pub status: u16,
}

/// Why a line cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFault {
    /// It is no line of an access log that is known.
    Unreadable(&'static str),
    /// What was asked for cannot be sent: no request of HTTP can say it.
    Unsendable(&'static str),
}

use LineFault::{Unreadable, Unsendable};

impl LineFault {
    /// Why.
    pub fn text(self) -> &'static str {
        match self {
            Unreadable(text) | Unsendable(text) => text,
        }
    }
}

impl LogLine {
    /// Reads a line, without its end.
    pub fn parse(line: &[u8]) -> Result<LogLine, LineFault> {
        let line = line.trim_ascii();
        match line.first() {
            None => Err(Unreadable("it is empty")),
            Some(b'{') => of_json(line),
            Some(_) => of_text(line),
        }
    }
}

fn of_text(line: &[u8]) -> Result<LogLine, LineFault> {
    let (at_us, rest) = time_in(line).ok_or(Unreadable("it has no [day/Mon/year:time zone]"))?;
    let no_request = Unreadable("it has no request in quotes behind the time");
    let quote = memchr::memchr(b'"', rest).ok_or(no_request)?;
    let (request, rest) = quoted(&rest[quote + 1..]).ok_or(no_request)?;
    let rest = rest.trim_ascii_start();
    let status = rest.get(..3).and_then(status).unwrap_or(0);
    let is_part = |byte: &u8| *byte == b' ';
    let mut words = request.splitn(2, is_part);
    let (method, rest) = (words.next().unwrap_or_default(), words.next());
    let rest = rest.ok_or(Unreadable("its request has no method and target"))?;
    let mut last = rest.rsplitn(2, is_part);
    let target = match (last.next(), last.next()) {
        (Some(version), Some(target)) if version.starts_with(b"HTTP/") => target,
        _ => rest,
    };
    Ok(LogLine {
        at_us,
        is_exact: false,
        method: method_of(method)?,
        target: target_of(target)?,
        status,
    })
}

fn of_json(line: &[u8]) -> Result<LogLine, LineFault> {
    let value: Value = serde_json::from_slice(line).map_err(|_| Unreadable("it is no JSON"))?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let (Some(time), Some(method), Some(target)) = (text("time"), text("method"), text("target"))
    else {
        return Err(Unreadable("it has no \"time\", \"method\" and \"target\""));
    };
    let (at_us, is_exact) =
        moment::iso(time).ok_or(Unreadable("its \"time\" is none of ISO 8601"))?;
    let status = value.get("status").and_then(Value::as_u64);
    Ok(LogLine {
        at_us,
        is_exact,
        method: method_of(method.as_bytes())?,
        target: target_of(target.as_bytes())?,
        status: status
            .and_then(|status| status.try_into().ok())
            .unwrap_or(0),
    })
}

/// The first time in brackets, in microseconds since 1970, and what stands behind it. What a user
/// is called may have brackets too.
fn time_in(line: &[u8]) -> Option<(i64, &[u8])> {
    memchr::memchr_iter(b'[', line).find_map(|at| {
        let rest = &line[at + 1..];
        let end = memchr::memchr(b']', rest)?;
        let seconds = moment::common(rest.get(..end)?)?;
        Some((seconds * 1_000_000, &rest[end + 1..]))
    })
}

/// What stands up to the next quote that is none of the value, without its escapes, and what is
/// behind it.
fn quoted(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = bytes;
    loop {
        let at = memchr::memchr2(b'"', b'\\', rest)?;
        value.extend_from_slice(&rest[..at]);
        if rest[at] == b'"' {
            return Some((value, &rest[at + 1..]));
        }
        let (byte, used) = match &rest[at + 1..] {
            [b'x', high, low, ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (b'\\', 1),
            },
            [byte @ (b'"' | b'\\'), ..] => (*byte, 2),
            [b't', ..] => (b'\t', 2),
            [b'n', ..] => (b'\n', 2),
            [b'r', ..] => (b'\r', 2),
            _ => (b'\\', 1),
        };
        value.push(byte);
        rest = &rest[at + used..];
    }
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn status(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn method_of(bytes: &[u8]) -> Result<String, LineFault> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    match !bytes.is_empty() && bytes.iter().all(is_letter) {
        true => Ok(String::from_utf8_lossy(bytes).into_owned()),
        false => Err(Unreadable("its request does not begin with a method")),
    }
}

/// A path with its query, or what cannot be asked of a server as it was.
fn target_of(bytes: &[u8]) -> Result<String, LineFault> {
    if bytes.len() > LOG_TARGET_BYTES_MAX {
        return Err(Unsendable("its target is too long"));
    }
    if !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(Unsendable(
            "its target has blanks or bytes that must be written as %XX",
        ));
    }
    let text = String::from_utf8_lossy(bytes);
    // As proxies are asked. //= rfc9112#3.2.2
    let absolute = ["http://", "https://"].iter().find_map(|scheme| {
        let has_scheme = text.get(..scheme.len())?.eq_ignore_ascii_case(scheme);
        has_scheme.then(|| &text[scheme.len()..])
    });
    let target = match absolute {
        Some(rest) => &rest[rest.find(['/', '?']).unwrap_or(rest.len())..],
        None => &text,
    };
    match target.as_bytes().first() {
        Some(b'/') => Ok(target.to_owned()),
        Some(b'?') | None if absolute.is_some() => Ok(format!("/{target}")),
        _ => Err(Unsendable("its target is no path")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(String, String, u16), LineFault> {
        let line = LogLine::parse(line.as_bytes())?;
        Ok((line.method, line.target, line.status))
    }

    fn of(method: &str, target: &str, status: u16) -> Result<(String, String, u16), LineFault> {
        Ok((method.to_owned(), target.to_owned(), status))
    }

    #[test]
    fn lines_of_common_servers_are_read() {
        const TIME: &str = "[10/Oct/2000:13:55:36 -0700]";
        let line = format!("127.0.0.1 - - {TIME} \"GET /a?b=%20c HTTP/1.0\" 200 2326");
        let parsed = LogLine::parse(line.as_bytes()).unwrap();
        assert_eq!(parsed.at_us, 971_211_336_000_000);
        assert!(!parsed.is_exact);
        assert_eq!(read(&line), of("GET", "/a?b=%20c", 200));
        for (request, wanted) in [
            ("HEAD / HTTP/2.0", of("HEAD", "/", 304)),
            ("GET /old", of("GET", "/old", 304)),
            (r"GET /\x41\\\x22 HTTP/1.1", of("GET", "/A\\\"", 304)),
            (r#"GET /a\"b HTTP/1.1"#, of("GET", "/a\"b", 304)),
            ("GET http://a.example/b?c HTTP/1.1", of("GET", "/b?c", 304)),
            ("GET HTTPS://a.example HTTP/1.1", of("GET", "/", 304)),
            ("GET /%zz%00%2F#x HTTP/1.1", of("GET", "/%zz%00%2F#x", 304)),
        ] {
            let line = format!("a.example:80 ::1 - [x] {TIME} \"{request}\" 304 - \"-\" \"\\\"\"");
            assert_eq!(read(&line), wanted, "{request}");
        }
        // What the server knows nothing of.
        assert_eq!(
            read(&format!("- {TIME} 0.1 \"GET / HTTP/1.1\"")),
            of("GET", "/", 0)
        );
    }

    #[test]
    fn json_of_hob_is_read_to_the_fraction() {
        let line =
            br#"{"time":"2026-11-21T21:13:07.250Z","method":"GET","target":"/","status":200}"#;
        let line = LogLine::parse(line).unwrap();
        assert_eq!((line.at_us, line.is_exact), (1_795_295_587_250_000, true));
        assert_eq!((line.target.as_str(), line.status), ("/", 200));
        let none = LogLine::parse(br#"{"time":"2026-11-21T21:13:07Z","method":"GET"}"#);
        assert!(matches!(none, Err(Unreadable(_))), "{none:?}");
    }

    #[test]
    fn line_that_cannot_be_replayed_says_why() {
        let line =
            |request: &str| format!("- - - [10/Oct/2000:13:55:36 +0000] \"{request}\" 400 0");
        for request in ["-", "", "\\x16\\x03\\x01 x", "GET"] {
            let found = read(&line(request));
            assert!(matches!(found, Err(Unreadable(_))), "{request}: {found:?}");
        }
        let long = format!("GET /{} HTTP/1.1", "x".repeat(LOG_TARGET_BYTES_MAX));
        for request in [
            "GET /a b HTTP/1.1",
            "GET /\\xc3\\xa9 HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "CONNECT a:443 HTTP/1.1",
            "GET a HTTP/1.1",
            "GET /\\x0d\\x0aX: y HTTP/1.1",
            &long,
        ] {
            let found = read(&line(request));
            assert!(matches!(found, Err(Unsendable(_))), "{request}: {found:?}");
        }
        for line in [
            "",
            "{",
            "nothing of the kind",
            "[10/Oct/2000:13:55:36 +0000] no quotes",
            "[10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1",
            "[10/Okt/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 200",
            "[31/Jan/2000:24:00:00 +0000] \"GET / HTTP/1.1\" 200",
        ] {
            assert!(matches!(read(line), Err(Unreadable(_))), "{line}");
        }
    }
}
