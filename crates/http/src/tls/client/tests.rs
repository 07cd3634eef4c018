//! What rustls keeps of a client in a ticket, and how long it is good.

use std::sync::Mutex;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ProducesTickets;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::*;
use crate::tls::ticket::Ticketer;
use crate::tls::{Certificate, HostOffer, Offer, SelfSigned, TicketKeys, TlsHosts, Version};

/// Good from November 2026 on, for a hundred years.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\n\
    MIIBezCCASGgAwIBAgIUNbnrDxiosmEyukEH6GA+wKBOxTowCgYIKoZIzj0EAwIw\n\
    EjEQMA4GA1UEAwwHY2EudGVzdDAgFw0yNjExMjYwMDIwMDhaGA8yMTI2MTEwMjAw\n\
    MjAwOFowEjEQMA4GA1UEAwwHY2EudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEH\n\
    A0IABDEsbmQb16Dtj9KIoDIRwU+bDUAj6UM7+GmD6w3wdVz0jRDq97LKNdqeeck/\n\
    s9RGIedSoKu6Hz/XrTt7HmOOIcWjUzBRMB0GA1UdDgQWBBQIozOJqoroAha3C4Cm\n\
    Hq0yJaPdljAfBgNVHSMEGDAWgBQIozOJqoroAha3C4CmHq0yJaPdljAPBgNVHRMB\n\
    Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQCFL2g9FxFnchKSVi3vJ0OmgKOj\n\
    8rLZGv+qxACqBEVX2QIgOz5bx+ss1LRWZDaFw9K7XEYWct/jeTD+/xgWopCr9rE=\n\
    -----END CERTIFICATE-----\n";
const CLIENT: &str = "-----BEGIN CERTIFICATE-----\n\
    MIIBiTCCAS+gAwIBAgIUKy6KpE+6CroIHjadRyvclNYS4ucwCgYIKoZIzj0EAwIw\n\
    EjEQMA4GA1UEAwwHY2EudGVzdDAgFw0yNjExMjYwMDIwMDhaGA8yMTI2MTEwMjAw\n\
    MjAwOFowETEPMA0GA1UEAwwGY2xpZW50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD\n\
    QgAEnWCj+IlLfusSb6joFgENSbmE86z9DMXPaTjOT61TVjA2xFTzw+/AiMSbCzLl\n\
    tljksVpgbMUu+s8YjUWG07wx4KNiMGAwCQYDVR0TBAIwADATBgNVHSUEDDAKBggr\n\
    BgEFBQcDAjAdBgNVHQ4EFgQUWlFWK7ISHgd6GpjL6j5M7NvP6zkwHwYDVR0jBBgw\n\
    FoAUCKMziaqK6AIWtwuAph6tMiWj3ZYwCgYIKoZIzj0EAwIDSAAwRQIgCE58GcZ2\n\
    k7XK0m0NgsWyjdhJpQRBAnddnDqdjD1JdqkCIQCvDav0R67i5OTgDgpTq7ekPiji\n\
    jCn1cbF7QJBe5BWJOg==\n\
    -----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnFF+TNuzKq1yCLhe\n\
    yO8B1QfhI4rFcampGAwD+y3HxXKhRANCAASdYKP4iUt+6xJvqOgWAQ1JuYTzrP0M\n\
    xc9pOM5PrVNWMDbEVPPD78CIxJsLMuW2WOSxWmBsxS76zxiNRYbTvDHg\n\
    -----END PRIVATE KEY-----\n";
const THEN_S: u64 = 1_796_500_000;
const CENTURY_S: u64 = 100 * 366 * 24 * 60 * 60;

fn at(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

#[derive(Debug)]
struct Then;

impl TimeProvider for Then {
    fn current_time(&self) -> Option<UnixTime> {
        Some(at(THEN_S))
    }
}

/// Keeps what would be sealed.
#[derive(Debug, Default)]
struct Captured(Mutex<Vec<Vec<u8>>>);

impl ProducesTickets for Captured {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        60
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().unwrap().push(plain.to_vec());
        Some(b"ticket".to_vec())
    }

    fn decrypt(&self, _cipher: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// What rustls has put into a ticket after a handshake with a client, which may show a certificate.
fn ticket_text(need: Need, version: Version, shows: bool) -> Vec<u8> {
    let made = SelfSigned::new(&["localhost".to_owned()], &[], 1_790_000_000).unwrap();
    let offer = Offer {
        minimum: Version::Tls12,
        suites: Vec::new(),
        hosts: vec![HostOffer {
            names: Vec::new(),
            certificate: Certificate::from_pem(made.certificate.as_bytes(), made.key.as_bytes())
                .unwrap(),
            client: Some(ClientRule::from_pem(need, AUTHORITY.as_bytes()).unwrap()),
        }],
        default: 0,
    };
    let terms = TlsHosts::new(&offer, &TicketKeys::new()).unwrap();
    let captured = Arc::new(Captured::default());
    let mut config = ServerConfig::clone(&terms.for_name(None).config);
    config.ticketer = Arc::<Captured>::clone(&captured);
    config.time_provider = Arc::new(Then);
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions: &[_] = match version {
        Version::Tls12 => &[&rustls::version::TLS12],
        Version::Tls13 => &[&rustls::version::TLS13],
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    let client = match shows {
        false => builder.with_no_client_auth(),
        true => {
            let own = CertificateDer::from_pem_slice(CLIENT.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![own], key).unwrap()
        }
    };
    shake(config, client);
    captured.0.lock().unwrap().pop().unwrap()
}

fn shake(server: ServerConfig, client: ClientConfig) {
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    for _ in 0..8 {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        server.read_tls(&mut sent.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        let mut sent = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut sent).unwrap();
        }
        client.read_tls(&mut sent.as_slice()).unwrap();
        client.process_new_packets().unwrap();
    }
    assert!(!server.is_handshaking());
}

fn ticketer(need: Need) -> Ticketer {
    let rule = ClientRule::from_pem(need, AUTHORITY.as_bytes()).unwrap();
    let verifier = rule.verifier(&Arc::new(crate::tls::terms::provider()));
    TicketKeys::new().ticketer(rule.number(), Some(verifier.unwrap()))
}

#[test]
fn certificate_in_a_ticket_is_good_as_long_as_it_is_anywhere() {
    let own = CertificateDer::from_pem_slice(CLIENT.as_bytes()).unwrap();
    for version in [Version::Tls12, Version::Tls13] {
        let text = ticket_text(Need::Require, version, true);
        assert_eq!(chain_in(&text).unwrap(), std::slice::from_ref(&own));
        for need in [Need::Require, Need::Ask] {
            assert!(ticketer(need).is_good(&text, at(THEN_S)));
            assert!(
                !ticketer(need).is_good(&text, at(THEN_S + CENTURY_S)),
                "it has run out"
            );
            assert!(
                !ticketer(need).is_good(&text[..100], at(THEN_S)),
                "nobody can read it"
            );
        }
    }
}

#[test]
fn ticket_without_a_certificate_is_of_a_client_that_needs_none() {
    for version in [Version::Tls12, Version::Tls13] {
        let text = ticket_text(Need::Ask, version, false);
        assert_eq!(chain_in(&text), Some(vec![]));
        assert!(ticketer(Need::Ask).is_good(&text, at(THEN_S + CENTURY_S)));
        assert!(!ticketer(Need::Require).is_good(&text, at(THEN_S)));
    }
}
