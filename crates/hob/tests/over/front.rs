//! HTTP/1.1 with the test: its requests are read, answers are written to it.
//!
//! Heads and the sizes of chunks are parsed by `httparse`. What is not HTTP/1.1, or cannot be said
//! in a later version, is never answered, so that no test takes an answer of this program for one
//! of hob's: the reason goes to standard error and the connection ends.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::PIECE_BYTES;

/// Fields that belong to one connection of HTTP/1.1; later versions have no word for them.
const OF_CONNECTION: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The head of a request.
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) target: String,
    /// Those that a later version can have; `Host` is among them.
    pub(crate) fields: HeaderMap,
    pub(crate) framing: Framing,
    /// The client knows chunks.
    is_1_1: bool,
    /// The connection stays after the answer.
    pub(crate) is_kept: bool,
}

/// What is left of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Ended,
    Length(u64),
    /// Chunks; so much is left of this one.
    Chunked(u64),
    /// All up to the end of the connection; only answers have it.
    UntilEnd,
}

/// A part of a request's body.
pub(crate) enum Part {
    Data(Bytes),
    End(Option<HeaderMap>),
}

/// What the test sends.
pub(crate) struct Requests {
    stream: OwnedReadHalf,
    ahead: BytesMut,
}

impl Requests {
    pub(crate) fn new(stream: OwnedReadHalf) -> Requests {
        let ahead = BytesMut::new();
        Requests { stream, ahead }
    }

