//! Every endpoint of the admin API, once: what may be asked for, by whom, and who answers.
//!
//! Adding one means a line in [`ENDPOINTS`] and a function that takes an [`AdminRequest`]. The
//! reference page, 404 and 405 follow from the table.

use hob_http::{Answered, Response};

use super::ask::AdminRequest;
use super::audit::{self, Action};
use super::{
    access, activity, bans, cached, certificates, config_edit, configured, door, environment,
    explained, history, live, logs, maintenance, overview, programs, reply, resources, routes,
    running, statistics, status, steer, upstreams, watch,
};
use crate::metrics;
use hob_server::config::AdminRole;

/// One endpoint.
pub struct Endpoint {
    /// How it is asked for.
    pub method: EndpointMethod,
    /// Its path. A part in braces stands for any one part, which the handler gets: `/v1/logs/{id}`.
    pub path: &'static str,
    /// What a visitor must at least be allowed.
    pub role: AdminRole,
    /// Who answers.
    pub answer: fn(&AdminRequest) -> Answered,
    /// What it does, in a sentence.
    pub text: &'static str,
}

/// How an endpoint is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointMethod {
    /// GET and HEAD: nothing changes.
    Get,
    /// POST: something happens.
    Post,
}

use AdminRole::{Look, Operate};
use EndpointMethod::{Get, Post};

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
        path: "/v1/environment",
        role: Look,
        answer: environment::answer,
        text: "Where the server runs: build, machine, kernel, limits, and what programs are held to.",
    },
    Endpoint {
        method: Get,
        path: "/v1/statistics",
        role: Look,
        answer: statistics::answer,
        text: "Requests by method, protocol, handler, status and cache, workers, bytes and TLS: since \
               the start, today (UTC), and since they were set to zero.",
    },
    Endpoint {
        method: Post,
        path: "/v1/statistics/zero",
        role: Operate,
        answer: statistics::zero,
        text: "Sets the counts of `zero` in `/v1/statistics` to zero.",
    },
    Endpoint {
        method: Get,
        path: "/v1/resources",
        role: Look,
        answer: resources::answer,
        text: "Minutes of the last day, `from` and `to` in Unix seconds, in rows of `step` seconds: \
               interfaces, soft interrupts, listen queues, descriptors, disks, memory; and alerts.",
    },
    Endpoint {
        method: Get,
        path: "/v1/overview",
        role: Look,
        answer: overview::answer,
        text: "How the server is doing: rates, response times, workers, memory, and what to look at.",
    },
    Endpoint {
        method: Get,
        path: "/v1/activity",
        role: Look,
        answer: activity::answer,
        text: "What the server did in each second of the last hour or minute of the last four weeks.",
    },
    Endpoint {
        method: Get,
        path: "/v1/history",
        role: Look,
        answer: history::list,
        text: "Finished requests, newest or slowest first, by any of their properties; with `after`, \
               as they came in.",
    },
    Endpoint {
        method: Get,
        path: "/v1/history/{id}",
        role: Look,
        answer: history::one,
        text: "One finished request.",
    },
    Endpoint {
        method: Get,
        path: "/v1/routes",
        role: Look,
        answer: routes::answer,
        text: "Requests and times of each route since the server started (`by`; with `limit` the \
               slowest).",
    },
    Endpoint {
        method: Get,
        path: "/v1/running",
        role: Look,
        answer: running::requests,
        text: "Requests under way, the oldest first, and what each is at (`limit`).",
    },
    Endpoint {
        method: Get,
        path: "/v1/connections",
        role: Look,
        answer: running::connections,
        text: "Open connections, what they speak and what the network below them is like (`limit`).",
    },
    Endpoint {
        method: Get,
        path: "/v1/watch",
        role: Look,
        answer: watch::answer,
        text: "Live events of requests that match a filter, as server-sent events without a name; \
               `dropped` has the `count` of those left out.",
    },
    Endpoint {
        method: Get,
        path: "/metrics",
        role: Look,
        answer: |ask| metrics::page(&ask.admin, &ask.request),
        text: "The server's numbers for Prometheus, as text.",
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
    Endpoint {
        method: Get,
        path: "/v1/live",
        role: Look,
        answer: live::answer,
        text: "Server-sent events: what pages show, when it has changed. `page` is overview, \
               running, connections, activity, programs, status, routes, statistics or history, \
               with a query of its own where it has one (`page=running%3Flimit%3D20`); it may be \
               there more than once. With `every` in that query, a page comes every so many \
               seconds at most.",
    },
    Endpoint {
        method: Get,
        path: "/v1/programs",
        role: Look,
        answer: programs::answer,
        text: "Programs that stay with their workers, and routes with a process for each request with \
               their scripts of today: what they use, and what one rung up the ladder would save.",
    },
    Endpoint {
        method: Post,
        path: "/v1/programs/recycle",
        role: Operate,
        answer: programs::recycle,
        text: "New workers take the places of those of a program (`name`, perhaps `pid`), or of all \
               programs of a route (`route` in the query); new processes those of a program that \
               `run` started.",
    },
    Endpoint {
        method: Post,
        path: "/v1/programs/stop",
        role: Operate,
        answer: programs::stop,
        text: "Workers of a program finish what they have and end; others start when needed.",
    },
    Endpoint {
        method: Post,
        path: "/v1/programs/stack",
        role: Operate,
        answer: programs::stack,
        text: "Workers of a program are sent SIGTERM: hosts of hob print their stacks, and end.",
    },
    Endpoint {
        method: Post,
        path: "/v1/visits/end",
        role: Operate,
        answer: programs::end_visit,
        text: "Ends a visit of a `session` program or of a page, by its `number` as `/v1/status` \
               has it: what it has under way is finished.",
    },
    Endpoint {
        method: Post,
        path: "/v1/upstreams/drain",
        role: Operate,
        answer: upstreams::drain,
        text: "A member of an upstream (`name` and `member` in the query) gets no new requests.",
    },
    Endpoint {
        method: Post,
        path: "/v1/upstreams/resume",
        role: Operate,
        answer: upstreams::resume,
        text: "A member of an upstream that drained gets requests again.",
    },
    Endpoint {
        method: Post,
        path: "/v1/maintenance/on",
        role: Operate,
        answer: maintenance::begin,
        text: "A site (`site` in the query), or every one, answers 503 and tells clients to come \
               again in `retry_s` seconds (300).",
    },
    Endpoint {
        method: Post,
        path: "/v1/maintenance/off",
        role: Operate,
        answer: maintenance::end,
        text: "A site that is down for maintenance, or every one, answers again.",
    },
    Endpoint {
        method: Get,
        path: "/v1/bans",
        role: Look,
        answer: bans::answer,
        text: "Clients that are banned, who is free first in front (`limit`).",
    },
    Endpoint {
        method: Post,
        path: "/v1/bans/add",
        role: Operate,
        answer: bans::add,
        text: "Bans a `client`, an address or a network, for `time_s` seconds (3600); with \
               `close=true` its new connections are closed.",
    },
    Endpoint {
        method: Post,
        path: "/v1/bans/lift",
        role: Operate,
        answer: bans::lift,
        text: "Ends the ban of a `client` and those of networks around it, or with `all=true` every \
               one.",
    },
    Endpoint {
        method: Get,
        path: "/v1/access",
        role: Look,
        answer: access::answer,
        text: "Who may what: for each route what `access`, `require` and `satisfy` say, its limits, \
               and rules that ban (`site`, `limit`). `/v1/explain` tries a request.",
    },
    Endpoint {
        method: Get,
        path: "/v1/cache",
        role: Look,
        answer: cached::answer,
        text: "Files in the cache (`limit`, `sort=bytes|hits|age`, `q`).",
    },
    Endpoint {
        method: Post,
        path: "/v1/cache/purge",
        role: Operate,
        answer: cached::purge,
        text: "Throws files out of the cache: a `path` (a folder with `/*`), a `site`, or `all`.",
    },
    Endpoint {
        method: Get,
        path: "/v1/certificates",
        role: Look,
        answer: certificates::answer,
        text: "Certificates that are served, and until when they are good.",
    },
    Endpoint {
        method: Get,
        path: "/v1/logs",
        role: Look,
        answer: logs::answer,
        text: "Access logs.",
    },
    Endpoint {
        method: Get,
        path: "/v1/logs/{id}",
        role: Look,
        answer: logs::last,
        text: "The last lines of a log (`lines`).",
    },
    Endpoint {
        method: Get,
        path: "/v1/logs/{id}/tail",
        role: Look,
        answer: logs::tail,
        text: "Server-sent events: lines of a log as they come.",
    },
    Endpoint {
        method: Get,
        path: "/v1/explain",
        role: Look,
        answer: explained::answer,
        text: "What would answer a request, and why (`method`, `url`, the client's address in \
               `from`, who has signed in in `user`, with commas their `groups`, in the place of \
               those that a file says); nothing is run or counted, and no password is asked for.",
    },
    Endpoint {
        method: Get,
        path: "/v1/config",
        role: Look,
        answer: configured::answer,
        text: "The files of the config, and whether they can be changed from here.",
    },
    Endpoint {
        method: Post,
        path: "/v1/config/check",
        role: Look,
        answer: configured::check,
        text: "Says what is wrong with another `text` for a file (`path`).",
    },
    Endpoint {
        method: Post,
        path: "/v1/config/diff",
        role: Look,
        answer: configured::diff,
        text: "How another `text` for a file (`path`) differs from what is there.",
    },
    Endpoint {
        method: Post,
        path: "/v1/config/apply",
        role: Operate,
        answer: config_edit::apply,
        text: "Writes another `text` to a file (`path`, `base_hash`) and reloads, or undoes it.",
    },
    Endpoint {
        method: Post,
        path: "/v1/config/rollback",
        role: Operate,
        answer: config_edit::roll_back,
        text: "Takes the last change that was made from here back.",
    },
    Endpoint {
        method: Get,
        path: "/v1/audit",
        role: Look,
        answer: audit::answer,
        text: "What was done here and by whom, the newest first.",
    },
    Endpoint {
        method: Get,
        path: "/v1/session",
        role: Look,
        answer: door::who_am_i,
        text: "Who is logged in, what they may do, and the field that changes need.",
    },
    Endpoint {
        method: Post,
        path: "/v1/logout",
        role: Look,
        answer: door::log_out,
        text: "Ends the session.",
    },
    Endpoint {
        method: Post,
        path: "/v1/admin-url",
        role: Operate,
        answer: door::new_url,
        text: "A URL of the admin pages with a token for one login; on the control socket only.",
    },
];

