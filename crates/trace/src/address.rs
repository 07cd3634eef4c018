//! Addresses as text, without the machinery of `core::fmt`: they are part of every request.

use std::io::Write as _;
use std::net::IpAddr;

use crate::calendar::two_digits;

/// Appends an address as `Display` writes it.
pub fn push_ip(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            for octet in address.octets() {
                push_octet(octet, out);
                out.push(b'.');
            }
            out.pop();
        }
        // Writing to a Vec cannot go wrong.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
}

/// Appends a number of an IPv4 address.
fn push_octet(octet: u8, out: &mut Vec<u8>) {
    let [tens, ones] = two_digits(u32::from(octet % 100));
    match octet {
        0..10 => out.push(ones),
        10..100 => out.extend_from_slice(&[tens, ones]),
        100.. => out.extend_from_slice(&[b'0' + octet / 100, tens, ones]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_display_writes_them() {
        for text in [
            "0.0.0.0",
            "127.0.0.1",
            "255.10.99.100",
            "::1",
            "2001:db8::ff00:42:8329",
        ] {
            let mut out = Vec::new();
            push_ip(text.parse().unwrap(), &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }

    #[test]
    fn every_octet_is_written_as_the_standard_library_does() {
        for octet in 0..=u8::MAX {
            let mut out = Vec::new();
            push_octet(octet, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), octet.to_string());
        }
    }
}
