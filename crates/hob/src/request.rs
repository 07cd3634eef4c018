//! What commands send that make requests: fields and bodies from their arguments.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::CommandFailure;

/// A header field, from `NAME:VALUE`.
pub(crate) fn field(text: &str) -> Result<(String, String), CommandFailure> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| wrong(format!("--header {text:?}: write NAME:VALUE")))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// The body in a file, of at most so many bytes and one, which is refused later.
pub(crate) fn body(path: &Path, bytes_max: u64) -> Result<Vec<u8>, CommandFailure> {
    let unread = |error| {
        wrong(format!(
            "--body {}: cannot read it: {error}",
            path.display()
        ))
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    // One byte more than allowed is enough to refuse it.
    let mut file = file.take(bytes_max + 1);
    file.read_to_end(&mut bytes).map_err(unread)?;
    Ok(bytes)
}

/// The arguments are wrong.
pub(crate) fn wrong(text: String) -> CommandFailure {
    CommandFailure { code: 2, text }
}
