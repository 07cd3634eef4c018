//! A request for a program of another machine: what only the machine that has the client can know
//! of it travels in one field beside the request's own, and what only the other one can know of
//! the answer comes back in two.
//!
//! ```text
//! hob-request: program=reports&path=/reports/a&below=9&SERVER_NAME=www.example.com&...
//! hob-names: Content-Type,X-Total,ETag          names of the answer's fields as they were written
//! hob-failed: script: the program ended without an answer             hob speaks, and no program
//! ```
//!
//! Bytes that would end a value are `%XX`. The first of these fields is believed where programs are
//! offered, from those to whom they are, and nowhere else.

use std::sync::Arc;

use hob_http::{ConnectionFacts, Fields, Request, ToldVariables};
use hob_trace::Fault;

use crate::handle::plain::SERVER;
use crate::handle::script::fields::is_told;
use crate::handle::script::variables::{Carried, ProgramRequest, ScriptLocation, TABLE};
use crate::route::percent::decode_pair;

/// The field of the request.
pub(crate) const REQUEST: &[u8] = b"hob-request";
/// Fields of the answer.
const NAMES: &[u8] = b"hob-names";
const FAILED: &[u8] = b"hob-failed";

/// What the field says.
#[derive(Debug, PartialEq, Eq)]
pub struct CarriedRequest {
    /// The program, as its offer calls it.
    pub program: Vec<u8>,
    /// The path in its normal form.
    pub path: Vec<u8>,
    /// Where it leaves the fixed folder of the route there.
    pub below: usize,
    /// What the program is told as it was said.
    pub variables: ToldVariables,
}

/// The field of a request for a program, whose path leaves its route's folder at `below`.
pub(crate) fn field(program: &str, request: &Request, (path, below): (&[u8], usize)) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    push(b"program", program.as_bytes(), &mut out);
    push(b"path", path, &mut out);
    push(b"below", below.to_string().as_bytes(), &mut out);
    let asked = ProgramRequest {
        request,
        body_bytes: None,
        script: ScriptLocation::default(),
        passes_authorization: false,
        may_tunnel: false,
    };
    let mut value = Vec::new();
    for variable in TABLE.iter().filter(|one| one.carried != Carried::No) {
        // A tunnel is asked for in the way of HTTP/2, whatever its client speaks.
        if variable.name == "SERVER_PROTOCOL" && request.tunnel().is_some() {
            continue;
        }
        value.clear();
        if variable.push(&asked, &mut value) {
            push(variable.name.as_bytes(), &value, &mut out);
        }
    }
    out
}

