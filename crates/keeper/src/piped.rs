//! A program that reads an access log from its standard input.
//!
//! The server's log thread starts it itself, with the server's rights and none besides: the
//! spawner, which has more, knows nothing of it. No shell comes between. It sees the end of the log
//! by the end of its input, also when the server dies.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use hob_config::PATH;

/// Starts a program with its arguments, the first of which is its path. It has no environment but
/// `PATH`, and tells what goes wrong where the server does. It is alone in its process group: a
/// terminal's Ctrl-C is for who started the server, and lines are still to come then.
///
/// # Errors
/// There is no such program, or the system gives no process.
pub fn start(arguments: &[String], stdin: OwnedFd) -> io::Result<Child> {
    let Some((program, arguments)) = arguments.split_first() else {
        return Err(io::Error::other("the log names no program"));
    };
    Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(stdin)
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
}
