//! Flags of `hob bench --exercise`.

use clap::Args;

/// Mischief instead of a measurement.
#[derive(Args)]
pub(crate) struct ExerciseOptions {
    /// Exercise the server: clients that misbehave beside others that do not. --count acts (200)
    /// for --for at most (60s), all drawn from --seed. Only on loopback addresses and Unix
    /// sockets, unless --i-own-this-host is given
    #[arg(
        long,
        conflicts_with_all = [
            "list", "page", "warm", "rate", "replay", "speed_up", "replay_methods", "think",
            "arrivals", "connections", "sources", "streams", "close", "tls", "full_handshakes",
            "threads", "cpus", "warm_up", "method", "header", "body", "expect", "fail_if",
            "stop_if", "pid", "cgroup", "shard", "start_at", "html", "hdr", "compare", "insecure",
        ]
    )]
    pub(crate) exercise: bool,
    /// Repeat one act alone, by its number
    #[arg(long, value_name = "NUMBER", requires = "exercise", conflicts_with_all = ["count", "duration"])]
    pub(crate) act: Option<u64>,
    /// Exercise a server at an address that is not loopback: you answer for it
    #[arg(long, requires = "exercise")]
    pub(crate) i_own_this_host: bool,
}
