//! How clients and records are told what went wrong, whoever runs the program.

use hob_http::{Request, Response};
use hob_trace::Fault;

use crate::handle::script::body::BodyCollectError;
use crate::handle::{html, plain};
use hob_keeper::process::is_lack;

/// The answer to a request whose body could not be collected.
pub(crate) fn broken_body(request: &Request, trouble: BodyCollectError) -> Response {
    match trouble {
        BodyCollectError::Broken(error) => {
            note(request, Fault::Client, "the request body broke off");
            request.set_detail(error.to_string().as_bytes());
            plain::error(error.status())
        }
        BodyCollectError::Unkept(error) => {
            hob_trace::warn_seldom!(%error, "a request body could not be kept for a program");
            note(
                request,
                Fault::Server,
                "the request body could not be kept for the program",
            );
            request.set_detail(error.to_string().as_bytes());
            plain::failed(error.raw_os_error().is_some_and(is_lack))
        }
    }
}

/// The failure as a page for whoever writes the program; `key` is why it is shown. What it printed
/// is `None` where it has no standard error.
pub(crate) fn explain_page(
    (status, reason): (u16, &str),
    file: &[u8],
    details: &str,
    printed: Option<&[u8]>,
    key: &str,
) -> Vec<u8> {
    let mut page = Vec::with_capacity(2048);
    let mut put = |text: &str| page.extend_from_slice(text.as_bytes());
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>");
    put(&format!("{status}: {reason}"));
    put("</title>\n<style>\n");
    put(html::STYLE);
    put("</style>\n<h1>");
    put(&status.to_string());
    put("</h1>\n<p>");
    html::escape(reason.as_bytes(), &mut page);
    page.extend_from_slice(b".\n<p><code>");
    html::escape(file, &mut page);
    page.extend_from_slice(b"</code>");
    if !details.is_empty() {
        page.extend_from_slice(b": ");
        html::escape(details.as_bytes(), &mut page);
    }
    page.extend_from_slice(b"\n");
    let printed = printed.map(|printed| (printed, printed.trim_ascii().is_empty()));
    if let Some((_, true)) = printed {
        page.extend_from_slice(b"<p>It printed nothing on standard error.\n");
    } else if let Some((printed, false)) = printed {
        page.extend_from_slice(b"<p>On standard error it printed\n<pre>");
        for line in printed.split_inclusive(|&byte| byte == b'\n') {
            html::escape(line.strip_suffix(b"\n").unwrap_or(line), &mut page);
            page.extend_from_slice(b"\n");
        }
        page.extend_from_slice(b"</pre>\n");
    }
    let shown = format!("<p>This page is shown because <code>{key}</code> is set.\n");
    page.extend_from_slice(shown.as_bytes());
    page
}

/// Tells the record whose fault it is, and why.
pub(crate) fn note(request: &Request, fault: Fault, reason: &'static str) {
    let mut record = request.record_mut();
    record.fault = fault;
    record.reason = Some(reason);
}
