//! The carrier in shared memory: one region per worker, mapped by the server and that worker only.
//!
//! [`region`] draws the layout and says who may write what when. Two rings carry messages,
//! [`slot`]s say who owns a request that was handed over, chunks hold long data so that the server
//! sends it without copying. Each side wakes the other only if it sleeps ([`wake`]). A worker may
//! lie, stop or be killed at any instruction: what it wrote is copied, then checked, once; nothing
//! of it outlives its region.

pub mod chunk;
pub mod gifts;
pub mod region;
pub mod ring;
pub mod server;
pub mod slot;
pub mod wake;
pub mod word;
pub mod worker;

mod lie;

pub use chunk::ChunkHold;
pub use gifts::Gifts;
pub use lie::{Lie, RingFull};
pub use server::{Counters, Incoming, ServerEnd, SlotRef, WorkerPayload};
pub use worker::{How, Room, Sleeper, WorkerChunk, WorkerEnd};
