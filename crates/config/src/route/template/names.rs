//! Paths of folders and files with `{name}` in them: one for each account, or for each host.
//!
//! `/home/{user}/public_html` is a fixed part, `/home`, and names below it, each of which is text
//! around at most one capture. What a request puts into such a name is a whole name of a folder, or
//! a part of one, and never a way elsewhere ([`is_safe_name`]). As each name has one capture at
//! most, a path can be read backwards too: the process that starts programs does so to find out
//! whose program it is asked for.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{TemplateError, TemplateFault, TemplateValues, TemplateVariable, without_port};
use crate::route::pattern::{Pattern, Tail, is_name};

/// Longest name that a capture gives, in bytes: no file system of Linux has longer ones.
pub const NAME_BYTES_MAX: usize = 255;
/// What stands for the request's host.
pub const HOST: &str = "host";

/// A path that a route's captures are part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPath {
    /// What stands before the first name with a capture; absolute.
    pub fixed: PathBuf,
    /// The names below it.
    pub names: Vec<CapturedName>,
}

/// A name with at most one capture in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedName {
    /// What stands before the capture, or the whole name where there is none.
    pub before: String,
    /// The capture, without its braces.
    pub capture: Option<String>,
    /// What stands behind it.
    pub after: String,
}

/// The same for routes with one pattern: each capture is known by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTemplate {
    path: CapturedPath,
    /// By the names of the path.
    variables: Vec<Option<TemplateVariable>>,
}

/// A request gives a name that cannot be one of a folder (404).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsafeName;

/// Whether a name that came with a request may stand in a path: it is one name, not hidden, and
/// leads nowhere else.
pub fn is_safe_name(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| *byte != b'/' && *byte >= b' ' && *byte != 0x7f;
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name[0] != b'.' && name.iter().all(is_plain)
}

/// Whether a path has captures in it.
pub fn has_captures(path: &Path) -> bool {
    find_capture(&path.as_os_str().to_string_lossy()).is_some()
}

/// Where the first capture begins, and what it is called. Other braces are text, as folders have
/// them in their names: `${NAME}`, `{{name}}`, `{a-b}`.
fn find_capture(text: &str) -> Option<(usize, &str)> {
    let begins = memchr::memchr_iter(b'{', text.as_bytes());
    let mut captures = begins.filter_map(|at| {
        let (name, after) = text[at + 1..].split_once('}')?;
        let is_text = text[..at].ends_with(['$', '{']) || after.starts_with('}');
        (!is_text && is_name(name)).then_some((at, name))
    });
    captures.next()
}

impl CapturedPath {
    /// Reads a path; `None` where it has no captures.
    ///
    /// # Errors
    /// A second capture in a name.
    pub fn parse(path: &Path) -> Result<Option<CapturedPath>, TemplateError> {
        if !has_captures(path) {
            return Ok(None);
        }
        let (mut fixed, mut names) = (PathBuf::new(), Vec::new());
        let mut at = 0;
        for component in path.components() {
            let text = component.as_os_str().to_string_lossy();
            if !matches!(component, Component::RootDir) {
                let rest = &path.as_os_str().as_bytes()[at..];
                at += rest.iter().take_while(|byte| **byte == b'/').count();
            }
            let name = CapturedName::parse(&text).map_err(|error| TemplateError {
                at: at + error.at,
                ..error
            })?;
            match names.is_empty() && name.capture.is_none() {
                true => fixed.push(component),
                // It would leave the folder that the capture has named.
                false if component == Component::ParentDir => {
                    return Err(TemplateError {
                        at,
                        fault: TemplateFault::WayUp,
                    });
                }
                false => names.push(name),
            }
            if !matches!(component, Component::RootDir) {
                at += text.len();
            }
        }
        Ok(Some(CapturedPath { fixed, names }))
    }

    /// The captures in it.
    pub fn captures(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter();
        names.filter_map(|name| name.capture.as_deref())
    }

    /// For routes with this pattern.
    ///
    /// # Errors
    /// It has a capture that the pattern has not, or one of several names.
    pub fn bind(&self, pattern: &Pattern) -> Result<PathTemplate, TemplateFault> {
        let bind = |name: &CapturedName| match &name.capture {
            None => Ok(None),
            Some(capture) => variable(capture, pattern).map(Some),
        };
        Ok(PathTemplate {
            variables: self.names.iter().map(bind).collect::<Result<_, _>>()?,
            path: self.clone(),
        })
    }

    /// What a path that is one of these, or below one, has captured, in the order of
    /// [`CapturedPath::captures`], and what of it is below: empty, or from a slash on.
    pub fn read<'p>(&self, path: &'p [u8]) -> Option<(Vec<&'p [u8]>, &'p [u8])> {
        let fixed = self.fixed.as_os_str().as_bytes();
        let mut rest = path.strip_prefix(fixed.strip_suffix(b"/").unwrap_or(fixed))?;
        let mut values = Vec::new();
        for name in &self.names {
            let inner = rest.strip_prefix(b"/")?;
            let end = memchr::memchr(b'/', inner).unwrap_or(inner.len());
            if let Some(value) = name.read(&inner[..end])? {
                values.push(value);
            }
            rest = &inner[end..];
        }
        Some((values, rest))
    }
}

