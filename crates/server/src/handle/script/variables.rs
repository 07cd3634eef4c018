//! What a program is told of a request: one table of variables for every script handler and for
//! the documentation (RFC 3875 section 4.1, and what programs have come to expect beside it).
//!
//! Names and values are written into a `VariableSink`, which each carrier has of its own.
//! Request fields follow as `HTTP_...`. No field ever sets a variable that is not its own: `Proxy`
//! is not passed (programs take `HTTP_PROXY` for a setting of theirs), nor is a name with other
//! bytes than letters, digits and `-`, because `X_A` and `X-A` would become one variable.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use hob_http::digits::{push_decimal, push_hex};
use hob_http::tls::{ClientCertificate, NO_RULE};
use hob_http::{Known, Request, ToldVariables};
use hob_trace::address::push_ip;

use crate::handle::plain::SERVER;
use crate::handle::script::fields::fields;
use crate::handle::script::trace_fields;
use crate::route::template::without_port;

/// One variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it holds, for the reference page.
    pub text: &'static str,
    /// Where it comes from.
    pub origin: VariableOrigin,
    /// One program is told the same in every request of one connection.
    is_lasting: bool,
    /// Whose word it is where another machine passes the request on.
    pub(crate) carried: Carried,
    value: fn(&ProgramRequest<'_>, &mut Vec<u8>) -> Present,
}

/// Who says that there is such a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableOrigin {
    /// RFC 3875 section 4.1.
    Rfc,
    /// Other servers and the programs written for them.
    Custom,
}

/// Whose word a variable is where another machine, which has the client, asks for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// This machine's: it has the program.
    No,
    /// The other's.
    Always,
    /// The other's where this one has nothing to say.
    Else,
}

/// Whether a variable is set for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    Yes,
    No,
}

/// A request on its way to a program.
pub struct ProgramRequest<'a> {
    /// The request.
    pub request: &'a Request,
    /// Size of the body, in bytes; `None` when it is not known yet.
    pub body_bytes: Option<u64>,
    /// The program's place.
    pub script: ScriptLocation<'a>,
    /// `Authorization` is passed.
    pub passes_authorization: bool,
    /// The program may answer with a tunnel.
    pub may_tunnel: bool,
}

/// Where a program stands, in the URL and on the disk.
#[derive(Clone, Copy, Default)]
pub struct ScriptLocation<'a> {
    /// The part of the normal path that names it.
    pub name: &'a [u8],
    /// What follows in the path; empty, or begins with a slash.
    pub path_info: &'a [u8],
    /// Its file.
    pub file: &'a [u8],
    /// The site's root.
    pub document_root: &'a [u8],
}

/// An encoded slash in the `PATH_INFO` of programs that look for a script by it
/// (`resident.scripts`): no other byte of a path can be this one.
pub const SLASH_IN_A_NAME: u8 = 1;