fn push(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if !out.is_empty() {
        out.push(b'&');
    }
    out.extend_from_slice(name);
    out.push(b'=');
    for &byte in value {
        match byte {
            b'%' | b'&' | 0..=b' ' | 0x7f.. => out.extend([
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
            _ => out.push(byte),
        }
    }
}

/// Reads the field.
///
/// # Errors
/// What is wrong with it.
pub fn parse(field: &[u8]) -> Result<CarriedRequest, &'static str> {
    let (mut program, mut path, mut below) = (None, None, None);
    let mut variables = Vec::new();
    for pair in field.split(|byte| *byte == b'&') {
        let equals = memchr::memchr(b'=', pair).ok_or("a part of it has no `=`")?;
        let (name, value) = (&pair[..equals], decoded(&pair[equals + 1..])?);
        match name {
            b"program" => program = Some(value),
            b"path" => path = Some(value),
            b"below" => {
                below = std::str::from_utf8(&value)
                    .ok()
                    .and_then(|n| n.parse().ok())
            }
            // What a later version says besides is not known here.
            name => {
                let mut known = TABLE.iter().filter(|one| one.carried != Carried::No);
                if known.any(|one| one.name.as_bytes() == name) && !value.contains(&0) {
                    variables.push((Box::from(name), value.into_boxed_slice()));
                }
            }
        }
    }
    let (Some(program), Some(path), Some(below)) = (program, path, below) else {
        return Err("it names no program, or no path");
    };
    if !is_normal(&path) || !is_place(&path, below) {
        return Err("its path is not in the normal form");
    }
    Ok(CarriedRequest {
        program,
        path,
        below,
        variables: Arc::from(variables),
    })
}

fn decoded(value: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        let pair = rest.get(at + 1..at + 3).and_then(decode_pair);
        out.push(pair.ok_or("a `%` in it has no two digits behind")?);
        rest = &rest[at + 3..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// Handlers look for files by it: no segment may lead elsewhere.
fn is_normal(path: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(b"/") else {
        return false;
    };
    let last = rest.split(|byte| *byte == b'/').count() - 1;
    let is_dots = |part: &[u8]| matches!(part, b"." | b"..");
    rest.split(|byte| *byte == b'/')
        .enumerate()
        .all(|(at, segment)| {
            // An encoded slash is NUL.
            let mut pieces = segment.split(|byte| *byte == 0);
            (!segment.is_empty() || at == last) && !pieces.any(is_dots)
        })
}

/// A fixed folder ends there, or all of the path.
fn is_place(path: &[u8], below: usize) -> bool {
    below == path.len() || below > 0 && below < path.len() && path[below - 1] == b'/'
}

/// Whether a client's field goes along with a request. What is the connection's, or is written
/// anew, does not.
pub(crate) fn is_passed(facts: &ConnectionFacts, name: &[u8]) -> bool {
    const LEFT_OUT: &[&[u8]] = &[
        b"connection",
        b"content-length",
        b"cookie",
        REQUEST,
        b"host",
        b"http2-settings",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ];
    let is_left_out = LEFT_OUT.iter().any(|one| one.eq_ignore_ascii_case(name));
    !is_left_out && is_told(facts, name)
}

/// Makes an answer fit for the way: `failed` is why it is none of the program's.
pub(crate) fn pack(fields: &mut Fields, failed: Option<&str>) {
    fields.retain(|name, _| !is_own(name));
    let names: Vec<&[u8]> = fields.iter().map(|(name, _)| name).collect();
    let names = names.join(&b","[..]);
    fields.add(NAMES, &names);
    if let Some(failed) = failed {
        let visible = |byte: u8| {
            if byte < b' ' || byte == 0x7f {
                b' '
            } else {
                byte
            }
        };
        let failed: Vec<u8> = failed.bytes().map(visible).collect();
        // No value of a field ends with a blank.
        //= rfc9113#8.2.1
        fields.add(FAILED, failed.trim_ascii());
    }
}

/// Makes the answer of it again; returns why it is none of the program's.
pub(crate) fn unpack(fields: &mut Fields) -> Option<Vec<u8>> {
    let names = fields.value(NAMES).map(<[u8]>::to_vec).unwrap_or_default();
    let failed = fields.value(FAILED).map(<[u8]>::to_vec);
    let names: Vec<&[u8]> = names.split(|byte| *byte == b',').collect();
    let is_server = |name: &[u8]| name.eq_ignore_ascii_case(b"Server");
    let mut written = Fields::new();
    // Both are in one order; some were left out on the way, some came in.
    let mut next = 0;
    for (name, value) in fields.iter() {
        if is_own(name) || is_server(name) {
            continue;
        }
        let same = |one: &&[u8]| one.eq_ignore_ascii_case(name);
        let Some(skipped) = names[next..].iter().position(same) else {
            written.add(name, value);
            continue;
        };
        let found = next + skipped;
        if names[next..found].iter().any(|one| is_server(one)) {
            written.add(b"Server", SERVER);
        }
        written.add(names[found], value);
        next = found + 1;
    }
    if written.value(b"Server").is_none() {
        written.add(b"Server", SERVER);
    }
    *fields = written;
    failed
}

fn is_own(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(NAMES) || name.eq_ignore_ascii_case(FAILED)
}

/// How the text begins where the program is not for who asks: that is no client's concern.
pub(crate) const OF_OFFERS: &str = "offer";

/// Whether it begins so.
pub(crate) fn is_of_offers(failed: &[u8]) -> bool {
    failed.split(|byte| *byte == b':').next() == Some(OF_OFFERS.as_bytes())
}

/// Whose fault it is, as the text of a failure begins with.
pub(crate) fn fault_of(failed: &[u8]) -> Fault {
    match failed.split(|byte| *byte == b':').next() {
        Some(b"client") => Fault::Client,
        Some(b"script") => Fault::Script,
        _ => Fault::Upstream,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(head: &str) -> Request {
        Request::offline(head.as_bytes(), &hob_http::limits::HttpLimits::default()).unwrap()
    }

    #[test]
    fn what_is_carried_is_read_as_it_was() {
        let request = request("GET /a%20b/c?d=e&f HTTP/1.1\r\nHost: h:81\r\n\r\n");
        let field = field("re=po&rts", &request, (b"/a b/\0c%", 5));
        let read = parse(&field).unwrap();
        assert_eq!(read.program, b"re=po&rts");
        assert_eq!((&*read.path, read.below), (&b"/a b/\0c%"[..], 5));
        let told = |name: &str| {
            let found = read
                .variables
                .iter()
                .find(|(known, _)| **known == *name.as_bytes());
            found.map(|(_, value)| String::from_utf8(value.to_vec()).unwrap())
        };
        assert_eq!(told("SERVER_NAME").as_deref(), Some("h"));
        assert_eq!(told("REQUEST_URI").as_deref(), Some("/a%20b/c?d=e&f"));
        assert_eq!(told("SERVER_PROTOCOL").as_deref(), Some("HTTP/1.1"));
        for own in ["SCRIPT_NAME", "DOCUMENT_ROOT", "HTTPS", "CONTENT_LENGTH"] {
            assert_eq!(told(own), None, "{own}");
        }
    }

    #[test]
    fn what_leads_elsewhere_or_means_nothing_is_refused() {
        let is_good = |text: &str| parse(text.as_bytes()).is_ok();
        assert!(is_good("program=a&path=/a/b&below=3&LATER=1&x=%41"));
        assert!(is_good("program=a&path=/&below=1") && is_good("program=a&path=/a/&below=3"));
        for wrong in [
            "",
            "program=a",
            "program=a&path=/a",
            "program=a&path=/a&below=x",
            "program=a&path=/a&below=3",
            "program=a&path=/a/b&below=2",
            "program=a&path=/a/b&below=0",
            "program=a&path=a&below=1",
            "program=a&path=/../a&below=1",
            "program=a&path=/%2E%2e/a&below=1",
            "program=a&path=/a//b&below=1",
            "program=a&path=/x%00..%00a&below=1",
            "program=a&path=/a%&below=1",
            "program=a&path=/a&below=1&SERVER_NAME",
        ] {
            assert!(!is_good(wrong), "{wrong}");
        }
        let nul = parse(b"program=a&path=/a&below=1&REMOTE_ADDR=a%00b&PATH=/x").unwrap();
        assert!(nul.variables.is_empty());
    }

    #[test]
    fn names_of_an_answer_are_written_as_its_program_did() {
        let mut fields = Fields::new();
        for (name, value) in [
            ("ETag", "a"),
            ("X-a", "1"),
            ("x-A", "2"),
            ("Server", "hob"),
            ("WWW-Authenticate", "x"),
            ("hob-names", "forged"),
        ] {
            fields.add(name.as_bytes(), value.as_bytes());
        }
        pack(&mut fields, Some("script: it\nfailed\n"));
        let mut came = Fields::new();
        came.add(b"date", b"now");
        for (name, value) in fields.iter().filter(|(name, _)| *name != b"Server") {
            came.add(&name.to_ascii_lowercase(), value);
        }
        let failed = unpack(&mut came).unwrap();
        assert_eq!(failed, b"script: it failed");
        assert_eq!(fault_of(&failed), Fault::Script);
        let expected = "date: now\r\nETag: a\r\nX-a: 1\r\nx-A: 2\r\nServer: hob\r\n\
                        WWW-Authenticate: x\r\n";
        assert_eq!(came.lines(), expected.as_bytes());
    }
}
