//! SCGI as its peers speak it.

use std::io::Read;

/// Its key of a route, and what a program for all paths has behind `to`.
pub(crate) const KEY: &str = "scgi";
pub(crate) const KEYS: &str = "";

/// Reads the netstring with the variables.
pub(crate) fn read_variables(stream: &mut impl Read) -> Vec<u8> {
    let mut length = Vec::new();
    while length.last() != Some(&b':') {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        length.extend_from_slice(&byte);
    }
    let digits = String::from_utf8(length[..length.len() - 1].to_vec()).unwrap();
    let mut variables = vec![0; digits.parse::<usize>().unwrap() + 1];
    stream.read_exact(&mut variables).unwrap();
    assert_eq!(variables.pop(), Some(b','));
    variables
}

/// The variables of a request, in their order.
pub(crate) fn variables(bytes: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let parts: Vec<_> = text.strip_suffix('\0').unwrap().split('\0').collect();
    let pairs = parts.chunks(2);
    pairs
        .map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
        .collect()
}

pub(crate) fn output(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// The connection's end is that of the answer.
pub(crate) fn end() -> Vec<u8> {
    Vec::new()
}
