//! `GET /v1/explain`: what would answer a request, and why. Nothing is run, and nothing is asked
//! for: the config and the disk are looked at, as `hob explain` does.

use std::sync::Arc;

use hob_http::Answered;
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;
use crate::api;
use hob_server::explain::{self, ExplainedRequest};

/// The lane of the file pool in which the disk is looked at.
const LANE: u64 = u64::MAX - 4;

/// `GET /v1/explain?method=GET&url=/path&from=192.0.2.1&user=ann`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let Some(url) = ask.query("url").filter(|url| !url.is_empty()) else {
        return Answered::Ready(reply::text(400, "give a `url`, or a path alone"));
    };
    let from = ask.query("from").filter(|from| !from.is_empty());
    let Ok(from) = from.map(|from| from.parse()).transpose() else {
        return Answered::Ready(reply::text(400, "`from` is no address"));
    };
    let asked = ExplainedRequest {
        method: ask.query("method").unwrap_or_else(|| "GET".to_owned()),
        url,
        fields: Vec::new(),
        from,
        user: ask.query("user").filter(|user| !user.is_empty()),
    };
    let (config, sources) = {
        let configured = ask.admin.configured.lock();
        (
            Arc::clone(&configured.config),
            Arc::clone(&configured.sources),
        )
    };
    let pool = ask.admin.shared.pool.for_lane(LANE);
    let job = pool.run(move || {
        let explanation = explain::explain((&config, &sources), &asked)?;
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
