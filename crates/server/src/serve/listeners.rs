//! Numbers of listeners that are the server's own; sites' have lower ones.

/// The number of the listener where the next server asks for visits.
pub const VISITS_LISTENER: u16 = 0xffef;
/// The number of the control socket among listeners.
pub const CONTROL_LISTENER: u16 = 0xfff0;
/// Listeners of the admin pages have this number or one above.
pub const ADMIN_LISTENER: u16 = 0xfff1;
