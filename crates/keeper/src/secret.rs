//! Secrets, such as those of the admin pages: made of the kernel's randomness, compared without
//! telling how far they agree.

use std::fmt::Write as _;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// A new secret, in hex digits; `None` when the kernel gives no randomness.
pub fn new() -> Option<String> {
    let mut bytes = [0u8; SECRET_BYTES];
    let got = getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    if got != SECRET_BYTES {
        return None;
    }
    let mut text = String::with_capacity(2 * SECRET_BYTES);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

/// True when two secrets are the same. How long it takes depends on their lengths alone.
pub fn is_same(one: impl AsRef<[u8]>, other: impl AsRef<[u8]>) -> bool {
    verify_slices_are_equal(one.as_ref(), other.as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_compared_whole() {
        let (one, other) = (new().unwrap(), new().unwrap());
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
        assert!(is_same(&one, one.clone()));
        for wrong in [&one[..63], "", &other, &format!("{one}0")] {
            assert!(!is_same(&one, wrong), "{wrong}");
        }
    }
}
