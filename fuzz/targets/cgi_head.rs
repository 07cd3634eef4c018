//! Heads of programs' outputs: nothing panics, output that comes in pieces is read as output that
//! comes at once, and nothing in what is passed on can split an answer.
//!
//! The first byte says how the rest is cut.
#![no_main]

use hob_server::handle::script::head::{CgiHeadProgress, HeadReader};
use libfuzzer_sys::fuzz_target;

/// Small, so that inputs reach it.
const BYTES_MAX: usize = 256;

fuzz_target!(|data: &[u8]| {
    let Some((&step, output)) = data.split_first() else {
        return;
    };
    let whole = HeadReader::new(BYTES_MAX).read(output);
    let mut reader = HeadReader::new(BYTES_MAX);
    let pieces = (0..output.len()).step_by(usize::from(step) % 16 + 1);
    let found = pieces
        .chain([output.len()])
        .map(|len| reader.read(&output[..len]))
        .find(|progress| *progress != CgiHeadProgress::NeedMore);
    let found = found.unwrap_or(CgiHeadProgress::NeedMore);
    // Of a head that is too long, the pieces show less at the moment it is refused.
    if let (CgiHeadProgress::Refused(one), CgiHeadProgress::Refused(other)) = (&whole, &found) {
        assert_eq!(one.reason, other.reason);
    } else {
        assert_eq!(whole, found);
    }
    match whole {
        CgiHeadProgress::NeedMore => {
            assert!(output.len() <= BYTES_MAX);
            let _ = reader.at_end(output).to_string();
        }
        CgiHeadProgress::Refused(bad) => drop(bad.to_string()),
        CgiHeadProgress::Head(head, used) => {
            assert!(used <= BYTES_MAX && (200..600).contains(&head.status));
            assert!(output[..used].ends_with(b"\n"));
            for (name, value) in head.fields.iter() {
                assert!(!name.is_empty() && !name.contains(&b':'));
                assert!(
                    value
                        .iter()
                        .all(|byte| !matches!(byte, 0..=8 | 10..=31 | 127))
                );
                assert!(!name.eq_ignore_ascii_case(b"transfer-encoding"));
                assert!(!name.eq_ignore_ascii_case(b"content-length"));
            }
            assert!(
                head.local
                    .is_none_or(|path| path.starts_with(b"/") && !path.starts_with(b"//"))
            );
        }
    }
});
