//! Blocks of requests and of trailers.

use hob_trace::Protocol;

use crate::fields_coding::MalformedFieldBlock;
use crate::fields_coding::head::{Sound, TrailerReading, Trailers, Wrong, read_head_by};
use crate::fields_coding::hpack::HpackDecoder;
use crate::head::RequestHead;
use crate::limits::HttpLimits;

/// Reads a request's block into `head`, which is empty.
pub(crate) fn read_head(
    decoder: &mut HpackDecoder,
    block: &[u8],
    head: &mut RequestHead,
    limits: &HttpLimits,
) -> Result<Result<Sound, Wrong>, MalformedFieldBlock> {
    read_head_by(Protocol::Http2, head, limits, |bytes, reading| {
        decoder.decode(block, bytes, |bytes, field| reading.take(bytes, field))
    })
}

/// Reads the block of a request nobody looks at: the tables must not fall apart.
pub(crate) fn pass_over(
    decoder: &mut HpackDecoder,
    block: &[u8],
) -> Result<(), MalformedFieldBlock> {
    decoder.decode(block, &mut Vec::new(), |bytes, _| bytes.clear())
}

/// Reads the block of trailers.
//= rfc9113#8.1
pub(crate) fn read_trailers(
    decoder: &mut HpackDecoder,
    block: &[u8],
    limits: &HttpLimits,
) -> Result<Trailers, MalformedFieldBlock> {
    let mut reading = TrailerReading::new(limits);
    decoder.decode(block, &mut Vec::new(), |bytes, field| {
        reading.take(bytes, field);
    })?;
    Ok(reading.trailers)
}
