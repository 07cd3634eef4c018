//! The admin pages: files that were built and are a part of the program. They hold no data: all of
//! it comes from the API, which wants a login.

use bytes::Bytes;
use hob_http::{Body, Known, Request, Response};

use hob_server::config::Coding;
use hob_server::handle::files::media_type::MediaTypes;
use hob_server::handle::plain;
use hob_server::step::negotiate::{self, Negotiated};

/// One file of the built pages.
pub(super) struct AdminPageFile {
    /// Path in a URL.
    path: &'static str,
    /// Entity tag.
    tag: &'static str,
    bytes: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// What the pages may do: load what is here, and nothing else.
const POLICY: &[u8] = b"default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Shown where no pages were built.
const NOTICE: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
    <title>hob: no admin pages</title>\n<h1>This hob was built without its admin pages</h1>\n\
    <p>Build them with <code>npm ci &amp;&amp; npm run build</code> in <code>ui</code>, then build \
    hob again; <code>make build</code> does both. The API is here all the same, and so are \
    <code>hob status</code> and its kin.</p>\n";

/// Answers a request for a page or one of its files.
pub(super) fn answer(request: &Request) -> Response {
    let head = request.head();
    if !matches!(head.method(), b"GET" | b"HEAD") {
        return plain::wrong_method(head.method(), b"GET, HEAD");
    }
    let path = match head.path() {
        b"/" => "/index.html",
        other => std::str::from_utf8(other).unwrap_or_default(),
    };
    let Some(file) = find(path) else {
        return match path {
            "/index.html" => notice(),
            _ => plain::error(404),
        };
    };
    let coded = |coding: Coding| Some((Some(coding), find(&format!("{path}{}", suffix(coding)))?));
    let available: Vec<(Option<Coding>, &AdminPageFile)> = [Coding::Brotli, Coding::Gzip]
        .into_iter()
        .filter_map(coded)
        .collect();
    let codings: Vec<Coding> = available.iter().filter_map(|(coding, _)| *coding).collect();
    let wanted = negotiate::coding(head.value(Known::AcceptEncoding), &codings);
    let (coding, chosen) = match wanted {
        Negotiated::Coded(wanted) => {
            let mut available = available.into_iter();
            let found = available.find(|(coding, _)| *coding == Some(wanted));
            found.unwrap_or((None, file))
        }
        // Whoever takes nothing at all gets the file as it is.
        Negotiated::Identity | Negotiated::NotAcceptable => (None, file),
    };
    respond(request, file, coding, chosen)
}

fn respond(
    request: &Request,
    file: &AdminPageFile,
    coding: Option<Coding>,
    chosen: &AdminPageFile,
) -> Response {
    let mut fields = plain::named();
    let types = MediaTypes::new([], "utf-8");
    let media = types.of(file.path.as_bytes());
    let media = match media.charset {
        Some(charset) => format!("{}; charset={charset}", media.name),
        None => media.name.to_owned(),
    };
    fields.add(b"Content-Type", media.as_bytes());
    if let Some(coding) = coding {
        fields.add(
            b"Content-Encoding",
            negotiate::coding_name(coding).as_bytes(),
        );
    }
    fields.add(b"Vary", b"Accept-Encoding");
    fields.add(b"ETag", chosen.tag.as_bytes());
    // Files of this folder are named by their content.
    let caching: &[u8] = match file.path.starts_with("/assets/") {
        true => b"public, max-age=31536000, immutable",
        false => b"no-cache",
    };
    fields.add(b"Cache-Control", caching);
    fields.add(b"Content-Security-Policy", POLICY);
    let known = request.head().value(Known::IfNoneMatch).unwrap_or_default();
    let mut tags = known.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let is_known = tags.any(|tag| tag.strip_prefix(b"W/").unwrap_or(tag) == chosen.tag.as_bytes());
    if is_known {
        return Response::new(304, fields, Body::Empty);
    }
    Response::new(200, fields, Body::Bytes(Bytes::from_static(chosen.bytes)))
}

fn notice() -> Response {
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"text/html; charset=utf-8");
    fields.add(b"Cache-Control", b"no-store");
    Response::new(
        200,
        fields,
        Body::Bytes(Bytes::from_static(NOTICE.as_bytes())),
    )
}

fn find(path: &str) -> Option<&'static AdminPageFile> {
    let at = FILES.binary_search_by(|file| file.path.cmp(path)).ok()?;
    FILES.get(at)
}

fn suffix(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => ".br",
        Coding::Gzip => ".gz",
        Coding::Zstd => ".zst",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_in_the_order_that_they_are_looked_up_in() {
        assert!(FILES.is_sorted_by_key(|file| file.path));
    }
}
