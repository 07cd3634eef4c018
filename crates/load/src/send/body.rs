//! What is kept of a body: how long it is, its hash where one is expected, and where somebody reads
//! the answer, what of it is wanted.

use aws_lc_rs::digest::{Context, SHA256};

use super::kept::Kept;

/// A body, partly there.
#[derive(Debug, Default, Clone)]
pub(super) struct PartialAnswerBody {
    pub(super) bytes: u64,
    hash: Option<Box<Hash>>,
    pub(super) kept: Option<Box<Kept>>,
}

#[derive(Clone)]
struct Hash(Context);

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

impl PartialAnswerBody {
    /// A body of which nothing has come, whose hash nobody wants.
    pub(super) const NEW: PartialAnswerBody = PartialAnswerBody {
        bytes: 0,
        hash: None,
        kept: None,
    };

    /// A body that begins.
    pub(super) fn new(is_hashed: bool) -> PartialAnswerBody {
        PartialAnswerBody {
            bytes: 0,
            hash: is_hashed.then(|| Box::new(Hash(Context::new(&SHA256)))),
            kept: None,
        }
    }

    /// Its bytes must be looked at.
    pub(super) fn is_looked_at(&self) -> bool {
        let is_read = self.kept.as_ref().is_some_and(|kept| kept.wants_body());
        self.hash.is_some() || is_read
    }

    /// More of it.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.0.update(bytes);
        }
        if let Some(kept) = &mut self.kept {
            kept.data(bytes);
        }
    }

    /// It is whole.
    pub(super) fn finish(&mut self) -> Option<[u8; 32]> {
        let digest = self.hash.take()?.0.finish();
        digest.as_ref().try_into().ok()
    }
}
