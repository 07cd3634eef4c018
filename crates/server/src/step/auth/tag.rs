//! What credentials are known again by: a keyed hash, so that nobody who reads memory has them.
//!
//! SipHash-2-4 of 128 bits cannot be foreseen without its key, however often it is asked, and takes
//! a fifth of what HMAC-SHA256 does for a name and a password.

use std::hash::{Hash, Hasher};

use siphasher::sip128::SipHasher24;

use crate::by_hash::ByHash;

/// What tags are made with; another one in each source, and after each start.
pub(super) struct TagKey(SipHasher24);

/// Credentials as they are remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct CredentialTag([u64; 2]);

/// Something for each of them.
pub(super) type ByTag<T> = ByHash<CredentialTag, T>;

impl TagKey {
    /// A random one.
    ///
    /// # Errors
    /// There are no random numbers for it.
    pub(super) fn new() -> Result<TagKey, String> {
        let mut key = [0; 16];
        aws_lc_rs::rand::fill(&mut key).map_err(|_| "the system has no random numbers")?;
        Ok(TagKey(SipHasher24::new_with_key(&key)))
    }

    /// The tag of a field, or of what counts in it.
    pub(super) fn tag(&self, value: &[u8]) -> CredentialTag {
        let hash = self.0.hash(value);
        CredentialTag([hash.h1, hash.h2])
    }
}

impl Hash for CredentialTag {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_of_its_value_and_key_alone() {
        let (key, other) = (TagKey::new().unwrap(), TagKey::new().unwrap());
        let tag = key.tag(b"Basic YW5uOnNlc2FtZQ==");
        assert!(tag == key.tag(b"Basic YW5uOnNlc2FtZQ=="));
        assert!(tag != other.tag(b"Basic YW5uOnNlc2FtZQ=="));
        let mut known = ByTag::default();
        for number in 0..1000_u32 {
            known.insert(key.tag(&number.to_le_bytes()), number);
        }
        for number in 0..1000_u32 {
            assert_eq!(known.get(&key.tag(&number.to_le_bytes())), Some(&number));
        }
        assert_eq!(known.get(&tag), None);
    }
}
