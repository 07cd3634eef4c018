//! What an operator has members of upstreams do.

use hob_http::{Answered, Response};
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;
use crate::api::MemberOutcome;

/// `POST /v1/upstreams/drain`
pub(super) fn drain(ask: &AdminRequest) -> Answered {
    set(ask, true)
}

/// `POST /v1/upstreams/resume`
pub(super) fn resume(ask: &AdminRequest) -> Answered {
    set(ask, false)
}

fn set(ask: &AdminRequest, is_draining: bool) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let body = match ask.json().await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let told = |key: &str| {
            let said = body[key].as_str().map(str::to_owned);
            said.or_else(|| ask.query(key))
        };
        match (told("name"), told("member")) {
            (Some(name), Some(member)) => set_member(&ask, (&name, &member), is_draining),
            _ => {
                let wanted = "give the `name` of an upstream and the address of a `member`";
                reply::text(400, wanted)
            }
        }
    }))
}

fn set_member(ask: &AdminRequest, (name, member): (&str, &str), is_draining: bool) -> Response {
    ask.note(format!("{name} {member}"));
    let shared = &ask.admin.shared;
    let (upstreams, members) = shared.set_draining(name, member, is_draining);
    if members == 0 {
        let known: Vec<String> = match upstreams {
            0 => shared.upstreams().into_iter().map(|one| one.name).collect(),
            _ => {
                let all = shared.upstreams().into_iter();
                let members = all
                    .filter(|one| one.name == name)
                    .flat_map(|one| one.members);
                members.map(|one| one.address).collect()
            }
        };
        let text = match (upstreams, &known[..]) {
            (0, []) => "no route asks an upstream".to_owned(),
            (0, _) => format!(
                "there is no upstream {name}; those are {}",
                known.join(", ")
            ),
            _ => format!(
                "{name} has no member {member}; those are {}",
                known.join(", ")
            ),
        };
        return reply::text(404, text);
    }
    let text = match is_draining {
        true => format!("{member} gets no new requests; it finishes those it has"),
        false => format!("{member} gets requests again"),
    };
    reply::object(200, &json!(MemberOutcome { text }))
}
