//! How a member is asked how it is: as by a request, of which nothing is known but its path.

use std::sync::Arc;

use hob_http::tls::peer::PeerVersions;

use crate::handle::script::head::{CgiHeadProgress, HeadReader};
use crate::handle::script::variables::VariableSink;
use crate::handle::upstream::check::{CheckProtocol, ChecksMembers};
use crate::handle::upstream::program::protocol::{ProgramProtocol, write_one};

/// The path of a check, and what the member is called.
pub(crate) struct CheckedPath<'a> {
    pub(crate) path: &'a str,
    pub(crate) host: &'a str,
}

impl CheckedPath<'_> {
    /// Writes its variables; those of these names hold the path.
    pub(crate) fn write(&self, names: &[&str], to: &mut impl VariableSink) {
        let (path, query) = self.path.split_once('?').unwrap_or((self.path, ""));
        for (name, value) in [
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("SERVER_SOFTWARE", "hob"),
            ("SERVER_NAME", self.host),
            ("SERVER_PORT", "80"),
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", self.path),
            ("QUERY_STRING", query),
        ] {
            write_one(name.as_bytes(), value.as_bytes(), to);
        }
        for name in names {
            write_one(name.as_bytes(), path.as_bytes(), to);
        }
    }
}

/// Checks in a protocol of programs.
#[derive(Debug)]
pub(super) struct ProgramCheck(Arc<dyn ProgramProtocol>);

impl ProgramCheck {
    pub(super) fn protocol(protocol: &Arc<dyn ProgramProtocol>) -> CheckProtocol {
        CheckProtocol {
            handler: protocol.words().key,
            asks: Arc::new(ProgramCheck(Arc::clone(protocol))),
        }
    }
}

impl ChecksMembers for ProgramCheck {
    fn versions(&self) -> PeerVersions {
        PeerVersions::Unnamed
    }

    fn request(&self, path: &str, host: &str, _: bool) -> Vec<u8> {
        self.0.check(&CheckedPath { path, host })
    }

    fn status(&self, came: &[u8], _: bool) -> Result<Option<u16>, String> {
        let (mut output, mut printed) = (Vec::new(), Vec::new());
        let taken = self.0.reader().take(came, &mut output, &mut printed);
        taken.map_err(|failure| failure.details())?;
        match HeadReader::new(usize::MAX).read(&output) {
            CgiHeadProgress::Head(head, _) => Ok(Some(head.status)),
            CgiHeadProgress::Refused(bad) => Err(bad.to_string()),
            CgiHeadProgress::NeedMore => Ok(None),
        }
    }
}