impl CapturedName {
    /// Reads a name.
    ///
    /// # Errors
    /// A second capture.
    pub fn parse(text: &str) -> Result<CapturedName, TemplateError> {
        let Some((at, capture)) = find_capture(text) else {
            return Ok(CapturedName {
                before: text.to_owned(),
                ..CapturedName::default()
            });
        };
        let begin = at + capture.len() + 2;
        let after = &text[begin..];
        if let Some((second, _)) = find_capture(after) {
            return Err(TemplateError {
                at: begin + second,
                fault: TemplateFault::SecondInName,
            });
        }
        Ok(CapturedName {
            before: text[..at].to_owned(),
            capture: Some(capture.to_owned()),
            after: after.to_owned(),
        })
    }

    /// The name with its capture put in; it need not be a safe one.
    pub fn filled(&self, value: &[u8]) -> Vec<u8> {
        [self.before.as_bytes(), value, self.after.as_bytes()].concat()
    }

    /// What a name has captured, if it is one of these.
    fn read<'n>(&self, name: &'n [u8]) -> Option<Option<&'n [u8]>> {
        if self.capture.is_none() {
            return (name == self.before.as_bytes()).then_some(None);
        }
        let value = name.strip_prefix(self.before.as_bytes())?;
        let value = value.strip_suffix(self.after.as_bytes())?;
        is_safe_name(value).then_some(Some(value))
    }
}

impl PathTemplate {
    /// What stands before the first name with a capture.
    pub fn fixed(&self) -> &Path {
        &self.path.fixed
    }

    /// Puts the path below the fixed part that a request leads to into `out`.
    ///
    /// # Errors
    /// What the request gives is no safe name.
    pub fn expand(&self, facts: &TemplateValues<'_>, out: &mut Vec<u8>) -> Result<(), UnsafeName> {
        out.clear();
        for (name, variable) in self.path.names.iter().zip(&self.variables) {
            if !out.is_empty() {
                out.push(b'/');
            }
            out.extend_from_slice(name.before.as_bytes());
            match variable {
                None => {}
                Some(TemplateVariable::Host) => push_host(facts.host, out)?,
                Some(variable) => {
                    let value = variable.bytes(facts);
                    if !is_safe_name(value) {
                        return Err(UnsafeName);
                    }
                    out.extend_from_slice(value);
                }
            }
            out.extend_from_slice(name.after.as_bytes());
        }
        Ok(())
    }

    /// What a capture was in a path that [`PathTemplate::whole`] gave.
    pub fn value_of<'p>(&self, capture: &str, whole: &'p Path) -> Option<&'p [u8]> {
        let (values, _) = self.path.read(whole.as_os_str().as_bytes())?;
        let mut values = self.path.captures().zip(values);
        values
            .find(|(known, _)| *known == capture)
            .map(|(_, value)| value)
    }

    /// The whole path, from what [`PathTemplate::expand`] gave.
    pub fn whole(&self, expanded: &[u8]) -> PathBuf {
        self.path.fixed.join(OsStr::from_bytes(expanded))
    }
}

impl fmt::Display for CapturedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.before)?;
        if let Some(capture) = &self.capture {
            write!(f, "{{{capture}}}")?;
        }
        f.write_str(&self.after)
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed = self.path.fixed.display().to_string();
        f.write_str(fixed.trim_end_matches('/'))?;
        self.path
            .names
            .iter()
            .try_for_each(|name| write!(f, "/{name}"))
    }
}

/// A host as a name: in lower case, without its port and a last dot.
fn push_host(host: &[u8], out: &mut Vec<u8>) -> Result<(), UnsafeName> {
    let host = without_port(host);
    let host = host.strip_suffix(b".").unwrap_or(host);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if !is_safe_name(host) || !host.iter().all(is_plain) {
        return Err(UnsafeName);
    }
    out.extend(host.iter().map(u8::to_ascii_lowercase));
    Ok(())
}

