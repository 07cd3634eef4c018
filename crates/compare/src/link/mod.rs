//! Machines on this one: network namespaces, and links that join them.

mod comparison;
mod frames;
mod machine;
mod namespace;
mod relay;
mod settings;

pub(crate) use comparison::ComparisonLink;
pub(crate) use frames::{FrameCount, FrameCounter};
pub(crate) use machine::LinkedMachine;
pub use settings::LinkSettings;
