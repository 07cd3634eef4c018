//! A route that is asked whether it lets a request in: what single sign-on services call forward
//! auth. It gets a request of its own with the fields of the one it is asked about; what it answers
//! is the client's, unless it is a 2xx.

use std::rc::Rc;
use std::sync::Arc;

use hob_config::ForwardRoute;
use hob_http::limits::HttpLimits;
use hob_http::{Known, Request, Response, SignedIn};
use hob_trace::Fault;

use super::{HandlerContext, note_fault};
use crate::handle::plain;
use crate::handle::script::fields::{is_same_name, names_user};
use crate::serve::sites::Sites;
use crate::step::auth::accounts::AuthAccount;

/// Longest head of such a request, in bytes: that of the longest that comes, and what is added.
const HEAD_BYTES_MAX: usize = 4 << 20;
/// Most fields of it: as many as `limits.headers` may allow, and those that are added.
const HEADERS_MAX: usize = 10_100;
/// So many groups of one account are known.
const GROUPS_MAX: usize = 1000;

impl HandlerContext {
    /// Asks a route of a site about a request: whose it is, what programs are told of them and
    /// which cookies they get, or what its client gets instead.
    pub(super) async fn ask_route(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        site: u32,
        asked: &ForwardRoute,
        request: &Request,
    ) -> Result<(AuthAccount, SignedIn), Box<Response>> {
        let path = asked.path.as_bytes();
        let limits = HttpLimits {
            head_bytes: HEAD_BYTES_MAX,
            target_bytes: HEAD_BYTES_MAX,
            header_count: HEADERS_MAX,
            ..HttpLimits::default()
        };
        let beside = match request.beside(&head(path, request), &limits) {
            Ok(beside) => beside,
            Err(refusal) => {
                note_fault(request, Fault::Client, refusal.reason);
                return Err(Box::new(plain::error(refusal.status)));
            }
        };
        let found = sites.site(site).and_then(|site| {
            let (index, below) = site.find(path, &beside)?;
            Some((site, site.routes.get(index as usize)?, below))
        });
        let Some((served, route, below)) = found else {
            note_fault(
                request,
                Fault::Server,
                "require: no route answers the path that is asked",
            );
            return Err(Box::new(plain::error(500)));
        };
        let answered = self.ask(sites, served, route, &beside, (path, below));
        let answered = self.finish(sites, (site, route.index), &beside, answered);
        let answer = answered.wait().await;
        if answer.status() / 100 == 2 {
            return Ok(signed_in(&answer, asked));
        }
        let reason = match answer.is_stand_in {
            true => "require: the route that is asked has failed",
            false => "require: the route that is asked lets nobody in",
        };
        let fault = match answer.is_stand_in {
            true => beside.record().fault,
            false => Fault::Client,
        };
        note_fault(request, fault, reason);
        if let Some(reason) = beside.record().reason {
            request.set_detail(reason.as_bytes());
        }
        Err(Box::new(answer))
    }
}

/// Whose a request is by the answer that lets it in.
fn signed_in(answer: &Response, asked: &ForwardRoute) -> (AuthAccount, SignedIn) {
    let field = |name: &str| {
        let mut fields = answer.fields().iter();
        let found = fields.find(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| value)
    };
    let text = |name: &str| String::from_utf8_lossy(field(name).unwrap_or_default());
    let groups = text(&asked.groups);
    let groups = { groups.split(',') }
        .map(str::trim)
        .filter(|group| !group.is_empty());
    let account = AuthAccount::of_route(text(&asked.user).trim(), groups.take(GROUPS_MAX));
    // Those that it does not send are none, whatever the client sends.
    let told = asked.fields.iter().map(|name| {
        let value = field(name).unwrap_or_default();
        (name.as_bytes().into(), value.into())
    });
    // Who renews its session with an answer has it renewed with this one.
    let cookies = answer.fields().iter();
    let cookies = cookies.filter(|(name, _)| name.eq_ignore_ascii_case(b"Set-Cookie"));
    let signed_in = SignedIn {
        user: Arc::clone(&account.name),
        scheme: "forward",
        fields: told.collect(),
        cookies: cookies.map(|(_, value)| value.into()).collect(),
    };
    (account, signed_in)
}

/// The head of the request that a route is asked with.
fn head(path: &[u8], request: &Request) -> Vec<u8> {
    let sent = request.sent_head();
    let mut out = Vec::with_capacity(1024);
    for part in [b"GET ", path, b" HTTP/1.1\r\nHost: ", sent.host(), b"\r\n"] {
        out.extend_from_slice(part);
    }
    let named = sent.joined(Known::Connection);
    let named = named.as_deref().unwrap_or_default();
    let is_named = |name: &[u8]| {
        let mut options = named.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        !named.is_empty() && options.any(|option| option.eq_ignore_ascii_case(name))
    };
    for (name, value) in sent.fields() {
        if is_left_out(name) || is_named(name) {
            continue;
        }
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    for (name, value) in [
        ("X-Forwarded-Method", sent.method()),
        ("X-Forwarded-Uri", sent.target()),
        ("X-Forwarded-Host", sent.host()),
        ("X-Original-Method", sent.method()),
        ("X-Original-URI", sent.target()),
    ] {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Fields that are about a body, a connection, or an answer that was kept; and those that are set
/// here.
fn is_left_out(name: &[u8]) -> bool {
    const LEFT_OUT: &[&[u8]] = &[
        b"connection",
        b"expect",
        b"host",
        b"http2-settings",
        b"if-match",
        b"if-modified-since",
        b"if-none-match",
        b"if-range",
        b"if-unmodified-since",
        b"keep-alive",
        b"range",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"x-forwarded-host",
        b"x-forwarded-method",
        b"x-forwarded-uri",
        b"x-original-method",
        b"x-original-uri",
    ];
    let begins = name.get(..b"content-".len());
    let is_of_body = begins.is_some_and(|begin| begin.eq_ignore_ascii_case(b"content-"));
    is_of_body || names_user(name) || LEFT_OUT.iter().any(|one| is_same_name(one, name))
}
