//! The admin listener as browsers and attackers see it: who comes in, who does not, what each may
//! do, and that what they do happens.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "admin_pages/access.rs"]
mod access;
#[path = "admin_pages/actions.rs"]
mod actions;
#[path = "admin_pages/attacks.rs"]
mod attacks;
#[path = "admin_pages/door.rs"]
mod door;
#[path = "admin_pages/edit.rs"]
mod edit;
#[path = "admin_pages/login.rs"]
mod login;
#[path = "admin_pages/place.rs"]
mod place;
#[path = "admin_pages/stream.rs"]
mod stream;