/// Every variable but the `HTTP_` ones, in the order they are passed. The spawner passes those of
/// its own list (`OF_REQUESTS`) alone.
pub static TABLE: &[Variable] = &[
    rfc("GATEWAY_INTERFACE", "`CGI/1.1`.", |_, out| {
        text(out, b"CGI/1.1")
    })
    .lasting(),
    rfc("SERVER_SOFTWARE", "`hob`.", |_, out| text(out, SERVER)).lasting(),
    rfc(
        "SERVER_PROTOCOL",
        "Protocol of the request: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`.",
        |asked, out| text(out, asked.request.head().protocol().word().as_bytes()),
    )
    .carried(Carried::Always),
    rfc(
        "SERVER_NAME",
        "Host the request is for, without port; the server's address when it names none.",
        server_name,
    )
    .carried(Carried::Always),
    rfc(
        "SERVER_PORT",
        "Port the connection came to; that of the host over a Unix socket.",
        server_port,
    )
    .carried(Carried::Always),
    custom(
        "SERVER_ADDR",
        "Address the connection came to; not set over a Unix socket.",
        |asked, out| match asked.request.facts().local {
            Some(local) => address(out, local.ip()),
            None => Present::No,
        },
    )
    .lasting()
    .carried(Carried::Always),
    custom("REQUEST_SCHEME", "`http` or `https`.", |asked, out| {
        text(out, if is_tls(asked) { b"https" } else { b"http" })
    })
    .lasting()
    .carried(Carried::Always),
    custom(
        "HTTPS",
        "`on` when the connection is encrypted, else not set.",
        |asked, out| match is_tls(asked) {
            true => text(out, b"on"),
            false => Present::No,
        },
    )
    .lasting()
    .carried(Carried::Always),
    rfc(
        "REQUEST_METHOD",
        "The method: `GET`, `POST`, ...",
        |asked, out| text(out, asked.request.head().method()),
    ),
    custom(
        "REQUEST_URI",
        "Path and query as sent, still encoded; also after a redirect within the server.",
        request_uri,
    )
    .carried(Carried::Always),
    rfc(
        "SCRIPT_NAME",
        "The part of the path that names the program, decoded.",
        |asked, out| text(out, asked.script.name),
    ),
    rfc(
        "PATH_INFO",
        "What follows the program in the path, decoded, with its slashes as sent; empty when nothing \
         does.",
        |asked, out| text(out, asked.script.path_info),
    ),
    rfc(
        "PATH_TRANSLATED",
        "`PATH_INFO` below the site's root, slashes in a row made one; not set when either is empty.",
        path_translated,
    ),
    rfc(
        "QUERY_STRING",
        "What follows the `?` of the URL, still encoded; empty when nothing does.",
        |asked, out| text(out, asked.request.query().unwrap_or_default()),
    ),
    custom("SCRIPT_FILENAME", "The program's file.", |asked, out| {
        text(out, asked.script.file)
    })
    .lasting(),
    custom(
        "DOCUMENT_ROOT",
        "The site's `root`; without one, the program's folder.",
        |asked, out| text(out, asked.script.document_root),
    )
    .lasting(),
    rfc(
        "CONTENT_LENGTH",
        "Bytes of the request's body, also when it came in chunks; not set without one.",
        |asked, out| match asked.body_bytes {
            None => Present::No,
            Some(0) if asked.request.body_len() == Some(0) && !announces_length(asked) => {
                Present::No
            }
            Some(bytes) => number(out, bytes),
        },
    ),
    rfc(
        "CONTENT_TYPE",
        "The request's `Content-Type`, if it has one.",
        |asked, out| match asked.request.head().value(Known::ContentType) {
            Some(value) => text(out, value),
            None => Present::No,
        },
    ),
    rfc(
        "REMOTE_ADDR",
        "The client's address; `0.0.0.0` over a Unix socket.",
        |asked, out| address(out, client(asked).0),
    )
    .lasting()
    .carried(Carried::Always),
    rfc(
        "REMOTE_HOST",
        "The same: names are not looked up.",
        |asked, out| address(out, client(asked).0),
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "REMOTE_PORT",
        "The client's port; 0 over a Unix socket.",
        |asked, out| number(out, client(asked).1.into()),
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "GEOIP_COUNTRY_CODE",
        "The two letters of the country of the client's address, such as `DE`, where a file of \
         `countries` says it; not set otherwise.",
        |asked, out| match asked.request.country() {
            Some(code) => text(out, &code),
            None => Present::No,
        },
    )
    .carried(Carried::Always),
    rfc(
        "REMOTE_USER",
        "Who has signed in, where the route has `require`; not set otherwise.",
        |asked, out| match &*asked.request.signed_in() {
            Some(known) if !known.user.is_empty() => text(out, known.user.as_bytes()),
            _ => Present::No,
        },
    )
    .carried(Carried::Always),
    rfc(
        "REMOTE_IDENT",
        "Never set: nobody speaks that protocol.",
        |_, _| Present::No,
    )
    .lasting()
    .carried(Carried::Always),
    rfc(
        "AUTH_TYPE",
        "How: `Basic`, or `forward` where another route was asked; not set where nobody has.",
        |asked, out| match &*asked.request.signed_in() {
            Some(known) if !known.scheme.is_empty() => text(out, known.scheme.as_bytes()),
            _ => Present::No,
        },
    )
    .carried(Carried::Always),
    custom(
        "UNIQUE_ID",
        "A name for this request, unique on this machine: it is in the log of the program's \
         standard error too.",
        |asked, out| {
            push_unique_id(asked.request, out);
            Present::Yes
        },
    ),
    custom(
        "TRACEPARENT",
        "The request's place in its trace, for what the program calls: the server's span is the \
         parent. Needs `[otlp]`; not set for a request without a trace.",
        trace_fields::traceparent,
    )
    .carried(Carried::Else),
    custom(
        "HTTP_TRACEPARENT",
        "The same, in place of the request's own field.",
        trace_fields::traceparent,
    ),
    custom(
        "TRACESTATE",
        "The request's `tracestate`, where it belongs to the trace it came with.",
        trace_fields::tracestate,
    )
    .carried(Carried::Else),
    custom("HTTP_TRACESTATE", "The same.", trace_fields::tracestate),
    custom(
        "HOB_TUNNEL",
        "What the client asks to speak through a tunnel, such as `websocket`, where the program may \
         open one: the first protocol of `Upgrade` over HTTP/1.1, that of an extended `CONNECT` \
         over HTTP/2 and 3. Not set otherwise.",
        |asked, out| match asked.request.tunnel() {
            Some(protocol) if asked.may_tunnel => text(out, protocol),
            _ => Present::No,
        },
    ),
    custom(
        "REDIRECT_STATUS",
        "`200`: php-cgi asks for it before it runs anything.",
        |_, out| text(out, b"200"),
    )
    .lasting(),
    custom(
        "SSL_PROTOCOL",
        "Version of TLS; not set in clear text.",
        |asked, out| match &asked.request.facts().tls {
            Some(tls) => text(out, tls.version.word().as_bytes()),
            None => Present::No,
        },
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_CIPHER",
        "Cipher suite of TLS; not set in clear text.",
        |asked, out| match &asked.request.facts().tls {
            Some(tls) => text(out, tls.suite.as_bytes()),
            None => Present::No,
        },
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_SESSION_RESUMED",
        "`Resumed` or `Initial`: how TLS began on the connection; not set in clear text.",
        |asked, out| match &asked.request.facts().tls {
            Some(tls) if tls.is_resumed => text(out, b"Resumed"),
            Some(_) => text(out, b"Initial"),
            None => Present::No,
        },
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_CLIENT_VERIFY",
        "`SUCCESS`: the client has shown a certificate, and it is good; `NONE`: it has none; not \
         set where nobody asks for one.",
        |asked, out| match &asked.request.facts().tls {
            Some(tls) if tls.client.is_some() => text(out, b"SUCCESS"),
            Some(tls) if tls.rule != NO_RULE => text(out, b"NONE"),
            _ => Present::No,
        },
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_CLIENT_S_DN",
        "Whose certificate the client has shown, as RFC 2253 writes names; not set without one.",
        |asked, out| of_client(asked, out, |client| &client.subject),
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_CLIENT_S_DN_CN",
        "The common name in it.",
        |asked, out| of_client(asked, out, |client| &client.common_name),
    )
    .lasting()
    .carried(Carried::Always),
    custom("SSL_CLIENT_I_DN", "Who signed it.", |asked, out| {
        of_client(asked, out, |client| &client.issuer)
    })
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_CLIENT_M_SERIAL",
        "Its number, in hexadecimal digits.",
        |asked, out| of_client(asked, out, |client| &client.serial),
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_CLIENT_V_START",
        "When it begins to be good: `Nov 22 07:21:27 2026 GMT`.",
        |asked, out| of_client(asked, out, |client| &client.not_before),
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_CLIENT_V_END",
        "When it ends to be good.",
        |asked, out| of_client(asked, out, |client| &client.not_after),
    )
    .lasting()
    .carried(Carried::Always),
    custom(
        "SSL_TLS_SNI",
        "Host named in the TLS handshake; not set without one.",
        |asked, out| {
            let tls = asked.request.facts().tls.as_ref();
            match tls.and_then(|tls| tls.server_name.as_ref()) {
                Some(name) => text(out, name.as_bytes()),
                None => Present::No,
            }
        },
    )
    .lasting()
    .carried(Carried::Always),
];

