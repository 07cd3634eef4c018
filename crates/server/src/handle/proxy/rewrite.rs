//! Where answers lead: what names the other server is made to name this one.

use hob_http::Fields;

/// What the other side and this one call the same place.
pub(super) struct SamePlaces<'a> {
    /// Names and ports that mean the other server.
    pub(super) authorities: [&'a [u8]; 2],
    /// The host that the client asked for.
    pub(super) host: &'a [u8],
    /// The folder there, from a slash to a slash, and the one here; none where paths are the same.
    pub(super) folders: Option<(&'a [u8], &'a [u8])>,
}

impl SamePlaces<'_> {
    /// Has `Location` and `Content-Location` lead here.
    pub(super) fn lead_here(&self, fields: &mut Fields) {
        for name in [&b"Location"[..], b"Content-Location"] {
            let led = fields.value(name).and_then(|value| self.url(value));
            if let Some(url) = led {
                fields.set(name, &url);
            }
        }
    }

    /// Has cookies hold for the folder here, and for this host.
    pub(super) fn keep_cookies(&self, fields: &mut Fields) {
        let is_cookie = |name: &[u8]| name.eq_ignore_ascii_case(b"Set-Cookie");
        let cookies = fields.iter().filter(|(name, _)| is_cookie(name));
        let cookies: Vec<_> = cookies.map(|(_, value)| self.cookie(value)).collect();
        if !cookies.is_empty() {
            fields.remove(b"Set-Cookie");
            for cookie in cookies {
                fields.add(b"Set-Cookie", &cookie);
            }
        }
    }

    /// The same URL here; `None` where it leads elsewhere, or stays as it is.
    fn url(&self, url: &[u8]) -> Option<Vec<u8>> {
        let Some((scheme, rest)) = split_scheme(url) else {
            let is_path = url.starts_with(b"/") && !url.starts_with(b"//");
            return is_path.then(|| self.path(url)).flatten();
        };
        let is_end = |byte: &u8| b"/?#".contains(byte);
        let end = rest.iter().position(is_end).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let path = self.path(rest);
        if authority.eq_ignore_ascii_case(self.host) {
            return Some([scheme, authority, &path?].concat());
        }
        let usual: &[u8] = match scheme.len() {
            7 => b":80",
            _ => b":443",
        };
        let bare = authority.strip_suffix(usual).unwrap_or(authority);
        let mut own = self.authorities.iter().filter(|own| !own.is_empty());
        let is_own = own.any(|own| {
            let own = own.strip_suffix(usual).unwrap_or(own);
            own.eq_ignore_ascii_case(bare)
        });
        is_own.then(|| {
            let path = path.unwrap_or_else(|| rest.to_vec());
            match path.first() {
                Some(b'/') => path,
                _ => [b"/", &path[..]].concat(),
            }
        })
    }

    /// A path, and what follows it, in the folder here.
    fn path(&self, path: &[u8]) -> Option<Vec<u8>> {
        let (there, here) = self.folders?;
        if is_below(path, here) || !is_below(path, there) {
            return None;
        }
        // Of the folder itself the slash may lack.
        let rest = &path[there.len() - 1..];
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        Some([here, rest].concat())
    }

    fn cookie(&self, cookie: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(cookie.len() + 16);
        for (at, part) in cookie.split(|byte| *byte == b';').enumerate() {
            let equals = part.iter().position(|byte| *byte == b'=');
            let (name, value) = match equals {
                Some(equals) => (part[..equals].trim_ascii(), part[equals + 1..].trim_ascii()),
                None => (part.trim_ascii(), &b""[..]),
            };
            // The first is the cookie itself.
            if at > 0 && name.eq_ignore_ascii_case(b"Domain") && self.is_own_domain(value) {
                continue;
            }
            if at > 0 {
                out.push(b';');
            }
            match self.path(value) {
                Some(path) if at > 0 && name.eq_ignore_ascii_case(b"Path") => {
                    out.extend_from_slice(b" Path=");
                    out.extend_from_slice(&path);
                }
                _ => out.extend_from_slice(part),
            }
        }
        out
    }

    fn is_own_domain(&self, domain: &[u8]) -> bool {
        let domain = domain.strip_prefix(b".").unwrap_or(domain);
        let mut names = self.authorities.iter().map(|own| without_port(own));
        names.any(|name| !name.is_empty() && name.eq_ignore_ascii_case(domain))
    }
}

