//! What a load test asks for: the URLs of the command line, or a list in a file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use hob_load::{Replay, RequestSpec, limits, parse_list};

use crate::CommandFailure;
use crate::args::BenchOptions;
use crate::request::wrong;

/// All kinds of requests that are asked for.
pub(super) fn entries(options: &BenchOptions) -> Result<Vec<RequestSpec>, CommandFailure> {
    let Some(path) = &options.list else {
        return Ok(options
            .urls
            .iter()
            .cloned()
            .map(RequestSpec::from)
            .collect());
    };
    if options.urls.len() > 1 {
        return Err(wrong(
            "with --urls there is one URL on the command line at most, whose server the paths of \
             the list are of"
                .to_owned(),
        ));
    }
    let told = |why: String| wrong(format!("--urls {}: {why}", path.display()));
    let text = read(path, limits::LIST_BYTES_MAX).map_err(told)?;
    let text = String::from_utf8(text).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        wrong(format!("{}:{line}: this is no UTF-8", path.display()))
    })?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut bodies: HashMap<String, Arc<[u8]>> = HashMap::new();
    let mut whole_bytes = 0;
    let body = |name: &str| {
        if let Some(known) = bodies.get(name) {
            return Ok(known.clone());
        }
        let room = limits::BODY_BYTES_MAX - whole_bytes;
        let bytes = read(&folder.join(name), room).map_err(|why| format!("body={name}: {why}"))?;
        whole_bytes += bytes.len() as u64;
        let bytes: Arc<[u8]> = bytes.into();
        bodies.insert(name.to_owned(), bytes.clone());
        Ok(bytes)
    };
    parse_list(&text, options.urls.first(), body)
        .map_err(|error| wrong(format!("{}:{error}", path.display())))
}

/// What is asked for where a log says which paths.
pub(super) fn of_log(
    options: &BenchOptions,
    replay: &Replay,
    body: Option<&[u8]>,
) -> Result<Vec<RequestSpec>, CommandFailure> {
    let [url] = &options.urls[..] else {
        return Err(wrong(
            "with --replay there is one URL on the command line, of the server that is asked"
                .to_owned(),
        ));
    };
    if !url.is_root() {
        return Err(wrong(format!(
            "{url}: with --replay paths are those of the log; write the URL without one"
        )));
    }
    if let Some(method) = &options.method {
        return Err(wrong(format!(
            "--method {method}: with --replay methods are those of the log; --replay-methods says \
             which of them are sent"
        )));
    }
    let entries = replay.entries(url, body.unwrap_or_default());
    if body.is_some() && entries.iter().all(|entry| entry.body.is_none()) {
        return Err(wrong(format!(
            "--body: none of the methods {} has a body (--replay-methods)",
            replay.methods.join(", ")
        )));
    }
    Ok(entries)
}

/// A file of at most so many bytes.
fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let unread = |error| format!("cannot read it: {error}");
    let file = File::open(path).map_err(unread)?;
    if fs::metadata(path).map_err(unread)?.is_dir() {
        return Err("cannot read it: it is a folder".to_owned());
    }
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to refuse it.
    let mut file = file.take(bytes_max + 1);
    file.read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("it has more than {bytes_max} bytes"));
    }
    Ok(bytes)
}
