//! The slash at the end of a path that its route wants there, or does not.

use hob_config::SlashForm;
use hob_http::{Request, Response};

use super::sites::ServedSite;
use crate::handle::plain;
use crate::route::percent::{UrlPart, encode};

impl ServedSite {
    /// Where a request for a normal path is sent that has come to the route with this index: the
    /// same path with its slash, or without, where the route says so. Nowhere if no route of the
    /// same mind answers there, which could send it back.
    pub fn slash_redirect(&self, index: u32, request: &Request, path: &[u8]) -> Option<Response> {
        let route = self.routes.get(index as usize)?;
        // Folders and files have forms of their own, and what was rewritten nobody has asked for.
        if route.slash == SlashForm::Keep
            || route.handler.files().is_some()
            || request.rewritten_path().is_some()
        {
            return None;
        }
        let other = other_form(route.slash, path)?;
        let (found, _) = self.find(&other, request)?;
        let there = self.routes.get(found as usize)?;
        if there.is_internal || there.slash != route.slash || there.handler.files().is_some() {
            return None;
        }
        let mut location = Vec::new();
        encode(&other, UrlPart::Path, &mut location);
        if let Some(query) = request.head().query() {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        Some(plain::move_for_good(request.head().method(), &location))
    }
}

/// The path that is used in the place of this one, if it is another.
fn other_form(form: SlashForm, path: &[u8]) -> Option<Vec<u8>> {
    let segment = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match form {
        SlashForm::Keep => None,
        SlashForm::Drop if segment.is_empty() && path.len() > 1 => {
            Some(path[..path.len() - 1].to_vec())
        }
        // A name with an ending is that of a file.
        SlashForm::Add if !segment.is_empty() && !segment.contains(&b'.') => {
            Some([path, b"/"].concat())
        }
        SlashForm::Drop | SlashForm::Add => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_form_has_a_slash_more_or_less() {
        let form = |form, path: &str| {
            let other = other_form(form, path.as_bytes());
            other.map(|other| String::from_utf8(other).unwrap())
        };
        for (path, dropped, added) in [
            ("/", None, None),
            ("/a", None, Some("/a/")),
            ("/a/", Some("/a"), None),
            ("/a/b", None, Some("/a/b/")),
            ("/a.b/c/", Some("/a.b/c"), None),
            ("/a.b/c", None, Some("/a.b/c/")),
            ("/a/b.css", None, None),
            ("/a/b.css/", Some("/a/b.css"), None),
        ] {
            assert_eq!(form(SlashForm::Drop, path).as_deref(), dropped, "{path}");
            assert_eq!(form(SlashForm::Add, path).as_deref(), added, "{path}");
            assert_eq!(form(SlashForm::Keep, path), None, "{path}");
        }
    }
}
