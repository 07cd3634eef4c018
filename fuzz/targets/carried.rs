//! What another hob says of a request: whatever it is, the path that comes of it leads nowhere
//! else, and no variable that could not be passed to a program comes out.
#![no_main]

use hob_server::handle::script::carried::parse;
use hob_server::serve::old_visits::VisitsAsked;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(asked) = VisitsAsked::parse(bytes) {
        assert_eq!(VisitsAsked::parse(asked.field().as_bytes()), Some(asked));
    }
    let Ok(read) = parse(bytes) else { return };
    assert!(read.path.starts_with(b"/") && read.below <= read.path.len());
    let mut segments = read.path.split(|byte| matches!(byte, b'/' | 0));
    assert!(segments.all(|segment| !matches!(segment, b"." | b"..")));
    for (name, value) in read.variables.iter() {
        assert!(
            name.iter()
                .all(|byte| byte.is_ascii_uppercase() || b"_0123456789".contains(byte))
        );
        assert!(!value.contains(&0));
    }
});
