//! Tunnels of programs that stay: after the head raw bytes flow both ways, as data and body of the
//! same messages, under the same windows.
//!
//! The client asks by `Upgrade` (HTTP/1.1) or by an extended `CONNECT` (HTTP/2 and 3). A program
//! that does not want that answers as usual; to `CONNECT` only what is no success, because a
//! success would open the tunnel.

use hob_http::{Body, Response};

use crate::handle::config::CarrierChoice;
use crate::handle::plain;
use crate::handle::resident::Resident;
use crate::handle::resident::answer::PlacedRequest;
use crate::handle::resident::body::AnswerBody;
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::script::head::read_fields;

impl Resident {
    /// Its programs can answer with a tunnel.
    pub(crate) fn may_tunnel(&self) -> bool {
        self.settings.carrier != CarrierChoice::Lines
    }
}

impl PlacedRequest {
    /// From the head of a tunnel to an answer.
    pub(super) fn open_tunnel(self, status: u16, lines: &[u8]) -> Response {
        match self.try_open_tunnel(status, lines) {
            Ok(response) => response,
            Err(refused) => refused.0.fail(&refused.1),
        }
    }

    fn try_open_tunnel(
        mut self,
        status: u16,
        lines: &[u8],
    ) -> Result<Response, Box<(PlacedRequest, ResidentFailure)>> {
        const UNASKED: &str = "the program opened a tunnel that the client had not asked for";
        const STATUS: &str = "the program opened a tunnel with a status other than 101 and 2xx";
        let Some(protocol) = self.request.tunnel().map(<[u8]>::to_vec) else {
            return Err(Box::new((self, ResidentFailure::WrongTunnel(UNASKED))));
        };
        if !matches!(status, 0 | 101 | 200..=299) {
            return Err(Box::new((self, ResidentFailure::WrongTunnel(STATUS))));
        }
        // The status of the head stands for 101 over HTTP/1.1, and for 200 over the others.
        let mut fields = match read_fields(200, lines) {
            Ok(head) => head.fields,
            Err(bad) => return Err(Box::new((self, ResidentFailure::Head(bad)))),
        };
        fields.set(b"Server", plain::SERVER);
        if self.request.head().connect_protocol().is_none() {
            //= rfc9110#7.8
            fields.set(b"Upgrade", &protocol);
        }
        // What comes now is no body of a request.
        self.request.limit_body(u64::MAX);
        self.is_body_over &= self.exchange.has_body;
        let body = Body::Tunnel(Box::new(AnswerBody::new(self, None, None)));
        Ok(Response::new(101, fields, body))
    }

    /// The client would take the answer for an open tunnel, or may: there is none, and another path
    /// that answers instead opens none.
    //= rfc9110#9.3.6
    pub(super) fn promises_tunnel(&self, status: u16, is_elsewhere: bool) -> bool {
        self.request.sent_head().connect_protocol().is_some()
            && (is_elsewhere || matches!(status, 200..=299))
    }
}
