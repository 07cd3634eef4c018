//! Hashes of passwords as `htpasswd` files have them: checked, never made.

use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};
use sha_crypt::ShaCrypt;

/// Longest password, in bytes: some hashes take time by its square.
pub const PASSWORD_BYTES_MAX: usize = 1024;

/// How a password was hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashScheme {
    /// `$argon2id$`, `$argon2i$`, `$argon2d$` (RFC 9106).
    Argon2,
    /// `$2y$`, `$2a$`, `$2b$`: of a password the first 72 bytes.
    Bcrypt,
    /// `$5$`, `$6$`.
    ShaCrypt,
    /// `$apr1$`: Apache's, a thousand rounds of MD5.
    Apr1,
    /// `{SHA}`: SHA1 once, without a salt.
    Sha1,
}

impl HashScheme {
    /// Of a hash as it stands in a file; `None` is one that cannot be checked.
    pub fn of(hash: &str) -> Option<HashScheme> {
        let prefixes = [
            ("$argon2", HashScheme::Argon2),
            ("$2y$", HashScheme::Bcrypt),
            ("$2a$", HashScheme::Bcrypt),
            ("$2b$", HashScheme::Bcrypt),
            ("$5$", HashScheme::ShaCrypt),
            ("$6$", HashScheme::ShaCrypt),
            ("$apr1$", HashScheme::Apr1),
            ("{SHA}", HashScheme::Sha1),
        ];
        let mut prefixes = prefixes.into_iter();
        prefixes
            .find(|(prefix, _)| hash.starts_with(prefix))
            .map(|(_, scheme)| scheme)
    }

    /// Whoever has the file finds passwords by trying millions in a second.
    pub fn is_weak(self) -> bool {
        matches!(self, HashScheme::Apr1 | HashScheme::Sha1)
    }
}

/// Whether a password is the one of a hash. Takes as long as the hash wants, tens of milliseconds
/// mostly, so not on a serving thread.
pub fn is_right(password: &[u8], hash: &str) -> bool {
    if password.len() > PASSWORD_BYTES_MAX || password.contains(&0) {
        return false;
    }
    match HashScheme::of(hash) {
        Some(HashScheme::Argon2) => PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
        Some(HashScheme::Bcrypt) => bcrypt::verify(password, hash).unwrap_or(false),
        Some(HashScheme::ShaCrypt) => ShaCrypt::default().verify_password(password, hash).is_ok(),
        Some(HashScheme::Apr1) => {
            let salt = hash.split('$').nth(2).filter(|salt| salt.is_ascii());
            salt.is_some_and(|salt| are_equal(&apr1(password, salt), hash))
        }
        Some(HashScheme::Sha1) => {
            let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, password);
            are_equal(&format!("{{SHA}}{}", BASE64_STANDARD.encode(sum)), hash)
        }
        None => false,
    }
}

fn are_equal(one: &str, two: &str) -> bool {
    verify_slices_are_equal(one.as_bytes(), two.as_bytes()).is_ok()
}

/// Apache's variant of the MD5 crypt of FreeBSD: the hash with its prefix and salt.
fn apr1(password: &[u8], salt: &str) -> String {
    let salt = &salt[..salt.len().min(8)];
    let inner = [password, salt.as_bytes(), password].concat();
    let inner = Md5::digest(inner);
    let mut first = [password, b"$apr1$", salt.as_bytes()].concat();
    for at in 0..password.len() {
        first.push(inner[at % 16]);
    }
    let mut bits = password.len();
    while bits > 0 {
        // The bit's value is what Poul-Henning Kamp's code has by accident, and all since.
        first.push(if bits & 1 == 1 { 0 } else { password[0] });
        bits >>= 1;
    }
    let mut sum: [u8; 16] = Md5::digest(first).into();
    for round in 0..1000 {
        let mut next = Vec::with_capacity(64 + 2 * password.len());
        next.extend_from_slice(if round % 2 == 1 { password } else { &sum });
        if round % 3 != 0 {
            next.extend_from_slice(salt.as_bytes());
        }
        if round % 7 != 0 {
            next.extend_from_slice(password);
        }
        next.extend_from_slice(if round % 2 == 1 { &sum } else { password });
        sum = Md5::digest(next).into();
    }
    let mut text = format!("$apr1${salt}$");
    let triples = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    for [high, middle, low] in triples {
        let value = [sum[high], sum[middle], sum[low]];
        let value = value
            .iter()
            .fold(0u32, |all, byte| all << 8 | u32::from(*byte));
        push_crypt64(value, 4, &mut text);
    }
    push_crypt64(sum[11].into(), 2, &mut text);
    text
}

