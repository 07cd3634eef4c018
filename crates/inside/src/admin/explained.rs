//! `GET /v1/explain`: what would answer a request, and why. Nothing is run, nothing is asked for
//! and nothing is counted: the config in force and the disk are looked at, as `hob explain` does,
//! and beside that who is banned and which sites are down.

use std::net::IpAddr;
use std::sync::Arc;

use hob_http::{Answered, Response};
use serde_json::json;
use tracing::subscriber::NoSubscriber;

use super::ask::AdminRequest;
use super::reply;
use crate::api;
use hob_server::explain::{self, ExplainedRequest};

/// The lane of the file pool in which the disk is looked at.
const LANE: u64 = u64::MAX - 4;
/// Longest name of a user or a group, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Groups of one request.
const GROUPS_MAX: usize = 64;

/// `GET /v1/explain?method=GET&url=/path&from=192.0.2.1&user=ann&groups=lab,staff`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let asked = match request(ask) {
        Ok(asked) => asked,
        Err(refusal) => return Answered::Ready(*refusal),
    };
    let (config, sources) = {
        let configured = ask.admin.configured.lock();
        (
            Arc::clone(&configured.config),
            Arc::clone(&configured.sources),
        )
    };
    let shared = Arc::clone(&ask.admin.shared);
    let pool = ask.admin.shared.pool.for_lane(LANE);
    let job = pool.run(move || {
        // What is to be said of the config's files was logged when it came into force.
        let explain = || explain::explain((&config, &sources), &asked, Some(&shared));
        let explanation = tracing::subscriber::with_default(NoSubscriber::default(), explain)?;
        let lines = explanation.to_string();
        Ok::<api::Explanation, String>(api::Explanation {
            lines: Some(lines.lines().map(str::to_owned).collect()),
            ..explanation.told()
        })
    });
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        match ask.done(job).await {
            Ok(Ok(explanation)) => reply::object(200, &json!(explanation)),
            Ok(Err(text)) => reply::text(400, text),
            Err(refusal) => refusal,
        }
    }))
}

/// The request that is asked for; an answer that says what is wrong with it.
fn request(ask: &AdminRequest) -> Result<ExplainedRequest, Box<Response>> {
    let wrong = |text: &str| Box::new(reply::text(400, text));
    let given = |key: &str| ask.query(key).filter(|value| !value.is_empty());
    let url = given("url").ok_or_else(|| wrong("give a `url`, or a path alone"))?;
    let from = given("from").map(|from| from.trim().parse::<IpAddr>());
    let from = from
        .transpose()
        .map_err(|_| wrong("`from` is no address"))?;
    let user = given("user");
    let groups: Vec<String> = given("groups")
        .unwrap_or_default()
        .split(',')
        .map(|group| group.trim().to_owned())
        .filter(|group| !group.is_empty())
        .collect();
    let mut names = groups.iter().chain(&user);
    let is_name =
        |name: &String| name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
    if groups.len() > GROUPS_MAX || !names.all(is_name) {
        return Err(wrong(&format!(
            "a `user` and each of `groups` has {NAME_BYTES_MAX} bytes at most and no control \
             character, and there are {GROUPS_MAX} groups at most"
        )));
    }
    if user.is_none() && !groups.is_empty() {
        return Err(wrong("`groups` are those of a `user`: name one"));
    }
    Ok(ExplainedRequest {
        method: given("method").unwrap_or_else(|| "GET".to_owned()),
        url,
        fields: Vec::new(),
        from,
        user,
        groups,
    })
}
