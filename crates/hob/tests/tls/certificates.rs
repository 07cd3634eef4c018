//! Which certificate is shown to whom, and what happens to those that are no good.

use rustix::process::Signal;

use super::harness::{Place, text_of};
use super::{config, curl, fetched, s_client};

/// The name in the certificate that a client is shown that asks for a host.
fn shown(hob: &super::Hob, host: &str) -> String {
    let said = s_client(hob, &["-servername", host], "");
    let subject = said.lines().find_map(|line| line.strip_prefix("subject="));
    let subject = subject.unwrap_or_else(|| panic!("{said}"));
    subject.replace("CN = ", "").replace("CN=", "")
}

#[test]
fn each_site_shows_its_own_and_others_the_listeners() {
    let place = Place::new();
    for name in ["usual", "one", "below"] {
        place.certificate(name, &format!("{name}.test"));
    }
    let sites = "[[site]]\nnames = [\"one.test\"]\nroot = \"site\"\n\
         tls = { certificate = \"one.pem\", key = \"one.key\" }\n\
         [[site]]\nnames = [\"*.below.test\", \"below.test\"]\nroot = \"site\"\n\
         tls = { certificate = \"below.pem\", key = \"below.key\" }\n\
         [[site]]\nnames = [\"poor.test\"]\nroot = \"site\"\n";
    let usual = "{ certificate = \"usual.pem\", key = \"usual.key\" }";
    let hob = place.serve_text(&config(usual, sites));
    for (host, name) in [
        ("one.test", "one.test"),
        ("ONE.Test", "one.test"),
        ("x.one.test", "usual.test"),
        ("below.test", "below.test"),
        ("a.below.test", "below.test"),
        ("a.b.below.test", "below.test"),
        ("poor.test", "usual.test"),
        ("stranger.test", "usual.test"),
    ] {
        assert_eq!(shown(&hob, host), name, "{host}");
    }
    let said = s_client(&hob, &["-noservername"], "");
    assert!(said.contains("usual.test"), "{said}");
    hob.stop();
}

#[test]
fn listener_shows_the_certificates_of_its_own_sites() {
    let place = Place::new();
    for name in ["usual", "outer", "inner"] {
        place.certificate(name, &format!("{name}.test"));
    }
    let tls = |name: &str| format!("{{ certificate = \"{name}.pem\", key = \"{name}.key\" }}");
    let site = |listener: &str, name: &str| {
        let tls = tls(name);
        format!(
            "[[site]]\nnames = [\"same.test\"]\nlistener = [\"{listener}\"]\nroot = \"site\"\n\
             tls = {tls}\n"
        )
    };
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {usual}\n[[listen]]\n\
         address = \"127.0.0.2:0\"\ntls = {usual}\n{}{}",
        site("127.0.0.1:0", "outer"),
        site("127.0.0.2:0", "inner"),
        usual = tls("usual"),
    ));
    let line = hob.wait_for("listening on https://127.0.0.2:");
    let port = line.rsplit(':').next().unwrap();
    let of_second = |host: &str| {
        let address = format!("127.0.0.2:{port}");
        let said = s_client(&hob, &["-connect", &address, "-servername", host], "");
        let subject = said.lines().find_map(|line| line.strip_prefix("subject="));
        let subject = subject.unwrap_or_else(|| panic!("{said}"));
        subject.replace("CN = ", "").replace("CN=", "")
    };
    assert_eq!(shown(&hob, "same.test"), "outer.test");
    assert_eq!(of_second("same.test"), "inner.test");
    assert_eq!(shown(&hob, "stranger.test"), "usual.test");
    assert_eq!(of_second("stranger.test"), "usual.test");
    hob.stop();
}

#[test]
fn key_of_another_certificate_stops_the_start() {
    let place = Place::new();
    place.certificate("one", "one.test");
    place.certificate("two", "two.test");
    place.write(
        "hob.toml",
        &config("{ certificate = \"one.pem\", key = \"two.key\" }", ""),
    );
    let output = place.run(&["serve", "--config", "hob.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text_of(&output);
    assert!(said.contains("one.pem with "), "{said}");
    assert!(
        said.contains("the private key belongs to another certificate"),
        "{said}"
    );
}

#[test]
fn new_files_are_served_after_a_reload_and_bad_ones_are_not() {
    let place = Place::new();
    place.certificate("site", "old.test");
    place.certificate("new", "new.test");
    let files = "{ certificate = \"site.pem\", key = \"site.key\" }";
    let hob = place.serve_text(&config(files, ""));
    assert_eq!(shown(&hob, "x.test"), "old.test");
    std::fs::copy(place.path("new.pem"), place.path("site.pem")).unwrap();
    hob.signal(Signal::HUP);
    hob.wait_for("the config was not reloaded; the old one stays");
    hob.wait_for("belongs to another certificate");
    assert_eq!(
        shown(&hob, "x.test"),
        "old.test",
        "a pair that does not fit is not served"
    );
    std::fs::copy(place.path("new.key"), place.path("site.key")).unwrap();
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation 2");
    assert_eq!(shown(&hob, "x.test"), "new.test");
    let answer = curl(&hob, "new.test", "/hello.txt", &["-k"]);
    assert_eq!(fetched(&answer), "hello\n");
    hob.stop();
}

#[test]
fn changed_files_are_served_without_a_reload_once_they_fit_together() {
    let place = Place::new();
    place.certificate("site", "old.test");
    place.certificate("new", "new.test");
    let files = "{ certificate = \"site.pem\", key = \"site.key\" }";
    let hob = place.serve_text(&config(files, ""));
    assert_eq!(shown(&hob, "x.test"), "old.test");
    std::fs::copy(place.path("new.pem"), place.path("site.pem")).unwrap();
    let said = hob.wait_for("changed certificates are not served, the old ones are");
    assert!(said.contains("belongs to another certificate"), "{said}");
    assert_eq!(shown(&hob, "x.test"), "old.test", "one file is not enough");
    let warnings = place.status()["warnings"].to_string();
    assert!(
        warnings.contains("changed certificates are not served"),
        "{warnings}"
    );
    std::fs::copy(place.path("new.key"), place.path("site.key")).unwrap();
    hob.wait_for("certificates have changed; the new ones are served");
    let until = std::time::Instant::now() + super::harness::DEADLINE;
    while shown(&hob, "x.test") != "new.test" {
        assert!(
            std::time::Instant::now() < until,
            "the new one is served in time"
        );
    }
    hob.stop();
}

#[test]
fn key_is_read_by_the_first_process_alone() {
    if !super::harness::is_root() {
        println!("skipped: only root reads what others may not");
        return;
    }
    let place = Place::for_user(super::harness::User::Same);
    place.certificate("site", "secret.test");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(place.path("site.key"), closed).unwrap();
    let files = "{ certificate = \"site.pem\", key = \"site.key\" }";
    let text = format!("user = \"nobody\"\n{}", config(files, ""));
    let hob = place.serve_text(&text);
    assert_eq!(shown(&hob, "x.test"), "secret.test");
    let user = super::harness::status_line(hob.server(), "Uid");
    assert!(!user.starts_with('0'), "{user}");
    let open_files = std::fs::read_dir(format!("/proc/{}/fd", hob.server())).unwrap();
    for file in open_files.flatten() {
        let target = std::fs::read_link(file.path()).unwrap_or_default();
        let target = target.display().to_string();
        assert!(
            !target.contains("hob-keys") && !target.contains("site.key"),
            "{target}"
        );
    }
    hob.stop();
}
