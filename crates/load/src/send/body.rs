//! What is kept of a body: how long it is, and its hash where one is expected.

use aws_lc_rs::digest::{Context, SHA256};

/// A body, partly there.
#[derive(Debug, Default, Clone)]
pub(super) struct Body {
    pub(super) bytes: u64,
    hash: Option<Box<Hash>>,
}

#[derive(Clone)]
struct Hash(Context);

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

impl Body {
    /// A body of which nothing has come, whose hash nobody wants.
    pub(super) const NEW: Body = Body {
        bytes: 0,
        hash: None,
    };

    /// A body that begins.
    pub(super) fn new(is_hashed: bool) -> Body {
        Body {
            bytes: 0,
            hash: is_hashed.then(|| Box::new(Hash(Context::new(&SHA256)))),
        }
    }

    /// Its bytes must be looked at.
    pub(super) fn is_hashed(&self) -> bool {
        self.hash.is_some()
    }

    /// More of it.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.0.update(bytes);
        }
    }

    /// It is whole.
    pub(super) fn finish(&mut self) -> Option<[u8; 32]> {
        let digest = self.hash.take()?.0.finish();
        digest.as_ref().try_into().ok()
    }
}
