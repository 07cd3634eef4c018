//! Trailers of requests: few bytes of HTTP/2 may stand for long ones, and they are held until their
//! handler has ended, so those of a connection have a budget as heads do.

use bytes::Bytes;

use crate::limits::{HEAD_KEPT_BYTES_MAX, HEADS_BYTES_MAX};
use crate::request::Incoming;

/// Bytes held for a trailer field beside its name and value: two buffers and their places.
const TRAILER_BYTES: usize = 128;

impl Incoming {
    /// Takes the trailers behind the body, if they may be held beside those of other requests of
    /// the connection; false when they may not.
    pub(crate) fn take_trailers(
        &mut self,
        trailers: Vec<(Bytes, Bytes)>,
        others_bytes: usize,
    ) -> bool {
        self.trailers = trailers;
        let own = self.trailer_bytes();
        let has_room = own <= HEAD_KEPT_BYTES_MAX || own + others_bytes <= HEADS_BYTES_MAX;
        if !has_room {
            self.trailers = Vec::new();
        }
        has_room
    }

    /// Bytes held for the trailers.
    pub(crate) fn trailer_bytes(&self) -> usize {
        let held = |(name, value): &(Bytes, Bytes)| name.len() + value.len() + TRAILER_BYTES;
        self.trailers.iter().map(held).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_of_a_connection_hold_no_more_than_its_heads_may() {
        let trailers = |len: usize| vec![(Bytes::from("x"), Bytes::from(vec![b'v'; len]))];
        let mut body = Incoming::default();
        // Short ones are not asked.
        assert!(body.take_trailers(trailers(1000), HEADS_BYTES_MAX));
        let mut held = 0;
        let count = (0..100).filter(|_| {
            let mut body = Incoming::default();
            let has_room = body.take_trailers(trailers(60_000), held);
            held += body.trailer_bytes();
            has_room
        });
        assert_eq!(
            count.count(),
            HEADS_BYTES_MAX / (60_000 + 1 + TRAILER_BYTES)
        );
        assert!(held <= HEADS_BYTES_MAX);
    }
}
