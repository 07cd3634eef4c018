//! Paths that have moved, by a file of them: one look-up for each request of its site.

use std::collections::HashMap;

use hob_config::REDIRECT_STATUSES;

use super::target;

/// Largest file of paths that have moved, in bytes.
pub const REDIRECTS_BYTES_MAX: u64 = 256 << 20;

/// Where paths have moved to.
#[derive(Debug, Default)]
pub struct Redirects {
    moved: HashMap<Box<[u8]>, MovedPath, foldhash::fast::RandomState>,
}

/// Where one has moved to.
#[derive(Debug, PartialEq, Eq)]
pub struct MovedPath {
    /// What is to be done about it.
    pub to: MovedTo,
    /// The line of the file, counted from 1.
    pub line: u32,
}

/// What is done about a path that has moved.
#[derive(Debug, PartialEq, Eq)]
pub enum MovedTo {
    /// The client is sent there.
    Redirect(MovedTarget),
    /// It is answered as if this had been asked for: a normal path, and the query in the place of
    /// the request's.
    Rewrite(Box<[u8]>, Option<Box<[u8]>>),
}

/// Where a client is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct MovedTarget {
    to: Box<str>,
    /// The status that says it.
    pub status: u16,
}

impl Redirects {
    /// Reads the text of a file; `status` is that of lines without one.
    ///
    /// # Errors
    /// The first line that is wrong, and what about it.
    pub fn parse(text: &str, status: u16) -> Result<Redirects, String> {
        let mut redirects = Redirects::default();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            redirects
                .add(text, status, line)
                .map_err(|fault| format!("line {line}: {fault}"))?;
        }
        Ok(redirects)
    }

    fn add(&mut self, text: &str, status: u16, line: u32) -> Result<(), String> {
        let mut words = text.split_whitespace();
        let (Some(from), Some(to)) = (words.next(), words.next()) else {
            return Err("write `FROM TO`, `FROM TO STATUS` or `FROM TO rewrite`".to_owned());
        };
        let how = words.next();
        if let Some(more) = words.next() {
            return Err(format!(
                "{more:?} is more than `FROM TO STATUS`: a space is `%20`"
            ));
        }
        if from.contains(['?', '#']) {
            return Err(format!(
                "{from:?}: only paths are looked up, without a query"
            ));
        }
        let from_path = normal(from)?;
        let to = match how {
            Some("rewrite") => MovedTo::rewrite(to)?,
            _ => MovedTo::redirect(to, how, status)?,
        };
        if to.is(&from_path) {
            return Err(format!("{from:?} is sent to itself"));
        }
        let moved = MovedPath { to, line };
        match self.moved.insert(from_path.into(), moved) {
            None => Ok(()),
            Some(before) => Err(format!("{from:?} stands in line {} already", before.line)),
        }
    }

    /// Where a normal path has moved to.
    #[inline]
    pub fn find(&self, path: &[u8]) -> Option<&MovedPath> {
        self.moved.get(path)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.moved.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.moved.is_empty()
    }
}

impl MovedTo {
    fn redirect(to: &str, how: Option<&str>, status: u16) -> Result<MovedTo, String> {
        let status = match how {
            None => status,
            Some(word) => { word.parse().ok() }
                .filter(|status| REDIRECT_STATUSES.contains(status))
                .ok_or_else(|| {
                    format!("{word:?} is neither a status of a redirect nor `rewrite`")
                })?,
        };
        if !is_target(to) {
            return Err(format!(
                "{to:?} is neither a path nor a URL: write `/new` or `https://...`"
            ));
        }
        let to = to.into();
        Ok(MovedTo::Redirect(MovedTarget { to, status }))
    }

    fn rewrite(to: &str) -> Result<MovedTo, String> {
        if to.contains('#') {
            return Err(format!("{to:?}: only a browser knows what follows `#`"));
        }
        let (path, query) = match to.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes().into())),
            None => (to, None),
        };
        Ok(MovedTo::Rewrite(normal(path)?.into(), query))
    }

    fn is(&self, path: &[u8]) -> bool {
        match self {
            MovedTo::Redirect(target) => target.to.as_bytes() == path,
            MovedTo::Rewrite(own, _) => **own == *path,
        }
    }
}

/// A path in its normal form.
fn normal(path: &str) -> Result<Vec<u8>, String> {
    let mut room = Vec::new();
    match target::normalise(path.as_bytes(), &mut room) {
        Ok(normal) => Ok(normal.path(path.as_bytes(), &room).to_vec()),
        Err(bad) => Err(format!("{path:?} is no path: {}", bad.reason())),
    }
}

