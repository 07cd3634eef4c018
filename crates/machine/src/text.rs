//! What the kernel prints, as numbers. Text in, numbers out: nothing is opened here.
//!
//! A line that is not as expected is left out, and a number that is not there is none or 0: kernels
//! add columns, and containers hide files.

use crate::process::ProcessStat;

/// What an interface has carried since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes received.
    pub bytes_in: u64,
    /// Packets received.
    pub packets_in: u64,
    /// Received packets that were dropped.
    pub drops_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Packets dropped before they were sent.
    pub drops_out: u64,
}

/// Interfaces and their traffic, of `/proc/net/dev`.
pub fn interfaces(text: &str) -> impl Iterator<Item = (&str, Traffic)> {
    text.lines().filter_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers
            .split_ascii_whitespace()
            .map_while(|number| number.parse().ok())
            .collect();
        // Sixteen columns: eight of what was received, then eight of what was sent.
        let at = |index: usize| numbers.get(index).copied();
        let traffic = Traffic {
            bytes_in: at(0)?,
            packets_in: at(1)?,
            drops_in: at(3)?,
            bytes_out: at(8)?,
            packets_out: at(9)?,
            drops_out: at(11)?,
        };
        Some((name.trim(), traffic))
    })
}

/// Time of a CPU since the machine started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Everything, idle time included.
    pub all: u64,
    /// Idle, and nothing to wait for.
    pub idle: u64,
    /// Idle while a disk was awaited.
    pub io_wait: u64,
    /// In soft interrupts, most of it network.
    pub softirq: u64,
    /// Taken by other guests of the machine below.
    pub stolen: u64,
}

impl CpuTime {
    /// Neither idle nor taken by others.
    pub fn busy(&self) -> u64 {
        let rest = self.idle.saturating_add(self.io_wait);
        self.all.saturating_sub(rest.saturating_add(self.stolen))
    }

    /// `NAME user nice system idle iowait irq softirq steal`, and guests, who are in the first two.
    fn of_line(line: &str) -> Option<CpuTime> {
        let numbers: Vec<u64> = line
            .split_ascii_whitespace()
            .skip(1)
            .map_while(|number| number.parse().ok())
            .collect();
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        (numbers.len() >= 4).then(|| CpuTime {
            all: numbers.iter().take(8).copied().fold(0, u64::saturating_add),
            idle: at(3),
            io_wait: at(4),
            softirq: at(6),
            stolen: at(7),
        })
    }
}

/// Times of each CPU, of `/proc/stat`; all of them together are the first.
pub fn cpu_times(text: &str) -> Vec<CpuTime> {
    let lines = text.lines().filter(|line| line.starts_with("cpu"));
    lines.filter_map(CpuTime::of_line).collect()
}

/// Times of one CPU by its name there, such as `cpu1`; of all together it is `cpu`.
pub fn cpu_time(text: &str, name: &str) -> Option<CpuTime> {
    let mut lines = text.lines();
    CpuTime::of_line(lines.find(|line| line.split(' ').next() == Some(name))?)
}

/// Soft interrupts of a kind on all CPUs, of `/proc/softirqs`.
pub fn softirqs(text: &str, kind: &str) -> u64 {
    let line = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == kind);
    let counts = line.map_or("", |(_, counts)| counts);
    counts
        .split_ascii_whitespace()
        .filter_map(|count| count.parse::<u64>().ok())
        .fold(0, u64::saturating_add)
}

/// A number of `/proc/net/netstat` or `/proc/net/snmp`: a line of names stands above one of
/// numbers, both begin with the group.
pub fn netstat(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    loop {
        let (names, numbers) = loop {
            let (found, names) = lines.next()?;
            if found == group {
                let (_, numbers) = lines.next().filter(|(again, _)| *again == group)?;
                break (names, numbers);
            }
        };
        let mut names = names.split_ascii_whitespace();
        if let Some(index) = names.position(|one| one == name) {
            return numbers.split_ascii_whitespace().nth(index)?.parse().ok();
        }
    }
}

