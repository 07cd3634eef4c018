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

/// Sends as much as goes at once; the rest follows by itself, and behind it the trailers that
/// `passes` lets through.
pub(crate) async fn send(
    stream: &Rc<Http2Stream>,
    (mut body, pool): (ProgramRequestBody, &DiskThreads),
    (request, patience): (&Request, &Patience),
    passes: impl Fn(&[u8]) -> bool + 'static,
) {
    // Of a body that is all here, what stands behind it is, too.
    let has_trailers = !request.trailers().is_empty();
    match &mut body {
        ProgramRequestBody::Held(_) if has_trailers => {}
        ProgramRequestBody::None => return,
        ProgramRequestBody::Held(left) => {
            let sent = poll_fn(|cx| Poll::Ready(stream.poll_send(cx, left, true))).await;
            // Sent, or the other side takes nothing more.
            if sent.is_ready() {
                return;
            }
        }
        ProgramRequestBody::Spooled(..)
        | ProgramRequestBody::Coming(..)
        | ProgramRequestBody::Begun(..) => {}
    }
    let mut body = OutgoingBody::new(body, pool);
    let (stream, own, notice) = (Rc::clone(stream), request.clone(), patience.notice());
    request.reactor().spawn(async move {
        while let Some(piece) = body.next(&own).await {
            // What breaks off must not be taken for whole.
            let Ok(piece) = piece else {
                return stream.cancel();
            };
            let is_last = body.is_at_end() && !has_trailers;
            if stream.send(piece, is_last).await.is_err() || is_last {
                return;
            }
            notice.tell();
        }
        let mut trailers = own.trailers();
        trailers.retain(|(name, _)| passes(name));
        match trailers.is_empty() {
            true => drop(stream.send(Bytes::new(), true).await),
            false => stream.end_with(&trailers),
        }
    });
}
