//! HTTP/2 over TLS towards hob, by the `h2` crate.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{JoinHandle, spawn_local};

use super::carry::{Download, Received, Server, Upload};
use super::{PIECE_BYTES, tls};

/// A connection.
pub(crate) struct Connection {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

pub(crate) async fn connect(client: Arc<ClientConfig>, port: u16) -> io::Result<Connection> {
    connect_over(tls::connect(client, port).await?, PIECE_BYTES).await
}

/// The same over a stream that is there, with such a window for each answer.
pub(crate) async fn connect_over(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    window_bytes: usize,
) -> io::Result<Connection> {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(window_bytes as u32)
        // One answer that is not read holds up no other.
        .initial_connection_window_size(16 * window_bytes as u32);
    builder.max_send_buffer_size(PIECE_BYTES);
    let (requests, driver) = builder.handshake(stream).await.map_err(io::Error::other)?;
    let driver = spawn_local(async { drop(driver.await) });
    Ok(Connection { requests, driver })
}

impl Connection {
    /// Ends without a word.
    #[allow(dead_code, reason = "only some tests leave so")]
    pub(crate) fn vanish(&self) {
        self.driver.abort();
    }
}

impl Server for Connection {
    type Upload = SendStream<Bytes>;
    type Download = Answer;

    async fn send(
        &mut self,
        mut head: Request<()>,
        is_whole: bool,
    ) -> io::Result<(SendStream<Bytes>, Answer)> {
        *head.version_mut() = http::Version::HTTP_2;
        let ready = poll_fn(|context| self.requests.poll_ready(context)).await;
        ready.map_err(io::Error::other)?;
        let sent = self.requests.send_request(head, is_whole);
        let (response, upload) = sent.map_err(io::Error::other)?;
        Ok((upload, Answer::Awaited(response)))
    }

    async fn ended(&mut self) {
        let _ = (&mut self.driver).await;
    }
}

impl Upload for SendStream<Bytes> {
    async fn data(&mut self, mut data: Bytes) -> io::Result<()> {
        while !data.is_empty() {
            self.reserve_capacity(data.len());
            let capacity = poll_fn(|context| self.poll_capacity(context)).await;
            let capacity = capacity.ok_or(io::ErrorKind::BrokenPipe)?;
            let capacity = capacity.map_err(io::Error::other)?;
            let piece = data.split_to(capacity.min(data.len()));
            self.send_data(piece, false).map_err(io::Error::other)?;
        }
        Ok(())
    }

    async fn end(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        let sent = match trailers {
            Some(trailers) => self.send_trailers(trailers),
            None => self.send_data(Bytes::new(), true),
        };
        sent.map_err(io::Error::other)
    }

    fn reset(&mut self) {
        self.send_reset(Reason::CANCEL);
    }
}

/// An answer. Dropped before its end, it resets the stream.
pub(crate) enum Answer {
    Awaited(ResponseFuture),
    Begun { body: RecvStream, unused: usize },
}

impl Download for Answer {
    async fn next(&mut self) -> io::Result<Received> {
        match self {
            Answer::Awaited(response) => {
                let head = poll_fn(|context| {
                    match response.poll_informational(context) {
                        Poll::Ready(Some(interim)) => {
                            return Poll::Ready(interim.map(Err));
                        }
                        Poll::Ready(None) | Poll::Pending => {}
                    }
                    Pin::new(&mut *response).poll(context).map_ok(Ok)
                });
                match head.await.map_err(io::Error::other)? {
                    Err(interim) => Ok(Received::Interim(interim)),
                    Ok(response) => {
                        let (head, body) = response.into_parts();
                        let is_whole = body.is_end_stream();
                        *self = Answer::Begun { body, unused: 0 };
                        let head = http::Response::from_parts(head, ());
                        Ok(Received::Head { head, is_whole })
                    }
                }
            }
            Answer::Begun { body, unused } => {
                let used = body.flow_control().release_capacity(*unused);
                used.map_err(io::Error::other)?;
                *unused = 0;
                match body.data().await {
                    Some(data) => {
                        let data = data.map_err(io::Error::other)?;
                        *unused = data.len();
                        Ok(Received::Data(data))
                    }
                    None => {
                        let trailers = body.trailers().await.map_err(io::Error::other)?;
                        Ok(Received::End(trailers))
                    }
                }
            }
        }
    }

    /// The stream has one reset for both directions: [`Upload::reset`].
    fn reset(&mut self) {}
}
