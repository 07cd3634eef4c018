//! Requests as HPACK, written once before the run.
//!
//! Fields that all requests have alike go into the server's table with a connection's first
//! request, in one order; every later request names them by their places, a byte each. What
//! differs from URL to URL, the path, is written out each time. A server that wants a smaller
//! table gets all fields written out.

use super::fixed::FIXED;
use crate::request::{RequestFieldBlock, is_path_to_come};
use crate::send::fields::number::{write, write_text};

/// The table a server has before it says otherwise. //= rfc9113#6.5.2
const TABLE_BYTES: usize = 4096;

/// One request in the three ways it may be written.
#[derive(Debug)]
pub(crate) struct Packed {
    /// As the first one of a connection: what repeats goes into the table.
    pub(crate) first: RequestFieldBlock,
    /// As every later one.
    pub(crate) again: RequestFieldBlock,
    /// Without the table.
    pub(crate) plain: RequestFieldBlock,
}

/// All requests of a run.
#[derive(Debug)]
pub(crate) struct H2Requests {
    pub(crate) packed: Vec<Packed>,
    /// Bytes of the table that they take.
    pub(crate) table_bytes: usize,
}

/// A field, name and value.
type Field = (String, String);

impl H2Requests {
    pub(crate) fn new(requests: &[&[Field]]) -> H2Requests {
        let mut kept: Vec<&Field> = Vec::new();
        let mut table_bytes = 0;
        for field in requests.first().copied().unwrap_or_default() {
            let is_alike = requests.iter().all(|fields| fields.contains(field));
            let size = field.0.len() + field.1.len() + 32;
            let has_room = table_bytes + size <= TABLE_BYTES;
            let is_new =
                fixed_place(field).is_none() && !kept.contains(&field) && !is_path_to_come(field);
            if is_alike && has_room && is_new && are_in_order(requests, kept.last(), field) {
                table_bytes += size;
                kept.push(field);
            }
        }
        let packed = requests.iter().map(|fields| Packed {
            first: pack(fields, &kept, PackingMode::First),
            again: pack(fields, &kept, PackingMode::Again),
            plain: pack(fields, &[], PackingMode::Again),
        });
        H2Requests {
            packed: packed.collect(),
            table_bytes,
        }
    }
}

/// Do all requests have a field behind the one that was kept last? Whichever is a connection's
/// first puts them into the table in its own order.
fn are_in_order(requests: &[&[Field]], last: Option<&&Field>, field: &Field) -> bool {
    let Some(last) = last else { return true };
    let place = |fields: &[Field], wanted: &Field| fields.iter().position(|one| one == wanted);
    let mut all = requests.iter();
    all.all(|fields| place(fields, last) < place(fields, field))
}

/// A change of the server's table, which must stand before the next fields. //= rfc7541#6.3
pub(crate) fn resize(table_bytes: usize, out: &mut Vec<u8>) {
    write(table_bytes, 5, 0x20, out);
}

