//! The hosts that hob brings along for Python and Perl: what an interpreter reads as its standard
//! input. They travel as memory, so that nothing has to be installed, and a host is as old as its
//! server. The spawner has them from its own program and takes none from a server.

mod native;
mod resident;
mod warm;

use std::io;
use std::os::fd::OwnedFd;

use crate::memory;
use hob_config::{HostSource, Language};

pub use native::folder as native_folder;

/// A host's source in sealed memory; `trouble` gets what the operator should know.
///
/// # Errors
/// No memory, no descriptors.
pub(super) fn source(host: HostSource, trouble: &mut dyn FnMut(String)) -> io::Result<OwnedFd> {
    let folder = native::folder(trouble);
    let native = folder.as_deref().and_then(|folder| folder.to_str());
    let source = match host {
        HostSource::WarmPython => warm::source(Language::Python, native),
        HostSource::WarmPerl => warm::source(Language::Perl, native),
        HostSource::ResidentPython => resident::source(Language::Python, native),
        HostSource::ResidentPerl => resident::source(Language::Perl, native),
    };
    memory::sealed("hob-host", source.as_bytes())
}

/// A literal that is this text, in one line.
fn python_string(text: &str) -> String {
    let mut literal = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => literal.push_str(r"\\"),
            '\'' => literal.push_str(r"\'"),
            '\n' => literal.push_str(r"\n"),
            '\r' => literal.push_str(r"\r"),
            c => literal.push(c),
        }
    }
    literal.push('\'');
    literal
}

/// A literal that is this text.
fn perl_string(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('\'', r"\'");
    format!("'{escaped}'")
}
