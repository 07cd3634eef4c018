//! Every way of running a program of every language: one table, from which the site's routes, the
//! cases that are sent and the columns of the page are made.

use std::fmt;

/// One way: a program of a language behind a handler.
pub(crate) struct Way {
    pub(crate) language: &'static str,
    /// What the program is written to.
    pub(crate) interface: &'static str,
    pub(crate) handler: &'static str,
    /// How a resident program's messages travel.
    pub(crate) carrier: Carrier,
    /// What does the work in the program.
    pub(crate) helper: Helper,
    /// Keys of the handler's table.
    pub(crate) keys: &'static str,
    /// What stands between the route and a case's path.
    pub(crate) script: &'static str,
    pub(crate) lacks: &'static [Lack],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    None,
    Stream,
    Shm,
    Lines,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Helper {
    /// The language has nothing to choose from, or the program uses nothing of ours.
    None,
    /// The package in the language itself.
    Pure,
    /// The package over libhob.
    Native,
}

/// What an interface has not, and why: cases that need it are skipped.
pub(crate) struct Lack {
    pub(crate) need: &'static str,
    pub(crate) reason: &'static str,
}

const CGI: &[Lack] = &[
    Lack {
        need: "trailers",
        reason: "CGI has no fields after the body",
    },
    Lack {
        need: "infos",
        reason: "CGI has no informational answers",
    },
    Lack {
        need: "broken",
        reason: "how a CGI program exits is no part of its answer",
    },
    Lack {
        need: "callouts",
        reason: "a CGI program has no way to ask the server",
    },
];
const LINES: &[Lack] = &[
    Lack {
        need: "trailers",
        reason: "the line protocol has no fields after the body",
    },
    Lack {
        need: "infos",
        reason: "the line protocol has no informational answers",
    },
];
const NO_TRAILERS: &[Lack] = &[Lack {
    need: "trailers",
    reason: "WSGI and PSGI have no fields after the body",
}];

const PLAIN: Way = Way {
    language: "",
    interface: "",
    handler: "resident",
    carrier: Carrier::None,
    helper: Helper::None,
    keys: "",
    script: "",
    lacks: &[],
};

/// A program that stays, and how its messages travel.
const fn resident(way: Way, carrier: Carrier, helper: Helper) -> Way {
    Way {
        handler: "resident",
        carrier,
        helper,
        ..way
    }
}

const C: Way = Way {
    language: "C",
    interface: "hob.h",
    keys: "run = [\"./probe/probe\"]",
    ..PLAIN
};
/// The line protocol, written out.
const C_LINES: Way = Way {
    language: "C",
    interface: "lines, no library",
    keys: "run = [\"./probe/lines\"]",
    lacks: LINES,
    ..PLAIN
};
const LOOP: Way = Way {
    language: "Python",
    interface: "loop",
    helper: Helper::Pure,
    keys: "python = \"probe/probe_loop.py\"",
    ..PLAIN
};
const WSGI: Way = Way {
    language: "Python",
    interface: "WSGI",
    keys: "wsgi = \"probe_wsgi:application\"",
    lacks: NO_TRAILERS,
    ..PLAIN
};
/// Several threads take requests.
const WSGI_THREADS: Way = Way {
    interface: "WSGI, 4 threads",
    keys: "wsgi = \"probe_wsgi:application\", workers.concurrency = 4",
    ..WSGI
};
const WSGI_VALIDATED: Way = Way {
    interface: "WSGI, wsgiref.validate",
    keys: "wsgi = \"probe_validated:application\"",
    ..WSGI
};
const ASGI: Way = Way {
    language: "Python",
    interface: "ASGI",
    keys: "asgi = \"probe_asgi:application\", workers.concurrency = 4",
    ..PLAIN
};
const PYTHON_SCRIPT: Way = Way {
    language: "Python",
    interface: "CGI script",
    script: "/probe_cgi.py",
    lacks: CGI,
    ..PLAIN
};
const PERL_LOOP: Way = Way {
    language: "Perl",
    interface: "loop",
    helper: Helper::Pure,
    keys: "perl = \"probe/probe_loop.pl\"",
    ..PLAIN
};
const PSGI: Way = Way {
    language: "Perl",
    interface: "PSGI",
    keys: "psgi = \"probe/probe.psgi\"",
    lacks: NO_TRAILERS,
    ..PLAIN
};
const PERL_SCRIPT: Way = Way {
    language: "Perl",
    interface: "CGI script",
    keys: "scripts = \"probe\"",
    script: "/probe_cgi.pl",
    lacks: CGI,
    ..PLAIN
};

const SHELL: Way = Way {
    language: "Shell",
    interface: "hob.sh",
    keys: "run = [\"./probe/probe.sh\"]",
    lacks: LINES,
    ..PLAIN
};

/// A program that no server keeps.
const fn each(way: Way, handler: &'static str, keys: &'static str, script: &'static str) -> Way {
    Way {
        handler,
        keys,
        script,
        lacks: CGI,
        ..way
    }
}

const FOLDER: &str = "dir = \"probe\"";
const LOOPS: &str = "dir = \"probe\", interpreters = { \".py\" = \"python3\", \".pl\" = \"perl\" }";
const WARM_PYTHON: &str = "dir = \"probe\", interpreter = \"python3\"";
const WARM_PERL: &str = "dir = \"probe\", interpreter = \"perl\"";

/// All of them, in the order of the page.
pub(crate) const WAYS: &[Way] = &[
    resident(C, Carrier::Shm, Helper::None),
    resident(C, Carrier::Stream, Helper::None),
    each(C, "cgi", FOLDER, "/probe"),
    resident(C_LINES, Carrier::Lines, Helper::None),
    each(C_LINES, "cgi", FOLDER, "/lines"),
    resident(LOOP, Carrier::Shm, Helper::Native),
    resident(LOOP, Carrier::Stream, Helper::Native),
    resident(LOOP, Carrier::Stream, Helper::Pure),
    each(LOOP, "cgi", LOOPS, "/probe_loop.py"),
    resident(WSGI, Carrier::Shm, Helper::Native),
    resident(WSGI, Carrier::Stream, Helper::Native),
    resident(WSGI, Carrier::Stream, Helper::Pure),
    resident(WSGI_THREADS, Carrier::Shm, Helper::Native),
    resident(WSGI_THREADS, Carrier::Stream, Helper::Pure),
    resident(WSGI_VALIDATED, Carrier::Shm, Helper::Native),
    resident(WSGI_VALIDATED, Carrier::Stream, Helper::Pure),
    resident(ASGI, Carrier::Shm, Helper::Native),
    resident(ASGI, Carrier::Stream, Helper::Native),
    resident(ASGI, Carrier::Stream, Helper::Pure),
    each(PYTHON_SCRIPT, "warm", WARM_PYTHON, "/probe_cgi.py"),
    each(PYTHON_SCRIPT, "cgi", FOLDER, "/probe_cgi.py"),
    resident(PERL_LOOP, Carrier::Shm, Helper::Native),
    resident(PERL_LOOP, Carrier::Stream, Helper::Native),
    resident(PERL_LOOP, Carrier::Stream, Helper::Pure),
    each(PERL_LOOP, "cgi", LOOPS, "/probe_loop.pl"),
    resident(PSGI, Carrier::Shm, Helper::Native),
    resident(PSGI, Carrier::Stream, Helper::Native),
    resident(PSGI, Carrier::Stream, Helper::Pure),
    resident(PERL_SCRIPT, Carrier::Shm, Helper::Native),
    resident(PERL_SCRIPT, Carrier::Stream, Helper::Native),
    resident(PERL_SCRIPT, Carrier::Stream, Helper::Pure),
    each(PERL_SCRIPT, "warm", WARM_PERL, "/probe_cgi.pl"),
    each(PERL_SCRIPT, "cgi", FOLDER, "/probe_cgi.pl"),
    resident(SHELL, Carrier::Lines, Helper::None),
    each(SHELL, "cgi", FOLDER, "/probe.sh"),
];

impl Way {
    /// A request that fails takes its process with it; nothing but the server is left to say so.
    pub(crate) fn dies_with_request(&self) -> bool {
        let is_resident = self.handler == "resident" && self.carrier != Carrier::Lines;
        !is_resident && !matches!(self.interface, "hob.h" | "loop")
    }

    /// Why cases that need these are skipped.
    pub(crate) fn lack(&self, needs: &[String]) -> Option<&'static str> {
        let lack = self
            .lacks
            .iter()
            .find(|lack| needs.iter().any(|need| need == lack.need));
        lack.map(|lack| lack.reason)
    }

    /// How messages travel, as the page says it.
    pub(crate) fn carrier(&self) -> &'static str {
        match self.carrier {
            Carrier::None => "",
            Carrier::Stream => "stream",
            Carrier::Shm => "shm",
            Carrier::Lines => "lines",
        }
    }

    /// What does the work in the program, as the page says it.
    pub(crate) fn helper(&self) -> &'static str {
        match (self.interface, self.helper) {
            ("hob.h", _) => "libhob",
            (_, Helper::Native) => "native, over libhob",
            (_, Helper::Pure) => self.language,
            (_, Helper::None) => "",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} {} by {}",
            self.language, self.interface, self.handler
        )?;
        for word in [self.carrier(), self.helper()] {
            if !word.is_empty() {
                write!(out, ", {word}")?;
            }
        }
        Ok(())
    }
}