/// Packs a request that leaves the table alone.
pub(super) fn pack_alone(fields: &[Field]) -> Vec<u8> {
    pack(fields, &[], PackingMode::Again).bytes
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PackingMode {
    First,
    Again,
}

/// A path as a field that leaves the server's table alone.
pub(crate) fn write_path(path: &[u8], out: &mut Vec<u8>) {
    let place = FIXED.iter().position(|(name, _)| *name == ":path");
    write(place.map_or(0, |at| at + 1), 4, 0, out);
    write_text(path, 7, 0, out);
}

fn pack(fields: &[Field], kept: &[&Field], way: PackingMode) -> RequestFieldBlock {
    let mut out = Vec::new();
    let mut path_at = 0;
    // Whichever request is a connection's first, what it puts into the table is in the same order.
    debug_assert!(
        kept.iter()
            .is_sorted_by_key(|kept| fields.iter().position(|field| field == *kept))
    );
    let mut put = 0;
    for field in fields {
        if is_path_to_come(field) {
            path_at = out.len();
            continue;
        }
        if let Some(place) = fixed_place(field) {
            write(place, 7, 0x80, &mut out);
            continue;
        }
        match kept.iter().position(|kept| *kept == field) {
            // The newest entry has the first place behind the fixed ones.
            Some(at) if way == PackingMode::Again => {
                write(FIXED.len() + kept.len() - at, 7, 0x80, &mut out);
            }
            // The same field twice: it is in the table by now.
            Some(at) if at < put => write(FIXED.len() + put - at, 7, 0x80, &mut out),
            Some(_) => {
                put += 1;
                literal(field, 6, 0x40, &mut out);
            }
            None => literal(field, 4, 0, &mut out),
        }
    }
    RequestFieldBlock {
        bytes: out,
        path_at,
    }
}

fn literal((name, value): &Field, bits: u32, first: u8, out: &mut Vec<u8>) {
    let named = FIXED.iter().position(|(fixed, _)| fixed == name);
    write(named.map_or(0, |at| at + 1), bits, first, out);
    if named.is_none() {
        write_text(name.as_bytes(), 7, 0, out);
    }
    write_text(value.as_bytes(), 7, 0, out);
}

fn fixed_place((name, value): &Field) -> Option<usize> {
    let is_it =
        |fixed: &(&str, &str)| !value.is_empty() && *fixed == (name.as_str(), value.as_str());
    FIXED.iter().position(is_it).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(path: &str) -> Vec<Field> {
        [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "www.example.com"),
            (":path", path),
            ("cache-control", "no-cache"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    //= rfc7541#C.4.1 and C.4.2
    #[test]
    fn first_request_fills_the_table_and_the_next_ones_are_a_byte_for_a_field() {
        let root = fields("/");
        let all = H2Requests::new(&[&root]);
        let first = [
            &[0x82, 0x86, 0x41, 0x8c][..],
            &[
                0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff, 0x84,
            ],
            &[0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf],
        ]
        .concat();
        assert_eq!(all.packed[0].first.bytes, first);
        assert_eq!(all.packed[0].again.bytes, [0x82, 0x86, 0xbf, 0x84, 0xbe]);
        assert_eq!(all.table_bytes, 57 + 53);
    }

    #[test]
    fn paths_that_differ_are_written_out_and_leave_the_table_alone() {
        let (a, b) = (fields("/a"), fields("/b"));
        let all = H2Requests::new(&[&a, &b]);
        assert_eq!(
            all.packed[0].again.bytes[..3],
            all.packed[1].again.bytes[..3]
        );
        assert_eq!(
            all.packed[0].again.bytes[3..],
            [0x04, 0x02, b'/', b'a', 0xbe][..]
        );
        assert_eq!(all.table_bytes, 57 + 53);
        assert!(!all.packed[0].plain.bytes.contains(&0xbe));
    }

    #[test]
    fn fields_in_another_order_do_not_go_into_the_table() {
        let more = |order: [&str; 2]| {
            let own = order.map(|name| (name.to_owned(), "v".to_owned()));
            [fields("/"), own.to_vec()].concat()
        };
        let (ab, ba) = (more(["x-a", "x-b"]), more(["x-b", "x-a"]));
        let all = H2Requests::new(&[&ab, &ba]);
        // Authority, Cache-Control and the one that is behind them in both.
        assert_eq!(all.table_bytes, 57 + 53 + 36);
    }

    #[test]
    fn path_that_comes_later_is_put_where_it_belongs() {
        let (root, later) = (fields("/a?b"), fields(""));
        let (whole, hole) = (H2Requests::new(&[&root]), H2Requests::new(&[&later]));
        let mut path = Vec::new();
        write_path(b"/a?b", &mut path);
        let put = |block: &RequestFieldBlock| {
            let mut out = Vec::new();
            block.write_to(&path, &mut out);
            out
        };
        assert_eq!(
            put(&hole.packed[0].plain),
            whole.packed[0].plain.bytes[..].to_vec()
        );
        assert_eq!(hole.table_bytes, 57 + 53);
        assert!(put(&hole.packed[0].again).ends_with(&[path.as_slice(), &[0xbe]].concat()));
    }
}
