//! `hob sign`: a link that is let in for a while.

use hob_http::unix_ms;
use hob_server::step::auth::signed_urls::LinkKeys;

use crate::args::SignOptions;
use crate::{CommandFailure, output};

/// Prints the link with its signature.
pub(crate) fn run(options: &SignOptions) -> Result<(), CommandFailure> {
    let wrong = |text: String| CommandFailure { code: 2, text };
    let keys = LinkKeys::open(&options.key).map_err(wrong)?;
    let url = options.url.trim();
    // What is signed is what a client sends: without scheme, host and fragment.
    let target = match url.split_once("://") {
        _ if url.starts_with('/') => url,
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => "",
    };
    if !target.starts_with('/')
        || target
            .bytes()
            .any(|byte| !(b'!'..=b'~').contains(&byte) || byte == b'#')
    {
        return Err(wrong(format!(
            "{url:?}: write it as it is sent, such as /files/a%20b.pdf or \
             https://example.org/files/a%20b.pdf"
        )));
    }
    let before = &url[..url.len() - target.len()];
    let until_unix_s = unix_ms() / 1000 + options.time.as_secs();
    output::line(&format!("{before}{}", keys.sign(target, until_unix_s)));
    Ok(())
}
