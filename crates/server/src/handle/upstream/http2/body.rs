//! A request's body on its way, as fast as it comes and as the member takes it.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use hob_http::{Bytes, Request};

use crate::cache::disk_threads::DiskThreads;
use crate::handle::script::body::ProgramRequestBody;
use crate::handle::upstream::http2::Http2Stream;
use crate::handle::upstream::patience::Patience;
use crate::handle::upstream::sending::OutgoingBody;

/// Sends as much as goes at once; the rest follows by itself.
pub(crate) async fn send(
    stream: &Rc<Http2Stream>,
    (body, pool): (ProgramRequestBody, &DiskThreads),
    request: &Request,
    patience: &Patience,
) {
    let mut left = Bytes::new();
    let body = match body {
        ProgramRequestBody::None => return,
        ProgramRequestBody::Held(bytes) => {
            left = bytes;
            let sent = poll_fn(|cx| Poll::Ready(stream.poll_send(cx, &mut left, true))).await;
            // Else the other side takes nothing more.
            if sent.is_ready() {
                return;
            }
            OutgoingBody::Nothing
        }
        body => OutgoingBody::new(body, pool),
    };
    let (stream, own, notice) = (Rc::clone(stream), request.clone(), patience.notice());
    request.reactor().spawn(async move {
        let mut body = body;
        let is_held = matches!(body, OutgoingBody::Nothing);
        if is_held {
            let _ = stream.send(left, true).await;
            return;
        }
        loop {
            match body.next(&own).await {
                Some(Ok(piece)) => {
                    if stream.send(piece, body.is_at_end()).await.is_err() {
                        return;
                    }
                    notice.tell();
                    if body.is_at_end() {
                        return;
                    }
                }
                // What breaks off must not be taken for whole.
                Some(Err(())) => return stream.cancel(),
                None => {
                    let trailers = own.trailers();
                    if trailers.is_empty() {
                        let _ = stream.send(Bytes::new(), true).await;
                    } else {
                        stream.end_with(&trailers);
                    }
                    return;
                }
            }
        }
    });
}