impl MovedTarget {
    /// The place, with the query of the request where it has none of its own.
    pub fn location(&self, query: Option<&[u8]>) -> Vec<u8> {
        let (to, fragment) = match self.to.find('#') {
            Some(at) => self.to.split_at(at),
            None => (&*self.to, ""),
        };
        let mut location = to.as_bytes().to_vec();
        if let Some(query) = query.filter(|_| !to.contains('?')) {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        location.extend_from_slice(fragment.as_bytes());
        location
    }
}

/// Whether it is a path of this site, or a URL. Two slashes at the begin would name another host.
fn is_target(to: &str) -> bool {
    let is_path = to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/\\");
    let mut schemes = ["https://", "http://"].into_iter();
    let rest = schemes.find_map(|scheme| to.strip_prefix(scheme));
    let is_url = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']));
    (is_path || is_url) && to.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_their_normal_form_with_the_query_of_the_request() {
        let text = "# old\n/a /b\n\n /caf%C3%A9//x\thttps://b.test/y 308 \n/q /r?s=1\n/f /g#h\n";
        let redirects = Redirects::parse(text, 301).unwrap();
        assert_eq!(redirects.len(), 4);
        let to = |path: &str, query: Option<&str>| {
            let moved = redirects.find(path.as_bytes())?;
            let MovedTo::Redirect(target) = &moved.to else {
                return None;
            };
            let location = target.location(query.map(str::as_bytes));
            let location = String::from_utf8(location).unwrap();
            Some((location, target.status, moved.line))
        };
        let found = |location: &str, status, line| Some((location.to_owned(), status, line));
        assert_eq!(to("/a", None), found("/b", 301, 2));
        assert_eq!(to("/a", Some("x=1")), found("/b?x=1", 301, 2));
        assert_eq!(to("/café/x", None), found("https://b.test/y", 308, 4));
        assert_eq!(to("/q", Some("x=1")), found("/r?s=1", 301, 5));
        assert_eq!(to("/f", Some("x")), found("/g?x#h", 301, 6));
        assert_eq!(to("/A", None), None);
        assert_eq!(to("/a/", None), None);
    }

    #[test]
    fn what_is_rewritten_is_a_normal_path_and_a_query() {
        let text = "/a /b%20c/../d rewrite\n/q /index.php?p=1&q=%20 rewrite\n";
        let redirects = Redirects::parse(text, 301).unwrap();
        let to = |path: &str| redirects.find(path.as_bytes()).map(|moved| &moved.to);
        let rewritten = |path: &str, query: Option<&str>| {
            MovedTo::Rewrite(
                path.as_bytes().into(),
                query.map(|query| query.as_bytes().into()),
            )
        };
        assert_eq!(to("/a"), Some(&rewritten("/d", None)));
        assert_eq!(to("/q"), Some(&rewritten("/index.php", Some("p=1&q=%20"))));
    }

    #[test]
    fn first_wrong_line_is_told() {
        for (text, told) in [
            ("/a", "line 1: write `FROM TO`"),
            ("/a /b\n/c /d 200", "line 2: \"200\" is neither a status"),
            ("/a /b 301 x", "more than"),
            ("a /b", "\"a\" is no path"),
            ("/a?b /c", "without a query"),
            ("/a b", "neither a path nor a URL"),
            ("/a //evil.test/", "neither a path nor a URL"),
            ("/a /\\evil.test/", "neither a path nor a URL"),
            ("/a javascript:x", "neither a path nor a URL"),
            ("/a https:///x", "neither a path nor a URL"),
            ("/a /a", "sent to itself"),
            ("/a /%61 rewrite", "sent to itself"),
            ("/a https://b.test/ rewrite", "is no path"),
            ("/a /../.. rewrite", "is no path"),
            ("/a /b#c rewrite", "only a browser"),
            ("/a /b Rewrite", "nor `rewrite`"),
            (
                "/a /b\n\n/%61 /c",
                "line 3: \"/%61\" stands in line 1 already",
            ),
            ("/a%00 /b", "is no path"),
            ("/a /b\u{7f}", "neither a path"),
        ] {
            let fault = Redirects::parse(text, 301).unwrap_err();
            assert!(fault.contains(told), "{text:?}: {fault}");
        }
        assert!(Redirects::parse("", 301).unwrap().is_empty());
    }
}
