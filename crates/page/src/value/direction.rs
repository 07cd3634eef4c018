//! Which way a value goes between a caller and a function.

/// Which way a parameter goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From caller to function.
    In,
    /// Back to the caller.
    Out,
    /// Both.
    InOut,
}
