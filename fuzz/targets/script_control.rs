//! What scripts say in fields for the server: nothing panics, all of it is taken out, a path begins
//! with `/`, and reading it again says the same.
#![no_main]

use hob_http::Fields;
use hob_server::handle::script::control::{Control, Instead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut fields = Fields::new();
    for line in text.split(|&byte| byte == b'\n') {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(0);
        fields.add(
            &line[..colon],
            line[colon..].strip_prefix(b":").unwrap_or_default(),
        );
    }
    fields.add(b"X-Other", b"stays");
    let read = Control::read(&fields);
    let taken = Control::take(&mut fields);
    assert_eq!(read, taken);
    assert_eq!(Control::read(&fields), Control::default());
    assert!(fields.value(b"X-Other").is_some());
    if let Some(Instead::Redirect(path) | Instead::SendFile(path)) = taken.instead {
        assert!(path.starts_with(b"/"));
        assert!(!path.contains(&b'\n'));
    }
});
