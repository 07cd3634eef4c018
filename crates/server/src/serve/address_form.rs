//! The one form in which a site's addresses are used, of several that mean the same: with or
//! without `www.`, in lower case. Others are sent to it.

use hob_config::WwwForm;
use hob_http::Request;

use crate::handle::config;
use crate::route::host::{HOST_BYTES_MAX, normalise_host};
use crate::route::percent::{UrlPart, encode};
use crate::route::template::without_port;

/// What a site wants of its addresses.
#[derive(Debug)]
pub struct AddressForm {
    /// Names that are not used, each with the one that is.
    hosts: Vec<(String, String)>,
    has_lower_paths: bool,
}

impl AddressForm {
    /// What a site's config says; `None` where each address may be used.
    pub(crate) fn of(site: &config::Site) -> Option<AddressForm> {
        let bare = { site.names.iter() }.filter_map(|name| name.strip_prefix("www."));
        let both = bare.filter(|bare| site.names.iter().any(|name| name == bare));
        let hosts = both.filter_map(|bare| {
            let (bare, full) = (bare.to_owned(), format!("www.{bare}"));
            match site.www {
                WwwForm::Keep => None,
                WwwForm::Drop => Some((full, bare)),
                WwwForm::Add => Some((bare, full)),
            }
        });
        let form = AddressForm {
            hosts: hosts.collect(),
            has_lower_paths: site.lower_paths,
        };
        (!form.hosts.is_empty() || form.has_lower_paths).then_some(form)
    }

    /// The address that is used in the place of the request's, with this normal path; `None` where
    /// it is that already.
    pub fn location(&self, request: &Request, path: &[u8]) -> Option<Vec<u8>> {
        let head = request.head();
        let mut room = [0; HOST_BYTES_MAX];
        let own = normalise_host(head.host(), &mut room);
        let mut hosts = self.hosts.iter();
        let host = hosts.find(|(name, _)| own == Some(name.as_bytes()));
        let is_lower = !self.has_lower_paths || !path.iter().any(u8::is_ascii_uppercase);
        if host.is_none() && is_lower {
            return None;
        }
        let mut location = Vec::new();
        if let Some((_, host)) = host {
            let scheme: &[u8] = match request.facts().is_secure() {
                true => b"https://",
                false => b"http://",
            };
            location.extend_from_slice(scheme);
            location.extend_from_slice(host.as_bytes());
            let port = &head.host()[without_port(head.host()).len()..];
            location.extend_from_slice(port);
        }
        match is_lower {
            true => encode(path, UrlPart::Path, &mut location),
            false => encode(&path.to_ascii_lowercase(), UrlPart::Path, &mut location),
        }
        if let Some(query) = head.query() {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        Some(location)
    }
}
