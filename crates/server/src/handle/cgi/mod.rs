//! A process for each request: CGI programs (RFC 3875), and commands that know nothing of the web.

pub mod head;
