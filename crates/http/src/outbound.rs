//! Asking other people's HTTP servers, one request at a time, from a thread that may wait: for what
//! the server exports and what its config names, never for what it answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

use crate::tls::roots;
use crate::tls::terms::provider;

/// Largest answer to what is sent that is read, in bytes.
const POST_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Where to send, and how: an address and fields that can be sent, which the config has checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundDestination {
    /// An `http://` or `https://` address.
    pub url: String,
    /// Fields of each request: names and values.
    pub fields: Vec<(String, String)>,
    /// Longest time for one request, until its whole answer is there.
    pub timeout: Duration,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// The `Retry-After` field in seconds, if it has one.
    pub retry_after_s: Option<u64>,
    /// The body.
    pub body: Bytes,
}

/// Sends to one destination; keeps its connection.
pub struct OutboundClient {
    destination: OutboundDestination,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: tokio::runtime::Runtime,
}

impl OutboundClient {
    /// A sender on the calling thread. `https://` believes the system's certificate authorities and
    /// those of `more_roots`, in PEM, which the config's key `key` names.
    ///
    /// # Errors
    /// Authorities that are none, or what the system lacks.
    pub fn new(
        destination: OutboundDestination,
        more_roots: &[u8],
        key: &str,
    ) -> Result<OutboundClient, String> {
        let roots = match destination.url.starts_with("https:") {
            true => roots::believed(more_roots, key)?,
            false => RootCertStore::empty(),
        };
        let config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .build();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Ok(OutboundClient {
            client: Client::builder(TokioExecutor::new()).build(connector),
            runtime: runtime.map_err(|error| error.to_string())?,
            destination,
        })
    }

    /// Sends a body and waits for the answer.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn post(&self, content_type: &str, body: Bytes) -> Result<Reply, String> {
        let request = http::Request::post(&self.destination.url);
        let request = request.header("content-type", content_type);
        self.ask(request, body, POST_ANSWER_BYTES_MAX)
    }

    /// Asks for what is there and waits for the answer, whose body has at most so many bytes.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn get(&self, accept: &str, answer_bytes_max: usize) -> Result<Reply, String> {
        let request = http::Request::get(&self.destination.url).header("accept", accept);
        self.ask(request, Bytes::new(), answer_bytes_max)
    }

    fn ask(
        &self,
        request: http::request::Builder,
        body: Bytes,
        answer_bytes_max: usize,
    ) -> Result<Reply, String> {
        let mut request = request.header("user-agent", concat!("hob/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &self.destination.fields {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).map_err(told)?;
        let answer = async {
            let answer = self.client.request(request).await.map_err(told)?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, answer_bytes_max).collect().await;
            let retry_after = parts.headers.get("retry-after");
            Ok(Reply {
                status: parts.status.as_u16(),
                retry_after_s: retry_after
                    .and_then(|value| value.to_str().ok())
                    .and_then(|text| text.parse().ok()),
                body: body.map_err(|error| error.to_string())?.to_bytes(),
            })
        };
        let timeout = self.destination.timeout;
        self.runtime.block_on(async {
            match tokio::time::timeout(timeout, answer).await {
                Ok(answer) => answer,
                Err(_) => Err("no answer in time".to_owned()),
            }
        })
    }
}

/// Says what is wrong with a text of authorities in PEM, which the config's key `key` names.
///
/// # Errors
/// It holds none, or something else, in words.
pub fn check_roots(text: &[u8], key: &str) -> Result<(), String> {
    roots::of(text, key).map(|_| ())
}

/// An error with its causes: the outermost alone says too little.
fn told(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    fn destination(url: &str) -> OutboundDestination {
        OutboundDestination {
            url: url.to_owned(),
            fields: vec![("X-Key".to_owned(), "secret".to_owned())],
            timeout: Duration::from_secs(20),
        }
    }

    #[test]
    fn body_and_fields_arrive_and_the_answer_comes_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut seen = Vec::new();
            while !seen.ends_with(b"the body") {
                let mut piece = [0; 1024];
                let count = socket.read(&mut piece).unwrap();
                assert_ne!(count, 0, "the request ends early");
                seen.extend_from_slice(&piece[..count]);
            }
            let answer = b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nlate";
            socket.write_all(answer).unwrap();
            String::from_utf8(seen).unwrap()
        });
        let client = OutboundClient::new(destination(&url), b"", "ca").unwrap();
        let reply = client.post("text/plain", Bytes::from_static(b"the body"));
        let wanted = Reply {
            status: 503,
            retry_after_s: Some(7),
            body: Bytes::from_static(b"late"),
        };
        assert_eq!(reply.unwrap(), wanted);
        let seen = server.join().unwrap();
        assert!(seen.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{seen}");
        assert!(seen.contains("x-key: secret\r\n"), "{seen}");
    }

    #[test]
    fn answer_that_is_too_long_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut socket, _) = listener.accept().unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    socket.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                assert!(head.starts_with(b"GET /keys HTTP/1.1\r\n"));
                let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n12345678";
                socket.write_all(answer).unwrap();
            }
        });
        let client = OutboundClient::new(destination(&url), b"", "ca").unwrap();
        assert_eq!(&*client.get("*/*", 8).unwrap().body, b"12345678");
        assert!(client.get("*/*", 7).is_err());
        server.join().unwrap();
    }

    #[test]
    fn nobody_there_is_an_error_in_words() {
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        };
        let url = format!("http://127.0.0.1:{port}/");
        let client = OutboundClient::new(destination(&url), b"", "ca").unwrap();
        let error = client.post("text/plain", Bytes::new()).unwrap_err();
        assert!(error.to_lowercase().contains("refused"), "{error}");
    }
}
