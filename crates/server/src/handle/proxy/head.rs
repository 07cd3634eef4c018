//! A request as it is sent on: made anew of what was understood of it, never copied as it came.
//!
//! What belongs to a connection stays behind (RFC 9110 section 7.6.1), and so do a client's own
//! words on who it is: what is told of the client is written here.

use hob_http::h2::client::RequestBlock;
use hob_http::{Known, Request, SignedIn};
use hob_trace::address::push_ip;
use hob_trace::digits::push_decimal;

use crate::handle::proxy::config::{HostSent, ProxySettings};
use crate::handle::script::carried;
use crate::handle::script::fields::{is_same_name, push_cookies, tells_user};
use crate::handle::script::trace_fields::{is_of_trace, push_traceparent, push_tracestate};
use crate::route::percent::{UrlPart, encode};
use crate::route::target::rest_as_sent;

/// What is sent before the body.
pub(crate) struct SentHead<'a> {
    pub(crate) request: &'a Request,
    pub(crate) settings: &'a ProxySettings,
    /// The target, as [`push_target`] makes it.
    pub(crate) target: &'a [u8],
    /// The member's own name and port.
    pub(crate) authority: &'a str,
    pub(crate) body: SentBody,
    /// What is asked to be spoken through a tunnel.
    pub(crate) tunnel: Option<SentUpgrade<'a>>,
    /// Of a program of another machine: what that is told of the request besides.
    pub(crate) carried: Option<&'a [u8]>,
}

/// How the end of the body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentBody {
    /// There is none.
    None,
    /// So many bytes.
    Sized(u64),
    /// In chunks.
    Chunked,
}

/// A tunnel asked for.
#[derive(Clone, Copy)]
pub(crate) struct SentUpgrade<'a> {
    /// The protocol.
    pub(crate) protocol: &'a [u8],
    /// The key of a WebSocket whose client has none, because it asked by CONNECT (RFC 8441 section
    /// 5).
    pub(crate) key: Option<&'a [u8]>,
}

/// Where a request goes on the other side.
pub(crate) struct TargetParts<'a> {
    pub(crate) request: &'a Request,
    /// The path in its normal form, rewritten where the route says so, and where it leaves the
    /// route's fixed folder.
    pub(crate) path: (&'a [u8], usize),
    pub(crate) is_rewritten: bool,
    /// What stands in the place of that folder; empty where all of it goes on.
    pub(crate) base: &'a [u8],
}

/// Appends the target. The path goes on as it was sent where that means nothing else to anybody
/// than it meant here; else in its normal form, with slashes that follow each other.
pub(crate) fn push_target(parts: &TargetParts<'_>, out: &mut Vec<u8>) {
    let (path, below) = parts.path;
    let sent = parts.request.head().path();
    if parts.base.is_empty() && (sent == b"*" || !parts.is_rewritten && is_plain(sent)) {
        out.extend_from_slice(sent);
    } else {
        // From a slash on.
        let named = match parts.base {
            b"" => 0,
            _ => below.saturating_sub(1),
        };
        let rest = rest_as_sent(sent, path, named);
        out.extend_from_slice(parts.base.strip_suffix(b"/").unwrap_or_default());
        let begin = out.len();
        encode(&rest, UrlPart::Path, out);
        // Two at the begin would name another host.
        if begin == 0 {
            let slashes = out.iter().take_while(|&&byte| byte == b'/').count();
            out.drain(..slashes.saturating_sub(1));
        }
    }
    if let Some(query) = parts.request.query() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

/// No dot segment, and nothing that could be taken for one, or for a host.
fn is_plain(sent: &[u8]) -> bool {
    if sent.starts_with(b"//") {
        return false;
    }
    let mut rest = sent;
    while let Some(at) = memchr::memchr3(b'/', b'%', b'\\', rest) {
        match &rest[at..] {
            [b'/', b'.', ..] | [b'\\', ..] => return false,
            [b'/', b'%', b'2', b'e' | b'E', ..] => return false,
            [b'%', b'2', b'f' | b'F', b'.' | b'%', ..] | [b'%', b'5', b'c' | b'C', ..] => {
                return false;
            }
            _ => {}
        }
        rest = &rest[at + 1..];
    }
    true
}

/// Fields that are written here: a client's own are not passed on, and the config sets none.
pub(super) fn is_own_field(name: &[u8]) -> bool {
    const LEFT_OUT: &[&[u8]] = &[
        b"connection",
        b"content-length",
        b"cookie",
        b"expect",
        b"forwarded",
        carried::REQUEST,
        b"host",
        b"http2-settings",
        b"keep-alive",
        b"proxy",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
        b"x-real-ip",
    ];
    is_among(LEFT_OUT, b"cefhkptux", name)
}

/// Fields that say the same in other words: a client's own are not passed on either. The config
/// sets them for who believes no other.
fn says_the_same(name: &[u8]) -> bool {
    const LEFT_OUT: &[&[u8]] = &[
        b"front-end-https",
        b"x-forwarded",
        b"x-forwarded-protocol",
        b"x-forwarded-scheme",
        b"x-forwarded-server",
        b"x-forwarded-ssl",
        b"x-url-scheme",
    ];
    is_among(LEFT_OUT, b"fx", name)
}

/// Whether a client's field of this name is passed on, and not written here, left out or set by the
/// config.
pub(super) fn is_passed_on(settings: &ProxySettings, name: &[u8]) -> bool {
    let mut set = settings.headers.iter();
    let is_set = |(own, _): &(String, String)| is_same_name(own.as_bytes(), name);
    !is_own_field(name) && !says_the_same(name) && !set.any(is_set)
}

/// Whether a name is one of these, whose first letters are given.
fn is_among(names: &[&[u8]], firsts: &[u8], name: &[u8]) -> bool {
    let first = name.first().map_or(0, u8::to_ascii_lowercase);
    let is_it = |one: &&[u8]| one[0] == first && is_same_name(one, name);
    firsts.contains(&first) && names.iter().any(is_it)
}

/// Where fields of a head are written.
trait WritesFields {
    fn field(&mut self, name: &[u8], value: &[u8]);

    /// A field whose value is written by `write`, which says whether there is one.
    fn written(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>) -> bool);
}

