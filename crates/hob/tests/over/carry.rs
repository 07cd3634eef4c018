//! One connection of a test: each of its requests becomes one to hob, whose answer goes back.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{Request, Response, Uri};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::front::{Answers, Framing, Head, Part, Requests, not_ours};

/// A connection to hob.
pub(crate) trait Server: 'static {
    type Upload: Upload;
    type Download: Download;
    /// Sends the head of a request.
    async fn send(
        &mut self,
        head: Request<()>,
        is_whole: bool,
    ) -> io::Result<(Self::Upload, Self::Download)>;
    /// Waits until the connection has ended.
    async fn ended(&mut self);
}

/// The body of a request.
pub(crate) trait Upload {
    /// Sends more, once hob takes it.
    async fn data(&mut self, data: Bytes) -> io::Result<()>;
    async fn end(&mut self, trailers: Option<HeaderMap>) -> io::Result<()>;
    /// Takes the request back.
    fn reset(&mut self);
}

/// An answer.
pub(crate) trait Download {
    /// The next part. What was given before has then been used: hob may send as much again.
    async fn next(&mut self) -> io::Result<Received>;
    /// Wants no more of it.
    fn reset(&mut self);
}

/// A part of an answer.
pub(crate) enum Received {
    Interim(Response<()>),
    Head { head: Response<()>, is_whole: bool },
    Data(Bytes),
    End(Option<HeaderMap>),
}

/// How a request and its answer went.
enum Outcome {
    Whole,
    /// The answer broke off, or none came.
    Broken,
    /// The test has left.
    Left,
}

pub(crate) async fn serve<S: Server>(
    test: TcpStream,
    connecting: impl Future<Output = io::Result<S>>,
) {
    let Ok(mut server) = connecting.await else {
        return super::tls::reset(&test);
    };
    let (requests, answers) = test.into_split();
    let (mut requests, mut answers) = (Requests::new(requests), Answers::new(answers));
    loop {
        let head = match first(requests.head(), server.ended()).await {
            First::This(Ok(Some(head))) => head,
            // Between requests either side may end.
            First::This(_) | First::That(()) => return,
        };
        match exchange(&mut requests, &mut answers, &mut server, &head).await {
            Outcome::Whole if head.is_kept => {}
            Outcome::Whole => return answers.end_sending().await,
            Outcome::Broken => return answers.break_off().await,
            Outcome::Left => {
                // Only the request is taken back: the connection's end would say it too.
                spawn_local(async move { server.ended().await });
                return;
            }
        }
    }
}

async fn exchange<S: Server>(
    requests: &mut Requests,
    answers: &mut Answers,
    server: &mut S,
    head: &Head,
) -> Outcome {
    let mut framing = head.framing;
    let is_whole = matches!(framing, Framing::Ended | Framing::Length(0));
    let Ok(request) = request_of(head) else {
        return Outcome::Broken;
    };
    let Ok((mut upload, mut download)) = server.send(request, is_whole).await else {
        return Outcome::Broken;
    };
    let is_sent = Cell::new(is_whole);
    let outcome = {
        let sending = async {
            if !is_whole && send(requests, &mut framing, &mut upload).await.is_err() {
                return;
            }
            is_sent.set(true);
            requests.left().await;
        };
        let mut sending = pin!(sending);
        match first(answer(answers, head, &mut download), sending.as_mut()).await {
            First::This(Ok(())) => {
                // It may come before the end of the request, the rest of which goes on: what is
                // half sent is not begun again, libraries end the connection then.
                if !is_sent.get() && !head.is_kept {
                    answers.end_sending().await;
                }
                match until_sent(sending, &is_sent).await {
                    true => Outcome::Whole,
                    false => Outcome::Left,
                }
            }
            First::This(Err(Failure::OfHob)) => Outcome::Broken,
            First::This(Err(Failure::OfTest)) | First::That(()) => Outcome::Left,
        }
    };
    match outcome {
        Outcome::Whole => {}
        _ => {
            upload.reset();
            download.reset();
        }
    }
    outcome
}

