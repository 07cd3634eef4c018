//! Fields of a request as variables of its program.

use hob_http::{ConnectionFacts, SignedIn};

use crate::handle::script::carried;
use crate::handle::script::head::starts_with;
use crate::handle::script::trace_fields::is_of_trace;
use crate::handle::script::variables::{ProgramRequest, VariableSink};
use crate::inside::ADMIN_COOKIE;

/// Fields of the request as variables, each name once, in the order of their names.
//= rfc3875#4.1.18
pub(crate) fn fields(asked: &ProgramRequest<'_>, layout: &mut impl VariableSink) {
    let head = asked.request.head();
    // Programs find there what they look for before they open a tunnel.
    let asks = asked.may_tunnel && head.upgrade().is_some() && asked.request.tunnel().is_some();
    let is_traced = asked.request.record().trace.is_some();
    let facts = asked.request.facts();
    let signed_in = asked.request.signed_in();
    let passed = |name: &[u8]| {
        is_passed(name, asked.passes_authorization, asks)
            && !(is_traced && is_of_trace(name))
            && is_told(facts, name)
            && !{ signed_in.as_ref() }.is_some_and(|known| tells_user(known, name))
    };
    let told = { signed_in.iter() }.flat_map(|known| known.fields.iter());
    let told = told.filter(|(_, value)| !value.is_empty());
    let told = told.map(|(name, value)| (&**name, &**value));
    let mut few = [(&b""[..], &b""[..]); FIELDS_USUAL];
    let mut many = Vec::new();
    let mut count = 0;
    for field in head.fields().filter(|(name, _)| passed(name)).chain(told) {
        match few.get_mut(count) {
            Some(place) => *place = field,
            None if many.is_empty() => {
                many.extend_from_slice(&few);
                many.push(field);
            }
            None => many.push(field),
        }
        count += 1;
    }
    let all = match count <= FIELDS_USUAL {
        true => &mut few[..count],
        false => &mut many[..],
    };
    // The sort is stable: values of one name stay in the order they came in.
    all.sort_by(|(one, _), (other, _)| lower(one).cmp(lower(other)));
    for same in all.chunk_by(|(one, _), (other, _)| one.eq_ignore_ascii_case(other)) {
        layout.add(
            |out| push_name(same[0].0, out),
            |out| push_values(same, out),
        );
    }
}

/// How many fields requests usually have at most.
const FIELDS_USUAL: usize = 24;

fn push_name(name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP_");
    out.extend(name.iter().map(|&byte| match byte {
        b'-' => b'_',
        _ => byte.to_ascii_uppercase(),
    }));
}

/// The values of fields of one name, as one.
fn push_values(same: &[(&[u8], &[u8])], out: &mut Vec<u8>) -> bool {
    if same[0].0.eq_ignore_ascii_case(b"cookie") {
        return push_cookies(same.iter().map(|(_, value)| *value), out);
    }
    for (index, (_, one)) in same.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(one);
    }
    true
}

/// The cookies of a request, without those of the admin pages: browsers send them to every port of
/// a host, and no program is to act for who is logged in there. False when no others are there.
pub(crate) fn push_cookies<'a>(values: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut is_any = false;
    for one in values {
        is_any |= !one.is_empty();
        if memchr::memmem::find(one, ADMIN_COOKIE).is_none() {
            if out.len() > start {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(one);
            continue;
        }
        for cookie in one.split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
            let name = cookie.strip_prefix(b"__Host-").unwrap_or(cookie);
            if name.starts_with(ADMIN_COOKIE) {
                continue;
            }
            if out.len() > start {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(cookie);
        }
    }
    out.len() > start || !is_any
}

/// Whether a program hears of a field: no other is to tell of the client than the one that is
/// believed.
pub(crate) fn is_told(facts: &ConnectionFacts, name: &[u8]) -> bool {
    match &facts.told {
        None => true,
        // The machine that has the client has left out the others.
        Some(told) if told.variables.is_some() => !name.eq_ignore_ascii_case(carried::REQUEST),
        Some(told) => !tells_otherwise(name, &told.field),
    }
}

/// Whether a field says who its sender is, in the words of servers that ask for names in front of
/// others: where the route asks itself, its clients' own do not count.
pub(crate) fn names_user(name: &[u8]) -> bool {
    const NAMING: &[&[u8]] = &[
        b"auth-type",
        b"remote-email",
        b"remote-groups",
        b"remote-name",
        b"remote-user",
        b"x-forwarded-email",
        b"x-forwarded-groups",
        b"x-forwarded-preferred-username",
        b"x-forwarded-user",
        b"x-remote-user",
        b"x-webauth-user",
    ];
    NAMING.iter().any(|one| is_same_name(one, name))
}

/// Whether a client's field is not passed on where somebody has signed in.
pub(crate) fn tells_user(known: &SignedIn, name: &[u8]) -> bool {
    names_user(name) || known.fields.iter().any(|(own, _)| is_same_name(own, name))
}

/// Whether a name means the same to a program as this one in lower case: those behind WSGI and CGI
/// cannot tell `_` from `-`.
pub(crate) fn is_same_name(lower: &[u8], name: &[u8]) -> bool {
    let same = |(one, other): (&u8, &u8)| match other {
        b'_' => *one == b'-' || *one == b'_',
        other => *one == other.to_ascii_lowercase(),
    };
    lower.len() == name.len() && lower.iter().zip(name).all(same)
}

/// Whether a field tells of the client, and is not the one that is believed, or belongs to it.
fn tells_otherwise(name: &[u8], believed: &str) -> bool {
    const TELLING: &[&[u8]] = &[
        b"cf-connecting-ip",
        b"client-ip",
        b"fastly-client-ip",
        b"forwarded",
        b"front-end-https",
        b"true-client-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-forwarded",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
        b"x-forwarded-protocol",
        b"x-forwarded-scheme",
        b"x-forwarded-server",
        b"x-forwarded-ssl",
        b"x-real-ip",
        b"x-url-scheme",
    ];
    let is_believed = name.eq_ignore_ascii_case(believed.as_bytes())
        || believed == "x-forwarded-for" && starts_with(name, b"x-forwarded-");
    !is_believed && TELLING.iter().any(|one| one.eq_ignore_ascii_case(name))
}

fn lower(name: &[u8]) -> impl Iterator<Item = u8> {
    name.iter().map(u8::to_ascii_lowercase)
}

fn is_passed(name: &[u8], passes_authorization: bool, passes_upgrade: bool) -> bool {
    const UNPASSED: &[&[u8]] = &[
        b"connection",
        b"content-length",
        b"content-type",
        b"keep-alive",
        b"proxy",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ];
    const UPGRADE: &[&[u8]] = &[b"connection", b"upgrade"];
    const SECRET: &[&[u8]] = &[b"authorization", b"proxy-authorization"];
    let is_one_of = |names: &[&[u8]]| names.iter().any(|one| one.eq_ignore_ascii_case(name));
    name.iter()
        .all(|&byte| byte == b'-' || byte.is_ascii_alphanumeric())
        && (!is_one_of(UNPASSED) || passes_upgrade && is_one_of(UPGRADE))
        && (passes_authorization || !is_one_of(SECRET))
}
