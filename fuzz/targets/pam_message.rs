//! What server and process say to each other of a password: whatever comes, it is read as it would
//! be written, or refused.
#![no_main]

use hob_pam::{PamReply, PamRequest, PamVerdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = PamRequest::decode(bytes) {
        assert_eq!(request.encode().as_deref(), Ok(bytes));
        assert!(PamRequest::is_askable(&request.user, &request.password));
        assert!(!request.services.contains(&0) && !request.service.contains('\0'));
    }
    if let Ok(reply) = PamReply::decode(bytes) {
        assert_eq!(reply.encode(), bytes);
        let is_yes = reply.verdict == PamVerdict::Yes;
        assert!(!is_yes || !reply.text.is_empty());
        assert!(is_yes || reply.groups.is_empty());
        let mut texts = reply.groups.iter().chain([&reply.text]);
        assert!(texts.all(|text| !text.chars().any(char::is_control)));
    }
});
