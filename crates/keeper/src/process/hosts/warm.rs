//! The hosts that scripts are forked from, one per language.

use super::{perl_string, python_string};
use hob_config::Language;

/// A host's program. Python's is a loop that has all else as texts, and modules that Python had
/// once and scripts may still want; where they have gone, the host offers them. It begins with
/// where the native part is (`native` is its folder), which a host does without where it cannot
/// load it.
pub(super) fn source(language: Language, native: Option<&str>) -> String {
    match (language, native) {
        (Language::Python, Some(folder)) => {
            let file = python_string(&format!("{folder}/{PYTHON_PART}"));
            format!("NATIVE_FILE = {file}\n{PYTHON}")
        }
        (Language::Perl, Some(folder)) => {
            let folder = perl_string(&format!("{folder}/perl"));
            format!("BEGIN {{ $Hob::Warm::native_folder = {folder} }}\n{PERL}")
        }
        (Language::Python, None) => PYTHON.to_owned(),
        (Language::Perl, None) => PERL.to_owned(),
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
