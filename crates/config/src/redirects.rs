//! `redirects` of a site: a file of paths that have moved.

use std::path::PathBuf;

use super::fault::{Faults, Spot};
use super::tree::Section;

/// A list of paths that have moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectList {
    /// The file.
    pub file: PathBuf,
    /// With which status, where a line says none.
    pub status: u16,
}

/// Statuses that send a client on.
pub const REDIRECT_STATUSES: &[u16] = &[301, 302, 303, 307, 308];

/// The list of a site, and where its file is named.
pub(crate) fn read_redirects(
    section: &Section,
    faults: &mut Faults<'_>,
) -> Option<(RedirectList, Spot)> {
    let section = section.section("redirects")?;
    let status: u16 = section.number("status");
    if !REDIRECT_STATUSES.contains(&status) {
        let message = format!("{status} is no status of a redirect");
        let hint = "use 301 or 308 (for good), 302, 303 or 307 (for now)";
        faults.error(section.spot("status"), message).hint(hint);
    }
    let file = section.optional_path("file")?.clone();
    Some((RedirectList { file, status }, section.spot("file")))
}
