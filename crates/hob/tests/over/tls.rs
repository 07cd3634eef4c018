//! The TLS of a client that trusts any certificate, and HTTP/1.1 over it.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::PIECE_BYTES;

/// A client that offers one protocol. Its sessions are resumed by the connections after the first.
pub(crate) fn client(protocol: &[u8]) -> Arc<ClientConfig> {
    client_of(rustls::crypto::aws_lc_rs::default_provider(), protocol)
}

/// The same with algorithms of its own.
pub(crate) fn client_of(provider: CryptoProvider, protocol: &[u8]) -> Arc<ClientConfig> {
    let provider = Arc::new(provider);
    let config = ClientConfig::builder_with_provider(provider.clone());
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Arc::new(config)
}

pub(crate) async fn connect(
    client: Arc<ClientConfig>,
    port: u16,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let stream = TlsConnector::from(client).connect(name, stream).await?;
    assert!(
        stream.get_ref().1.alpn_protocol().is_some(),
        "hob speaks another protocol"
    );
    Ok(stream)
}

/// The test's own bytes, both ways. An end is passed on as an end, anything else as a reset.
pub(crate) async fn carry(mut test: TcpStream, client: Arc<ClientConfig>, port: u16) {
    let Ok(mut hob) = connect(client, port).await else {
        return reset(&test);
    };
    let (up, down) = (PIECE_BYTES, PIECE_BYTES);
    let copied = copy_bidirectional_with_sizes(&mut test, &mut hob, up, down).await;
    if copied.is_err() {
        // Among them an end of hob's that no `close_notify` came before.
        reset(&test);
        reset(hob.get_ref().0);
    }
}

/// Lets the connection end by a reset once it is dropped.
pub(crate) fn reset(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
}

/// What certificates are worth is for the tests of TLS; here hob signs its own.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
