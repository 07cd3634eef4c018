//! Handles of visits are for their visitors alone: people are shown targets and referers without
//! them.

use hob_http::{Known, Request, TextsShown};

use crate::handle::script::visits::handle::without_handles;
use crate::serve::sites::ServedRoute;

/// Hides them in what is told of a request, where it has some. A page whose path has one is the
/// referer of what it uses, on other routes too.
pub(super) fn hide(request: &Request, route: &ServedRoute) {
    let head = request.sent_head();
    let target = match route.handler.has_handles() {
        true => without_handles(head.target()),
        false => None,
    };
    let referer = head.value(Known::Referer).and_then(without_handles);
    if target.is_some() || referer.is_some() {
        request.show_instead(TextsShown { target, referer });
    }
}
