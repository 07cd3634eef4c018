//! What a certificate says of itself and of its owner: nothing panics, and a name that is in it is
//! one that it is good for.
#![no_main]

use hob_http::acme::{Leaf, certificates_only, leaf_of};
use hob_http::tls::ClientCertificate;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(leaf) = Leaf::from_der(data) {
        for name in &leaf.names {
            assert!(leaf.covers(name));
        }
        let _ = leaf.lifetime_s();
    }
    let _ = ClientCertificate::from_der(data);
    // Chains come as PEM, and what is read from one does not depend on what is left out.
    let only = certificates_only(data);
    assert!(!only.windows(11).any(|part| part == b"PRIVATE KEY"));
    let _ = leaf_of(&only);
});
