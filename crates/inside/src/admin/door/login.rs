//! Logging in and out: `POST /v1/login`, `/v1/logout`, `GET /v1/session`, `POST /v1/admin-url`.

use std::net::IpAddr;
use std::sync::Arc;

use hob_http::{Answered, Request, Response};
use serde_json::json;

use super::enter::{cookie_name, session_of};
use super::session::Login;
use super::{DoorCounters, password};
use crate::admin::ask::{AdminRequest, Visitor};
use crate::admin::audit::Action;
use crate::admin::{Admin, reply};
use crate::api;
use hob_keeper::secret;
use hob_server::config::AdminRole;
use hob_server::serve::fleet::now_ms;

/// Largest body of a login, in bytes (413): anyone may send one.
const BODY_BYTES_MAX: u64 = 8 * 1024;
/// Passwords that are checked at a time (503).
const CHECKS_MAX: usize = 2;
/// The lane of the file pool in which passwords are checked.
const LANE: u64 = u64::MAX - 1;
/// What a session is called that came by a printed URL.
const OPERATOR: &str = "operator";

/// Who is there, or why not.
enum Came {
    In(Login),
    Not(u16, String),
    /// Too often: seconds to wait.
    TooOften(u64),
}

/// `POST /v1/login`
pub(super) fn log_in(admin: &Arc<Admin>, request: &Request) -> Answered {
    let admin = Arc::clone(admin);
    let request = request.clone();
    Answered::Later(Box::pin(async move {
        let nobody = Visitor::nobody(&request);
        let ask = AdminRequest::new(&admin, &request, nobody);
        let body = match ask.json_up_to(BODY_BYTES_MAX).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let named = body["user"].as_str().unwrap_or(OPERATOR);
        let address = request.facts().peer.map(|peer| peer.ip());
        let came = match (body["token"].as_str(), body["password"].as_str()) {
            (Some(token), _) => by_token(&admin, token),
            (None, Some(password)) => by_password(&admin, named, password, address).await,
            (None, None) => Came::Not(400, "give a `token`, or `user` and `password`".to_owned()),
        };
        let response = told(&admin, &request, came);
        admin.audit.add(Action {
            who: shortened(named),
            from: ask.visitor.from.clone(),
            action: "login".to_owned(),
            outcome: outcome(&response),
        });
        response
    }))
}

fn by_token(admin: &Admin, token: &str) -> Came {
    match admin.door.state.lock().tokens.use_up(token, now_ms()) {
        true => Came::In(Login {
            name: OPERATOR.to_owned(),
            role: AdminRole::Operate,
            is_by_token: true,
        }),
        false => {
            let text = "this URL was used or is too old; `hob status --admin-url` prints another";
            Came::Not(401, text.to_owned())
        }
    }
}

async fn by_password(admin: &Arc<Admin>, name: &str, given: &str, address: Option<IpAddr>) -> Came {
    let user = match admin.door.challenge(name, address, now_ms()) {
        Ok(challenge) => challenge.user,
        Err(wait_s) => return Came::TooOften(wait_s),
    };
    let wrong = || {
        Came::Not(
            401,
            "there is no such user, or the password is another".to_owned(),
        )
    };
    if given.len() > password::PASSWORD_BYTES_MAX {
        return wrong();
    }
    let busy = || Came::Not(503, "too many logins at once; try again".to_owned());
    let Some(_turn) = admin.door.turn() else {
        return busy();
    };
    let hash = user.as_ref().map(|user| user.hash.clone());
    let given = given.to_owned();
    let pool = admin.shared.pool.for_lane(LANE);
    let Ok(checked) = pool.run(move || password::is_right(&given, hash.as_deref())) else {
        return busy();
    };
    match (checked.await, user) {
        (Some(true), Some(user)) => {
            admin.door.state.lock().tries.take_back(address);
            Came::In(Login {
                name: user.name,
                role: user.role,
                is_by_token: false,
            })
        }
        _ => wrong(),
    }
}

