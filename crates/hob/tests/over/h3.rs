//! HTTP/3 towards hob, by `quinn` and the `h3` crate.

use std::future::poll_fn;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::Code;
use h3_quinn::{OpenStreams, RecvStream, SendStream};
use http::{HeaderMap, Request};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use rustls::ClientConfig;
use tokio::task::{JoinHandle, spawn_local};

use super::PIECE_BYTES;
use super::carry::{Download, Received, Server, Upload};

/// A socket for all connections.
pub(crate) fn endpoint(client: Arc<ClientConfig>) -> Endpoint {
    endpoint_over(UdpSocket::bind(("127.0.0.1", 0)).unwrap(), client)
}

/// The same with connections that ask now and then whether the server is still there, as clients
/// do that wait for an answer, and that end only because somebody says so: a server that does not
/// know a connection any more has to tell.
pub(crate) fn asking_endpoint(client: Arc<ClientConfig>) -> Endpoint {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    endpoint_with(socket, client, |transport| {
        transport
            .keep_alive_interval(Some(ASK_EVERY))
            .max_idle_timeout(None);
    })
}

/// A socket that is there, for all connections.
pub(crate) fn endpoint_over(socket: UdpSocket, client: Arc<ClientConfig>) -> Endpoint {
    endpoint_with(socket, client, |_| {})
}

fn endpoint_with(
    socket: UdpSocket,
    client: Arc<ClientConfig>,
    change: impl FnOnce(&mut TransportConfig),
) -> Endpoint {
    let runtime = Arc::new(TokioRuntime);
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime);
    let mut endpoint = endpoint.unwrap();
    let crypto = QuicClientConfig::try_from(client).unwrap();
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    // A side that does not read is felt early, as over TCP.
    let window = VarInt::from_u32(4 * PIECE_BYTES as u32);
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(window)
        .send_window(window.into_inner());
    change(&mut transport);
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    endpoint
}

/// How often an asking client asks.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// How long a handshake may take before it is given up: nobody can tell a client that a server has
/// died amid one.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// A connection.
pub(crate) struct Connection {
    requests: SendRequest<OpenStreams, Bytes>,
    driver: JoinHandle<()>,
}

/// The same where the server may die amid the handshake.
pub(crate) async fn connect_in_time(endpoint: Endpoint, port: u16) -> io::Result<Connection> {
    let connecting = connect(endpoint, port);
    match tokio::time::timeout(HANDSHAKE_TIME, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

pub(crate) async fn connect(endpoint: Endpoint, port: u16) -> io::Result<Connection> {
    let address = ([127, 0, 0, 1], port).into();
    let quic = endpoint
        .connect(address, "localhost")
        .map_err(io::Error::other)?;
    let quic = h3_quinn::Connection::new(quic.await?);
    let (mut driver, requests) = h3::client::new(quic).await.map_err(io::Error::other)?;
    let driver = spawn_local(async move {
        poll_fn(|context| driver.poll_close(context)).await;
    });
    Ok(Connection { requests, driver })
}

impl Server for Connection {
    type Upload = Body;
    type Download = Answer;

    async fn send(&mut self, mut head: Request<()>, is_whole: bool) -> io::Result<(Body, Answer)> {
        *head.version_mut() = http::Version::HTTP_3;
        let stream = self.requests.send_request(head).await;
        let (mut sending, receiving) = stream.map_err(io::Error::other)?.split();
        if is_whole {
            sending.finish().await.map_err(io::Error::other)?;
        }
        let answer = Answer {
            stream: receiving,
            has_begun: false,
        };
        Ok((Body(sending), answer))
    }

    async fn ended(&mut self) {
        let _ = (&mut self.driver).await;
    }
}

/// The body of a request.
pub(crate) struct Body(RequestStream<SendStream<Bytes>, Bytes>);

impl Upload for Body {
    async fn data(&mut self, data: Bytes) -> io::Result<()> {
        self.0.send_data(data).await.map_err(io::Error::other)
    }

    async fn end(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        if let Some(trailers) = trailers {
            let sent = self.0.send_trailers(trailers).await;
            sent.map_err(io::Error::other)?;
        }
        self.0.finish().await.map_err(io::Error::other)
    }

    fn reset(&mut self) {
        self.0.stop_stream(Code::H3_REQUEST_CANCELLED);
    }
}

/// An answer.
pub(crate) struct Answer {
    stream: RequestStream<RecvStream, Bytes>,
    has_begun: bool,
}

impl Download for Answer {
    async fn next(&mut self) -> io::Result<Received> {
        if !self.has_begun {
            let head = self
                .stream
                .recv_response()
                .await
                .map_err(io::Error::other)?;
            if head.status().is_informational() {
                return Ok(Received::Interim(head));
            }
            self.has_begun = true;
            // Whether the stream ends here is only known when it has.
            let is_whole = false;
            return Ok(Received::Head { head, is_whole });
        }
        match self.stream.recv_data().await.map_err(io::Error::other)? {
            Some(mut data) => Ok(Received::Data(data.copy_to_bytes(data.remaining()))),
            None => {
                let trailers = self.stream.recv_trailers().await;
                Ok(Received::End(trailers.map_err(io::Error::other)?))
            }
        }
    }

    /// Dropping it says so; the library panics where it is told while it waits for data.
    fn reset(&mut self) {}
}
