//! What a request costs between a server's end and a resident C program, without any network: CPU
//! time of both, one request at a time and ten.
#![allow(clippy::unwrap_used)]

#[path = "../tests/worker/mod.rs"]
mod worker;

use hob_ipc::message::Carrier;

use worker::{Server, compiled, get};

const ROUNDS: u32 = 20_000;

fn main() {
    let program = compiled("crates/libhob/tests/program.c");
    for carrier in [Carrier::Shm, Carrier::Stream] {
        for depth in [1, 10] {
            let mut server = Server::start(&program, carrier, &[]);
            let before = cpu_us();
            for _ in 0..ROUNDS {
                let ids: Vec<_> = (0..depth).map(|_| server.send(&get("/hello"))).collect();
                for id in ids {
                    assert_eq!(server.answer(id).body, b"hello\n");
                }
            }
            let requests = f64::from(ROUNDS) * f64::from(depth);
            let (sent, received) = server.wakes();
            server.finish();
            println!(
                "{carrier:?}, {depth} at a time: {:.2} us per request, {:.3} wakes of the worker, \
                 {:.3} of the server",
                (cpu_us() - before) / requests,
                sent as f64 / requests,
                received as f64 / requests,
            );
        }
    }
}

/// CPU time of this process and its children that have ended.
fn cpu_us() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = text.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: f64 = fields[11..15]
        .iter()
        .map(|f| f.parse::<f64>().unwrap())
        .sum();
    ticks * 10_000.0
}
