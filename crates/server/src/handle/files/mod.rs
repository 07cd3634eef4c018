//! Static files: media types and listings.

pub mod listing;
pub mod media_type;
