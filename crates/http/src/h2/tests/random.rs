//! Properties, with numbers from a generator whose seeds are fixed.

use super::super::conn::Http2Event;
use super::super::frame as frames;
use super::{Server, data, fields, frame, get, post, request, reset, settings, window};
use crate::fields_coding::hpack::{Encoder, HpackDecoder};
use crate::fields_coding::huffman;
use crate::head::Known;

/// A small generator (xorshift): the same numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    fn text(&mut self, len_max: usize) -> Vec<u8> {
        let len = self.below(len_max + 1);
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

#[test]
fn strings_come_back_from_the_huffman_code() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..5_000 {
        let text = random.text(60);
        let mut coded = Vec::new();
        huffman::encode(&text, &mut coded);
        let mut back = Vec::new();
        assert_eq!(huffman::decode(&coded, &mut back), Ok(()));
        assert_eq!(back, text);
    }
}

#[test]
fn field_lists_come_back_from_blocks_whatever_the_tables_hold() {
    let mut random = Random(7);
    for _ in 0..30 {
        let (mut encoder, mut decoder) = (Encoder::default(), HpackDecoder::default());
        for _ in 0..100 {
            if random.below(10) == 0 {
                encoder.resize(random.below(6000));
            }
            let mut block = Vec::new();
            let mut expected = Vec::new();
            encoder.begin(200, &mut block);
            for _ in 0..random.below(12) {
                let name = format!("n-{}", random.below(30)).into_bytes();
                let value = match random.below(3) {
                    0 => random.text(300),
                    _ => random.below(9).to_string().into_bytes(),
                };
                encoder.field(&name, &value, &mut block);
                expected.push((name, value));
            }
            let mut seen = Vec::new();
            decoder
                .decode(&block, &mut Vec::new(), |buffer, field| {
                    let (name, value) = field.texts(buffer);
                    seen.push((name.to_vec(), value.to_vec()));
                })
                .unwrap();
            assert_eq!(seen.remove(0), (b":status".to_vec(), b"200".to_vec()));
            assert_eq!(seen, expected);
        }
    }
}

#[test]
fn random_bytes_are_read_in_pieces_as_at_once() {
    let mut random = Random(99);
    for _ in 0..300 {
        let mut input = Vec::new();
        for _ in 0..random.below(12) {
            let id = random.below(12) as u32;
            let piece = match random.below(12) {
                0 => get(id, "/a"),
                1 => post(id, &[("content-length", "3")]),
                2 => post(id, &[]),
                3 => data(id, &random.text(20), random.below(2) == 0),
                4 => window(id, random.below(100) as u32),
                5 => reset(id),
                6 => settings(&[(random.below(9) as u16, random.below(100_000) as u32)]),
                7 => request(id, &fields("GET", "/", &[("a", "b"), ("x", "y")]), true),
                8 => frame(
                    random.below(18) as u8,
                    random.below(256) as u8,
                    id,
                    &random.text(12),
                ),
                _ => get(id | 1, "/b"),
            };
            input.extend_from_slice(&piece);
        }
        let mut whole = Server::greeted();
        whole.feed(&input);
        let mut pieces = Server::greeted();
        let step = 1 + random.below(9);
        for piece in input.chunks(step) {
            pieces.feed(piece);
        }
        assert_eq!(pieces.seen, whole.seen);
        assert_eq!(pieces.out, whole.out);
    }
}

#[test]
fn windows_are_kept_by_random_answers() {
    let mut random = Random(3);
    for _ in 0..50 {
        let mut server = Server::greeted();
        let mut room = [65_535i64; 9];
        let mut initial = 65_535;
        for id in [1u32, 3, 5, 7] {
            server.feed(&get(id, "/"));
            server.answer(id, 1 + random.below(300_000));
        }
        server.sent();
        for _ in 0..60 {
            match random.below(4) {
                0 => {
                    let (id, more) = ([0u32, 1, 3, 5, 7][random.below(5)], random.below(50_000));
                    server.feed(&window(id, more as u32 + 1));
                    room[id as usize] += more as i64 + 1;
                }
                1 => {
                    let size = random.below(100_000) as i64;
                    server.feed(&settings(&[(4, size as u32)]));
                    for id in [1, 3, 5, 7] {
                        room[id] += size - initial;
                    }
                    initial = size;
                }
                _ => server.fill(),
            }
            for line in server.sent().lines() {
                let words: Vec<&str> = line.split(' ').collect();
                if words.get(1) == Some(&"DATA") {
                    let (id, len): (usize, i64) =
                        (words[0].parse().unwrap(), words[2].parse().unwrap());
                    room[id] -= len;
                    room[0] -= len;
                    assert!(
                        room[id] >= 0 && room[0] >= 0,
                        "no more than the windows had"
                    );
                }
            }
            if server.is_over {
                break;
            }
        }
    }
}

/// Cookies in pieces among other fields: those of a request in a random order, and the one value a
/// program is to see.
pub(crate) fn scattered_cookies(
    random: &mut Random,
    budget_bytes: usize,
) -> (Vec<(String, String)>, String) {
    let (mut list, mut pieces, mut used) = (Vec::new(), Vec::new(), 0);
    for number in 0..random.below(300) {
        let len_max = [4, 40, 4000][random.below(3)];
        let value = "v".repeat(random.below(len_max));
        let (name, value) = match random.below(3) {
            0 => (format!("x-{number}"), value),
            _ => ("cookie".to_owned(), format!("c{number}={value}")),
        };
        used += name.len() + value.len() + 32;
        let is_field = name != "cookie";
        if used > budget_bytes || (is_field && list.len() - pieces.len() >= 90) {
            break;
        }
        if !is_field {
            pieces.push(value.clone());
        }
        list.push((name, value));
    }
    (list, pieces.join("; "))
}

#[test]
fn cookie_is_whole_and_held_little_whatever_the_order_of_its_pieces() {
    let limits = crate::limits::HttpLimits::default();
    let mut random = Random(4711);
    for _ in 0..300 {
        let (list, whole) = scattered_cookies(&mut random, limits.head_bytes - 500);
        let list: Vec<_> = list.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let block = super::block(&fields("GET", "/", &list));
        let mut server = Server::greeted();
        let mut input = Vec::new();
        for (at, piece) in block.chunks(16_000).enumerate() {
            let is_last = (at + 1) * 16_000 >= block.len();
            let kind = if at == 0 {
                frames::HEADERS
            } else {
                frames::CONTINUATION
            };
            let ends = if at == 0 { frames::END_STREAM } else { 0 };
            let flags = ends | if is_last { frames::END_HEADERS } else { 0 };
            input.extend_from_slice(&frame(kind, flags, 1, piece));
        }
        let (used, event) = server
            .core
            .read(&input, &mut server.head, &mut Vec::new(), 0);
        assert!(matches!(event, Http2Event::Request(_)), "{event:?}");
        assert_eq!(used, input.len());
        let cookie = server.head.value(Known::Cookie).unwrap_or_default();
        assert_eq!(cookie, whole.as_bytes());
        assert!(server.head.bytes.capacity() <= 2 * limits.head_bytes);
    }
}
