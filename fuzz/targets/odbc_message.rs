//! What server and driver process say to each other: whatever comes, it is read as it would be
//! written, or refused; rows end. URLs of sources beside it: they are read or refused.
#![no_main]

use hob_odbc::OdbcOptions;
use hob_odbc::message::{DriverReply, DriverRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = DriverRequest::decode(bytes) {
        assert_eq!(&request.encode()[4..], bytes);
    }
    if let Ok(reply) = DriverReply::decode(bytes) {
        assert_eq!(&reply.encode()[4..], bytes);
        if let DriverReply::Portion(portion) = reply {
            let width = portion.columns.as_ref().map_or(3, Vec::len);
            let mut reader = portion.rows.read(width);
            let mut cells = Vec::new();
            let mut rows = 0;
            while reader.next(&mut cells) == Ok(true) {
                assert_eq!(cells.len(), width);
                rows += 1;
            }
            assert!(rows <= bytes.len(), "each row has a byte at least");
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = OdbcOptions::parse(text);
        if let Ok(options) = OdbcOptions::parse(&format!("odbc:DSN=x;{text}")) {
            // What is shown names no more than the source, and can be read again; it may be longer.
            let shown = OdbcOptions::parse(&options.place());
            assert!(shown.is_ok_and(|shown| !shown.has_password()) || text.len() > 2_000);
        }
    }
});
