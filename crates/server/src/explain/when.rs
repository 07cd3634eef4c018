//! Why a route leaves a request to the next one: what its `when` asks and the request has not.

use hob_config::{Country, RouteWhen, ValuePattern, WantedValue};
use hob_http::Request;

use super::follow::shown;
use crate::step::cookie::cookie;
use crate::step::query;
use crate::step::when::Unmet;

/// In words. `listener` is the one that the request is taken to come in by, `country` that of its
/// client.
pub(super) fn why_not(
    unmet: Unmet<'_>,
    when: &RouteWhen,
    request: &Request,
    (listener, country): (&str, Country),
) -> String {
    let head = request.head();
    let client = request.facts().peer.map(|peer| peer.ip().to_canonical());
    match (unmet, client) {
        (Unmet::Method, _) => format!("`method` does not have {}", shown(head.method())),
        (Unmet::Host, _) if head.host().is_empty() => "the request names no host".to_owned(),
        (Unmet::Host, _) => format!("`host` does not have {}", shown(head.host())),
        (Unmet::Listener, _) => format!("`listener` does not have {listener}"),
        (Unmet::Field(wanted), _) => {
            let lines: Vec<&[u8]> = head.values(wanted.name.as_bytes()).collect();
            let found = (!lines.is_empty()).then(|| shown(&lines.join(&b", "[..])));
            differs("field", wanted, found)
        }
        (Unmet::Query(wanted), _) => {
            let found = query::value(head.query().unwrap_or_default(), wanted.name.as_bytes());
            let found = found.map(|found| shown(&found.bytes().collect::<Vec<u8>>()));
            differs("name in the query", wanted, found)
        }
        (Unmet::Cookie(wanted), _) => {
            let found = cookie(request, wanted.name.as_bytes());
            differs("cookie", wanted, found.map(shown))
        }
        (Unmet::Address, Some(client)) => format!("`address` does not have {client}"),
        (Unmet::Address, None) => format!("`address` asks for the client's address: {TRY}"),
        (Unmet::Country, Some(client)) if country == Country::UNKNOWN => {
            format!("no country is known of {client}")
        }
        (Unmet::Country, Some(client)) => {
            format!("`country` does not have {country}, of which {client} is")
        }
        (Unmet::Country, None) => format!("`country` goes by the client's address: {TRY}"),
        (Unmet::Tls, _) if when.tls == Some(true) => "the request is in clear text".to_owned(),
        (Unmet::Tls, _) => "the request comes over TLS".to_owned(),
        (Unmet::Share, Some(client)) => {
            let share = when.share.map(|share| share.to_string());
            format!("{client} is not of {}", share.unwrap_or_default())
        }
        (Unmet::Share, None) => format!("`share` goes by the client's address: {TRY}"),
    }
}

/// What is said where the client's address is not known.
const TRY: &str = "--from ADDRESS tries one";

fn differs(what: &str, wanted: &WantedValue, found: Option<String>) -> String {
    let WantedValue { name, value } = wanted;
    match (found, value) {
        (None, _) => format!("there is no {what} `{name}`"),
        (Some(found), ValuePattern::Exact(value)) => {
            format!("the {what} `{name}` is {found:?}, not {value:?}")
        }
        (Some(found), value) => format!("the {what} `{name}` is {found:?}, not `{value}`"),
    }
}
