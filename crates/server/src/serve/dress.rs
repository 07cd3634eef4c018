//! The last of the steps after a handler: the site's own error page, then header rules.

use hob_http::{Body, Response, ResponseHead};

use crate::serve::sites::{ErrorPage, ServedRoute, ServedSite};
use crate::step::headers;

/// Dresses an answer of a route, or of a site where no route answers.
pub(crate) fn dress(
    site: &ServedSite,
    route: Option<&ServedRoute>,
    mut response: Response,
) -> Response {
    if let Some(page) = own_page(site, &response) {
        response = with_page(response, page);
    }
    let rules = route.map_or(&site.headers, |route| &route.headers);
    headers::dress(rules, &mut response);
    response
}

/// The site's page that takes the place of a body which only stands in.
pub(crate) fn own_page<'s>(site: &'s ServedSite, response: &Response) -> Option<&'s ErrorPage> {
    if !response.is_stand_in {
        return None;
    }
    site.error_page(response.status())
}

/// The answer with the site's own page as its body.
pub(super) fn with_page(mut response: Response, page: &ErrorPage) -> Response {
    let fields = response.fields_mut();
    fields.set(b"Content-Type", page.content_type.as_bytes());
    fields.remove(b"Content-Security-Policy");
    response.body = Body::Bytes(page.body.clone());
    response
}

/// True for a head that has followed its route's header rules when it was prepared.
pub(crate) fn is_prepared(response: &Response) -> bool {
    matches!(response.head, ResponseHead::Prepared(_))
}
