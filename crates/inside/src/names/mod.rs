//! Names of clients: who an address belongs to, as the DNS has it.
//!
//! Nothing on the way of a request asks: whoever shows a client (pages, `hob top`, `hob history`, a
//! log that wants it) takes the name from the cache and leaves the address to be looked up. Threads
//! of their own ask the DNS (`asking`); `cache` is what is known and what waits; `resolver` the
//! whole.
//!
//! A name counts only when it leads back to the address: who owns an address may call it anything,
//! but only the owner of a name says which addresses it has.

mod asking;
mod cache;
mod resolver;

pub use resolver::ClientNameResolver;