/// Where variables are written.
pub trait VariableSink {
    /// Adds a variable: its name and its value, each written to the end of what there is. There is
    /// no such variable where `value` returns false.
    fn add(&mut self, name: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>) -> bool);
}

/// Gives names and values to a function.
struct Pairs<F> {
    add: F,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl<F: FnMut(&[u8], &[u8])> VariableSink for Pairs<F> {
    fn add(&mut self, name: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>) -> bool) {
        self.name.clear();
        self.value.clear();
        name(&mut self.name);
        if value(&mut self.value) {
            (self.add)(&self.name, &self.value);
        }
    }
}

/// Looks for one variable.
struct WantedVariable<'a> {
    wanted: &'a [u8],
    name: Vec<u8>,
    found: Option<Vec<u8>>,
}

impl VariableSink for WantedVariable<'_> {
    fn add(&mut self, name: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>) -> bool) {
        if self.found.is_some() {
            return;
        }
        self.name.clear();
        name(&mut self.name);
        let mut found = Vec::new();
        if self.name == self.wanted && value(&mut found) {
            self.found = Some(found);
        }
    }
}

/// The value of one variable of a request.
pub(crate) fn one(asked: &ProgramRequest<'_>, name: &[u8]) -> Option<Vec<u8>> {
    let mut one = WantedVariable {
        wanted: name,
        name: Vec::new(),
        found: None,
    };
    some(asked, |variable| variable.name.as_bytes() == name, &mut one);
    if name.starts_with(b"HTTP_") {
        fields(asked, &mut one);
    }
    one.found
}

