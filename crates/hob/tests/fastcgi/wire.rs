//! FastCGI as its peers speak it.

use std::io::Read;

/// Its key of a route, and what a program for all paths has behind `to`.
pub(crate) const KEY: &str = "fastcgi";
pub(crate) const KEYS: &str = ", split = \"\"";

/// Reads up to the empty record that ends the variables.
pub(crate) fn read_variables(stream: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).unwrap();
        let len = u16::from_be_bytes([header[4], header[5]]) as usize;
        let mut content = vec![0; len + usize::from(header[6])];
        stream.read_exact(&mut content).unwrap();
        all.extend_from_slice(&header);
        all.extend_from_slice(&content);
        if header[1] == 4 && len == 0 {
            return all;
        }
    }
}

/// A record of the request.
pub(crate) fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0][..], content].concat()
}

pub(crate) fn output(text: &str) -> Vec<u8> {
    record(6, text.as_bytes())
}

pub(crate) fn end() -> Vec<u8> {
    record(3, &[0; 8])
}
