//! What of a start is the server's to choose: a program of the route, words of a query, and what a
//! request tells a program. All else is the policy's, so that a server that somebody else steers
//! cannot have an interpreter or the loader run what it likes.
//!
//! A list of variables that must not be passed would never end (`LD_PRELOAD`, `PERL5OPT`,
//! `BASH_ENV`, `PYTHONPATH`, ...), so the list here is of those that may.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::prepare::{PreparedProgram, bytes};
use super::starts::Refused;
use crate::process::hosts;
use crate::process::message::Step;
use hob_config::{Argument, CommandLine, HostSource};

/// Variables of a request besides `HTTP_...`, sorted.
pub const OF_REQUESTS: &[&str] = &[
    "AUTH_TYPE",
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "DOCUMENT_ROOT",
    "GATEWAY_INTERFACE",
    "GEOIP_COUNTRY_CODE",
    "HOB_TUNNEL",
    "HTTPS",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "QUERY_STRING",
    "REDIRECT_STATUS",
    "REMOTE_ADDR",
    "REMOTE_HOST",
    "REMOTE_IDENT",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_URI",
    SCRIPT_FILENAME,
    "SCRIPT_NAME",
    "SERVER_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
    "SSL_CIPHER",
    "SSL_CLIENT_I_DN",
    "SSL_CLIENT_M_SERIAL",
    "SSL_CLIENT_S_DN",
    "SSL_CLIENT_S_DN_CN",
    "SSL_CLIENT_VERIFY",
    "SSL_CLIENT_V_END",
    "SSL_CLIENT_V_START",
    "SSL_PROTOCOL",
    "SSL_SESSION_RESUMED",
    "SSL_TLS_SNI",
    "TRACEPARENT",
    "TRACESTATE",
    "UNIQUE_ID",
];
/// php-cgi runs the file that this one names, whatever its arguments are.
const SCRIPT_FILENAME: &str = "SCRIPT_FILENAME";
/// Programs take it for a setting of theirs, so it is no field of a request.
const PROXY: &[u8] = b"HTTP_PROXY";
/// What the lines of a worker end with, another one for each.
const OF_WORKERS: [&[u8]; 3] = [b"CGIPLUSEOF", b"CGIPLUSESC", b"CGIPLUSEOT"];

/// A command line of the policy, and the source its standard input is.
#[derive(Debug)]
pub(super) struct PolicyCommandLine {
    pub(super) line: CommandLine,
    source: Option<Rc<OwnedFd>>,
}

/// Sources of hosts, one for all that have it.
#[derive(Debug, Default)]
pub(super) struct HostSourceFiles(Vec<(HostSource, Rc<OwnedFd>)>);

impl PolicyCommandLine {
    pub(super) fn of(
        line: &CommandLine,
        sources: &mut HostSourceFiles,
        trouble: &mut dyn FnMut(String),
    ) -> PolicyCommandLine {
        PolicyCommandLine {
            line: line.clone(),
            source: line.host.and_then(|host| sources.get(host, trouble)),
        }
    }
}

impl HostSourceFiles {
    fn get(&mut self, host: HostSource, trouble: &mut dyn FnMut(String)) -> Option<Rc<OwnedFd>> {
        if let Some((_, source)) = self.0.iter().find(|(known, _)| *known == host) {
            return Some(Rc::clone(source));
        }
        match hosts::source(host, trouble) {
            Ok(source) => {
                let source = Rc::new(source);
                self.0.push((host, Rc::clone(&source)));
                Some(source)
            }
            Err(error) => {
                trouble(format!("the source of a host was not made: {error}"));
                None
            }
        }
    }
}

/// What is asked for, and what it may be.
pub(super) struct Start<'a, A, V> {
    pub(super) path: &'a [u8],
    pub arguments: A,
    pub(super) variables: V,
}