/// Gives every variable of a request to `add`: name and value.
pub fn each(asked: &ProgramRequest<'_>, add: impl FnMut(&[u8], &[u8])) {
    let mut pairs = Pairs {
        add,
        name: Vec::with_capacity(64),
        value: Vec::with_capacity(256),
    };
    write(asked, &mut pairs);
}

/// Writes every variable of a request.
pub(crate) fn write(asked: &ProgramRequest<'_>, layout: &mut impl VariableSink) {
    some(asked, |_| true, layout);
    fields(asked, layout);
}

/// Writes those that one program is told in every request of one connection.
pub fn write_lasting(asked: &ProgramRequest<'_>, layout: &mut impl VariableSink) {
    some(asked, |variable| variable.is_lasting, layout);
}

/// Writes all others.
pub fn write_passing(asked: &ProgramRequest<'_>, layout: &mut impl VariableSink) {
    some(asked, |variable| !variable.is_lasting, layout);
    fields(asked, layout);
}

fn some(
    asked: &ProgramRequest<'_>,
    is_one: impl Fn(&Variable) -> bool,
    layout: &mut impl VariableSink,
) {
    let told = asked.request.facts().told.as_ref();
    let told = told.and_then(|told| told.variables.as_ref());
    for variable in TABLE.iter().filter(|variable| is_one(variable)) {
        layout.add(
            |out| out.extend_from_slice(variable.name.as_bytes()),
            |out| match (told, variable.carried) {
                (Some(told), Carried::Always) => push_told(told, variable.name, out),
                (Some(told), Carried::Else) => {
                    variable.push(asked, out) || push_told(told, variable.name, out)
                }
                _ => variable.push(asked, out),
            },
        );
    }
}

