//! Minutes: what was used of the machine in each of the last 24 hours' minutes, in fixed memory.

use std::collections::VecDeque;

use super::reading::{MachineReading, MemoryReading};
use crate::api::{InterfaceSpeed, ResourceSeries};
use hob_machine::text::Pressure;

/// Interfaces that are told apart.
pub(crate) const INTERFACE_COUNT_MAX: usize = 8;
/// Pools of programs that are told apart.
pub(crate) const POOL_COUNT_MAX: usize = 16;
/// Minutes that are kept: a day.
pub(crate) const MINUTE_COUNT_MAX: usize = 24 * 60;
/// Most memory of all of them, in bytes.
const BYTES_MAX: usize = 2 * 1024 * 1024;
/// Rows of one answer; the step grows until they fit.
const ROW_COUNT_MAX: u64 = 2_000;
/// Seconds of a minute.
const MINUTE_S: u64 = 60;

const _: () = assert!(MINUTE_COUNT_MAX * size_of::<Minute>() <= BYTES_MAX);

/// What a link carried, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterfaceTraffic {
    pub(crate) bytes_in_s: u64,
    pub(crate) bytes_out_s: u64,
    pub(crate) packets_in_s: u32,
    pub(crate) packets_out_s: u32,
    /// Packets dropped in the whole minute, either way.
    pub(crate) drops: u32,
}

/// What the server or a pool used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) memory_bytes: u64,
    pub(crate) major_faults: u32,
    /// Share of the time in which it waited for memory.
    pub(crate) memory_wait_permille: u16,
}

/// One minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Minute {
    /// Its end, in minutes of Unix time.
    pub(crate) unix_minute: u64,
    pub(crate) links: [InterfaceTraffic; INTERFACE_COUNT_MAX],
    pub(crate) server: Use,
    pub(crate) pools: [Use; POOL_COUNT_MAX],
    pub(crate) descriptors: u32,
    pub(crate) net_rx_s: u32,
    pub(crate) listen_overflows: u32,
    pub(crate) listen_drops: u32,
    pub(crate) cpu_busy_permille: u16,
    /// Of the CPU that had most of it.
    pub(crate) softirq_permille: u16,
    pub(crate) io_wait_permille: u16,
    pub(crate) stolen_permille: u16,
    pub(crate) disk_busy_permille: u16,
    pub(crate) disk_wait_permille: u16,
    pub(crate) memory_wait_permille: u16,
    pub(crate) memory_used_permille: u16,
}

/// How minutes of a column become one row.
#[derive(Clone, Copy)]
enum Join {
    Mean,
    Sum,
    Most,
}

