//! The hosts' programs, one per language. They travel as memory, so that nothing has to be
//! installed, and a host is as old as its server.

use crate::config::Language;

/// A host's program. Python's is a loop that has all else as a text, and modules that Python had
/// once and scripts may still want; where they have gone, the host offers them.
pub(super) fn of(language: Language) -> &'static str {
    match language {
        Language::Python => concat!(
            "OFFERED = {'cgi': r'''",
            include_str!("../../../../../lang/python/host/offered/cgi.py"),
            "''', 'cgitb': r'''",
            include_str!("../../../../../lang/python/host/offered/cgitb.py"),
            "'''}\nTEXT = r'''",
            include_str!("../../../../../lang/python/host/warm.py"),
            "'''\n",
            include_str!("../../../../../lang/python/host/loop.py"),
        ),
        Language::Perl => include_str!("../../../../../lang/perl/host/warm.pl"),
    }
}

/// How an interpreter is told to run what stands on its standard input. Perl is given the file
/// itself: it goes on reading it where the host has put the script.
pub(super) fn arguments(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &["-"],
        Language::Perl => &["/proc/self/fd/0"],
    }
}
