//! What one protocol brings in which programs are asked. It knows bytes, and no socket.

use std::fmt::Debug;

use crate::handle::script::variables::{self, ProgramRequest, VariableSink};
use crate::handle::upstream::fail::UpstreamReasons;
use crate::handle::upstream::program::check::CheckedPath;
use crate::handle::upstream::program::fail::ProgramFailure;
use crate::handle::upstream::sending::BodyFraming;

/// How programs are asked, and answer.
pub(crate) trait ProgramProtocol: Debug + Send + Sync {
    /// The words for it.
    fn words(&self) -> &'static ProtocolWords;

    /// What stands before the body.
    ///
    /// # Errors
    /// The protocol cannot carry it.
    fn head(
        &self,
        asked: &ProgramRequest<'_>,
        env: &[(String, String)],
    ) -> Result<Vec<u8>, UnfitVariables>;

    /// All of a request that asks how a member is.
    fn check(&self, asked: &CheckedPath<'_>) -> Vec<u8>;

    /// How the body is written.
    fn framing(&self) -> BodyFraming {
        BodyFraming::PLAIN
    }

    /// Takes one answer apart.
    fn reader(&self) -> Box<dyn ReadsAnswer> {
        Box::new(ToItsEnd)
    }
}

/// What a protocol is called.
pub(crate) struct ProtocolWords {
    /// Its key of a route.
    pub(crate) key: &'static str,
    /// The key that has failures explained.
    pub(crate) dev: &'static str,
    pub(crate) reasons: UpstreamReasons,
}

/// Why variables cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitVariables {
    /// They are longer than their two bytes of length can say.
    TooLong,
    /// One holds a NUL byte, which ends it there.
    Nul,
}

/// Takes an answer apart.
pub(crate) trait ReadsAnswer {
    /// Takes all of what has come: `output` gets what is of the answer, `printed` what stands on
    /// standard error.
    ///
    /// # Errors
    /// It is none of this protocol, or says that the request is refused.
    fn take(
        &mut self,
        bytes: &[u8],
        output: &mut Vec<u8>,
        printed: &mut Vec<u8>,
    ) -> Result<(), ProgramFailure>;

    /// It has said that the answer is over.
    fn is_over(&self) -> bool;

    /// It says so by ending the connection.
    fn ends_with_connection(&self) -> bool;
}

/// An answer of which all is output, until the connection ends.
struct ToItsEnd;

impl ReadsAnswer for ToItsEnd {
    fn take(
        &mut self,
        bytes: &[u8],
        output: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> Result<(), ProgramFailure> {
        output.extend_from_slice(bytes);
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }

    fn ends_with_connection(&self) -> bool {
        true
    }
}

/// Writes the variables of a request behind those of the config, which stay where both have one.
pub(crate) fn write_variables(
    asked: &ProgramRequest<'_>,
    env: &[(String, String)],
    to: &mut impl VariableSink,
) {
    if env.is_empty() {
        variables::write_lasting(asked, to);
        variables::write_passing(asked, to);
        return;
    }
    for (name, value) in env {
        write_one(name.as_bytes(), value.as_bytes(), to);
    }
    let is_set = |name: &[u8]| {
        env.binary_search_by(|(known, _)| known.as_bytes().cmp(name))
            .is_ok()
    };
    variables::each(asked, |name, value| {
        if !is_set(name) {
            write_one(name, value, to);
        }
    });
}

/// Writes one variable.
pub(crate) fn write_one(name: &[u8], value: &[u8], to: &mut impl VariableSink) {
    to.add(
        |out| out.extend_from_slice(name),
        |out| {
            out.extend_from_slice(value);
            true
        },
    );
}
