//! A member that speaks HTTP/2, by the library of hyper: what it does, a request's path says.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response, StatusCode};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::harness::DEADLINE;

/// What it allows.
#[derive(Clone, Copy)]
pub(crate) struct Allows {
    /// Streams of a connection at a time.
    pub(crate) streams: u32,
    /// Bytes of a body on their way.
    pub(crate) window: u32,
    /// Tunnels.
    pub(crate) connect: bool,
}

impl Default for Allows {
    fn default() -> Allows {
        Allows {
            streams: 100,
            window: 65_535,
            connect: true,
        }
    }
}

/// Its thread goes on until the test ends.
pub(crate) struct Http2Member {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Seen>,
    /// Hears of each request that has come.
    arrived: mpsc::Receiver<()>,
    held: watch::Sender<bool>,
}

/// What it has seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicUsize,
    /// Requests by method and path, in their order.
    pub(crate) requests: Mutex<Vec<String>>,
    /// Bytes of answers that it has got rid of.
    pub(crate) sent: AtomicU64,
    /// Streams that were reset by the other side.
    pub(crate) resets: AtomicUsize,
    refused: AtomicUsize,
}

#[derive(Clone)]
struct Means {
    seen: Arc<Seen>,
    arrived: mpsc::Sender<()>,
    held: watch::Receiver<bool>,
}

impl Http2Member {
    pub(crate) fn start(allows: Allows) -> Http2Member {
        Http2Member::start_over(allows, None)
    }

    /// The same over TLS.
    pub(crate) fn start_over(allows: Allows, tls: Option<Arc<ServerConfig>>) -> Http2Member {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, arrived) = mpsc::channel();
        let (held, wait) = watch::channel(true);
        let seen: Arc<Seen> = Arc::default();
        let means = Means {
            seen: Arc::clone(&seen),
            arrived: tell,
            held: wait,
        };
        std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    means.seen.connections.fetch_add(1, Ordering::SeqCst);
                    let (means, tls) = (means.clone(), tls.clone());
                    tokio::spawn(async move {
                        match tls {
                            None => talk(stream, allows, means).await,
                            Some(tls) => {
                                let shaken = tokio_rustls::TlsAcceptor::from(tls).accept(stream);
                                if let Ok(stream) = shaken.await {
                                    talk(stream, allows, means).await;
                                }
                            }
                        }
                    });
                }
            });
        });
        Http2Member {
            port,
            seen,
            arrived,
            held,
        }
    }

    pub(crate) fn to(&self) -> String {
        format!("\"http://127.0.0.1:{}\"", self.port)
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Waits until so many requests for `held` have come.
    pub(crate) fn await_held(&self, count: usize) {
        for _ in 0..count {
            self.arrived.recv_timeout(DEADLINE).unwrap();
        }
    }

    /// Has them answered.
    pub(crate) fn release(&self) {
        self.held.send(false).unwrap();
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    allows: Allows,
    means: Means,
) {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(allows.streams)
        .initial_window_size(allows.window);
    if allows.connect {
        builder.enable_connect_protocol();
    }
    let Ok(mut connection): Result<Connection<_, Bytes>, _> = builder.handshake(stream).await
    else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let word = format!("{} {path}", request.method());
        means.seen.requests.lock().unwrap().push(word);
        let what = path.rsplit('/').next().unwrap_or_default();
        match what {
            "refuse-once" if means.seen.refused.fetch_add(1, Ordering::SeqCst) == 0 => {
                respond.send_reset(Reason::REFUSED_STREAM);
                continue;
            }
            "refuse" => {
                respond.send_reset(Reason::REFUSED_STREAM);
                continue;
            }
            "reset" => {
                respond.send_reset(Reason::INTERNAL_ERROR);
                continue;
            }
            // The request has come, and nobody says what became of it.
            "gone" => return,
            "leave" => connection.graceful_shutdown(),
            _ => {}
        }
        let means = means.clone();
        tokio::spawn(async move {
            let resets = Arc::clone(&means.seen);
            if answer(request, respond, means).await.is_none() {
                resets.resets.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
}

/// `None` where the other side breaks it off.
async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    mut means: Means,
) -> Option<()> {
    let path = request.uri().path().to_owned();
    let told = format!("{:?}", (request.method(), request.uri(), request.headers()));
    let mut body = request.into_body();
    let head = |status| {
        let response = Response::builder().status(status).header("x-member", "h2");
        response.body(()).unwrap()
    };
    match path.rsplit('/').next().unwrap_or_default() {
        "held" => {
            means.arrived.send(()).ok()?;
            means.held.wait_for(|held| !held).await.ok()?;
            let mut out = respond.send_response(head(StatusCode::OK), false).ok()?;
            out.send_data(Bytes::from_static(b"held"), true).ok()
        }
        "echo" => {
            let mut out = respond.send_response(head(StatusCode::OK), false).ok()?;
            while let Some(piece) = body.data().await {
                let piece = piece.ok()?;
                body.flow_control().release_capacity(piece.len()).ok()?;
                send(&mut out, piece).await?;
            }
            match body.trailers().await.ok()? {
                Some(trailers) => out.send_trailers(trailers).ok(),
                None => out.send_data(Bytes::new(), true).ok(),
            }
        }
        "flood" => {
            let mut out = respond.send_response(head(StatusCode::OK), false).ok()?;
            loop {
                send(&mut out, Bytes::from(vec![b'x'; 64 * 1024])).await?;
                means.seen.sent.fetch_add(64 * 1024, Ordering::SeqCst);
            }
        }
        "early" => {
            let mut out = respond.send_response(head(StatusCode::OK), false).ok()?;
            out.send_data(Bytes::from_static(b"early"), true).ok()
        }
        "empty" => {
            respond
                .send_response(head(StatusCode::NO_CONTENT), true)
                .ok()?;
            Some(())
        }
        _ => {
            let mut out = respond.send_response(head(StatusCode::OK), false).ok()?;
            out.send_data(Bytes::from(told), true).ok()
        }
    }
}

async fn send(out: &mut SendStream<Bytes>, mut piece: Bytes) -> Option<()> {
    while !piece.is_empty() {
        out.reserve_capacity(piece.len());
        let room = std::future::poll_fn(|cx| out.poll_capacity(cx))
            .await?
            .ok()?;
        out.send_data(piece.split_to(room.min(piece.len())), false)
            .ok()?;
    }
    Some(())
}

/// Waits until this holds.
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < until, "it does not come to that");
    }
}