/// So many digits of a number in the alphabet of `crypt`, the lowest first.
fn push_crypt64(mut value: u32, digits: usize, text: &mut String) {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for _ in 0..digits {
        text.push(char::from(ALPHABET[value as usize % 64]));
        value /= 64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "correct horse battery staple, and some more of it";
    const UNICODE: &str = "Grüße ☂";

    /// As Apache's htpasswd makes them.
    const RIGHT: [(&str, &str); 8] = [
        (
            "b",
            "$2y$05$M4BzimkK8gXCafgVbiaKg.Q/Rffa7Lm1NwKnBcAgB6oKJldjqUmMm",
        ),
        (
            "b",
            "$6$o5LDQIwuUTYhLDrL$4zaXCiyQweg/7i17TE9z5oS./tcOKccb/QUQ3gIvNcAQDsg5pg/d46IGefr8grY4r\
             gdS9k3W5LAoygRJiarR0/",
        ),
        ("b", "$apr1$BudXxRDD$00mURgjaaH3TGpsWuh1OT."),
        ("b", "{SHA}6dcfXufJLW3J6S/9rRe4vUlBj5g="),
        (LONG, "$apr1$Lm0Na3lI$GK9LM8piML9U028vH6//9/"),
        (UNICODE, "$apr1$DTeF3dxI$/5HeSF85aemuyTUnWnVcF1"),
        (
            LONG,
            "$5$d7MpiYPFHPKlQ1CA$FdsFFX14D0zlKifay8CkL/.64wkqZHyHCsrbttFUpU6",
        ),
        (
            UNICODE,
            "$6$rounds=1234$ksUsIB.B07sBVVGX$D.Oo34n45s6icUhMhMwaRpOUDET2F5gYigiLspUvURMj6tFMFv4Z7\
             q0NiA11Yp33L.vIX5xAVGyAoI/9QEewb1",
        ),
    ];

    #[test]
    fn hashes_that_others_made_are_those_of_their_passwords_alone() {
        for (password, hash) in RIGHT {
            assert!(is_right(password.as_bytes(), hash), "{hash}");
            for wrong in ["", "c", "bb", "B", &format!("{password} ")] {
                assert!(!is_right(wrong.as_bytes(), hash), "{wrong:?} {hash}");
            }
        }
    }

    #[test]
    fn what_is_no_hash_is_nobodys() {
        for hash in [
            "",
            "b",
            "$",
            "$2y$",
            "$2y$99$x",
            "$5$",
            "$6$a",
            "$6$rounds=x$a$b",
            "$apr1$",
            "$apr1$a",
            "{SHA}",
            "{SHA}!",
            "$argon2id$",
            "$argon2id$v=19$m=1,t=1,p=1$$",
            "t/Kqk0qhYaiog",
            "{SSHA}x",
        ] {
            for password in ["", "b", "t/Kqk0qhYaiog"] {
                assert!(
                    !is_right(password.as_bytes(), hash),
                    "{password:?} {hash:?}"
                );
            }
        }
    }

    #[test]
    fn passwords_that_no_tool_takes_are_wrong() {
        let hash = RIGHT[0].1;
        assert!(!is_right(b"b\0", hash) && !is_right(b"b\0c", hash));
        let long = "b".repeat(PASSWORD_BYTES_MAX + 1);
        let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, long.as_bytes());
        let hash = format!("{{SHA}}{}", BASE64_STANDARD.encode(sum));
        assert!(!is_right(long.as_bytes(), &hash));
    }
}
