//! Certificates that end, as an operator and Prometheus meet them.

use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use rcgen::{CertificateParams, KeyPair};

use super::{control, told, wait_for};
use crate::harness::Place;

const DAY_S: u64 = 86_400;

/// A certificate for this name that is good from so many days ago until so many days from now.
/// Returns when it ends, in seconds since 1970.
fn certificate(place: &Place, name: &str, days_ago: u64, days_left: u64) -> u64 {
    let now = SystemTime::now();
    let days = |days: u64| std::time::Duration::from_secs(days * DAY_S);
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = (now - days(days_ago)).into();
    params.not_after = (now + days(days_left)).into();
    let until_s = params.not_after.unix_timestamp();
    let key = KeyPair::generate().unwrap();
    let signed = params.self_signed(&key).unwrap();
    place.write(&format!("{name}.pem"), &signed.pem());
    place.write(&format!("{name}.key"), &key.serialize_pem());
    let readable = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(place.path(&format!("{name}.key")), readable).unwrap();
    u64::try_from(until_s).unwrap()
}

fn site(name: &str) -> String {
    format!(
        "[[site]]\nnames = [\"{name}\"]\nroot = \"site\"\n\
         tls = {{ certificate = \"{name}.pem\", key = \"{name}.key\" }}\n"
    )
}

#[test]
fn certificate_that_ends_soon_is_an_alert_and_a_number() {
    let place = Place::new();
    let soon = certificate(&place, "soon.test", 80, 10);
    let later = certificate(&place, "later.test", 10, 80);
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n{}{}",
        site("soon.test"),
        site("later.test")
    ));
    let alert = wait_for(&place, "/v1/resources", |told| {
        let alerts = told["alerts"].as_array().unwrap();
        let is_it = |text: &str| text.starts_with("the certificate of ");
        let mut found = alerts.iter();
        found
            .find(|alert| is_it(alert["text"].as_str().unwrap()))
            .cloned()
    });
    let text = alert["text"].as_str().unwrap();
    // The day goes on while the test runs.
    let words = ["ends in 9 days", "ends in 10 days"]
        .map(|end| format!("the certificate of soon.test {end}"));
    assert!(words.iter().any(|words| words == text), "{text}");
    assert_eq!(alert["level"], "warning");
    let alerts = told(&place, "/v1/resources")["alerts"].to_string();
    assert!(!alerts.contains("later.test"), "{alerts}");
    let page = control(&place, "GET", "/metrics").text();
    for (name, until_s) in [("soon.test", soon), ("later.test", later)] {
        let line = format!("hob_certificate_expires_seconds{{certificate=\"{name}\"}} {until_s}\n");
        assert!(page.contains(&line), "{line}{page}");
    }
    hob.stop();
}
