//! What a client knows of an answer.

/// What is known of an answer, complete once `Progress::Complete` was returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerSummary {
    /// The status code; 0 while the head is not there.
    pub status: u16,
    /// Bytes of the body, without what frames chunks.
    pub body_bytes: u64,
    /// The connection may be used again.
    pub is_reusable: bool,
    /// One bit for each field of `Asked::fields` that was there with the expected value.
    pub fields_seen: u64,
    /// SHA-256 of the body, where `Asked::is_hashed`.
    pub body_hash: Option<[u8; 32]>,
}
