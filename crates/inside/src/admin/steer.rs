//! What the keeper is asked for: reload, upgrade, stop.

use hob_http::Answered;

use super::ask::AdminRequest;
use super::helm::WishOutcome;
use super::reply;
use hob_keeper::Wish;

/// `POST /v1/reload`
pub(super) fn reload(ask: &AdminRequest) -> Answered {
    wish(ask, Wish::Reload)
}

/// `POST /v1/upgrade`
pub(super) fn upgrade(ask: &AdminRequest) -> Answered {
    wish(ask, Wish::Upgrade)
}

/// `POST /v1/stop`
pub(super) fn stop(ask: &AdminRequest) -> Answered {
    wish(ask, Wish::Stop)
}

fn wish(ask: &AdminRequest, wish: Wish) -> Answered {
    let asked = ask.admin.helm.ask(wish);
    Answered::Later(Box::pin(async move {
        let WishOutcome { is_ok, text } = asked.await;
        reply::text(if is_ok { 200 } else { 409 }, &text)
    }))
}
