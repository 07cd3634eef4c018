//! Passwords: Argon2 hashes, made and checked. Both take tens of milliseconds and megabytes on
//! purpose, so neither is done on a serving thread.

use std::sync::OnceLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

/// Longest password, in bytes.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;

/// The hash of a password, as the config has it.
///
/// # Errors
/// A password that is empty or too long, in words.
pub fn hash(password: &str) -> Result<String, String> {
    if password.is_empty() {
        return Err("an empty password is none".to_owned());
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(format!("a password has at most {PASSWORD_BYTES_MAX} bytes"));
    }
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(|error| error.to_string())
}

/// True when the password is the one of this hash. Without a hash it takes as long and is false.
pub(super) fn is_right(password: &str, hash: Option<&str>) -> bool {
    static NOBODYS: OnceLock<String> = OnceLock::new();
    let nobodys = || NOBODYS.get_or_init(|| self::hash("nobody").unwrap_or_default());
    let known = hash.unwrap_or_else(|| nobodys());
    let Ok(parsed) = PasswordHash::new(known) else {
        return false;
    };
    let is_right = Argon2::default()
        .verify_password(password.as_bytes(), &parsed)
        .is_ok();
    is_right && hash.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_fits_its_hash_and_no_other() {
        let hash = hash("kettle").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$"), "{hash}");
        assert!(is_right("kettle", Some(&hash)));
        assert!(!is_right("kettles", Some(&hash)));
        assert!(!is_right("nobody", None));
        assert!(!is_right("kettle", Some("$argon2id$broken")));
    }

    #[test]
    fn no_password_and_one_that_is_too_long_are_refused() {
        assert!(hash("").is_err());
        assert!(hash(&"x".repeat(PASSWORD_BYTES_MAX + 1)).is_err());
    }
}