/// A column: its name, how its minutes are joined, and its number in a minute.
type Column<T> = (&'static str, Join, fn(&T) -> u64);

/// What every minute has.
const COLUMNS: &[Column<Minute>] = &[
    ("descriptors", Join::Most, |one| one.descriptors.into()),
    ("cpu_busy_permille", Join::Mean, |one| {
        one.cpu_busy_permille.into()
    }),
    ("softirq_permille", Join::Most, |one| {
        one.softirq_permille.into()
    }),
    ("io_wait_permille", Join::Mean, |one| {
        one.io_wait_permille.into()
    }),
    ("stolen_permille", Join::Mean, |one| {
        one.stolen_permille.into()
    }),
    ("net_rx_s", Join::Mean, |one| one.net_rx_s.into()),
    ("listen_overflows", Join::Sum, |one| {
        one.listen_overflows.into()
    }),
    ("listen_drops", Join::Sum, |one| one.listen_drops.into()),
    ("disk_busy_permille", Join::Most, |one| {
        one.disk_busy_permille.into()
    }),
    ("disk_wait_permille", Join::Most, |one| {
        one.disk_wait_permille.into()
    }),
    ("memory_wait_permille", Join::Most, |one| {
        one.memory_wait_permille.into()
    }),
    ("memory_used_permille", Join::Most, |one| {
        one.memory_used_permille.into()
    }),
];

/// What it has for each interface.
const LINK_COLUMNS: &[Column<InterfaceTraffic>] = &[
    ("bytes_in_s", Join::Mean, |link| link.bytes_in_s),
    ("bytes_out_s", Join::Mean, |link| link.bytes_out_s),
    ("packets_in_s", Join::Mean, |link| link.packets_in_s.into()),
    ("packets_out_s", Join::Mean, |link| {
        link.packets_out_s.into()
    }),
    ("drops", Join::Sum, |link| link.drops.into()),
];

/// What it has for the server and each pool.
const USE_COLUMNS: &[Column<Use>] = &[
    ("memory_bytes", Join::Most, |used| used.memory_bytes),
    ("major_faults", Join::Sum, |used| used.major_faults.into()),
    ("memory_wait_permille", Join::Most, |used| {
        used.memory_wait_permille.into()
    }),
];

/// The minutes, and whose their numbers are.
#[derive(Debug, Default)]
pub(crate) struct Minutes {
    all: VecDeque<Minute>,
    interfaces: NameSlots<INTERFACE_COUNT_MAX>,
    pools: NameSlots<POOL_COUNT_MAX>,
    /// By interface: bits a second of its link.
    speeds: [Option<u64>; INTERFACE_COUNT_MAX],
}

/// Names with places of their own, in the order they came; one that finds no place has none.
#[derive(Debug, Default)]
struct NameSlots<const COUNT: usize>(Vec<String>);

impl<const COUNT: usize> NameSlots<COUNT> {
    fn place(&mut self, name: &str) -> Option<usize> {
        let known = self.0.iter().position(|known| known == name);
        known.or_else(|| {
            (self.0.len() < COUNT).then(|| {
                self.0.push(name.to_owned());
                self.0.len() - 1
            })
        })
    }
}

impl Minutes {
    /// Adds the minute between two readings, which ends in this minute of Unix time.
    pub(crate) fn add(
        &mut self,
        unix_minute: u64,
        before: &MachineReading,
        now: &MachineReading,
    ) -> Minute {
        let passed_ms = now.now_ms.saturating_sub(before.now_ms).max(1);
        let mut minute = shares(before, now, passed_ms);
        minute.unix_minute = unix_minute;
        self.add_links(&mut minute, before, now, passed_ms);
        minute.server = used(&before.server, &now.server, passed_ms);
        for (name, part) in &now.pools {
            let Some(place) = self.pools.place(name) else {
                continue;
            };
            let known = before.pools.iter().find(|(other, _)| other == name);
            let first = known.map_or(part, |(_, part)| part);
            minute.pools[place] = used(first, part, passed_ms);
        }
        if self.all.len() == MINUTE_COUNT_MAX {
            self.all.pop_front();
        }
        self.all.push_back(minute);
        minute
    }

    fn add_links(
        &mut self,
        minute: &mut Minute,
        before: &MachineReading,
        now: &MachineReading,
        passed_ms: u64,
    ) {
        for one in &now.interfaces {
            let known = before
                .interfaces
                .iter()
                .find(|other| other.name == one.name);
            let (Some(known), traffic) = (known, one.traffic) else {
                continue;
            };
            let is_silent = traffic.packets_in == 0 && traffic.packets_out == 0;
            let place = match is_silent {
                true => None,
                false => self.interfaces.place(&one.name),
            };
            let Some(place) = place else { continue };
            let a_second = |now: u64, before: u64| rate(now, before, passed_ms);
            let packets = |now, before| u32::try_from(a_second(now, before)).unwrap_or(u32::MAX);
            self.speeds[place] = one.speed_bits_s;
            minute.links[place] = InterfaceTraffic {
                bytes_in_s: a_second(traffic.bytes_in, known.traffic.bytes_in),
                bytes_out_s: a_second(traffic.bytes_out, known.traffic.bytes_out),
                packets_in_s: packets(traffic.packets_in, known.traffic.packets_in),
                packets_out_s: packets(traffic.packets_out, known.traffic.packets_out),
                drops: grown(traffic.drops_in, known.traffic.drops_in)
                    .saturating_add(grown(traffic.drops_out, known.traffic.drops_out)),
            };
        }
    }

    /// Interfaces by their places: name, bits a second of the link.
    pub(crate) fn links(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        let names = self.interfaces.0.iter().map(String::as_str);
        names.zip(self.speeds)
    }

    /// Names of pools by their places.
    pub(crate) fn pool_names(&self) -> &[String] {
        &self.pools.0
    }

    /// Rows from one Unix time to another, in seconds.
    pub(crate) fn told(&self, from_s: u64, to_s: u64, step_s: u64) -> ResourceSeries {
        let columns = self.columns();
        let last = self.all.back().map_or(0, |minute| minute.unix_minute);
        let oldest = last.saturating_sub(MINUTE_COUNT_MAX as u64 - 1);
        // A row has the minutes that end after its begin, up to its end.
        let first = (from_s / MINUTE_S).clamp(oldest, last.max(oldest));
        let end = (to_s / MINUTE_S).clamp(first, last.max(first)) + 1;
        let mut step = (step_s / MINUTE_S).max(1);
        step = step.max((end - first).div_ceil(ROW_COUNT_MAX));
        let mut rows = Vec::new();
        let mut begin = first;
        while begin < end && !self.all.is_empty() {
            let at = self.all.partition_point(|one| one.unix_minute < begin);
            let minutes = self.all.range(at..);
            let minutes = minutes.take_while(|one| one.unix_minute < begin + step);
            rows.push(row(&columns, &minutes.collect::<Vec<_>>()));
            begin += step;
        }
        let interfaces = self.links().map(|(name, speed_bits_s)| InterfaceSpeed {
            name: name.to_owned(),
            speed_bits_s,
        });
        ResourceSeries {
            step_s: step * MINUTE_S,
            from_unix_s: first * MINUTE_S,
            interfaces: interfaces.collect(),
            pools: self.pool_names().to_vec(),
            columns: columns.into_iter().map(|(name, ..)| name).collect(),
            rows,
            ..ResourceSeries::default()
        }
    }

    #[allow(clippy::type_complexity)]
    fn columns(&self) -> Vec<(String, Join, Box<dyn Fn(&Minute) -> u64>)> {
        let mut columns: Vec<(String, Join, Box<dyn Fn(&Minute) -> u64>)> = Vec::new();
        for (name, join, number) in COLUMNS {
            columns.push(((*name).to_owned(), *join, Box::new(number)));
        }
        for (place, (interface, _)) in self.links().enumerate() {
            for (name, join, number) in LINK_COLUMNS {
                let of = move |minute: &Minute| number(&minute.links[place]);
                columns.push((format!("{interface} {name}"), *join, Box::new(of)));
            }
        }
        for (name, join, number) in USE_COLUMNS {
            let of = move |minute: &Minute| number(&minute.server);
            columns.push((format!("server {name}"), *join, Box::new(of)));
        }
        for (place, pool) in self.pool_names().iter().enumerate() {
            for (name, join, number) in USE_COLUMNS {
                let of = move |minute: &Minute| number(&minute.pools[place]);
                columns.push((format!("{pool} {name}"), *join, Box::new(of)));
            }
        }
        columns
    }
}

/// The row of some minutes; none where nothing was recorded.
#[allow(clippy::type_complexity)]
fn row(
    columns: &[(String, Join, Box<dyn Fn(&Minute) -> u64>)],
    minutes: &[&Minute],
) -> Option<Vec<u64>> {
    if minutes.is_empty() {
        return None;
    }
    let cells = columns.iter().map(|(_, join, number)| {
        let numbers = minutes.iter().map(|minute| number(minute));
        match join {
            Join::Most => numbers.max().unwrap_or(0),
            Join::Sum => numbers.sum(),
            Join::Mean => numbers.sum::<u64>() / minutes.len() as u64,
        }
    });
    Some(cells.collect())
}

/// What does not depend on names.
fn shares(before: &MachineReading, now: &MachineReading, passed_ms: u64) -> Minute {
    let cpus = before.cpus.iter().zip(&now.cpus);
    let softirq = cpus.clone().skip(1).map(|(before, now)| {
        let all = now.all.saturating_sub(before.all);
        permille(now.softirq.saturating_sub(before.softirq), all)
    });
    let of_all = |ticks: fn(&hob_machine::text::CpuTime) -> u64| {
        let (before, now) = cpus.clone().next()?;
        let all = now.all.saturating_sub(before.all);
        Some(permille(ticks(now).saturating_sub(ticks(before)), all))
    };
    let wait = |before: Pressure, now: Pressure| {
        permille(now.some_us.saturating_sub(before.some_us), passed_ms * 1000)
    };
    let disk_ms = now.disk_busy_ms.saturating_sub(before.disk_busy_ms);
    let memory_used = now.memory_bytes.saturating_sub(now.memory_available_bytes);
    Minute {
        descriptors: u32::try_from(now.descriptors).unwrap_or(u32::MAX),
        net_rx_s: u32::try_from(rate(now.net_rx, before.net_rx, passed_ms)).unwrap_or(u32::MAX),
        listen_overflows: grown(now.listen_overflows, before.listen_overflows),
        listen_drops: grown(now.listen_drops, before.listen_drops),
        cpu_busy_permille: of_all(|cpu| cpu.idle.saturating_add(cpu.io_wait))
            .map_or(0, |idle| 1000 - idle),
        softirq_permille: softirq.max().unwrap_or(0),
        io_wait_permille: of_all(|cpu| cpu.io_wait).unwrap_or(0),
        stolen_permille: of_all(|cpu| cpu.stolen).unwrap_or(0),
        disk_busy_permille: permille(disk_ms, passed_ms),
        disk_wait_permille: wait(before.io, now.io),
        memory_wait_permille: wait(before.memory, now.memory),
        memory_used_permille: permille(memory_used, now.memory_bytes),
        ..Minute::default()
    }
}

fn used(before: &MemoryReading, now: &MemoryReading, passed_ms: u64) -> Use {
    let wait_us = now.memory.some_us.saturating_sub(before.memory.some_us);
    Use {
        memory_bytes: now.memory_bytes,
        // Of workers that have ended meanwhile nothing is known any more.
        major_faults: grown(now.major_faults, before.major_faults),
        memory_wait_permille: permille(wait_us, passed_ms * 1000),
    }
}

fn rate(now: u64, before: u64, passed_ms: u64) -> u64 {
    let grown = u128::from(now.saturating_sub(before)) * 1000 / u128::from(passed_ms.max(1));
    u64::try_from(grown).unwrap_or(u64::MAX)
}

fn grown(now: u64, before: u64) -> u32 {
    u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX)
}

/// A share, at most all.
fn permille(part: u64, all: u64) -> u16 {
    if all == 0 {
        return 0;
    }
    let share = u128::from(part.min(all)) * 1000 / u128::from(all);
    share as u16
}

#[cfg(test)]
mod tests;
