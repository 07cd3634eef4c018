//! HPACK against the examples of RFC 7541, and against itself.

use crate::fields_coding::hpack::{Encoder, HpackDecoder, Stored, encode_field};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b' ').collect();
    let number = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(number).collect()
}

fn decoded(decoder: &mut HpackDecoder, block: &[u8]) -> String {
    let mut text = String::new();
    let mut buffer = Vec::new();
    let result = decoder.decode(block, &mut buffer, |buffer, field| {
        let (name, value) = field.texts(buffer);
        text += &format!("{}={}\n", name.escape_ascii(), value.escape_ascii());
    });
    match result {
        Ok(()) => text,
        Err(malformed) => format!("{text}malformed: {}", malformed.0),
    }
}

/// Blocks one after the other, and what they say.
fn check(blocks: &[(&str, &str)]) {
    let mut decoder = HpackDecoder::default();
    for (block, text) in blocks {
        assert_eq!(decoded(&mut decoder, &bytes(block)), *text);
    }
}

//= rfc7541#appendix-C.2
#[test]
fn single_fields_of_the_examples() {
    let custom = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    check(&[
        (custom, "custom-key=custom-header\n"),
        ("be", "custom-key=custom-header\n"),
    ]);
    check(&[("040c 2f73 616d 706c 652f 7061 7468", ":path=/sample/path\n")]);
    check(&[(
        "1008 7061 7373 776f 7264 0673 6563 7265 74",
        "password=secret\n",
    )]);
    check(&[("82", ":method=GET\n")]);
}

const FIRST: &str = ":method=GET\n:scheme=http\n:path=/\n:authority=www.example.com\n";
const SECOND: &str = ":method=GET\n:scheme=http\n:path=/\n:authority=www.example.com\n\
                      cache-control=no-cache\n";
const THIRD: &str = ":method=GET\n:scheme=https\n:path=/index.html\n\
                     :authority=www.example.com\ncustom-key=custom-value\n";

//= rfc7541#appendix-C.3
#[test]
fn requests_of_the_examples() {
    check(&[
        ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST),
        ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND),
        (
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
            THIRD,
        ),
    ]);
}

//= rfc7541#appendix-C.4
#[test]
fn requests_of_the_examples_in_the_huffman_code() {
    check(&[
        ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST),
        ("8286 84be 5886 a8eb 1064 9cbf", SECOND),
        (
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
            THIRD,
        ),
    ]);
}

const ANSWERS: [&str; 3] = [
    ":status=302\ncache-control=private\ndate=Mon, 21 Oct 2013 20:13:21 GMT\n\
     location=https://www.example.com\n",
    ":status=307\ncache-control=private\ndate=Mon, 21 Oct 2013 20:13:21 GMT\n\
     location=https://www.example.com\n",
    ":status=200\ncache-control=private\ndate=Mon, 21 Oct 2013 20:13:22 GMT\n\
     location=https://www.example.com\ncontent-encoding=gzip\n\
     set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n",
];

//= rfc7541#appendix-C.6
#[test]
fn answers_of_the_examples_with_a_table_of_256_bytes() {
    let mut decoder = HpackDecoder::default();
    // The examples' table is smaller from the start: here it is told so.
    let blocks = [
        "3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 \
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed \
         4ee5 b106 3d50 07",
    ];
    for (block, text) in blocks.iter().zip(ANSWERS) {
        assert_eq!(decoded(&mut decoder, &bytes(block)), text);
    }
}

//= rfc7541#appendix-C.5
#[test]
fn answers_of_the_examples_without_the_huffman_code() {
    let mut decoder = HpackDecoder::default();
    let blocks = [
        "3fe1 01 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 \
         6f6d",
        "4803 3330 37c1 c0bf",
    ];
    for (block, text) in blocks.iter().zip(ANSWERS) {
        assert_eq!(decoded(&mut decoder, &bytes(block)), text);
    }
}

#[test]
fn blocks_no_encoder_makes_are_malformed() {
    for block in [
        "80",                   // index 0
        "be",                   // an entry that is not there
        "ff ff ff ff ff ff",    // an index without end
        "40 0a 63",             // a name that is cut
        "3f e2 1f",             // a table of more than 4096 bytes
        "82 20",                // a size after a field
        "00 85 ff ff ff ff ff", // the end of string
        "7f 01 01 61",          // the name of an entry that is not there
    ] {
        let text = decoded(&mut HpackDecoder::default(), &bytes(block));
        assert!(text.contains("malformed"), "{block}: {text}");
    }
    // The largest table there is, and none.
    check(&[("3f e1 1f 82", ":method=GET\n"), ("20 82", ":method=GET\n")]);
}

#[test]
fn repeated_fields_cost_a_byte_and_own_ones_leave_the_table_alone() {
    let mut encoder = Encoder::default();
    let mut decoder = HpackDecoder::default();
    let date = *b"Mon, 21 Oct 2013 20:13:21 GMT";
    let mut block = |number: usize| {
        let mut out = Vec::new();
        encoder.begin(200, &mut out);
        encoder.date(&date, &mut out);
        let size = number.to_string();
        for (name, value) in [
            ("Content-Type", "text/html"),
            ("Server", "hob"),
            ("X-Own", "1"),
            ("ETag", size.as_str()),
            ("Connection", "close"),
        ] {
            encoder.field(name.as_bytes(), value.as_bytes(), &mut out);
        }
        out
    };
    for number in 0..100 {
        let out = block(number);
        let text = decoded(&mut decoder, &out);
        assert_eq!(
            text,
            format!(
                ":status=200\ndate=Mon, 21 Oct 2013 20:13:21 GMT\ncontent-type=text/html\n\
                 server=hob\nx-own=1\netag={number}\n"
            )
        );
        if number > 0 {
            assert!(out.len() <= 5 + 5, "{}", out.len());
        }
    }
}

#[test]
fn encoder_says_how_its_table_changes() {
    let mut encoder = Encoder::default();
    let mut decoder = HpackDecoder::default();
    let mut send = |encoder: &mut Encoder| {
        let mut out = Vec::new();
        encoder.begin(404, &mut out);
        encoder.field(b"x", b"y", &mut out);
        assert_eq!(decoded(&mut decoder, &out), ":status=404\nx=y\n");
        out
    };
    send(&mut encoder);
    assert_eq!(send(&mut encoder), [0x8d, 0xbe]);
    encoder.resize(0);
    encoder.resize(1 << 30);
    // Down to nothing, up to what we keep: the entry is gone.
    assert_eq!(send(&mut encoder)[..5], [0x20, 0x3f, 0xe1, 0x1f, 0x8d]);
    encoder.resize(0);
    assert_eq!(send(&mut encoder)[..2], [0x20, 0x8d]);
    send(&mut encoder);
}

#[test]
fn secret_fields_are_marked_as_such() {
    let mut out = Vec::new();
    let stored = Stored::of(b"Set-Cookie", b"a=b");
    encode_field(b"Set-Cookie", b"a=b", stored, &mut out);
    assert_eq!(out[..2], [0x1f, 55 - 15]);
    assert_eq!(
        decoded(&mut HpackDecoder::default(), &out),
        "set-cookie=a=b\n"
    );
}
