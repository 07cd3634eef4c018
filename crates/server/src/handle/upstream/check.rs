//! Looking at members from time to time, whether or not they have requests. Each has a task on one
//! of the threads, for as long as its upstream is the one in force.

use std::fmt::Debug;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use hob_http::Reactor;
use hob_http::proxy_protocol::ProxyVersion;
use hob_http::tls::peer::PeerVersions;
use hob_trace::metric::ThreadCounters;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::config::CheckSettings;
use crate::handle::upstream::connect::{self, ConnectError};
use crate::handle::upstream::member::Member;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::proxy_protocol;
use crate::handle::upstream::stream::MemberStream;

/// How a member is asked in a protocol.
#[derive(Clone, Debug)]
pub(crate) struct CheckProtocol {
    /// Who speaks it.
    pub(crate) handler: &'static str,
    pub(crate) asks: Arc<dyn ChecksMembers>,
}

/// What is spoken to know how a member is.
pub(crate) trait ChecksMembers: Debug + Send + Sync {
    /// Versions of HTTP that are offered over TLS.
    fn versions(&self) -> PeerVersions;

    /// What is sent to ask this host for this path; `is_h2` where HTTP/2 was agreed on.
    fn request(&self, path: &str, host: &str, is_h2: bool) -> Vec<u8>;

    /// The status of the answer that begins so; `None` while more is needed.
    ///
    /// # Errors
    /// Why it is no answer.
    fn status(&self, came: &[u8], is_h2: bool) -> Result<Option<u16>, String>;
}

impl CheckProtocol {
    /// Whether members are asked the same.
    pub(crate) fn asks_as(&self, other: &CheckProtocol) -> bool {
        let said = |one: &CheckProtocol| (one.asks.versions(), one.asks.request("/", "", false));
        said(self) == said(other)
    }
}

/// What a task looks with.
#[derive(Clone)]
pub(crate) struct CheckMeans {
    pub(crate) reactor: Reactor,
    /// Looks names up.
    pub(crate) pool: DiskThreads,
    pub(crate) counters: Arc<ThreadCounters>,
}

/// Longest head of an answer to a check, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
const READ_BYTES: usize = 4 * 1024;

/// Begins to look at a member, for as long as it is one and its upstream is the one in force.
pub(crate) fn begin(upstream: &Arc<Upstream>, member: &Arc<Member>, means: &CheckMeans) {
    let asks = Arc::clone(&upstream.protocol.asks);
    let (upstream, member) = (Arc::downgrade(upstream), Arc::downgrade(member));
    let means = means.clone();
    let reactor = means.reactor.clone();
    reactor.spawn_standing(async move {
        let timer = means.reactor.timer();
        while let Some(pause) = look((&upstream, &member), &*asks, &means).await {
            timer.set(pause);
            timer.elapsed().await;
        }
    });
}

/// Looks at a member once. Returns how long until the next time; `None` where nobody wants to know
/// any more.
async fn look(
    (upstream, member): (&Weak<Upstream>, &Weak<Member>),
    asks: &dyn ChecksMembers,
    means: &CheckMeans,
) -> Option<std::time::Duration> {
    let (upstream, member) = (upstream.upgrade()?, member.upgrade()?);
    let check = upstream.settings.check.as_ref()?;
    let version = upstream.settings.proxy_protocol;
    let found = ask((&upstream, &member), (check, version), asks, means).await;
    // A reload may have had another one look, and a service may have it no more.
    if !upstream.is_in_force() || upstream.roster().place(&member).is_none() {
        return None;
    }
    let why = found.as_ref().err().cloned();
    let streak = (check.fall, check.rise);
    if member.check_found(found, streak, means.reactor.now_ms()) {
        match why {
            Some(why) => tracing::warn!(
                member = %member.text, "upstream: it is left out, its check failed: {why}"
            ),
            None => tracing::info!(member = %member.text, "upstream: its check is well again"),
        }
    }
    Some(check.every)
}

async fn ask(
    (upstream, member): (&Upstream, &Arc<Member>),
    (check, version): (&CheckSettings, Option<ProxyVersion>),
    asks: &dyn ChecksMembers,
    means: &CheckMeans,
) -> Result<(), String> {
    let limit = means.reactor.timer();
    limit.set(check.timeout);
    let on = (&means.reactor, &means.pool);
    let opening = proxy_protocol::opening(version, None);
    let tls = upstream.terms_for(member);
    let to = (
        &**member,
        tls.as_ref().map(|tls| (&tls.terms, asks.versions())),
    );
    let stream = connect::to(to, on, check.timeout, &opening).await;
    let stream = stream.map_err(|error| match error {
        ConnectError::Timeout => "no connection in time".to_owned(),
        ConnectError::Refused(error) => error,
        ConnectError::Tls(fault) => fault.to_string(),
    })?;
    if check.path.is_empty() {
        stream.close();
        return Ok(());
    }
    let host = match member.address.place() {
        MemberAddress::Unix(_) | MemberAddress::Run(_) => "localhost",
        _ => upstream.service_host(member).unwrap_or(&member.text),
    };
    let request = asks.request(&check.path, host, stream.is_h2());
    let mut exchange = std::pin::pin!(status(&stream, &request, asks));
    let status = poll_fn(|cx| match exchange.as_mut().poll(cx) {
        Poll::Ready(status) => Poll::Ready(status),
        Poll::Pending => limit
            .poll_elapsed(cx)
            .map(|()| Err("no answer in time".to_owned())),
    })
    .await?;
    match check.expect.contains(&status) {
        true => Ok(()),
        false => Err(format!("its status is {status}")),
    }
}

async fn status(
    socket: &MemberStream,
    request: &[u8],
    asks: &dyn ChecksMembers,
) -> Result<u16, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut sent = 0;
    while sent < request.len() {
        let left = &request[sent..];
        sent += poll_fn(|cx| socket.poll_write(cx, left))
            .await
            .map_err(text)?;
    }
    let mut came = Vec::new();
    loop {
        came.reserve(READ_BYTES);
        let count = poll_fn(|cx| socket.poll_read_behind(cx, &mut came)).await;
        if count.map_err(text)? == 0 {
            return Err("the connection ended before an answer".to_owned());
        }
        if let Some(status) = asks.status(&came, socket.is_h2())? {
            return Ok(status);
        }
        if came.len() > HEAD_BYTES_MAX {
            return Err("the head of its answer does not end".to_owned());
        }
    }
}
