//! Programs that answer requests: the same work in each way there is to run a program.

use std::io;
use std::path::Path;

use crate::site::Site;

/// Writes and builds what can be; says in `lacks` what cannot.
pub(crate) fn write(_folder: &Path, _site: &mut Site) -> io::Result<()> {
    Ok(())
}

impl Site {
    /// The routes of hob's config that lead to programs.
    pub(crate) fn hob_routes(&self) -> String {
        String::new()
    }
}