fn told(admin: &Admin, request: &Request, came: Came) -> Response {
    let tally = &admin.door.tally;
    match came {
        Came::In(login) => {
            let (name, role) = (login.name.clone(), login.role);
            let mut state = admin.door.state.lock();
            let (time, most) = match state.settings.admin() {
                Some(table) => (table.session_time, table.sessions_max),
                None => return reply::nothing(),
            };
            let time_ms = time.as_millis() as u64;
            let begun = state.sessions.begin(login, now_ms(), time_ms, most);
            drop(state);
            let Some((secret, is_full)) = begun else {
                return reply::text(500, "the kernel gives no randomness");
            };
            DoorCounters::add(&tally.logins);
            if is_full {
                DoorCounters::add(&tally.sessions_limited);
            }
            let mut response = reply::object(200, &json!(who(&name, role)));
            let cookie = cookie(request, &secret, time.as_secs());
            response.fields_mut().add(b"Set-Cookie", cookie.as_bytes());
            response
        }
        Came::Not(status, text) => {
            DoorCounters::add(&tally.logins_failed);
            reply::text(status, &text)
        }
        Came::TooOften(wait_s) => {
            DoorCounters::add(&tally.logins_limited);
            let mut response = reply::text(429, "too many logins have failed; wait a minute");
            let wait_s = wait_s.to_string();
            response.fields_mut().add(b"Retry-After", wait_s.as_bytes());
            response
        }
    }
}

fn cookie(request: &Request, secret: &str, age_s: u64) -> String {
    let name = cookie_name(request);
    let secure = match request.facts().tls {
        Some(_) => "; Secure",
        None => "",
    };
    format!("{name}={secret}; Path=/; Max-Age={age_s}; SameSite=Strict; HttpOnly{secure}")
}

fn who(name: &str, role: AdminRole) -> api::Session {
    api::Session {
        user: name.to_owned(),
        role: match role {
            AdminRole::Look => api::Role::Look,
            AdminRole::Operate => api::Role::Operate,
        },
        csrf_header: "X-Hob-Admin".to_owned(),
    }
}

/// `GET /v1/session`
pub(in crate::admin) fn who_am_i(ask: &AdminRequest) -> Answered {
    let visitor = &ask.visitor;
    let session = who(&visitor.name, visitor.role);
    Answered::Ready(reply::object(200, &json!(session)))
}

/// `POST /v1/logout`
pub(in crate::admin) fn log_out(ask: &AdminRequest) -> Answered {
    let Some(session) = session_of(&ask.admin, &ask.request) else {
        return Answered::Ready(reply::text(409, "nobody logs in here"));
    };
    ask.admin.door.state.lock().sessions.end(session.number);
    let mut response = reply::text(200, "logged out");
    let cookie = cookie(&ask.request, "", 0);
    response.fields_mut().add(b"Set-Cookie", cookie.as_bytes());
    Answered::Ready(response)
}

/// `POST /v1/admin-url`
pub(in crate::admin) fn new_url(ask: &AdminRequest) -> Answered {
    if ask.visitor.session.is_some() {
        return Answered::Ready(reply::text(403, "ask for this on the control socket"));
    }
    let Some(token) = secret::new() else {
        return Answered::Ready(reply::text(500, "the kernel gives no randomness"));
    };
    let door = &ask.admin.door;
    let urls = door.state.lock().settings.urls(Some(&token));
    let Some(url) = urls.first().cloned() else {
        let text = "there are no admin pages: add `[admin]` to the config";
        return Answered::Ready(reply::text(409, text));
    };
    door.take_token(&token, now_ms());
    Answered::Ready(reply::object(200, &json!(api::LoginUrls { url, urls })))
}

/// What came of it, for the audit log: no secret is in an answer's text.
pub(in crate::admin) fn outcome(response: &Response) -> String {
    reply::text_of(response).unwrap_or_else(|| match response.status() {
        status if status < 300 => "done".to_owned(),
        status => format!("status {status}"),
    })
}

fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

/// A password that is being checked.
pub(super) struct PasswordCheckPermit<'d>(&'d super::Door);

impl super::Door {
    /// A turn to check a password; `None` when as many are checked as may be at a time.
    fn turn(&self) -> Option<PasswordCheckPermit<'_>> {
        let mut state = self.state.lock();
        if state.checks >= CHECKS_MAX {
            DoorCounters::add(&self.tally.checks_limited);
            return None;
        }
        state.checks += 1;
        drop(state);
        Some(PasswordCheckPermit(self))
    }
}

impl Drop for PasswordCheckPermit<'_> {
    fn drop(&mut self) {
        self.0.state.lock().checks -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Door;
    use super::*;

    #[test]
    fn two_passwords_are_checked_at_a_time_and_others_counted() {
        let door = Door::default();
        let refused = || door.count(|tally| &tally.checks_limited);
        let turns: Vec<_> = (0..CHECKS_MAX).map(|_| door.turn()).collect();
        assert!(turns.iter().all(Option::is_some) && refused() == 0);
        assert!(door.turn().is_none() && door.turn().is_none());
        assert_eq!(refused(), 2);
        drop(turns);
        assert!(door.turn().is_some());
        assert_eq!(refused(), 2);
    }
}
