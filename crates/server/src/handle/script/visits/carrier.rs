//! Where a visit's handle stands in a request: the first segment of the path behind the program, a
//! cookie, or both.

use hob_http::Request;

use std::time::Duration;

use crate::handle::script::visits::handle::is_like_handle;
use crate::step::cookie::cookies;

/// Where handles are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VisitCarriers {
    /// In the path.
    pub(crate) in_path: bool,
    /// In the cookie of this name.
    pub(crate) cookie: Option<String>,
    /// In the path or that cookie, with another cookie beside it, where it can be guessed.
    pub(crate) weak: Option<WeakCookies>,
}

/// Cookies that stand beside handles which can be guessed: one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WeakCookies {
    /// Their names, up to the handle.
    pub(crate) prefix: String,
    /// How long browsers keep them.
    pub(crate) life: Duration,
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
        /// What the cookie beside it has, where it needs one; nothing where there are several.
        beside: Option<&'a [u8]>,
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
        let segment = self.in_path(request, path, below);
        let cookie = self.cookie.as_ref().and_then(|name| {
            let mut values = handles(request, name.as_bytes());
            let first = values.next()?;
            // Which of several counts nobody can say.
            Some((first, values.all(|other| other == first)))
        });
        match (segment, cookie) {
            (_, Some((_, false))) => Carried::Differs,
            (Some(text), Some((cookie, _))) if cookie != text => Carried::Differs,
            (Some(text), _) => Carried::Handle {
                text,
                beside: self.beside(request, text),
                below: (below + text.len() + 1).min(path.len() + 1),
            },
            (None, Some((text, _))) => Carried::Handle {
                text,
                beside: self.beside(request, text),
                below,
            },
            (None, None) => Carried::Nothing,
        }
    }
}

impl VisitCarriers {
    /// The client has this handle in its cookie.
    pub(crate) fn has_cookie(&self, request: &Request, handle: &[u8]) -> bool {
        let cookie = self.cookie.as_ref();
        cookie.is_some_and(|name| handles(request, name.as_bytes()).any(|text| text == handle))
    }

    /// What the client's cookie beside a handle has.
    pub(crate) fn beside<'r>(&self, request: &'r Request, handle: &[u8]) -> Option<&'r [u8]> {
        let weak = self.weak.as_ref().filter(|_| !handle.is_empty())?;
        let name = [weak.prefix.as_bytes(), handle].concat();
        let mut values = handles(request, &name);
        let first = values.next()?;
        Some(match values.all(|other| other == first) {
            true => first,
            false => b"",
        })
    }

    fn in_path<'p>(&self, request: &Request, path: &'p [u8], below: usize) -> Option<&'p [u8]> {
        let rest = path.get(below..).filter(|_| self.in_path)?;
        let segment = rest.split(|byte| *byte == b'/').next()?;
        let is_handle = is_like_handle(segment) || self.beside(request, segment).is_some();
        is_handle.then_some(segment)
    }
}

/// The values of a cookie that may be handles: an empty one is none.
fn handles<'r>(request: &'r Request, name: &[u8]) -> impl Iterator<Item = &'r [u8]> {
    cookies(request, name).filter(|value| !value.is_empty())
}
