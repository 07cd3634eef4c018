//! What minutes are made of, kept and told.

use super::*;
use crate::resources::reading::Interface;
use hob_machine::text::{CpuTime, Traffic};

fn reading(now_ms: u64, bytes: u64) -> MachineReading {
    let interface = |name: &str, bytes: u64| Interface {
        name: name.to_owned(),
        traffic: Traffic {
            bytes_in: bytes,
            packets_in: bytes / 1000,
            bytes_out: 2 * bytes,
            packets_out: bytes / 500,
            drops_out: bytes / 100_000,
            drops_in: 0,
        },
        speed_bits_s: Some(1_000_000_000),
    };
    let cpu = |ticks: u64| CpuTime {
        all: 10 * ticks,
        idle: 4 * ticks,
        io_wait: ticks,
        softirq: 3 * ticks,
        stolen: 0,
    };
    MachineReading {
        now_ms,
        interfaces: vec![interface("lo", 0), interface("eth0", bytes)],
        cpus: vec![cpu(now_ms), cpu(now_ms), CpuTime::default()],
        net_rx: now_ms,
        disk_busy_ms: now_ms / 2,
        memory_bytes: 1000,
        memory_available_bytes: 250,
        server: MemoryReading {
            memory_bytes: 77,
            major_faults: now_ms / 1000,
            ..MemoryReading::default()
        },
        pools: vec![("/cgi-bin/*".to_owned(), MemoryReading::default())],
        descriptors: 40,
        ..MachineReading::default()
    }
}

fn column(told: &ResourceSeries, name: &str) -> Vec<Option<u64>> {
    let index = told.columns.iter().position(|one| one == name).unwrap();
    let rows = told.rows.iter();
    rows.map(|row| Some(row.as_ref()?[index])).collect()
}

#[test]
fn minute_is_what_was_between_two_readings() {
    let mut minutes = Minutes::default();
    let minute = minutes.add(5, &reading(1_000, 0), &reading(61_000, 60_000_000));
    let eth0 = InterfaceTraffic {
        bytes_in_s: 1_000_000,
        bytes_out_s: 2_000_000,
        packets_in_s: 1_000,
        packets_out_s: 2_000,
        drops: 600,
    };
    // What has carried nothing takes no place.
    assert_eq!(minute.links[0], eth0);
    assert_eq!(
        minutes.links().collect::<Vec<_>>(),
        [("eth0", Some(1_000_000_000))]
    );
    assert_eq!(minute.cpu_busy_permille, 500);
    assert_eq!(
        (minute.softirq_permille, minute.io_wait_permille),
        (300, 100)
    );
    assert_eq!(
        (minute.disk_busy_permille, minute.memory_used_permille),
        (500, 750)
    );
    assert_eq!((minute.net_rx_s, minute.descriptors), (1000, 40));
    assert_eq!(
        (minute.server.memory_bytes, minute.server.major_faults),
        (77, 60)
    );
}

#[test]
fn counts_that_fall_are_nothing_and_no_time_is_no_fault() {
    let mut minutes = Minutes::default();
    let minute = minutes.add(5, &reading(61_000, 60_000_000), &reading(61_000, 1_000));
    assert_eq!(minute.links[0].bytes_in_s, 0);
    assert_eq!(minute.softirq_permille, 0);
    let minute = minutes.add(6, &MachineReading::default(), &MachineReading::default());
    assert_eq!(minute.descriptors, 0);
}

#[test]
fn rows_are_joined_and_gaps_are_null() {
    let mut minutes = Minutes::default();
    for (minute, bytes) in [(10, 60_000), (11, 120_000), (13, 180_000)] {
        minutes.add(minute, &reading(0, 0), &reading(60_000, bytes));
    }
    let told = minutes.told(0, u64::MAX, 60);
    assert_eq!(told.step_s, 60);
    let last = told.rows.len();
    let rows = column(&told, "eth0 bytes_in_s").split_off(last - 4);
    assert_eq!(rows, [Some(1_000), Some(2_000), None, Some(3_000)]);

    let told = minutes.told(10 * 60, 13 * 60, 120);
    assert_eq!((told.step_s, told.from_unix_s), (120, 600));
    assert_eq!(column(&told, "eth0 bytes_in_s"), [Some(1_500), Some(3_000)]);
    assert_eq!(column(&told, "server major_faults"), [Some(120), Some(60)]);
    assert_eq!(column(&told, "/cgi-bin/* memory_bytes"), [Some(0), Some(0)]);
    assert!(Minutes::default().told(0, u64::MAX, 0).rows.is_empty());
}

#[test]
fn no_more_than_a_day_is_kept_and_names_run_out() {
    let mut minutes = Minutes::default();
    for minute in 0..MINUTE_COUNT_MAX as u64 + 10 {
        minutes.add(
            minute,
            &MachineReading::default(),
            &MachineReading::default(),
        );
    }
    assert_eq!(minutes.all.len(), MINUTE_COUNT_MAX);
    let told = minutes.told(0, u64::MAX, 60);
    assert_eq!(told.rows.len(), MINUTE_COUNT_MAX);
    assert_eq!(told.from_unix_s, 600);

    let mut many = reading(1, 1);
    let one = many.interfaces[1].clone();
    many.interfaces = (0..100)
        .map(|number| Interface {
            name: format!("veth{number}"),
            traffic: Traffic {
                packets_in: 1,
                ..one.traffic
            },
            ..one.clone()
        })
        .collect();
    let pool = many.pools[0].1;
    many.pools = (0..100)
        .map(|number| (format!("/{number}"), pool))
        .collect();
    minutes.add(9999, &many, &many);
    assert_eq!(minutes.links().count(), INTERFACE_COUNT_MAX);
    assert_eq!(minutes.pool_names().len(), POOL_COUNT_MAX);
}
