//! HTTP/3 as a client: `session` is one connection over QUIC, `frames` what the server sends on its
//! streams, `qpack` the fields both ways, `socket` datagrams in and out, `replay` streams without a
//! connection.

mod fixed;
mod frames;
mod qpack;
mod replay;
mod session;
mod socket;

pub(crate) use qpack::QpackContext;
pub use replay::{replay_answer, replay_control};
pub use session::{Common, ConnectionChange, H3ClientSession};
pub use socket::Datagrams;

/// A request of its own without a body: the frame of its fields.
pub fn pack_alone(fields: &crate::request::Fields) -> Vec<u8> {
    frames::request(&qpack::pack(fields).bytes, 0)
}

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, TransportConfig, VarInt};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

/// Bytes that a server may send before we have read them: on a connection, and on a stream.
const WINDOW_BYTES: u32 = 1 << 30;
/// A connection that waits says so this often: servers end those that are silent for long.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Bytes of requests that are on their way.
const SEND_BYTES: u64 = 8 << 20;

/// What connections of one thread say.
pub fn config(tls: Arc<rustls::ClientConfig>) -> Result<ClientConfig, String> {
    // What comes before a handshake is in this suite, whatever is offered. //= rfc9001#5.2
    let initial = TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(|suite| suite.quic_suite());
    let initial = initial.ok_or("the TLS library has no suite to begin QUIC with")?;
    let crypto = QuicClientConfig::with_initial(tls, initial).map_err(|error| error.to_string())?;
    let mut transport = TransportConfig::default();
    transport
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(SEND_BYTES)
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        // How long an answer may take is for `--timeout` to say, here and at the server.
        .max_idle_timeout(None)
        .keep_alive_interval(Some(KEEP_ALIVE));
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    Ok(config)
}
