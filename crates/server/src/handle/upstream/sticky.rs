//! Clients that stay with their member, by a cookie. Its value says nothing to the client, and
//! nobody but the server can make one: a client cannot choose its member.

use std::sync::OnceLock;

use aws_lc_rs::{hmac, rand};
use hob_http::{Request, Response};
use hob_trace::digits::push_hex;

use crate::handle::upstream::config::StickySettings;
use crate::step::cookie::cookie;

/// The cookies of an upstream.
#[derive(Debug)]
pub(crate) struct StickyMembers {
    cookie: String,
    /// Of each member.
    values: Vec<String>,
}

impl StickyMembers {
    /// For members of these addresses.
    pub(crate) fn new<'a>(
        settings: &StickySettings,
        members: impl Iterator<Item = &'a str>,
    ) -> StickyMembers {
        let secret = match &settings.secret {
            Some(secret) => secret.as_bytes(),
            None => own_secret(),
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let value = |address: &str| {
            let tag = hmac::sign(&key, address.as_bytes());
            let (mut half, mut value) = ([0; 8], Vec::new());
            for part in tag.as_ref().chunks_exact(8).take(2) {
                half.copy_from_slice(part);
                push_hex(u64::from_be_bytes(half), &mut value);
                value.push(b'.');
            }
            value.pop();
            String::from_utf8_lossy(&value).into_owned()
        };
        StickyMembers {
            cookie: settings.cookie.clone(),
            values: members.map(value).collect(),
        }
    }

    /// The member that a client was with before, by its place.
    pub(crate) fn member(&self, request: &Request) -> Option<usize> {
        let sent = cookie(request, self.cookie.as_bytes())?;
        let is_sent = |value: &String| value.as_bytes() == sent;
        self.values.iter().position(is_sent)
    }

    /// Has a client come back to the member that answered it.
    pub(crate) fn keep(&self, index: usize, request: &Request, response: &mut Response) {
        let Some(value) = self.values.get(index) else {
            return;
        };
        let secure = match request.facts().is_secure() {
            true => "; Secure",
            false => "",
        };
        let cookie = &self.cookie;
        let field = format!("{cookie}={value}; Path=/; HttpOnly; SameSite=Lax{secure}");
        response.fields_mut().add(b"Set-Cookie", field.as_bytes());
    }
}

/// One of this process, which nobody knows.
fn own_secret() -> &'static [u8] {
    static SECRET: OnceLock<[u8; 32]> = OnceLock::new();
    SECRET.get_or_init(|| {
        let mut secret = [0; 32];
        // Without randomness cookies can be guessed, and say no more than which member it is.
        let _ = rand::fill(&mut secret);
        secret
    })
}
