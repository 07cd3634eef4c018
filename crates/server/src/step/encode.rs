//! Compressing an answer while it is made.
//!
//! The encoder is flushed whenever the source has nothing more at the moment, so that whatever a
//! program has written can be read at the other end although it writes no more: events of a stream
//! are not delayed. It costs a few bytes each time.

use std::io::{self, Write};
use std::task::{Context, Poll};

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use hob_http::{Body, BodyError, BodyStream, Chunk, Fields};
use hob_trace::Fault;
use zstd::zstd_safe::CParameter;

use hob_config::Coding;

/// An encoder that can be asked for all it has been given so far.
pub struct Encoder(StreamCompressor);

enum StreamCompressor {
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Encoder {
    /// For one answer. It takes 0.3 to 1.5 MiB of memory as long as it lives.
    pub fn new(coding: Coding) -> io::Result<Encoder> {
        Ok(Encoder(match coding {
            Coding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: BROTLI_LEVEL,
                    lgwin: WINDOW_LOG as i32,
                    ..BrotliEncoderParams::default()
                };
                let writer = CompressorWriter::with_params(Vec::new(), BLOCK_BYTES, &params);
                StreamCompressor::Brotli(Box::new(writer))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
                StreamCompressor::Zstd(Box::new(encoder))
            }
            Coding::Gzip => {
                let level = Compression::new(GZIP_LEVEL);
                let encoder = GzBuilder::new().mtime(0).write(Vec::new(), level);
                StreamCompressor::Gzip(Box::new(encoder))
            }
        }))
    }

    /// All of a body that is in memory. Unlike the cache's, the result is for one client: it is
    /// made with little effort.
    pub fn whole(input: &[u8], coding: Coding) -> io::Result<Vec<u8>> {
        let mut encoder = Encoder::new(coding)?;
        encoder.push(input)?;
        encoder.finish()
    }

    /// Takes bytes in.
    pub fn push(&mut self, input: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            StreamCompressor::Brotli(encoder) => encoder.write_all(input),
            StreamCompressor::Zstd(encoder) => encoder.write_all(input),
            StreamCompressor::Gzip(encoder) => encoder.write_all(input),
        }
    }

    /// Has everything that was taken in come out.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            StreamCompressor::Brotli(encoder) => encoder.flush(),
            StreamCompressor::Zstd(encoder) => encoder.flush(),
            StreamCompressor::Gzip(encoder) => encoder.flush(),
        }
    }

    /// What has come out since the last time.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(match &mut self.0 {
            StreamCompressor::Brotli(encoder) => encoder.get_mut(),
            StreamCompressor::Zstd(encoder) => encoder.get_mut(),
            StreamCompressor::Gzip(encoder) => encoder.get_mut(),
        })
    }

    /// The last of it.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            StreamCompressor::Brotli(encoder) => Ok(encoder.into_inner()),
            StreamCompressor::Zstd(encoder) => encoder.finish(),
            StreamCompressor::Gzip(encoder) => encoder.finish(),
        }
    }
}

/// When the encoder is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// When the source has nothing more at the moment.
    WhenIdle,
    /// After each piece.
    EachPiece,
}

/// A body in a coding.
pub struct Encoded {
    source: Box<dyn BodyStream>,
    /// None once it has finished.
    encoder: Option<Encoder>,
    flush: Flush,
    /// Bytes were taken in that may not have come out.
    is_dirty: bool,
    /// What has come out and is not taken yet.
    out: Bytes,
    /// What the source broke with; what came before it goes first.
    broken: Option<BodyError>,
}

impl Encoded {
    /// The body's bytes in this coding.
    pub fn new(body: Body, coding: Coding, flush: Flush) -> io::Result<Encoded> {
        Ok(Encoded {
            source: body.into_stream(),
            encoder: Some(Encoder::new(coding)?),
            flush,
            is_dirty: false,
            out: Bytes::new(),
            broken: None,
        })
    }

    /// Gives the source's bytes to the encoder until something has come out, or it has finished.
    fn work(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, BodyError> {
        let mut taken_bytes = 0;
        while let Some(mut encoder) = self.encoder.take() {
            match self.source.poll_chunk(cx, BLOCK_BYTES) {
                Poll::Ready(Some(Ok(chunk))) => {
                    let Chunk::Bytes(bytes) = chunk else {
                        return Err(ENCODER_BROKE);
                    };
                    encoder.push(&bytes).map_err(|_| ENCODER_BROKE)?;
                    self.is_dirty = true;
                    taken_bytes += bytes.len();
                    // Not to hold the thread for long, what there is goes out now and then.
                    if self.flush == Flush::EachPiece || taken_bytes >= BYTES_PER_TURN {
                        self.flush(&mut encoder)?;
                    }
                    self.out = encoder.take().into();
                    self.encoder = Some(encoder);
                    if !self.out.is_empty() {
                        return Ok(Poll::Ready(()));
                    }
                }
                Poll::Ready(None) => {
                    self.out = encoder.finish().map_err(|_| ENCODER_BROKE)?.into();
                    return Ok(Poll::Ready(()));
                }
                Poll::Ready(Some(Err(error))) => {
                    self.flush(&mut encoder)?;
                    self.out = encoder.take().into();
                    self.broken = Some(error);
                }
                Poll::Pending => {
                    if self.is_dirty {
                        self.flush(&mut encoder)?;
                    }
                    self.out = encoder.take().into();
                    self.encoder = Some(encoder);
                    let is_empty = self.out.is_empty();
                    return Ok(if is_empty {
                        Poll::Pending
                    } else {
                        Poll::Ready(())
                    });
                }
            }
        }
        Ok(Poll::Ready(()))
    }

    fn flush(&mut self, encoder: &mut Encoder) -> Result<(), BodyError> {
        self.is_dirty = false;
        encoder.flush().map_err(|_| ENCODER_BROKE)
    }
}

impl BodyStream for Encoded {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        if self.out.is_empty() {
            match self.work(cx) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(())) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        if self.out.is_empty() {
            return Poll::Ready(self.broken.take().map(Err));
        }
        let piece = self.out.split_to(max.min(self.out.len()));
        Poll::Ready(Some(Ok(Chunk::Bytes(piece))))
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.source.trailers()
    }
}

const ENCODER_BROKE: BodyError =
    BodyError::Source(Fault::Server, "the answer could not be compressed");

/// Bytes taken from the source at a time.
const BLOCK_BYTES: usize = 16 * 1024;
/// Bytes compressed in one go; at the slowest that takes two milliseconds.
const BYTES_PER_TURN: usize = 64 * 1024;
/// A quarter of a MiB: many answers may be under way at once, and their encoders each hold several
/// times their window.
const WINDOW_LOG: u32 = 18;
const BROTLI_LEVEL: i32 = 4;
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 5;

#[cfg(test)]
mod tests;