/// How long work stood still for want of something, in microseconds since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least somebody waited.
    pub some_us: u64,
    /// Everybody did.
    pub full_us: u64,
}

/// A file of `/proc/pressure`, or the `*.pressure` of a control group.
pub fn pressure(text: &str) -> Option<Pressure> {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        let word = line.split_ascii_whitespace();
        let mut totals = word.filter_map(|word| word.strip_prefix("total="));
        totals.next()?.parse().ok()
    };
    Some(Pressure {
        some_us: total("some ")?,
        // For the CPU older kernels have no such line.
        full_us: total("full ").unwrap_or(0),
    })
}

/// Time disks were busy, in milliseconds since the start, of `/proc/diskstats`: the busiest disk.
/// Partitions, loops and memory are left out.
pub fn disk_busy_ms(text: &str) -> u64 {
    let busy = text.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(2);
        let name = fields.next()?;
        let is_disk = !["loop", "ram", "zram", "sr", "fd"]
            .iter()
            .any(|other| name.starts_with(other));
        // Eleven numbers follow the name; the tenth is the time with something to do.
        let busy = fields.nth(9)?.parse::<u64>().ok()?;
        is_disk.then_some(busy)
    });
    busy.max().unwrap_or(0)
}

/// A line `Name:  123 kB` of `/proc/meminfo` or `/proc/PID/status`, in bytes.
pub fn kib_line(text: &str, name: &str) -> Option<u64> {
    let value = line_of(text, name)?;
    let kib: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// What stands after `Name:` or `name :` on its line.
pub fn line_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim_end() == name).then_some(value.trim())
    })
}

