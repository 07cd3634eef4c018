//! What a page is told of its request.

use hob_http::{Known, Request};
use hob_page::fault::PageFault;
use hob_page::host::PageEnvironment;
use hob_page::request::PageRequest;

use crate::handle::page::FIELDS_MAX;
use crate::handle::script::variables::{self, ProgramRequest, ScriptLocation, VariableSink};

/// The type of a form's fields.
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// What an environment usually takes, in bytes and in variables.
const ENVIRONMENT_BYTES_USUAL: usize = 2_048;
const VARIABLES_USUAL: usize = 48;

/// Whether the body is a form.
pub(super) fn is_form(request: &Request) -> bool {
    let value = request.head().value(Known::ContentType).unwrap_or_default();
    let name = value.split(|&byte| byte == b';').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(FORM)
}

/// The request with the fields of its query and this form.
pub(super) fn of(
    request: &Request,
    environment: &RequestEnvironment<'_>,
    block: &str,
    form: &[u8],
) -> Result<PageRequest, PageFault> {
    let mut told = PageRequest {
        block: block.to_owned(),
        ..PageRequest::default()
    };
    told.add_fields(request.query().unwrap_or_default(), FIELDS_MAX)?;
    told.add_fields(form, FIELDS_MAX)?;
    if request.head().value(Known::Cookie).is_some() {
        let value = environment.variable(b"HTTP_COOKIE");
        told.cookies.extend(cookies(&value.unwrap_or_default()));
    }
    Ok(told)
}

/// The environment of a run on the serving thread: most pages ask for none of it.
pub(super) struct RequestEnvironment<'a>(ProgramRequest<'a>);

impl<'a> RequestEnvironment<'a> {
    /// `name` is the part of the path that leads to the route, without its final slash; `path_info`
    /// what follows, with its first slash.
    pub(super) fn new(
        request: &'a Request,
        (name, path_info): (&'a [u8], &'a [u8]),
        form_bytes: usize,
    ) -> Self {
        Self(ProgramRequest {
            request,
            body_bytes: Some(form_bytes as u64),
            script: ScriptLocation {
                name,
                path_info,
                ..ScriptLocation::default()
            },
            passes_authorization: false,
            may_tunnel: false,
        })
    }

    /// All of it, for another thread.
    pub(super) fn copy(&self) -> CopiedEnvironment {
        let mut copied = CopiedEnvironment {
            bytes: Vec::with_capacity(ENVIRONMENT_BYTES_USUAL),
            ends: Vec::with_capacity(VARIABLES_USUAL),
        };
        variables::write(&self.0, &mut copied);
        copied
    }
}

impl PageEnvironment for RequestEnvironment<'_> {
    fn variable(&self, name: &[u8]) -> Option<Vec<u8>> {
        variables::one(&self.0, name)
    }
}

/// The environment of a run on another thread: names and values, one after the other.
#[derive(Default)]
pub(super) struct CopiedEnvironment {
    bytes: Vec<u8>,
    /// Where a name ends, and where its value does.
    ends: Vec<(u32, u32)>,
}

impl VariableSink for CopiedEnvironment {
    fn add(&mut self, name: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>) -> bool) {
        let start = self.bytes.len();
        name(&mut self.bytes);
        let name_end = self.bytes.len();
        match value(&mut self.bytes) {
            // A head is far shorter than 4 GiB.
            true => self.ends.push((name_end as u32, self.bytes.len() as u32)),
            false => self.bytes.truncate(start),
        }
    }
}

impl PageEnvironment for CopiedEnvironment {
    fn variable(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut start = 0;
        for &(name_end, end) in &self.ends {
            let (name_end, end) = (name_end as usize, end as usize);
            if self.bytes[start..name_end] == *name {
                return Some(self.bytes[name_end..end].to_vec());
            }
            start = end;
        }
        None
    }
}

/// Names and values of a field `Cookie` (RFC 6265 section 4.2).
fn cookies(value: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> {
    let pairs = value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    pairs.filter_map(|pair| {
        let at = memchr::memchr(b'=', pair)?;
        let name = std::str::from_utf8(&pair[..at]).ok()?;
        let value = &pair[at + 1..];
        let inner = value
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_suffix(b"\""));
        Some((name.to_owned(), inner.unwrap_or(value).to_vec()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_read() {
        let found: Vec<_> = cookies(b"a=1; b=\"x y\";c=;none; d=e=f").collect();
        let wanted = [("a", "1"), ("b", "x y"), ("c", ""), ("d", "e=f")];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        assert_eq!(found, wanted);
    }
}
