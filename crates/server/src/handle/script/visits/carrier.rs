//! Where a visit's handle stands in a request: the first segment of the path behind the program, a
//! cookie, or both.

use hob_http::Request;

use crate::handle::script::visits::handle::is_like_handle;

/// Where handles are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VisitCarriers {
    /// In the path.
    pub(crate) in_path: bool,
    /// In the cookie of this name.
    pub(crate) cookie: Option<String>,
}

/// What a request has of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried<'a> {
    /// None: a new visit.
    Nothing,
    /// One.
    Handle {
        /// Its text.
        text: &'a [u8],
        /// Where the program's own part of the path begins.
        below: usize,
    },
    /// Two that differ.
    Differs,
}

impl VisitCarriers {
    /// Looks into a request. `path` is normal; from `below` on it is the program's.
    pub(crate) fn find<'a>(
        &'a self,
        request: &'a Request,
        path: &'a [u8],
        below: usize,
    ) -> Carried<'a> {
        let segment = self.in_path.then(|| in_path(path, below)).flatten();
        let cookie = self.cookie.as_ref().and_then(|name| {
            let mut values = cookies(request, name.as_bytes());
            let first = values.next()?;
            // Which of several counts nobody can say.
            Some((first, values.all(|other| other == first)))
        });
        match (segment, cookie) {
            (_, Some((_, false))) => Carried::Differs,
            (Some(text), Some((cookie, _))) if cookie != text => Carried::Differs,
            (Some(text), _) => Carried::Handle {
                text,
                below: (below + text.len() + 1).min(path.len() + 1),
            },
            (None, Some((text, _))) => Carried::Handle { text, below },
            (None, None) => Carried::Nothing,
        }
    }
}

impl VisitCarriers {
    /// The client has this handle in its cookie.
    pub(crate) fn has_cookie(&self, request: &Request, handle: &[u8]) -> bool {
        let cookie = self.cookie.as_ref();
        cookie.is_some_and(|name| cookies(request, name.as_bytes()).any(|text| text == handle))
    }
}

fn in_path(path: &[u8], below: usize) -> Option<&[u8]> {
    let rest = path.get(below..)?;
    let segment = rest.split(|byte| *byte == b'/').next()?;
    is_like_handle(segment).then_some(segment)
}

/// The values of a cookie; empty ones are none.
fn cookies<'a>(request: &'a Request, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let fields = request.head().values(b"Cookie");
    let pairs = fields.flat_map(|field| field.split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let value = pair.trim_ascii().strip_prefix(name)?.strip_prefix(b"=")?;
        (!value.is_empty()).then_some(value)
    })
}