/// The reference page, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# The admin API\n\nJSON over HTTP: on the control socket, which may do everything, and \
         on the listener of the admin pages, where a session has a role. What changes something \
         needs the role `operate` there, the field `X-Hob-Admin: 1`, and an `Origin` that is the \
         listener's own. `POST /v1/login` takes `token`, or `user` and `password`, and sets the \
         cookie of a session. Errors are `{\"text\": \"...\"}` with a status of 400 and above.\n\n\
         | request | role | what it does |\n| --- | --- | --- |\n",
    );
    for Endpoint {
        method,
        path,
        role,
        text,
        ..
    } in ENDPOINTS
    {
        let method = match method {
            Get => "GET",
            Post => "POST",
        };
        let text = text.replace('|', "\\|");
        page.push_str(&format!(
            "| `{method} {path}` | {} | {text} |\n",
            role.word()
        ));
    }
    page
}

/// What a method and a path lead to.
pub(super) enum EndpointMatch<'a> {
    /// An endpoint, and what the part in braces stands for; empty without one.
    Endpoint(&'static Endpoint, &'a str),
    /// The path is known; these methods are answered.
    Methods(&'static str),
    /// No such path.
    Nothing,
}

/// The endpoint of a method and path.
pub(super) fn find<'a>(method: &[u8], path: &'a str) -> EndpointMatch<'a> {
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
            return EndpointMatch::Endpoint(endpoint, part);
        }
        allowed = Some(match (endpoint.method, allowed) {
            (Get, None) => "GET, HEAD",
            (Post, None) => "POST",
            _ => "GET, HEAD, POST",
        });
    }
    allowed.map_or(EndpointMatch::Nothing, EndpointMatch::Methods)
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
pub(super) fn answer(ask: AdminRequest) -> Answered {
    let request = ask.request.clone();
    let head = request.head();
    let Ok(path) = std::str::from_utf8(head.path()) else {
        return Answered::Ready(reply::nothing());
    };
    match find(head.method(), path) {
        EndpointMatch::Endpoint(endpoint, _) if ask.visitor.role < endpoint.role => {
            Answered::Ready(reply::text(403, "your role may look, and not do this"))
        }
        EndpointMatch::Endpoint(endpoint, part) if endpoint.role == Look => {
            (endpoint.answer)(&ask.at(part))
        }
        EndpointMatch::Endpoint(endpoint, part) => audited(endpoint, ask.at(part)),
        EndpointMatch::Methods(allowed) => Answered::Ready(reply::wrong_method(allowed.as_bytes())),
        EndpointMatch::Nothing => Answered::Ready(reply::nothing()),
    }
}

/// Answers, and writes down what was done.
fn audited(endpoint: &'static Endpoint, ask: AdminRequest) -> Answered {
    let tell = |ask: &AdminRequest, response: &Response| {
        let name = endpoint.path.trim_start_matches("/v1/");
        ask.admin.audit.add(Action {
            who: ask.visitor.name.clone(),
            from: ask.visitor.from.clone(),
            action: format!("{name} {}", ask.noted()).trim_end().to_owned(),
            outcome: door::outcome(response),
        });
    };
    match (endpoint.answer)(&ask) {
        Answered::Ready(response) => {
            tell(&ask, &response);
            Answered::Ready(response)
        }
        Answered::Later(future) => Answered::Later(Box::pin(async move {
            let response = future.await;
            tell(&ask, &response);
            response
        })),
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
            let is_ours = endpoint.path.starts_with("/v1/") || endpoint.path == "/metrics";
            assert!(is_ours, "{}", endpoint.path);
        }
    }
}
