//! Parts of the load generator for clients that decide themselves what goes over a connection, byte
//! by byte, as those of `conformance/mischief` do.

pub use crate::measure::{Failure, Failures, Latency, Tally};
pub use crate::random::Random;
pub use crate::reach::{addresses, tls};
pub use crate::report::{Failure as FailureCount, Times, failures, times};
pub use crate::request::{Ask, fields};
pub use crate::send::event::Event;
pub use crate::send::fields::{Arriving, Block};
pub use crate::send::kept::Kept;
pub use crate::send::{Address, Opened, Opener, PIECE_BYTES, Sources, Tls};

/// HTTP/2: frames, and blocks of fields.
pub mod h2 {
    pub use crate::send::h2::{Known, Table, frame, pack_alone};
}

/// HTTP/3: a connection over QUIC.
pub mod h3 {
    pub use crate::send::h3::{Common, Datagrams, Session, Step, config, pack_alone};
}