    /// The next request; none where the test ended its connection instead.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some((head, len)) = parsed(&self.ahead)? {
                self.ahead.advance(len);
                return Ok(Some(head));
            }
            match self.more().await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    let is_between = self.ahead.is_empty();
                    return if is_between { Ok(None) } else { Err(error) };
                }
                read => read?,
            }
        }
    }

    /// The next part of a body.
    pub(crate) async fn part(&mut self, framing: &mut Framing) -> io::Result<Part> {
        if let Framing::Chunked(0) = framing {
            let size = self.line(|line| match httparse::parse_chunk_size(line) {
                Ok(httparse::Status::Complete((len, size))) => Ok(Some((len, size))),
                Ok(httparse::Status::Partial) => Ok(None),
                Err(error) => Err(not_ours(format!("size of a chunk: {error}"))),
            });
            match size.await? {
                0 => {
                    *framing = Framing::Ended;
                    return Ok(Part::End(self.trailers().await?));
                }
                size => *framing = Framing::Chunked(size),
            }
        }
        let left = match framing {
            Framing::Length(left @ 1..) | Framing::Chunked(left) => left,
            _ => return Ok(Part::End(None)),
        };
        if self.ahead.is_empty() {
            self.more().await?;
        }
        let len = (self.ahead.len() as u64).min(*left) as usize;
        let data = self.ahead.split_to(len).freeze();
        *left -= len as u64;
        if matches!(framing, Framing::Chunked(0)) {
            self.line(|line| match line {
                [b'\r', b'\n', ..] => Ok(Some((2, ()))),
                [] | [b'\r'] => Ok(None),
                _ => Err(not_ours("end of a chunk")),
            })
            .await?;
        }
        Ok(Part::Data(data))
    }

    async fn trailers(&mut self) -> io::Result<Option<HeaderMap>> {
        let fields = self.line(|lines| {
            let mut fields = [httparse::EMPTY_HEADER; 64];
            match httparse::parse_headers(lines, &mut fields) {
                Ok(httparse::Status::Complete((len, fields))) => Ok(Some((len, map_of(fields)?))),
                Ok(httparse::Status::Partial) => Ok(None),
                Err(error) => Err(not_ours(format!("trailers: {error}"))),
            }
        });
        let fields = fields.await?;
        Ok((!fields.is_empty()).then_some(fields))
    }

    /// Waits until the test has left or ends its side, whatever it sends before.
    pub(crate) async fn left(&mut self) {
        while self.ahead.len() < PIECE_BYTES {
            if self.more().await.is_err() {
                return;
            }
        }
        // It sends requests ahead and does not want to know.
        std::future::pending().await
    }

    /// Reads on until `parse` finds what it looks for, and takes that.
    async fn line<T>(
        &mut self,
        parse: impl Fn(&[u8]) -> io::Result<Option<(usize, T)>>,
    ) -> io::Result<T> {
        loop {
            if let Some((len, found)) = parse(&self.ahead)? {
                self.ahead.advance(len);
                return Ok(found);
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        self.ahead.reserve(PIECE_BYTES);
        match self.stream.read_buf(&mut self.ahead).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn parsed(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut fields = vec![httparse::EMPTY_HEADER; 1024];
    let mut request = httparse::Request::new(&mut fields);
    let len = match request.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(not_ours(format!("head of a request: {error}"))),
    };
    let mut fields = map_of(request.headers)?;
    let has = |name: HeaderName, word: &str| {
        let values = fields.get_all(name).into_iter();
        let mut values = values.filter_map(|value| value.to_str().ok());
        values.any(|value| value.to_ascii_lowercase().contains(word))
    };
    let is_1_1 = request.version == Some(1);
    let framing = match fields.get(header::CONTENT_LENGTH) {
        _ if has(header::TRANSFER_ENCODING, "chunked") => Framing::Chunked(0),
        Some(length) => {
            let length = length.to_str().ok().and_then(|length| length.parse().ok());
            Framing::Length(length.ok_or_else(|| not_ours("Content-Length"))?)
        }
        None => Framing::Ended,
    };
    let is_kept = match is_1_1 {
        true => !has(header::CONNECTION, "close"),
        false => has(header::CONNECTION, "keep-alive"),
    };
    let names = fields.get(header::CONNECTION).cloned();
    let names = names.as_ref().and_then(|names| names.to_str().ok());
    for name in names.unwrap_or_default().split(',') {
        fields.remove(name.trim());
    }
    for name in OF_CONNECTION {
        fields.remove(name);
    }
    let method = request.method.unwrap_or_default();
    let head = Head {
        method: Method::from_bytes(method.as_bytes()).map_err(not_ours)?,
        target: request.path.unwrap_or_default().to_owned(),
        fields,
        framing,
        is_1_1,
        is_kept,
    };
    Ok(Some((head, len)))
}

fn map_of(fields: &[httparse::Header<'_>]) -> io::Result<HeaderMap> {
    let mut map = HeaderMap::new();
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(not_ours);
        let value = HeaderValue::from_bytes(field.value).map_err(not_ours);
        map.append(name?, value?);
    }
    Ok(map)
}

/// The test says something that only HTTP/1.1 has words for.
pub(crate) fn not_ours(what: impl std::fmt::Display) -> io::Error {
    eprintln!("over: cannot be carried, is the test about HTTP/1 itself? {what}");
    io::ErrorKind::InvalidData.into()
}

/// What is written to the test.
pub(crate) struct Answers {
    stream: OwnedWriteHalf,
    framing: Framing,
}

impl Answers {
    pub(crate) fn new(stream: OwnedWriteHalf) -> Answers {
        let framing = Framing::Ended;
        Answers { stream, framing }
    }

    pub(crate) async fn interim(&mut self, response: &Response<()>) -> io::Result<()> {
        let text = text_of(response.status(), response.headers(), "");
        self.stream.write_all(&text).await
    }

    /// Begins the answer to a request. `is_whole`: no body will follow.
    pub(crate) async fn head(
        &mut self,
        request: &Head,
        response: &Response<()>,
        is_whole: bool,
    ) -> io::Result<()> {
        let (status, fields) = (response.status(), response.headers());
        let length = fields.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED];
        let has_body = request.method != Method::HEAD && !bodiless.contains(&status);
        let (framing, line) = match length {
            _ if !has_body => (Framing::Ended, ""),
            Some(length) => (Framing::Length(length), ""),
            None if is_whole => (Framing::Ended, "Content-Length: 0\r\n"),
            None if request.is_1_1 => (Framing::Chunked(0), "Transfer-Encoding: chunked\r\n"),
            None => (Framing::UntilEnd, ""),
        };
        let mut lines = line.to_owned();
        if !request.is_kept || framing == Framing::UntilEnd {
            lines.push_str("Connection: close\r\n");
        } else if !request.is_1_1 {
            lines.push_str("Connection: keep-alive\r\n");
        }
        self.framing = framing;
        self.stream
            .write_all(&text_of(status, fields, &lines))
            .await
    }

    pub(crate) async fn data(&mut self, data: &[u8]) -> io::Result<()> {
        match &mut self.framing {
            Framing::Length(left) => match left.checked_sub(data.len() as u64) {
                Some(rest) => *left = rest,
                None => return Err(io::Error::other("more than Content-Length")),
            },
            Framing::Chunked(_) if !data.is_empty() => {
                let size = format!("{:x}\r\n", data.len());
                let chunk = [size.as_bytes(), data, b"\r\n"].concat();
                return self.stream.write_all(&chunk).await;
            }
            Framing::Ended if !data.is_empty() => {
                return Err(io::Error::other("a body where there is none"));
            }
            _ => {}
        }
        self.stream.write_all(data).await
    }

    /// The answer is whole. An error where it cannot be, by its own length.
    pub(crate) async fn end(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        match self.framing {
            Framing::Length(1..) => Err(io::Error::other("less than Content-Length")),
            Framing::Chunked(_) => {
                let mut text = b"0\r\n".to_vec();
                write_fields(&mut text, &trailers.unwrap_or_default());
                text.extend_from_slice(b"\r\n");
                self.stream.write_all(&text).await
            }
            _ => Ok(()),
        }
    }

    /// Says that nothing more comes, after an answer that was whole.
    pub(crate) async fn end_sending(&mut self) {
        // A test that has left need not hear it.
        let _ = self.stream.shutdown().await;
    }

    /// Ends the connection so that the test can tell that something is missing, and has all before.
    pub(crate) async fn break_off(&mut self) {
        match self.framing {
            // Only a reset shows it here.
            Framing::UntilEnd => super::tls::reset(self.stream.as_ref()),
            _ => self.end_sending().await,
        }
    }
}

/// The head of an answer, in the spelling of HTTP/1.
fn text_of(status: StatusCode, fields: &HeaderMap, added: &str) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    write_fields(&mut text, fields);
    text.extend_from_slice(added.as_bytes());
    text.extend_from_slice(b"\r\n");
    text
}

fn write_fields(text: &mut Vec<u8>, fields: &HeaderMap) {
    for (name, value) in fields {
        let words = name.as_str().split('-').map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        });
        let name = words.collect::<Vec<_>>().join("-");
        text.extend_from_slice(&[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
}
