//! What a request has of a member: a connection of its own, or a place on one with others.

use std::rc::Rc;

use crate::handle::script::gate::Permit;
use crate::handle::upstream::http2::{Http2Stream, SharedConnection};
use crate::handle::upstream::link::{Link, MemberLink};
use crate::handle::upstream::members::MemberUse;

/// What a request has of a member.
pub(super) enum ProxyLink {
    Http1(Link),
    Http2(Http2Link),
}

/// A place on a connection.
pub(super) struct Http2Link {
    pub(super) connection: Rc<SharedConnection>,
    /// Once the request was sent.
    pub(super) stream: Option<Rc<Http2Stream>>,
    pub(super) used: MemberUse,
    /// Held for as long as the request is.
    pub(super) permit: Permit,
    /// The connection had served others.
    pub(super) is_kept: bool,
}

impl Http2Link {
    /// Nobody wants the rest; of a whole answer there is none.
    pub(super) fn let_go(&self) {
        if let Some(stream) = &self.stream {
            stream.cancel();
        }
    }
}

impl MemberLink for ProxyLink {
    fn used(&self) -> &MemberUse {
        match self {
            ProxyLink::Http1(link) => link.used(),
            ProxyLink::Http2(link) => &link.used,
        }
    }

    fn is_kept(&self) -> bool {
        match self {
            ProxyLink::Http1(link) => link.is_kept(),
            ProxyLink::Http2(link) => link.is_kept,
        }
    }

    fn into_permit(self) -> Permit {
        match self {
            ProxyLink::Http1(link) => link.into_permit(),
            ProxyLink::Http2(link) => {
                link.let_go();
                link.permit
            }
        }
    }
}