fn variable(capture: &str, pattern: &Pattern) -> Result<TemplateVariable, TemplateFault> {
    if capture == HOST {
        return Ok(TemplateVariable::Host);
    }
    let Some(index) = pattern.names().position(|known| known == capture) else {
        let known = pattern.names().chain([HOST]);
        return Err(TemplateFault::Unknown {
            name: capture.to_owned(),
            known: known.map(|known| format!("`{{{known}}}`")).collect(),
        });
    };
    let is_rest = pattern.tail == Tail::NamedRest && index + 1 == pattern.names().len();
    match is_rest {
        true => Err(TemplateFault::RestInName(capture.to_owned())),
        false => Ok(TemplateVariable::Capture(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(path: &str, pattern: &str) -> PathTemplate {
        let captured = CapturedPath::parse(Path::new(path)).unwrap().unwrap();
        captured.bind(&Pattern::parse(pattern).unwrap()).unwrap()
    }

    fn expanded(path: &str, pattern: &str, asked: &[u8], host: &[u8]) -> Option<String> {
        let captures = Pattern::parse(pattern).unwrap().matches(asked).unwrap();
        let facts = TemplateValues {
            path: asked,
            raw_path: asked,
            query: None,
            host,
            captures: &captures,
        };
        let (template, mut out) = (template(path, pattern), Vec::new());
        template.expand(&facts, &mut out).ok()?;
        Some(template.whole(&out).display().to_string())
    }

    #[test]
    fn captures_become_names() {
        let by_user = |asked: &str| {
            let asked = asked.as_bytes();
            expanded("/people/{user}/public_html", "/{user}/*", asked, b"")
        };
        assert_eq!(
            by_user("/ann/x"),
            Some("/people/ann/public_html".to_owned())
        );
        assert_eq!(by_user("/a b/"), Some("/people/a b/public_html".to_owned()));
        let got = expanded("/srv/w-{b}.d/{a}", "/{a}/{b}", b"/x/y", b"");
        assert_eq!(got, Some("/srv/w-y.d/x".to_owned()));
    }

    #[test]
    fn what_is_no_safe_name_leads_nowhere() {
        let long = [b"/".as_slice(), &[b'a'; NAME_BYTES_MAX + 1], b"/"].concat();
        for asked in [
            b"/.../x".as_slice(),
            b"/.ssh/x",
            b"/./x",
            b"/../x",
            b"/a\0b/x",
            b"/a\nb/x",
            b"/\x7f/x",
            &long,
        ] {
            let got = expanded("/people/{user}/w", "/{user}/*", asked, b"");
            assert_eq!(got, None, "{}", asked.escape_ascii());
        }
    }

    #[test]
    fn host_is_a_name_in_its_normal_form() {
        let of = |host: &[u8]| expanded("/srv/{host}/www", "/*", b"/x", host);
        let at = |name: &str| Some(format!("/srv/{name}/www"));
        assert_eq!(of(b"Example.ORG:8080"), at("example.org"));
        assert_eq!(of(b"a-1.example."), at("a-1.example"));
        for host in [
            b"".as_slice(),
            b".",
            b"..",
            b".a",
            b":80",
            b"[::1]",
            b"a/b",
            b"a_b",
            b"a\0",
        ] {
            assert_eq!(of(host), None, "{}", host.escape_ascii());
        }
    }

    #[test]
    fn braces_around_what_is_no_name_are_text() {
        for text in [
            "/a/${HOME}/b",
            "/a/{{name}}",
            "/a/{b-c}",
            "/a/{",
            "/}{/",
            "/{}",
            "/{1}",
        ] {
            assert_eq!(CapturedPath::parse(Path::new(text)), Ok(None), "{text}");
        }
        let captured = CapturedPath::parse(Path::new("/${A}/{{b}}/x{c}/{"));
        let captured = captured.unwrap().unwrap();
        assert_eq!(captured.fixed, Path::new("/${A}/{{b}}"));
        assert_eq!(captured.captures().collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn paths_are_read_back() {
        let captured = CapturedPath::parse(Path::new("/people/w-{user}/cgi")).unwrap();
        let captured = captured.unwrap();
        assert_eq!(captured.fixed, Path::new("/people"));
        let read = |path: &'static str| captured.read(path.as_bytes());
        assert_eq!(
            read("/people/w-ann/cgi"),
            Some((vec![b"ann".as_slice()], b"".as_slice()))
        );
        assert_eq!(
            read("/people/w-ann/cgi/a/b"),
            Some((vec![b"ann".as_slice()], b"/a/b".as_slice()))
        );
        for path in [
            "/people",
            "/people/",
            "/people/w-ann",
            "/people/ann/cgi/a",
            "/people/w-/cgi/a",
            "/people/w-..\0/cgi",
            "/people/w-ann/cgix/a",
            "/people/x/../w-ann/cgi",
            "/people//w-ann/cgi",
            "/peoplew-ann/cgi",
            "/srv/w-ann/cgi",
            "/people/w-.a/cgi",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }

    #[test]
    fn what_cannot_be_such_a_path_is_told() {
        let of = |path: &str| CapturedPath::parse(Path::new(path));
        assert_eq!(of("/people/ann"), Ok(None));
        for (path, at, fault) in [
            ("/a/{b}{c}", 6, TemplateFault::SecondInName),
            ("/a/{b}/../c", 7, TemplateFault::WayUp),
        ] {
            assert_eq!(of(path), Err(TemplateError { at, fault }), "{path}");
        }
        let bind = |path: &str, pattern: &str| {
            let captured = of(path).unwrap().unwrap();
            captured.bind(&Pattern::parse(pattern).unwrap()).map(|_| ())
        };
        assert_eq!(bind("/a/{host}", "/*"), Ok(()));
        assert!(matches!(
            bind("/a/{user}", "/{name}/*"),
            Err(TemplateFault::Unknown { .. })
        ));
        assert_eq!(
            bind("/a/{rest}", "/{rest*}"),
            Err(TemplateFault::RestInName("rest".to_owned()))
        );
    }
}
