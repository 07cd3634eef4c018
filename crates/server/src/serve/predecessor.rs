//! The server before this one, after an upgrade: visits that it has stay with it until they are
//! over, and their requests are passed on to it.
//!
//! ```text
//! client --> this server: no such visit here --> the server before: its program answers
//!                                                it is gone, or has none: the visit is over
//!                                                it has no time: 503
//! ```
//!
//! Each request has a connection of its own, over a socket that stands in no folder: a server that
//! drains keeps none. What only this server knows of the client goes along (`script/carried`).

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hob_http::listen::nameless::path_of;
use hob_http::{Answered, HalfClose, Response};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::handle::plain;
use crate::handle::proxy::Proxy;
use crate::handle::proxy::check;
use crate::handle::proxy::config::{ForwardedFields, HostSent, ProxySettings};
use crate::handle::script::gate::Gate;
use crate::handle::script::visits::table::number_visits_by;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::balance::Balance;
use crate::handle::upstream::buffer::BufferSettings;
use crate::handle::upstream::config::{MemberSettings, RetryRules, UpstreamSettings};
use crate::handle::upstream::http2::HttpVersions;
use crate::handle::upstream::kept::KeepLimits;
use crate::handle::upstream::member::FailureLimits;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::patience::UpstreamTimeouts;
use crate::serve::context::OnRoute;
use crate::serve::fleet::now_ms;

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Longest head of an answer, in bytes: what programs may send is checked where they run.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// The server before this one.
pub struct Predecessor {
    upstream: Arc<Upstream>,
    gate: Arc<Gate>,
    /// By it the upstream's address leads to the server.
    socket: OwnedFd,
    process: OwnedFd,
}

impl Predecessor {
    /// The one of this process (a pidfd) that listens at the socket whose file this is.
    pub fn new(socket: OwnedFd, process: OwnedFd) -> Predecessor {
        // Its visits, and those of servers after this one, have other numbers.
        number_visits_by(std::process::id());
        let member = MemberSettings {
            address: MemberAddress::Unix(path_of(&socket)),
            weight: 1,
            backup: false,
            connections: 0,
        };
        let settings = UpstreamSettings {
            name: None,
            members: vec![member],
            tls: None,
            balance: Balance::RoundRobin,
            sticky: None,
            connections: usize::MAX,
            keep: 0,
            keep_limits: KeepLimits {
                requests: 1,
                time: Duration::ZERO,
                idle: Duration::ZERO,
            },
            resolver: Vec::new(),
            service_members: 0,
            proxy_protocol: None,
            queue: 0,
            wait: Duration::ZERO,
            fail: FailureLimits {
                count: 0,
                window_ms: 0,
                pause_ms: 0,
            },
            check: None,
            slow_start_ms: 0,
            last_resort: true,
        };
        let protocol = check::protocol(HttpVersions::Http1);
        Predecessor {
            upstream: Upstream::new(&settings, protocol, None, now_ms()),
            gate: Arc::new(Gate::new(usize::MAX, 0)),
            socket,
            process,
        }
    }

    /// It may have visits yet.
    pub(crate) fn is_there(&self) -> bool {
        let mut looked = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut looked, Some(&Timespec::default())) == Ok(0)
    }

    /// The socket that it listens at.
    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Passes a request on whose visit is not here. `over` makes the answer where that server is
    /// gone.
    pub(crate) fn ask(
        &self,
        on: &OnRoute<'_>,
        over: impl FnOnce() -> Response + 'static,
    ) -> Answered {
        let settings = self.settings(route_name(&on.site.name, &on.route.label));
        let proxy = Arc::new(Proxy {
            addresses: self.upstream.settings.texts(),
            upstream: Arc::clone(&self.upstream),
            run: None,
            gate: Arc::clone(&self.gate),
            half_close: HalfClose::Serve,
            settings,
        });
        let (asked, request) = (proxy.ask(on), on.request.clone());
        Answered::Later(Box::pin(async move {
            asked.await.unwrap_or_else(|own| match own.status() {
                // Nobody takes the connection, or it has ended.
                502 => {
                    request.set_detail(b"");
                    over()
                }
                // It has no time, and may have the visit.
                _ => plain::busy(),
            })
        }))
    }

    fn settings(&self, program: String) -> ProxySettings {
        ProxySettings {
            upstream: self.upstream.settings.clone(),
            // The limits are those of the program, where it runs.
            timeout: UpstreamTimeouts {
                connect: CONNECT_TIME,
                first_byte: Duration::ZERO,
                total: Duration::ZERO,
                progress: Duration::ZERO,
                events: Duration::ZERO,
            },
            retry: RetryRules {
                times: 0,
                on: Vec::new(),
                budget_percent: 0,
            },
            buffer: BufferSettings {
                request: 0,
                unannounced: 0,
                response: 0,
            },
            authorities: vec!["localhost".to_owned()],
            base: String::new(),
            host: HostSent::Keep,
            forwarded: ForwardedFields::default(),
            headers: Vec::new(),
            location: false,
            cookies: false,
            http: HttpVersions::Http1,
            upgrade: Vec::new(),
            tunnel_idle: Duration::ZERO,
            head: HEAD_BYTES_MAX,
            control: true,
            program: Some(program),
            run: None,
        }
    }
}

/// How servers name a route of a site to each other.
pub(crate) fn route_name(site: &str, path: &str) -> String {
    format!("{site} {path}")
}
