//! Every endpoint of the admin API, once: what may be asked for, by whom, and who answers.
//!
//! Adding one means a line in [`ENDPOINTS`] and a function that takes an [`Ask`]. The reference page,
//! 404 and 405 follow from the table.

use hob_http::Answered;

use super::ask::Ask;
use super::{reply, running, status, steer, watch};

/// One endpoint.
pub struct Endpoint {
    /// How it is asked for.
    pub method: Method,
    /// Its path. A part in braces stands for any one part, which the handler gets: `/v1/logs/{id}`.
    pub path: &'static str,
    /// What a visitor must at least be allowed.
    pub role: Role,
    /// Who answers.
    pub answer: fn(&Ask) -> Answered,
    /// What it does, in a sentence.
    pub text: &'static str,
}

/// How an endpoint is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET and HEAD: nothing changes.
    Get,
    /// POST: something happens.
    Post,
}

/// What a visitor may do; more comes later in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// See everything.
    Look,
    /// Do everything.
    Operate,
}

use Method::{Get, Post};
use Role::{Look, Operate};

/// Every endpoint, in the order of the reference page.
pub static ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Get,
        path: "/v1/status",
        role: Look,
        answer: status::answer,
        text: "Processes, sites, listeners, cache, programs, certificates and every counter.",
    },
    Endpoint {
        method: Get,
        path: "/v1/running",
        role: Look,
        answer: running::requests,
        text: "Requests under way, the oldest first, and what each is at.",
    },
    Endpoint {
        method: Get,
        path: "/v1/connections",
        role: Look,
        answer: running::connections,
        text: "Open connections, what they speak and what the network below them is like.",
    },
    Endpoint {
        method: Get,
        path: "/v1/watch",
        role: Look,
        answer: watch::answer,
        text: "Live events of requests that match a filter, as server-sent events.",
    },
    Endpoint {
        method: Post,
        path: "/v1/reload",
        role: Operate,
        answer: steer::reload,
        text: "Reads the config again and serves by it, if nothing is wrong with it.",
    },
    Endpoint {
        method: Post,
        path: "/v1/upgrade",
        role: Operate,
        answer: steer::upgrade,
        text: "Goes over to the program as it now stands on disk.",
    },
    Endpoint {
        method: Post,
        path: "/v1/stop",
        role: Operate,
        answer: steer::stop,
        text: "Finishes what is under way and ends.",
    },
];

/// What a method and a path lead to.
pub(super) enum Found<'a> {
    /// An endpoint, and what the part in braces stands for; empty without one.
    Endpoint(&'static Endpoint, &'a str),
    /// The path is known; these methods are answered.
    Methods(&'static str),
    /// No such path.
    Nothing,
}

/// The endpoint of a method and path.
pub(super) fn find<'a>(method: &[u8], path: &'a str) -> Found<'a> {
    let mut allowed = None;
    for endpoint in ENDPOINTS {
        let Some(part) = part_of(endpoint.path, path) else {
            continue;
        };
        let is_asked = match endpoint.method {
            Get => matches!(method, b"GET" | b"HEAD"),
            Post => method == b"POST",
        };
        if is_asked {
            return Found::Endpoint(endpoint, part);
        }
        allowed = Some(match (endpoint.method, allowed) {
            (Get, None) => "GET, HEAD",
            (Post, None) => "POST",
            _ => "GET, HEAD, POST",
        });
    }
    allowed.map_or(Found::Nothing, Found::Methods)
}

/// What the part in braces of a pattern stands for in a path; empty where there is none.
fn part_of<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == path).then_some("");
    };
    let after = rest.split_once('}').map_or("", |(_, after)| after);
    let part = path.strip_prefix(before)?.strip_suffix(after)?;
    (!part.is_empty() && !part.contains('/')).then_some(part)
}

/// Answers what the table has for a request of someone who is known.
pub(super) fn answer(ask: Ask) -> Answered {
    let request = ask.request.clone();
    let head = request.head();
    let Ok(path) = std::str::from_utf8(head.path()) else {
        return Answered::Ready(reply::nothing());
    };
    match find(head.method(), path) {
        Found::Endpoint(endpoint, _) if ask.visitor.role < endpoint.role => {
            Answered::Ready(reply::text(403, "your role may look, and not do this"))
        }
        Found::Endpoint(endpoint, part) => (endpoint.answer)(&ask.at(part)),
        Found::Methods(allowed) => Answered::Ready(reply::wrong_method(allowed.as_bytes())),
        Found::Nothing => Answered::Ready(reply::nothing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_in_braces_is_one_part() {
        let part = |path| part_of("/v1/logs/{id}/tail", path);
        assert_eq!(part("/v1/logs/3/tail"), Some("3"));
        for other in [
            "/v1/logs//tail",
            "/v1/logs/3",
            "/v1/logs/3/4/tail",
            "/v1/logs/tail",
        ] {
            assert_eq!(part(other), None, "{other}");
        }
        assert_eq!(part_of("/v1/a", "/v1/a"), Some(""));
        assert_eq!(part_of("/v1/a", "/v1/a/"), None);
    }

    #[test]
    fn no_endpoint_is_there_twice_and_what_changes_things_needs_the_right() {
        for (index, endpoint) in ENDPOINTS.iter().enumerate() {
            let is_it =
                |other: &&Endpoint| other.path == endpoint.path && other.method == endpoint.method;
            assert_eq!(ENDPOINTS.iter().position(|one| is_it(&one)), Some(index));
            assert!(endpoint.text.ends_with('.'), "{}", endpoint.path);
            assert!(endpoint.path.starts_with("/v1/"), "{}", endpoint.path);
        }
    }
}
