//! Which loop should carry HTTP/1? The same engine, routing, cache and record under four event
//! sources.
//!
//! usage: loops own|tokio|nested|guest|thread PORT BYTES
//!
//! own     sockets in an epoll set of their own
//! tokio   sockets in tokio's reactor, a task per connection
//! nested  sockets in an own epoll set that stands in tokio's reactor as one AsyncFd
//! guest   sockets in an own epoll set in which tokio's own set stands as one descriptor
//! thread  what hob has: `hob_http::thread::Thread`

mod own;
mod site;
mod tokios;

use std::net::TcpListener;
use std::sync::Arc;

use site::Site;

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, port, bytes] = &words[..] else {
        eprintln!("usage: loops own|tokio|nested|guest|thread PORT BYTES");
        std::process::exit(2);
    };
    let port: u16 = port.parse().expect("PORT is a number");
    let site = Site::new(bytes.parse().expect("BYTES is a number"));
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    rustix::net::sockopt::set_tcp_nodelay(&listener, true)?;
    match kind.as_str() {
        "own" => own::run(listener, site, None),
        "guest" => own::run(listener, site, Some(tokios::Guest::new()?)),
        "tokio" => tokios::run(listener, site),
        "nested" => tokios::run_nested(listener, site),
        "thread" => {
            let crew = hob_http::thread::Crew::new(1)?;
            let counters = Arc::default();
            let limits = hob_http::limits::HttpLimits::default();
            let mut thread = hob_http::thread::Thread::new(&crew, 0, limits, counters, site)?;
            let listener = hob_http::thread::Listening::new(0, Arc::new(listener.into()));
            thread.set_listeners(vec![listener])?;
            thread.run()
        }
        _ => panic!("unknown loop {kind}"),
    }
}
