//! Who answers: one folder per handler, and what their pages share.

pub mod error_page;
pub mod files;
pub mod html;
