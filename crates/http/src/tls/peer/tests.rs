//! Both sides of a connection without a socket: ours with another server, and what a server may say
//! behind its handshake.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::{PeerTerms, PeerTrust};
use crate::tls::handshake::{Established, Handshake, HandshakeProgress};
use crate::tls::record::TlsContentType;
use crate::tls::session::{OpenedRecords, TlsInputEnd, TlsSession};
use crate::tls::terms::provider;
use crate::tls::{Certificate, SelfSigned};

/// A certificate of `localhost` that has signed itself, as PEM, and with its key.
fn own() -> (String, Certificate) {
    let made = SelfSigned::new(&["localhost".to_owned()], &[], 1_790_000_000).unwrap();
    let certificate = Certificate::from_pem(made.certificate.as_bytes(), made.key.as_bytes());
    (made.certificate, certificate.unwrap())
}

fn server(certificate: &Certificate, clients: Option<&Certificate>) -> Arc<ServerConfig> {
    let provider = Arc::new(provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(certificate) => {
            let mut roots = RootCertStore::empty();
            roots.add(certificate.key.cert[0].clone()).unwrap();
            let rule =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(rule.unwrap())
        }
    };
    let shown = rustls::sign::CertifiedKey::clone(&certificate.key);
    let shown = rustls::sign::SingleCertAndKey::from(shown);
    let mut config = builder.with_cert_resolver(Arc::new(shown));
    config.enable_secret_extraction = true;
    Arc::new(config)
}

/// The server's session, ours, and what the server has sent behind the handshake.
type Shaken = (TlsSession, Box<Established>, Vec<u8>);

/// Which side gave up, and why.
type GivenUp = (&'static str, rustls::Error);

fn shake(server: &Arc<ServerConfig>, client: &Arc<ClientConfig>) -> Result<Shaken, GivenUp> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut ours = Some(Handshake::with_server(client, name).unwrap());
    let mut theirs = Some(Handshake::new(server).unwrap());
    let (mut to_us, mut to_them) = (Vec::new(), Vec::new());
    let (mut our_session, mut their_session) = (None, None);
    for _ in 0..8 {
        if let Some(handshake) = ours.take() {
            let (used, progress) = handshake.read(&mut to_us, &mut to_them);
            to_us.drain(..used);
            match progress {
                HandshakeProgress::NeedMore(handshake) => ours = Some(handshake),
                HandshakeProgress::Done(established) => our_session = Some(established),
                HandshakeProgress::Failed(error) => return Err(("client", error)),
            }
        }
        if let Some(handshake) = theirs.take() {
            let (used, progress) = handshake.read(&mut to_them, &mut to_us);
            to_them.drain(..used);
            match progress {
                HandshakeProgress::NeedMore(handshake) => theirs = Some(handshake),
                HandshakeProgress::Done(established) => their_session = Some(established.session),
                HandshakeProgress::Failed(error) => return Err(("server", error)),
            }
        }
    }
    Ok((their_session.unwrap(), our_session.unwrap(), to_us))
}

fn terms(pem: &str, certificate: Option<&Certificate>) -> Arc<ClientConfig> {
    let trust = PeerTrust::Authorities(pem.as_bytes(), "ca");
    PeerTerms::new(trust, certificate).unwrap().http1
}

#[test]
fn tickets_behind_the_handshake_are_kept_and_used() {
    let (pem, certificate) = own();
    let (server, client) = (server(&certificate, None), terms(&pem, None));
    for at in 0..3 {
        let (_, mut ours, mut tickets) = shake(&server, &client).unwrap();
        assert_eq!(ours.is_resumed, at > 0);
        let opened = ours.session.open(&mut tickets, &mut Vec::new());
        let used = tickets.len();
        assert!(used > 0);
        let expected = OpenedRecords {
            used,
            text: 0,
            end: None,
        };
        assert_eq!(opened, expected);
    }
}

/// rustls sends what belongs together in one record: who fails in its middle has not seen the rest.
#[test]
fn side_that_gives_up_amid_a_record_says_so() {
    let (pem, certificate) = own();
    let (other_pem, other) = own();
    let failed = shake(&server(&certificate, None), &terms(&other_pem, None)).map(|_| ());
    assert_eq!(failed.unwrap_err().0, "client");
    let wants = server(&certificate, Some(&certificate));
    let failed = shake(&wants, &terms(&pem, Some(&other))).map(|_| ());
    assert_eq!(failed.unwrap_err().0, "server");
    let failed = shake(&wants, &terms(&pem, None)).map(|_| ());
    assert_eq!(failed.unwrap_err().0, "server");
}

fn ticket(bytes: usize) -> Vec<u8> {
    let mut text = vec![0, 0, 1, 0, 1, 2, 3, 4, 1, 7];
    text.extend((bytes as u16).to_be_bytes());
    text.resize(text.len() + bytes, b't');
    text.extend([0, 0]);
    message(4, &text)
}

fn message(kind: u8, text: &[u8]) -> Vec<u8> {
    let len = (text.len() as u32).to_be_bytes();
    [&[kind], &len[1..], text].concat()
}

/// How the input ends where a server sends these texts as records of its handshake.
fn hear(texts: &[Vec<u8>]) -> Option<TlsInputEnd> {
    let (pem, certificate) = own();
    let (mut theirs, mut ours, tickets) =
        shake(&server(&certificate, None), &terms(&pem, None)).unwrap();
    let mut bytes = tickets;
    for text in texts {
        let start = bytes.len();
        let overhead = theirs.tx.overhead();
        bytes.resize(start + overhead + text.len(), 0);
        let record = &mut bytes[start..];
        theirs.tx.seal_text(TlsContentType::Handshake, text, record);
    }
    let opened = ours.session.open(&mut bytes, &mut Vec::new());
    assert_eq!(opened.text, 0);
    opened.end
}

#[test]
fn tickets_come_in_as_many_records_as_the_server_likes() {
    let (short, long) = (ticket(100), ticket(40_000));
    assert_eq!(hear(std::slice::from_ref(&short)), None);
    assert_eq!(hear(&[[&short[..], &short].concat()]), None);
    let cut: Vec<_> = long.chunks(16_000).map(<[u8]>::to_vec).collect();
    assert_eq!(hear(&cut), None);
    let bytes: Vec<_> = short.iter().map(|byte| vec![*byte]).collect();
    assert_eq!(hear(&bytes), None);
    assert_eq!(hear(&vec![short; 30]), None);
}

#[test]
fn what_is_no_ticket_breaks_the_connection() {
    let broken = |why| Some(TlsInputEnd::Broken(why));
    let malformed = "a TLS ticket is malformed";
    assert_eq!(hear(&[message(4, b"no ticket")]), broken(malformed));
    let too_many = "too many TLS handshake messages without data";
    assert_eq!(hear(&vec![ticket(1); 31]), broken(too_many));
    let too_long = "a TLS handshake message is too long";
    assert_eq!(hear(&[vec![4, 2, 0, 0]]), broken(too_long));
    let unexpected = "a TLS handshake message came after the handshake";
    assert_eq!(hear(&[message(13, &[0, 0, 0])]), broken(unexpected));
    // Nothing stands behind a change of keys that was sealed with the old one.
    let update = message(24, &[0]);
    assert_eq!(hear(std::slice::from_ref(&update)), None);
    let followed = [&update[..], &ticket(1)].concat();
    assert_eq!(hear(&[followed]), broken("a TLS key update is malformed"));
}