/// All of it on any text, for the fuzzer: nothing may panic, and sums may not overflow.
pub fn everything(text: &str) -> usize {
    let interfaces = interfaces(text).count();
    let counted = softirqs(text, "NET_RX") as usize & 1;
    let found = [
        netstat(text, "TcpExt", "ListenOverflows").is_some(),
        pressure(text).is_some(),
        ProcessStat::of_stat(text).is_some(),
        kib_line(text, "MemTotal").is_some(),
        disk_busy_ms(text) > 0,
    ];
    let found = found.iter().filter(|is_there| **is_there).count();
    interfaces + counted + found + cpu_times(text).len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    const DEV: &str = "\
Inter-|   Receive                   |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop
    lo: 741208491 2873531 0 0 0 0 0 0 741208491 2873531 0 0 0 0 0 0
  eth0:407212592   11489    0    3 0 0 0 0   627932    6654    0    4 0 0 0 0
 wlan0: 1 2 3
 short
eth1.5: -1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
";

    #[test]
    fn interfaces_have_their_columns() {
        let all: Vec<_> = interfaces(DEV).collect();
        assert_eq!(all.len(), 2);
        let eth0 = Traffic {
            bytes_in: 407_212_592,
            packets_in: 11_489,
            drops_in: 3,
            bytes_out: 627_932,
            packets_out: 6_654,
            drops_out: 4,
        };
        assert_eq!(all[1], ("eth0", eth0));
    }

    #[test]
    fn times_of_cpus_count_guests_once() {
        let text = "cpu  10 1 20 300 40 5 6 7 8 9\ncpu0 1 2 3 4\ncpu1 1 2 3\nintr 5 6 7 8 9\n";
        let times = cpu_times(text);
        assert_eq!(times.len(), 2);
        let all = CpuTime {
            all: 389,
            idle: 300,
            io_wait: 40,
            softirq: 6,
            stolen: 7,
        };
        assert_eq!(times[0], all);
        assert_eq!((times[1].all, times[1].softirq), (10, 0));
        let huge = format!("cpu {0} {0} {0} {0}", u64::MAX);
        assert_eq!(cpu_times(&huge)[0].all, u64::MAX);
        assert_eq!(cpu_times(&huge)[0].busy(), 0);
    }

    #[test]
    fn cpu_is_found_by_its_whole_name_and_busy_with_all_but_its_rest() {
        let text = "cpu  9 9 9 9 9 9 9\ncpu1 1 2 3 100 200 4 5 60 0 0\ncpu10 1 1 1 1 1 1 1\n";
        let busy = |name| cpu_time(text, name).map(|time| time.busy());
        assert_eq!(busy("cpu1"), Some(15));
        assert_eq!(busy("cpu10"), Some(5));
        assert_eq!(busy("cpu"), Some(45));
        assert_eq!(busy("cpu3"), None);
    }

    #[test]
    fn softirqs_are_summed_over_cpus() {
        let text = "  CPU0 CPU1\n  NET_TX:  5  2\n  NET_RX:  100  23\n";
        assert_eq!(softirqs(text, "NET_RX"), 123);
        assert_eq!(softirqs(text, "RCU"), 0);
    }

    #[test]
    fn netstat_finds_a_number_by_its_name() {
        let text = "TcpExt: A ListenOverflows ListenDrops\nTcpExt: 1 22 333\n\
                    IpExt: A InOctets\nIpExt: 4 55\n";
        assert_eq!(netstat(text, "TcpExt", "ListenOverflows"), Some(22));
        assert_eq!(netstat(text, "IpExt", "InOctets"), Some(55));
        assert_eq!(netstat(text, "IpExt", "ListenDrops"), None);
        assert_eq!(netstat("TcpExt: A B\n", "TcpExt", "B"), None);
        assert_eq!(netstat("TcpExt: A B\nTcpExt: 1\n", "TcpExt", "B"), None);
    }

    #[test]
    fn pressure_has_totals() {
        let text = "some avg10=0.11 avg60=0.49 avg300=0.49 total=13226890\n\
                    full avg10=0.06 avg60=0.22 avg300=0.10 total=7321986\n";
        let both = Pressure {
            some_us: 13_226_890,
            full_us: 7_321_986,
        };
        assert_eq!(pressure(text), Some(both));
        assert_eq!(pressure("some total=1").map(|one| one.full_us), Some(0));
        assert_eq!(pressure(""), None);
    }

    #[test]
    fn busiest_disk_counts_and_loops_do_not() {
        let text = "\
   7 0 loop0 9 9 9 9 9 9 9 9 9 9999 9 9 9 9 9 9 9
 254 0 vda 117617 1 5552154 137545 52119 8 14785032 92539 0 26340 236171 28513 42
 254 1 vdb 1 2 3
";
        assert_eq!(disk_busy_ms(text), 26_340);
        assert_eq!(disk_busy_ms(""), 0);
    }

    #[test]
    fn lines_of_names_are_found_whole() {
        let text = "MemTotalOther: 1 kB\nMemTotal:       24684096 kB\nmodel name\t: AMD EPYC\n";
        assert_eq!(kib_line(text, "MemTotal"), Some(24_684_096 * 1024));
        assert_eq!(line_of(text, "model name"), Some("AMD EPYC"));
        assert_eq!(kib_line(text, "MemFree"), None);
        assert_eq!(
            kib_line("MemFree: 18446744073709551615 kB", "MemFree"),
            None
        );
    }

    #[test]
    fn this_machine_can_be_read() {
        let dev = read("/proc/net/dev");
        assert!(interfaces(&dev).any(|(name, _)| name == "lo"), "{dev}");
        let stat = read("/proc/stat");
        let times = cpu_times(&stat);
        assert!(times.len() >= 2, "{stat}");
        assert!(times[0].all >= times[0].idle + times[0].io_wait, "{stat}");
        assert!(netstat(&read("/proc/net/netstat"), "TcpExt", "ListenDrops").is_some());
        assert!(kib_line(&read("/proc/meminfo"), "MemTotal").is_some());
    }
}
