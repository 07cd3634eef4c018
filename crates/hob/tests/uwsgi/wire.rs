//! The protocol of uWSGI as its peers speak it.

use std::io::Read;

/// Its key of a route, and what a program for all paths has behind `to`.
pub(crate) const KEY: &str = "uwsgi";
pub(crate) const KEYS: &str = ", modifier1 = 7, modifier2 = 1";

/// Reads the variables.
pub(crate) fn read_variables(stream: &mut impl Read) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).unwrap();
    assert_eq!((header[0], header[3]), (7, 1));
    let mut variables = vec![0; u16::from_le_bytes([header[1], header[2]]).into()];
    stream.read_exact(&mut variables).unwrap();
    variables
}

/// The variables of a request, in their order.
pub(crate) fn variables(mut bytes: &[u8]) -> Vec<(String, String)> {
    let mut part = || {
        let (len, rest) = bytes.split_at_checked(2)?;
        let len = u16::from_le_bytes([len[0], len[1]]).into();
        let (part, rest) = rest.split_at(len);
        bytes = rest;
        Some(String::from_utf8(part.to_vec()).unwrap())
    };
    std::iter::from_fn(|| Some((part()?, part()?))).collect()
}

pub(crate) fn output(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// The connection's end is that of the answer.
pub(crate) fn end() -> Vec<u8> {
    Vec::new()
}
