//! What a start costs. Prints and asserts nothing about time: run it by name, with `--nocapture`
//! and `HOB_TEST_STARTS` as the count.

use super::harness::{Outcome, Spawner, rules, run};
use hob_config::Namespace;

fn cpu_us(pid: i32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let ns = threads.map(|thread| {
        let stat = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
        stat.split_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    });
    ns.sum::<u64>() / 1000
}

#[test]
fn cost_of_a_start() {
    let Some(count) = std::env::var("HOB_TEST_STARTS")
        .ok()
        .and_then(|text| text.parse().ok())
    else {
        return;
    };
    let program = std::env::var("HOB_TEST_PROGRAM").unwrap_or_else(|_| "/bin/true".to_owned());
    for (name, must_fork) in [("shared memory", false), ("fork", true)] {
        let mut rules = rules();
        if must_fork {
            // Any namespace does; this one is the cheapest.
            rules.sandbox.namespaces = vec![Namespace::Uts];
        }
        let spawner = Spawner::with(vec![rules]);
        let mut link = spawner.link();
        let ask = run(&[&program]);
        let (mut children_us, before_us) = (0, cpu_us(spawner.pid()));
        let began = std::time::Instant::now();
        for _ in 0..count {
            let run = link.start(&ask);
            let (outcome, usage) = link.outcome(&run);
            assert_eq!(outcome, Outcome::Code(0));
            children_us += usage.user_us + usage.system_us;
        }
        let wall_us = began.elapsed().as_micros() as u64;
        let spawner_us = cpu_us(spawner.pid()) - before_us;
        println!(
            "{name}: spawner {} us, child {} us, wall {} us",
            spawner_us / count,
            children_us / count,
            wall_us / count
        );
        let status = std::fs::read_to_string(format!("/proc/{}/status", spawner.pid())).unwrap();
        let memory = status
            .lines()
            .filter(|line| line.starts_with("Rss") || line.starts_with("VmRSS"));
        println!("{}", memory.collect::<Vec<_>>().join("; "));
    }
}
