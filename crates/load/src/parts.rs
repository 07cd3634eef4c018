//! Parts of the load generator for clients that decide themselves what goes over a connection, byte
//! by byte, as those of `conformance/mischief` do.

pub use crate::measure::{FailureKind, Failures, Latency, RequestTally};
pub use crate::random::Random;
pub use crate::reach::{addresses, tls};
pub use crate::report::{Failure as FailureCount, LatencySummary, failures, times};
pub use crate::request::{RequestProfile, fields};
pub use crate::send::event::AnswerEvent;
pub use crate::send::fields::{Arriving, BlockMeaning};
pub use crate::send::kept::Kept;
pub use crate::send::{ConnectingSocket, Opener, PIECE_BYTES, ServerAddress, SourceAddresses, Tls};

/// HTTP/2: frames, and blocks of fields.
pub mod h2 {
    pub use crate::send::h2::{ClientHpackTable, HpackContext, frame, pack_alone};
}

/// HTTP/3: a connection over QUIC.
pub mod h3 {
    pub use crate::send::h3::{
        Common, ConnectionChange, Datagrams, H3ClientSession, config, pack_alone,
    };
}
