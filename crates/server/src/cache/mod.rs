//! The cache of files: what is known and held of files, shared by all threads.
//!
//! - `entry` one file as it stood when it was last looked at
//! - `store` all entries under one budget; a crawl does not push out what is hot
//! - `flight` one look at the disk for all who wait for it
//! - `local` each thread's own view, without a lock
//! - `changes` what the kernel tells of folders
//! - `disk_threads` a few threads that may wait for a disk

pub mod changes;
pub mod disk_threads;
pub mod entry;
pub mod flight;
pub mod local;
pub mod store;
