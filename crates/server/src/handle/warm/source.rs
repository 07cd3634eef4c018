//! The hosts' programs, one per language. They travel as memory, so that nothing has to be
//! installed, and a host is as old as its server.

use std::path::Path;

use crate::config::Language;
use crate::handle::resident::{host, native};

/// A host's program. Python's is a loop that has all else as texts, and modules that Python had
/// once and scripts may still want; where they have gone, the host offers them. It begins with
/// where the native part is, which a host does without where it cannot load it.
pub(super) fn of(language: Language) -> String {
    let native = native::folder();
    let (text, path) = match language {
        Language::Python => (PYTHON, native.map(|folder| folder.join(PYTHON_PART))),
        Language::Perl => (PERL, native.map(|folder| folder.join("perl"))),
    };
    let path = path.as_deref().and_then(Path::to_str);
    match (language, path) {
        (Language::Python, Some(path)) => {
            format!("NATIVE_FILE = {}\n{text}", host::python_string(path))
        }
        (Language::Perl, Some(path)) => {
            let folder = host::perl_string(path);
            format!("BEGIN {{ $Hob::Warm::native_folder = {folder} }}\n{text}")
        }
        (_, None) => text.to_owned(),
    }
}

const PYTHON_PART: &str = "python/_warm.abi3.so";
const PYTHON: &str = concat!(
    "OFFERED = {'cgi': r'''",
    include_str!("../../../../../lang/python/host/offered/cgi.py"),
    "''', 'cgitb': r'''",
    include_str!("../../../../../lang/python/host/offered/cgitb.py"),
    "'''}\nTEXT = r'''",
    include_str!("../../../../../lang/python/host/warm.py"),
    "'''\nLINKS = r'''",
    include_str!("../../../../../lang/python/host/links.py"),
    "'''\n",
    include_str!("../../../../../lang/python/host/loop.py"),
);
const PERL: &str = include_str!("../../../../../lang/perl/host/warm.pl");

/// How an interpreter is told to run what stands on its standard input. Perl is given the file
/// itself: it goes on reading it where the host has put the script.
pub(super) fn arguments(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &["-"],
        Language::Perl => &["/proc/self/fd/0"],
    }
}
