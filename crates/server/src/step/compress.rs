//! Compressing a whole buffer, for the file cache.

use std::io::{self, Write};

use brotli::enc::BrotliEncoderParams;
use flate2::{Compression, GzBuilder};
use zstd::zstd_safe::CParameter;

use hob_config::Coding;

/// Level used for copies that are made while a request waits: most of the gain for little of the
/// time.
pub const fn default_level(coding: Coding) -> u32 {
    match coding {
        Coding::Brotli => 5,
        Coding::Zstd => 6,
        Coding::Gzip => 6,
    }
}

/// Highest level of a coding; higher ones count as this.
pub const fn highest_level(coding: Coding) -> u32 {
    match coding {
        Coding::Brotli => 11,
        Coding::Zstd => 19,
        Coding::Gzip => 9,
    }
}

/// Compresses `input`; `None` when that would not make it smaller.
///
/// The same input gives the same output. This keeps a core busy for as long as the input is large,
/// so it is not for serving threads.
pub fn compress(input: &[u8], coding: Coding, level: u32) -> io::Result<Option<Vec<u8>>> {
    let level = level.min(highest_level(coding));
    let output = match coding {
        Coding::Brotli => brotli(input, level)?,
        Coding::Zstd => zstd(input, level)?,
        Coding::Gzip => gzip(input, level)?,
    };
    Ok((output.len() < input.len()).then_some(output))
}

//= rfc7932#9
fn brotli(mut input: &[u8], level: u32) -> io::Result<Vec<u8>> {
    let params = BrotliEncoderParams {
        quality: level as i32,
        lgwin: BROTLI_WINDOW_LOG,
        size_hint: input.len(),
        ..BrotliEncoderParams::default()
    };
    let mut output = Vec::with_capacity(input.len() / 3);
    brotli::BrotliCompress(&mut input, &mut output, &params)?;
    Ok(output)
}

//= rfc9659#3
fn zstd(input: &[u8], level: u32) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(level as i32)?;
    // The level chooses the window by the input's size; a client need not take more than 8 MiB.
    if input.len() > 1 << ZSTD_WINDOW_LOG_MAX {
        compressor.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_LOG_MAX))?;
    }
    compressor.compress(input)
}

//= rfc1952#2.3
fn gzip(input: &[u8], level: u32) -> io::Result<Vec<u8>> {
    let output = Vec::with_capacity(input.len() / 3);
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(output, Compression::new(level));
    encoder.write_all(input)?;
    encoder.finish()
}

const BROTLI_WINDOW_LOG: i32 = 22;
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn decompress(data: &[u8], coding: Coding) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            Coding::Brotli => brotli::Decompressor::new(data, 4096)
                .read_to_end(&mut out)
                .unwrap(),
            Coding::Gzip => flate2::read::GzDecoder::new(data)
                .read_to_end(&mut out)
                .unwrap(),
            Coding::Zstd => zstd::stream::copy_decode(data, &mut out)
                .map(|()| 0)
                .unwrap(),
        };
        out
    }

    #[test]
    fn what_was_compressed_comes_back() {
        let input = b"the kettle is warm, ".repeat(200);
        for coding in Coding::ALL {
            for level in [0, 1, default_level(coding), u32::MAX] {
                let Some(output) = compress(&input, coding, level).unwrap() else {
                    assert_eq!(
                        (coding, level),
                        (Coding::Gzip, 0),
                        "level 0 of gzip stores only"
                    );
                    continue;
                };
                assert!(output.len() < input.len() / 10, "{coding:?} {level}");
                assert_eq!(decompress(&output, coding), input, "{coding:?} {level}");
                assert_eq!(compress(&input, coding, level).unwrap(), Some(output));
            }
        }
    }

    #[test]
    fn what_would_not_shrink_is_left() {
        for coding in Coding::ALL {
            assert_eq!(compress(b"", coding, 5).unwrap(), None);
            assert_eq!(compress(b"abc", coding, 5).unwrap(), None);
        }
    }
}