/// What a start is, once it is allowed.
pub(super) enum Allowed<'a, 'p> {
    /// This file runs, by itself or by its interpreter.
    File(&'a [u8]),
    /// A command, or what stays.
    Line,
    /// Its standard input is this.
    Host(&'p OwnedFd),
}

impl<'a, A, V> Start<'a, A, V>
where
    A: Iterator<Item = &'a [u8]> + Clone,
    V: Iterator<Item = &'a [u8]>,
{
    /// Whether the policy has such a start.
    pub(super) fn check<'p>(
        self,
        prepared: &'p PreparedProgram,
    ) -> Result<Allowed<'a, 'p>, Refused> {
        let refused = |step, errno, what: &[u8]| Refused {
            step,
            errno,
            what: what.to_vec(),
        };
        let (file, allowed) = match self.find(prepared) {
            PolicyMatch::File(file) => (Some(file), Allowed::File(file)),
            PolicyMatch::Line(line) => match (&line.source, line.line.host) {
                (Some(source), _) => (None, Allowed::Host(source)),
                (None, None) => (None, Allowed::Line),
                // There was no memory for it: a host without its source must not run another's.
                (None, Some(_)) => return Err((Step::Descriptors, libc::ENOMEM).into()),
            },
            PolicyMatch::OtherArguments => {
                return Err(refused(Step::Arguments, libc::EACCES, self.path));
            }
            PolicyMatch::Nothing => return Err(refused(Step::Path, libc::EACCES, self.path)),
        };
        let mut names_its_file = file.is_none();
        for variable in self.variables {
            let end = memchr::memchr(b'=', variable).unwrap_or(variable.len());
            let (name, value) = (&variable[..end], &variable[variable.len().min(end + 1)..]);
            let is_good = !prepared.has_variable(name)
                && match file {
                    None => OF_WORKERS.contains(&name),
                    Some(file) if name == SCRIPT_FILENAME.as_bytes() => {
                        names_its_file = value == file;
                        names_its_file
                    }
                    Some(_) => {
                        is_of_request(name) || is_of_call(name, value) || prepared.has_value(name)
                    }
                };
            if !is_good {
                return Err(refused(Step::Variables, libc::EACCES, name));
            }
        }
        match names_its_file || prepared.has_variable(SCRIPT_FILENAME.as_bytes()) {
            true => Ok(allowed),
            false => {
                let name = SCRIPT_FILENAME.as_bytes();
                Err(refused(Step::Variables, libc::EACCES, name))
            }
        }
    }

    fn find<'p>(&self, prepared: &'p PreparedProgram) -> PolicyMatch<'a, 'p> {
        let arguments = || self.arguments.clone();
        let mut is_known = false;
        if prepared.may_run(self.path) {
            is_known = true;
            let mut all = arguments();
            if all.next() == Some(self.path) && all.all(is_no_option) {
                return PolicyMatch::File(self.path);
            }
        }
        for line in &prepared.lines {
            let mut executables = line.line.executables.iter();
            if !executables.any(|known| bytes(known) == self.path) {
                continue;
            }
            is_known = true;
            let mut all = arguments();
            let mut fixed = line.line.arguments.iter();
            let is_called = |name| name == self.path || name == line.line.name.as_bytes();
            if !all.next().is_some_and(is_called) || !fixed.all(|one| is_as(one, all.next())) {
                continue;
            }
            match &line.line.file_ending {
                None if all.next().is_none() => return PolicyMatch::Line(line),
                None => {}
                Some(ending) => {
                    let file = all.next().filter(|file| file.ends_with(ending.as_bytes()));
                    let file = file.filter(|file| prepared.may_run(file));
                    if let (Some(file), true) = (file, all.all(is_no_option)) {
                        return PolicyMatch::File(file);
                    }
                }
            }
        }
        match is_known {
            true => PolicyMatch::OtherArguments,
            false => PolicyMatch::Nothing,
        }
    }
}

/// What the policy has of a start.
enum PolicyMatch<'a, 'p> {
    /// A program, by itself or by its interpreter.
    File(&'a [u8]),
    /// A command, or what stays.
    Line(&'p PolicyCommandLine),
    /// It may be started, but not with these arguments.
    OtherArguments,
    Nothing,
}

fn is_as(known: &Argument, argument: Option<&[u8]>) -> bool {
    argument.is_some_and(|argument| match known {
        Argument::Text(text) => text.as_bytes() == argument,
        Argument::Query(_) => is_no_option(argument),
    })
}

/// What comes from a query is never taken for an option.
fn is_no_option(word: &[u8]) -> bool {
    !word.starts_with(b"-")
}

/// Whether a request may have a variable of this name.
fn is_of_request(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    match name.strip_prefix(b"HTTP_") {
        Some(rest) => !rest.is_empty() && rest.iter().all(is_plain) && name != PROXY,
        None => OF_REQUESTS
            .binary_search_by(|known| known.as_bytes().cmp(name))
            .is_ok(),
    }
}

/// Whether a program that a page calls may have this variable: a value of the page, or the place
/// of its own that it writes values to.
fn is_of_call(name: &[u8], value: &[u8]) -> bool {
    const PREFIX: &[u8] = b"DTW_";
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.#".contains(byte);
    match name.strip_prefix(PREFIX) {
        Some(rest) => !rest.is_empty() && rest.iter().all(is_plain),
        None => name == b"DTWPIPE" && value == b"/proc/self/fd/0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_pages_have_names_of_their_own() {
        for name in ["DTW_q", "DTW_T_V_1_2", "DTW_Q.r#2"] {
            assert!(is_of_call(name.as_bytes(), b"; any $(value)"), "{name}");
        }
        assert!(is_of_call(b"DTWPIPE", b"/proc/self/fd/0"));
        assert!(!is_of_call(b"DTWPIPE", b"/etc/passwd"));
        for name in ["DTW_", "DTW", "DTW_a=b", "DTW_a()", "q", "PATH", "dtw_q"] {
            assert!(!is_of_call(name.as_bytes(), b""), "{name}");
        }
    }

    #[test]
    fn variables_of_requests_may_be_passed_and_no_other() {
        assert!(OF_REQUESTS.is_sorted());
        for name in OF_REQUESTS {
            assert!(is_of_request(name.as_bytes()), "{name}");
        }
        for name in ["HTTP_COOKIE", "HTTP_X_A9", "HTTP_2"] {
            assert!(is_of_request(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "HTTP",
            "HTTP_",
            "HTTP_PROXY",
            "HTTP_a",
            "HTTP_A B",
            "HTTP_A()",
            "http_proxy",
            "HTTPS_PROXY",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "PATH",
            "PYTHONPATH",
            "PERL5OPT",
            "BASH_ENV",
            "ENV",
            "IFS",
            "NODE_OPTIONS",
            "SSL_CERT_FILE",
            "GCONV_PATH",
        ] {
            assert!(!is_of_request(name.as_bytes()), "{name}");
        }
    }
}