/// As lines.
impl WritesFields for Vec<u8> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, b": ", value, b"\r\n"] {
            self.extend_from_slice(part);
        }
    }

    fn written(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let begin = self.len();
        self.extend_from_slice(name);
        self.extend_from_slice(b": ");
        match write(self) {
            true => self.extend_from_slice(b"\r\n"),
            false => self.truncate(begin),
        }
    }
}

/// As a block of HTTP/2.
struct BlockFields<'a, 'b> {
    block: &'a mut RequestBlock<'b>,
    value: Vec<u8>,
}

impl WritesFields for BlockFields<'_, '_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        //= rfc8441#5
        if !name.eq_ignore_ascii_case(b"sec-websocket-key") {
            self.block.field(name, value);
        }
    }

    fn written(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>) -> bool) {
        self.value.clear();
        if write(&mut self.value) {
            self.block.field(name, &self.value);
        }
    }
}

impl SentHead<'_> {
    /// The lines, the empty one among them.
    pub(crate) fn lines(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        self.push(&mut out);
        out
    }

    fn push(&self, out: &mut Vec<u8>) {
        let head = self.request.head();
        // An extended CONNECT is a GET with `Upgrade` in HTTP/1.1.
        let method = match head.connect_protocol() {
            Some(_) => b"GET",
            None => head.method(),
        };
        for part in [method, b" ", self.target, b" HTTP/1.1\r\nHost: "] {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(self.host());
        out.extend_from_slice(b"\r\n");
        self.push_fields(out);
        self.push_told(out);
        match self.body {
            SentBody::None => {}
            SentBody::Sized(bytes) => {
                out.extend_from_slice(b"Content-Length: ");
                push_decimal(bytes, out);
                out.extend_from_slice(b"\r\n");
            }
            SentBody::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        }
        match &self.tunnel {
            Some(SentUpgrade { protocol, key }) => {
                out.field(b"Connection", b"Upgrade");
                out.field(b"Upgrade", protocol);
                if let Some(key) = key {
                    out.field(b"Sec-WebSocket-Key", key);
                }
            }
            None if self.settings.upstream.keep == 0 => out.field(b"Connection", b"close"),
            None => {}
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes it as a block of HTTP/2. A wish for a tunnel is an extended CONNECT there.
    //= rfc8441#4
    pub(super) fn write_block(&self, block: &mut RequestBlock<'_>, is_https: bool) {
        let head = self.request.head();
        let what = match &self.tunnel {
            Some(upgrade) => (&b"CONNECT"[..], Some(upgrade.protocol)),
            None => (head.method(), None),
        };
        block.target(what, is_https, (self.host(), self.target));
        let mut out = BlockFields {
            block,
            value: Vec::new(),
        };
        self.push_fields(&mut out);
        self.push_told(&mut out);
        if let SentBody::Sized(bytes) = self.body {
            out.written(b"content-length", |out| {
                push_decimal(bytes, out);
                true
            });
        }
        //= rfc9110#10.1.4
        let mut codings = head.values(b"te");
        if codings.any(|te| te.split(|byte| *byte == b',').any(is_trailers)) {
            out.field(b"te", b"trailers");
        }
    }

    pub(super) fn host(&self) -> &[u8] {
        match &self.settings.host {
            HostSent::Keep => match self.request.head().host() {
                b"" => self.authority.as_bytes(),
                host => host,
            },
            HostSent::Upstream => self.authority.as_bytes(),
            HostSent::Fixed(host) => host.as_bytes(),
        }
    }

    fn push_fields(&self, out: &mut impl WritesFields) {
        let head = self.request.head();
        let is_traced = self.request.record().trace.is_some();
        // Fields that `Connection` names are the connection's too.
        let named = head.joined(Known::Connection);
        let is_named = |name: &[u8]| {
            let named = named.as_deref().unwrap_or_default();
            let mut options = named.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            !named.is_empty() && options.any(|option| option.eq_ignore_ascii_case(name))
        };
        let key_is_own = self.tunnel.is_some_and(|tunnel| tunnel.key.is_some());
        // A program gets all that it would get here.
        let is_left_out = |name: &[u8]| match self.carried {
            Some(_) => !carried::is_passed(self.request.facts(), name),
            None => !is_passed_on(self.settings, name) || is_named(name),
        };
        let signed_in = self.request.signed_in();
        for (name, value) in head.fields() {
            if is_left_out(name)
                || { signed_in.as_ref() }.is_some_and(|known| tells_user(known, name))
                || is_traced && is_of_trace(name)
                || key_is_own && name.eq_ignore_ascii_case(b"sec-websocket-key")
            {
                continue;
            }
            out.field(name, value);
        }
        for (name, value) in &self.settings.headers {
            if !value.is_empty() {
                out.field(name.as_bytes(), value.as_bytes());
            }
        }
        if head.value(Known::Cookie).is_some() {
            out.written(b"Cookie", |out| push_cookies(head.values(b"cookie"), out));
        }
        if let Some(carried) = self.carried {
            out.field(carried::REQUEST, carried);
        }
        if is_traced {
            out.written(b"traceparent", |out| push_traceparent(self.request, out));
            out.written(b"tracestate", |out| push_tracestate(self.request, out));
        }
    }

    /// Says who has signed in, where the config does not set such fields itself.
    fn push_user(&self, known: &SignedIn, out: &mut impl WritesFields) {
        let is_set = |name: &[u8]| {
            let mut set = self.settings.headers.iter();
            set.any(|(own, _)| own.as_bytes().eq_ignore_ascii_case(name))
        };
        for (name, value) in known
            .fields
            .iter()
            .filter(|(name, value)| !value.is_empty() && !is_set(name))
        {
            out.field(name, value);
        }
        let mut told = known.fields.iter().map(|(name, _)| &**name);
        let is_told = told.any(|name| name == b"remote-user");
        if !known.user.is_empty() && !is_told && !is_set(b"remote-user") {
            out.field(b"Remote-User", known.user.as_bytes());
        }
    }

    /// Says who asks, and over what.
    fn push_told(&self, out: &mut impl WritesFields) {
        let tells = &self.settings.forwarded;
        let facts = self.request.facts();
        let host = self.request.head().host();
        let scheme: &[u8] = match facts.is_secure() {
            true => b"https",
            false => b"http",
        };
        if let Some(known) = &*self.request.signed_in() {
            self.push_user(known, out);
        }
        if let Some(peer) = facts.peer {
            for (is_told, name) in [
                (tells.client, &b"X-Forwarded-For"[..]),
                (tells.real_ip, b"X-Real-IP"),
            ] {
                if is_told {
                    out.written(name, |out| {
                        push_ip(peer.ip(), out);
                        true
                    });
                }
            }
        }
        if tells.proto {
            out.field(b"X-Forwarded-Proto", scheme);
        }
        if tells.host && !host.is_empty() {
            out.field(b"X-Forwarded-Host", host);
        }
        if tells.port
            && let Some(local) = facts.local
        {
            out.written(b"X-Forwarded-Port", |out| {
                push_decimal(local.port().into(), out);
                true
            });
        }
        if tells.standard {
            out.written(b"Forwarded", |out| {
                push_forwarded(self.request, scheme, out)
            });
        }
        if tells.via {
            let version = self
                .request
                .head()
                .protocol()
                .word()
                .trim_start_matches("HTTP/");
            out.written(b"Via", |out| {
                out.extend_from_slice(version.as_bytes());
                out.extend_from_slice(b" hob");
                true
            });
        }
    }
}

/// `for=192.0.2.1;host=h;proto=https` (RFC 7239 section 4).
fn push_forwarded(request: &Request, scheme: &[u8], out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(b"for=");
    match request.facts().peer.map(|peer| peer.ip()) {
        Some(ip) if ip.is_ipv6() => {
            out.extend_from_slice(b"\"[");
            push_ip(ip, out);
            out.extend_from_slice(b"]\"");
        }
        Some(ip) => push_ip(ip, out),
        None => out.extend_from_slice(b"unknown"),
    }
    let host = request.head().host();
    if !host.is_empty() {
        out.extend_from_slice(b";host=\"");
        out.extend_from_slice(host);
        out.push(b'"');
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(scheme);
    true
}

fn is_trailers(coding: &[u8]) -> bool {
    coding.trim_ascii().eq_ignore_ascii_case(b"trailers")
}