/// Goes on until all of the request is sent; false when the test has left before.
async fn until_sent(mut sending: Pin<&mut impl Future<Output = ()>>, is_sent: &Cell<bool>) -> bool {
    poll_fn(|context| {
        if is_sent.get() {
            return Poll::Ready(true);
        }
        let has_ended = sending.as_mut().poll(context).is_ready();
        match is_sent.get() || has_ended {
            true => Poll::Ready(is_sent.get()),
            false => Poll::Pending,
        }
    })
    .await
}

/// The request as later versions have it: nothing of its target or host may be lost on the way.
fn request_of(head: &Head) -> io::Result<Request<()>> {
    let mut fields = head.fields.clone();
    let hosts: Vec<_> = fields.get_all(header::HOST).iter().collect();
    let host = match &hosts[..] {
        [host] => host.to_str().unwrap_or_default().to_owned(),
        _ => return Err(not_ours("not one Host")),
    };
    fields.remove(header::HOST);
    let (host, path) = match head.target.split_once("://") {
        // A path may have a URL in it.
        Some((scheme, rest)) if !scheme.starts_with('/') => {
            rest.split_at(rest.find('/').unwrap_or(rest.len()))
        }
        _ => (host.as_str(), head.target.as_str()),
    };
    let uri = Uri::builder().scheme("https").authority(host);
    let uri = uri.path_and_query(path).build();
    let uri = uri.map_err(|error| not_ours(format!("{host} {path}: {error}")))?;
    let kept = uri.path_and_query().map_or("", |path| path.as_str());
    if uri.authority().is_none_or(|kept| kept != host) || (kept != path && !path.is_empty()) {
        return Err(not_ours(format!("{host} {path}")));
    }
    let mut request = Request::new(());
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = fields;
    Ok(request)
}

/// Sends a body. Where hob takes no more of it the rest is read past: only the answer counts then.
/// An error is the test's.
async fn send(
    requests: &mut Requests,
    framing: &mut Framing,
    upload: &mut impl Upload,
) -> io::Result<()> {
    let mut is_wanted = true;
    loop {
        let sent = match requests.part(framing).await? {
            Part::Data(data) if is_wanted => upload.data(data).await,
            Part::Data(_) => Ok(()),
            Part::End(trailers) => {
                if is_wanted {
                    let _ = upload.end(trailers).await;
                }
                return Ok(());
            }
        };
        is_wanted &= sent.is_ok();
    }
}

/// Who could not go on.
enum Failure {
    OfHob,
    OfTest,
}

async fn answer(
    answers: &mut Answers,
    request: &Head,
    download: &mut impl Download,
) -> Result<(), Failure> {
    let of_test = |_| Failure::OfTest;
    loop {
        match download.next().await.map_err(|_| Failure::OfHob)? {
            Received::Interim(head) => answers.interim(&head).await.map_err(of_test)?,
            Received::Head { head, is_whole } => {
                let begun = answers.head(request, &head, is_whole).await;
                begun.map_err(of_test)?;
            }
            Received::Data(data) => match answers.data(&data).await {
                Err(error) if error.kind() == io::ErrorKind::Other => return Err(Failure::OfHob),
                sent => sent.map_err(of_test)?,
            },
            Received::End(trailers) => match answers.end(trailers).await {
                Err(error) if error.kind() == io::ErrorKind::Other => return Err(Failure::OfHob),
                sent => return sent.map_err(of_test),
            },
        }
    }
}

/// Which of two was done first.
enum First<A, B> {
    This(A),
    That(B),
}

/// Waits for one of two and drops the other.
async fn first<A, B>(this: impl Future<Output = A>, that: impl Future<Output = B>) -> First<A, B> {
    let (mut this, mut that) = (pin!(this), pin!(that));
    poll_fn(|context| {
        if let Poll::Ready(done) = this.as_mut().poll(context) {
            return Poll::Ready(First::This(done));
        }
        that.as_mut().poll(context).map(First::That)
    })
    .await
}
