//! What a page is told of its request.

use hob_http::{Known, Request};
use hob_page::fault::PageFault;
use hob_page::request::PageRequest;

use crate::handle::page::{FIELDS_MAX, Pages};
use crate::handle::script::variables::{ProgramRequest, ScriptLocation, each};

/// The type of a form's fields.
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// A request as a page is told of it: which block, and where the page stands.
pub(super) struct AskedBlock<'a> {
    /// The part of the path that leads to the route, without its final slash.
    pub(super) prefix: &'a [u8],
    /// What follows, with its first slash.
    pub(super) rest: &'a [u8],
    pub(super) block: &'a str,
}

/// Whether the body is a form.
pub(super) fn is_form(request: &Request) -> bool {
    let value = request.head().value(Known::ContentType).unwrap_or_default();
    let name = value.split(|&byte| byte == b';').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(FORM)
}

/// The request with the fields of its query and this form.
pub(super) fn of(
    pages: &Pages,
    request: &Request,
    asked: &AskedBlock<'_>,
    form: &[u8],
) -> Result<PageRequest, PageFault> {
    let mut told = PageRequest {
        block: asked.block.to_owned(),
        ..PageRequest::default()
    };
    told.add_fields(request.query().unwrap_or_default(), FIELDS_MAX)?;
    told.add_fields(form, FIELDS_MAX)?;
    if let Some(database) = &pages.settings.database {
        told.variables
            .push(("DATABASE".to_owned(), database.name.clone()));
    }
    let environment = ProgramRequest {
        request,
        body_bytes: Some(form.len() as u64),
        script: ScriptLocation {
            name: asked.prefix,
            path_info: asked.rest,
            ..ScriptLocation::default()
        },
        passes_authorization: false,
        may_tunnel: false,
    };
    each(&environment, |name, value| {
        if let Ok(name) = std::str::from_utf8(name) {
            if name == "HTTP_COOKIE" {
                told.cookies.extend(cookies(value));
            }
            told.environment.push((name.to_owned(), value.to_vec()));
        }
    });
    Ok(told)
}

/// Names and values of a field `Cookie` (RFC 6265 section 4.2).
fn cookies(value: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> {
    let pairs = value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    pairs.filter_map(|pair| {
        let at = memchr::memchr(b'=', pair)?;
        let name = std::str::from_utf8(&pair[..at]).ok()?;
        let value = &pair[at + 1..];
        let inner = value
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_suffix(b"\""));
        Some((name.to_owned(), inner.unwrap_or(value).to_vec()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_read() {
        let found: Vec<_> = cookies(b"a=1; b=\"x y\";c=;none; d=e=f").collect();
        let wanted = [("a", "1"), ("b", "x y"), ("c", ""), ("d", "e=f")];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        assert_eq!(found, wanted);
    }
}