/// Appends the value of a variable that another machine has told; false where it has not.
fn push_told(told: &ToldVariables, name: &str, out: &mut Vec<u8>) -> bool {
    let found = told.iter().find(|(known, _)| **known == *name.as_bytes());
    found.is_some_and(|(_, value)| {
        out.extend_from_slice(value);
        true
    })
}

/// The table as a page of the documentation, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    for variable in TABLE {
        let origin = match variable.origin {
            VariableOrigin::Rfc => "RFC 3875",
            VariableOrigin::Custom => "custom",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {origin} |",
            variable.name, variable.text
        );
    }
    page.push_str(ON_PATHS);
    page.push_str(ON_FIELDS);
    page
}

const INTRODUCTION: &str = "\
# What a program is told

The variables of a request, as every handler that runs programs passes them. CGI programs find them
in their environment, beside `PATH` and what `env` of their route sets. Variables marked RFC 3875
are those of CGI itself; the others are what programs expect from other servers.

| variable | holds | from |
| --- | --- | --- |
";

const ON_PATHS: &str = "
## The path

Which route and which program answer, and `SCRIPT_NAME`, is found by the path in its normal form:
percent-encoding decoded once, `.` and `..` segments taken out, slashes in a row made one. An
encoded slash (`%2F`) is part of a name there and never separates two: `/app%2Fx` is not below
`/app/`. In `SCRIPT_NAME` and `PATH_INFO` it is a slash.

`PATH_INFO` is what follows the program as it was sent, decoded, without dot segments: of
`/app//a///b` the program at `/app` is told `//a///b`, and of `/app/https:%2F%2Fexample.org` it is
told `/https://example.org`. So it can hold a URL. Whether a slash was encoded is told by
`REQUEST_URI` only, which has all as it was sent. `PATH_INFO` never has `.` or `..` between slashes:
where only decoding would make one, as in `..%2F`, the request is refused (400). A path that came
from `rewrite` is the normal one. All this is the same for CGI, warm scripts, and programs that
stay, in every language; ASGI has the whole path as sent in `raw_path`.
";

const ON_FIELDS: &str = "
## Request fields

Every other field of the request becomes a variable: `Accept-Language` is `HTTP_ACCEPT_LANGUAGE`.
A field that comes more than once is one variable, its values joined by `, ` (those of `Cookie` by
`; `). Not passed are

- `Content-Length` and `Content-Type`, which have variables of their own;
- `Authorization` and `Proxy-Authorization`, unless the route has `pass_authorization = true`;
- cookies of the admin pages (`hob-admin-PORT`), which browsers send to every port of a host;
- `Proxy`, because many programs take `HTTP_PROXY` for a setting of theirs;
- fields whose name has other characters than letters, digits and `-`: `X_User` would become the
  same variable as `X-User`, which perhaps another server in front vouches for;
- what describes the connection, not the request: `Connection`, `Keep-Alive`, `Proxy-Connection`,
  `TE`, `Trailer`, `Transfer-Encoding` and `Upgrade`; `HTTP_CONNECTION` and `HTTP_UPGRADE` are set
  where `HOB_TUNNEL` is set, over HTTP/1.1;
- `traceparent` and `tracestate` of a request with a trace: their variables are those above.
";

