//! What may have disturbed a round besides the host: how long threads waited for a CPU that
//! something else had, and how fast that CPU ran.

use std::collections::HashMap;

use hob_machine::process::waited_ns;
use hob_machine::read;

/// How long each of some threads has waited for a CPU up to a moment, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct RunQueueWaits(HashMap<u32, u64>);

impl RunQueueWaits {
    /// Looks at these threads; those that are gone, or that the kernel does not count it for, are
    /// left out.
    pub(crate) fn of(threads: impl IntoIterator<Item = u32>) -> RunQueueWaits {
        let threads = threads.into_iter();
        let waits = threads.filter_map(|thread| Some((thread, waited_ns(thread)?)));
        RunQueueWaits(waits.collect())
    }

    /// What came to it since another moment, with all that threads which are new have waited;
    /// nothing where there is nobody. What was waited by threads that have ended is not seen.
    pub(crate) fn since(&self, before: &RunQueueWaits) -> Option<u64> {
        let of_thread = |(thread, ns): (&u32, &u64)| {
            let earlier = before.0.get(thread).copied().unwrap_or(0);
            ns.saturating_sub(earlier)
        };
        (!self.0.is_empty()).then(|| self.0.iter().map(of_thread).sum())
    }
}

/// How fast a CPU runs now, in MHz, as its driver or else `/proc/cpuinfo` says; nothing where
/// neither does. Guests are mostly told what the host's model has, whatever it does.
pub(crate) fn cpu_mhz(cpu: usize) -> Option<f64> {
    let driver = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
    let khz: Option<f64> = read(driver).trim().parse().ok();
    khz.map(|khz| khz / 1e3)
        .or_else(|| mhz_of(&read("/proc/cpuinfo"), cpu))
}

/// The line `cpu MHz` in the paragraph of a processor.
fn mhz_of(cpuinfo: &str, cpu: usize) -> Option<f64> {
    let value = |line: &str, name: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    let mut paragraphs = cpuinfo.split("\n\n");
    let own = paragraphs.find(|paragraph| {
        let mut lines = paragraph.lines();
        lines.find_map(|line| value(line, "processor")) == Some(cpu.to_string())
    })?;
    let mhz = own.lines().find_map(|line| value(line, "cpu MHz"));
    mhz?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_since_a_moment_are_those_of_threads_that_are_there() {
        let waits = |all: &[(u32, u64)]| RunQueueWaits(all.iter().copied().collect());
        let before = waits(&[(1, 100), (2, 50), (3, 7)]);
        // 2 has ended, 4 is new.
        let now = waits(&[(1, 130), (3, 7), (4, 5)]);
        assert_eq!(now.since(&before), Some(35));
        assert_eq!(waits(&[]).since(&before), None);
        // A number that was given to another thread.
        assert_eq!(waits(&[(1, 3)]).since(&before), Some(0));
    }

    #[test]
    fn own_thread_is_counted_where_the_kernel_counts_at_all() {
        let own = RunQueueWaits::of([std::process::id()]);
        let is_counted = !read("/proc/self/schedstat").is_empty();
        assert_eq!(own.since(&RunQueueWaits::default()).is_some(), is_counted);
        // No thread has this number: it is above the most a kernel allows.
        let none = RunQueueWaits::of([u32::MAX]);
        assert_eq!(none.since(&own), None);
    }

    #[test]
    fn frequency_is_that_of_the_processor() {
        let text = "processor\t: 0\ncpu MHz\t\t: 2445.426\nflags\t: a\n\n\
                    processor\t: 10\ncpu MHz\t\t: 3100.000\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n";
        assert_eq!(mhz_of(text, 0), Some(2445.426));
        assert_eq!(mhz_of(text, 10), Some(3100.0));
        assert_eq!((mhz_of(text, 1), mhz_of(text, 2)), (None, None));
    }
}
