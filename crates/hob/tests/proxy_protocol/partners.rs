//! HAProxy and nginx, in front of hob and behind it. One that is not installed is left out with a
//! line that says so.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::harness::{DEADLINE, Place};

/// One that runs.
pub(crate) struct Partner {
    program: Child,
    /// Where HAProxy listens.
    pub(crate) port: u16,
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// HAProxy with these lines of a proxy that binds to descriptor 3, a port that listens already.
pub(crate) fn haproxy(place: &Place, lines: &str) -> Option<Partner> {
    installed("haproxy")?;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let file = place.path(&format!("haproxy-{port}.cfg"));
    let times = "timeout connect 30s\ntimeout client 30s\ntimeout server 30s\n";
    let config = format!("global\nmaxconn 64\ndefaults\n{times}listen all\n{lines}\n");
    std::fs::write(&file, config).unwrap();
    let program = Command::new("/bin/sh")
        .args(["-c", "exec 3<&0 </dev/null; exec haproxy -db -f \"$0\""])
        .arg(&file)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(OwnedFd::from(listener))
        .spawn()
        .unwrap();
    Some(Partner { program, port })
}

/// nginx on the Unix socket `run/nginx.sock` that says what it hears of its clients.
pub(crate) fn nginx(place: &Place) -> Option<Partner> {
    installed("nginx")?;
    let run = place.path("run");
    let run = run.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {run}/{kind};\n"))
        .concat();
    let told = ["addr", "port", "server_addr", "server_port"]
        .map(|part| format!("$proxy_protocol_{part}"))
        .join(" ");
    let config = format!(
        "daemon off;\nmaster_process off;\npid {run}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}server {{\nlisten unix:{run}/nginx.sock \
         proxy_protocol;\nlocation / {{\nreturn 200 \"{told}\";\n}}\n}}\n}}\n"
    );
    let file = place.path("nginx.conf");
    std::fs::write(&file, config).unwrap();
    let program = Command::new("/usr/sbin/nginx")
        .args(["-e", "stderr", "-c"])
        .arg(&file)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while UnixStream::connect(place.path("run/nginx.sock")).is_err() {
        assert!(begun.elapsed() < DEADLINE, "nginx does not listen");
        std::thread::yield_now();
    }
    Some(Partner { program, port: 0 })
}

fn installed(name: &str) -> Option<()> {
    let is_there = Path::new("/usr/sbin").join(name).exists();
    if !is_there {
        println!("skipped: {name} is not installed");
    }
    is_there.then_some(())
}

/// What curl gets that connects from 127.0.0.9, with these arguments.
pub(crate) fn curl(arguments: &[&str], url: &str) -> String {
    let output = Command::new("curl")
        .args(["-sSk", "--max-time", "60", "--noproxy", "*"])
        .args(["--interface", "127.0.0.9"])
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}
