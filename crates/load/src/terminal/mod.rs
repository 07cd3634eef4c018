//! The terminal while something is drawn on it: taken, drawn on with ratatui, and given back as it
//! was, whatever ends or stops this process.

mod canvas;
mod curve;
mod own;
mod signals;

pub use canvas::Canvas;
pub use curve::curve;