impl Variable {
    /// Appends its value; false where it is not set.
    pub(crate) fn push(&self, asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> bool {
        (self.value)(asked, out) == Present::Yes
    }

    const fn lasting(self) -> Variable {
        Variable {
            is_lasting: true,
            ..self
        }
    }

    const fn carried(self, carried: Carried) -> Variable {
        Variable { carried, ..self }
    }
}

const fn rfc(
    name: &'static str,
    text: &'static str,
    value: fn(&ProgramRequest<'_>, &mut Vec<u8>) -> Present,
) -> Variable {
    Variable {
        name,
        text,
        origin: VariableOrigin::Rfc,
        is_lasting: false,
        carried: Carried::No,
        value,
    }
}

const fn custom(
    name: &'static str,
    text: &'static str,
    value: fn(&ProgramRequest<'_>, &mut Vec<u8>) -> Present,
) -> Variable {
    Variable {
        name,
        text,
        origin: VariableOrigin::Custom,
        is_lasting: false,
        carried: Carried::No,
        value,
    }
}

fn text(out: &mut Vec<u8>, value: &[u8]) -> Present {
    out.extend_from_slice(value);
    Present::Yes
}

fn number(out: &mut Vec<u8>, value: u64) -> Present {
    push_decimal(value, out);
    Present::Yes
}

fn address(out: &mut Vec<u8>, value: IpAddr) -> Present {
    push_ip(value, out);
    Present::Yes
}

fn is_tls(asked: &ProgramRequest<'_>) -> bool {
    asked.request.facts().is_secure()
}

/// A part of the client's certificate.
fn of_client(
    asked: &ProgramRequest<'_>,
    out: &mut Vec<u8>,
    part: fn(&ClientCertificate) -> &String,
) -> Present {
    let tls = asked.request.facts().tls.as_ref();
    match tls.and_then(|tls| tls.client.as_ref()) {
        Some(client) => text(out, part(client).as_bytes()),
        None => Present::No,
    }
}

/// The client's address and port.
fn client(asked: &ProgramRequest<'_>) -> (IpAddr, u16) {
    match asked.request.facts().peer {
        Some(peer) => (peer.ip(), peer.port()),
        None => (IpAddr::from([0, 0, 0, 0]), 0),
    }
}

//= rfc3875#4.1.14
fn server_name(asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> Present {
    let host = without_port(asked.request.head().host());
    match asked.request.facts().local {
        _ if !host.is_empty() => text(out, host),
        Some(SocketAddr::V6(local)) => {
            out.push(b'[');
            push_ip((*local.ip()).into(), out);
            text(out, b"]")
        }
        Some(SocketAddr::V4(local)) => address(out, (*local.ip()).into()),
        None => text(out, b"localhost"),
    }
}

//= rfc3875#4.1.15
fn server_port(asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> Present {
    if let Some(local) = asked.request.facts().local {
        return number(out, local.port().into());
    }
    let host = asked.request.head().host();
    let port = host[without_port(host).len()..].strip_prefix(b":");
    match port.filter(|port| !port.is_empty()) {
        Some(port) => text(out, port),
        None if is_tls(asked) => text(out, b"443"),
        None => text(out, b"80"),
    }
}

fn request_uri(asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> Present {
    let head = asked.request.sent_head();
    out.extend_from_slice(head.path());
    if let Some(query) = head.query() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    Present::Yes
}

//= rfc3875#4.1.6
fn path_translated(asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> Present {
    let root = asked.script.document_root;
    if asked.script.path_info.is_empty() || root.is_empty() {
        return Present::No;
    }
    out.extend_from_slice(root.strip_suffix(b"/").unwrap_or(root));
    for &byte in asked.script.path_info {
        let byte = match byte {
            SLASH_IN_A_NAME => b'/',
            byte => byte,
        };
        if byte != b'/' || out.last() != Some(&b'/') {
            out.push(byte);
        }
    }
    Present::Yes
}

/// A body of no bytes that was announced so.
fn announces_length(asked: &ProgramRequest<'_>) -> bool {
    asked.request.head().value(Known::ContentLength).is_some()
}

/// Appends a name for the request: when it came, its connection and its number there.
pub fn push_unique_id(request: &Request, out: &mut Vec<u8>) {
    let record = request.record();
    push_hex(record.started_unix_ms, out);
    for number in [record.connection, record.request.into()] {
        out.push(b'-');
        push_hex(number, out);
    }
}

#[cfg(test)]
mod tests;