/// `http://` or `https://`, and what follows.
fn split_scheme(url: &[u8]) -> Option<(&[u8], &[u8])> {
    [7, 8].into_iter().find_map(|len| {
        let (scheme, rest) = url.split_at_checked(len)?;
        let known: &[u8] = if len == 7 { b"http://" } else { b"https://" };
        scheme.eq_ignore_ascii_case(known).then_some((scheme, rest))
    })
}

/// The folder itself, with or without its slash, or something in it.
fn is_below(path: &[u8], folder: &[u8]) -> bool {
    let bare = folder.strip_suffix(b"/").unwrap_or(folder);
    path.starts_with(folder)
        || path.strip_prefix(bare).is_some_and(|rest| {
            let next = rest.first();
            !bare.is_empty() && next.is_none_or(|byte| b"?#".contains(byte))
        })
}

fn without_port(authority: &[u8]) -> &[u8] {
    let end = authority.iter().rposition(|byte| *byte == b':');
    match end {
        Some(end) if !authority[end..].contains(&b']') => &authority[..end],
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: SamePlaces<'_> = SamePlaces {
        authorities: [b"10.0.0.1:3000", b"app.internal"],
        host: b"www.example.com",
        folders: Some((b"/base/", b"/app/")),
    };

    fn led(places: &SamePlaces<'_>, url: &str) -> String {
        let mut fields = Fields::new();
        fields.add(b"Location", url.as_bytes());
        places.lead_here(&mut fields);
        String::from_utf8(fields.value(b"Location").unwrap().to_vec()).unwrap()
    }

    #[test]
    fn what_leads_to_the_other_server_leads_here() {
        for (there, here) in [
            ("http://10.0.0.1:3000/base/a?b#c", "/app/a?b#c"),
            ("HTTP://App.Internal:80/base/", "/app/"),
            ("https://app.internal:443/base?x", "/app/?x"),
            ("http://app.internal/elsewhere", "/elsewhere"),
            ("http://app.internal", "/"),
            ("http://app.internal?q", "/?q"),
            ("/base/login", "/app/login"),
            ("/base", "/app/"),
            (
                "https://www.example.com/base/x",
                "https://www.example.com/app/x",
            ),
        ] {
            assert_eq!(led(&PLACES, there), here, "{there}");
        }
    }

    #[test]
    fn what_leads_elsewhere_or_here_already_stays() {
        for url in [
            "https://other.example/base/x",
            "https://www.example.com/app/x",
            "https://www.example.com/elsewhere",
            "/app/x",
            "/basement",
            "//app.internal/base/",
            "relative/base/",
            "?q",
            "",
            "http://10.0.0.1:3001/base/",
            "http:/10.0.0.1:3000/base/",
        ] {
            assert_eq!(led(&PLACES, url), url);
        }
        let whole = SamePlaces {
            folders: Some((b"/", b"/app/")),
            ..PLACES
        };
        assert_eq!(led(&whole, "/login"), "/app/login");
        assert_eq!(led(&whole, "/app/login"), "/app/login");
        let same = SamePlaces {
            folders: None,
            ..PLACES
        };
        assert_eq!(led(&same, "/base/x"), "/base/x");
        assert_eq!(led(&same, "http://app.internal/base/x"), "/base/x");
    }

    #[test]
    fn cookies_hold_for_the_folder_here_and_not_for_the_other_host() {
        let mut fields = Fields::new();
        for cookie in [
            "a=Path=/base/; Path=/base/; HttpOnly",
            "b=1; Domain=app.internal; Secure",
            "c=2; domain=.10.0.0.1;path=/base",
            "d=3; Domain=example.com; Path=/",
            "e",
        ] {
            fields.add(b"Set-Cookie", cookie.as_bytes());
        }
        PLACES.keep_cookies(&mut fields);
        let values = fields.iter().map(|(_, value)| value.to_vec());
        let values: Vec<_> = values.map(|one| String::from_utf8(one).unwrap()).collect();
        assert_eq!(
            values,
            [
                "a=Path=/base/; Path=/app/; HttpOnly",
                "b=1; Secure",
                "c=2; Path=/app/",
                "d=3; Domain=example.com; Path=/",
                "e",
            ]
        );
    }
}
