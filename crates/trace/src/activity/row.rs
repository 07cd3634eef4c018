//! One second or minute of a server: the columns, and how rows are made one.

/// Bytes of a row in a file.
pub(super) const ROW_BYTES: usize = 88;

/// What a server did and was in a second or a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityRow {
    /// Requests that were finished.
    pub requests: u32,
    /// Of them, those answered with 500 and above, and those whose answer broke off.
    pub errors: u32,
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of answers.
    pub bytes_out: u64,
    /// Time that half of the requests did not exceed, in microseconds.
    pub p50_us: u32,
    /// The same of nine in ten.
    pub p90_us: u32,
    /// The same of 99 in a hundred.
    pub p99_us: u32,
    /// The longest, in microseconds.
    pub max_us: u32,
    /// Processes of programs that were at work.
    pub busy_workers: u32,
    /// Wait for a program that 99 in a hundred requests for one did not exceed, in microseconds.
    pub queue_wait_us: u32,
    /// Requests under way.
    pub running: u32,
    /// Open connections.
    pub connections: u32,
    /// CPU time of the server, in microseconds.
    pub server_cpu_us: u64,
    /// CPU time of programs, in microseconds.
    pub programs_cpu_us: u64,
    /// Memory of the server, in bytes.
    pub server_memory_bytes: u64,
    /// Memory of programs, in bytes.
    pub programs_memory_bytes: u64,
}

/// The columns' names, in the order of [`ActivityRow::values`].
pub const COLUMNS: [&str; 16] = [
    "requests",
    "errors",
    "bytes_in",
    "bytes_out",
    "p50_us",
    "p90_us",
    "p99_us",
    "max_us",
    "busy_workers",
    "queue_wait_us",
    "running",
    "connections",
    "server_cpu_us",
    "programs_cpu_us",
    "server_memory_bytes",
    "programs_memory_bytes",
];

impl ActivityRow {
    /// The values, in the order of [`COLUMNS`].
    pub fn values(&self) -> [u64; COLUMNS.len()] {
        [
            self.requests.into(),
            self.errors.into(),
            self.bytes_in,
            self.bytes_out,
            self.p50_us.into(),
            self.p90_us.into(),
            self.p99_us.into(),
            self.max_us.into(),
            self.busy_workers.into(),
            self.queue_wait_us.into(),
            self.running.into(),
            self.connections.into(),
            self.server_cpu_us,
            self.programs_cpu_us,
            self.server_memory_bytes,
            self.programs_memory_bytes,
        ]
    }

    /// Makes one row of two that follow each other: counts, bytes and CPU time are added; of what
    /// goes up and down, the highest stays; percentiles are the mean of both, by their requests,
    /// and so an estimate.
    pub fn absorb(&mut self, other: &ActivityRow) {
        let (ours, theirs) = (u64::from(self.requests), u64::from(other.requests));
        let mean = |ours_us: u32, theirs_us: u32| {
            let sum = u64::from(ours_us) * ours + u64::from(theirs_us) * theirs;
            // Not above the larger of the two.
            (sum.checked_div(ours + theirs).unwrap_or(0)) as u32
        };
        *self = ActivityRow {
            requests: self.requests.saturating_add(other.requests),
            errors: self.errors.saturating_add(other.errors),
            bytes_in: self.bytes_in.saturating_add(other.bytes_in),
            bytes_out: self.bytes_out.saturating_add(other.bytes_out),
            p50_us: mean(self.p50_us, other.p50_us),
            p90_us: mean(self.p90_us, other.p90_us),
            p99_us: mean(self.p99_us, other.p99_us),
            max_us: self.max_us.max(other.max_us),
            busy_workers: self.busy_workers.max(other.busy_workers),
            queue_wait_us: self.queue_wait_us.max(other.queue_wait_us),
            running: self.running.max(other.running),
            connections: self.connections.max(other.connections),
            server_cpu_us: self.server_cpu_us.saturating_add(other.server_cpu_us),
            programs_cpu_us: self.programs_cpu_us.saturating_add(other.programs_cpu_us),
            server_memory_bytes: self.server_memory_bytes.max(other.server_memory_bytes),
            programs_memory_bytes: self.programs_memory_bytes.max(other.programs_memory_bytes),
        };
    }

    /// As bytes of a file: the fields in their order, little-endian.
    pub(super) fn encode(&self) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        let mut at = 0;
        for (value, (_, size)) in self.values().into_iter().zip(LAYOUT) {
            bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            at += size;
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8; ROW_BYTES]) -> ActivityRow {
        let mut at = 0;
        let values = LAYOUT.map(|(_, size)| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(&bytes[at..at + size]);
            at += size;
            u64::from_le_bytes(wide)
        });
        // Values of four bytes fit, by the layout.
        let small = |index: usize| values[index] as u32;
        ActivityRow {
            requests: small(0),
            errors: small(1),
            bytes_in: values[2],
            bytes_out: values[3],
            p50_us: small(4),
            p90_us: small(5),
            p99_us: small(6),
            max_us: small(7),
            busy_workers: small(8),
            queue_wait_us: small(9),
            running: small(10),
            connections: small(11),
            server_cpu_us: values[12],
            programs_cpu_us: values[13],
            server_memory_bytes: values[14],
            programs_memory_bytes: values[15],
        }
    }
}

/// Each column with its bytes in a file.
const LAYOUT: [(&str, usize); COLUMNS.len()] = {
    let mut layout = [("", 4); COLUMNS.len()];
    let mut index = 0;
    while index < COLUMNS.len() {
        let is_wide = index == 2 || index == 3 || index >= 12;
        layout[index] = (COLUMNS[index], if is_wide { 8 } else { 4 });
        index += 1;
    }
    layout
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_from_its_bytes() {
        let mut bytes = [0; ROW_BYTES];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = index as u8;
        }
        assert_eq!(ActivityRow::decode(&bytes).encode(), bytes);
        let size: usize = LAYOUT.iter().map(|(_, size)| size).sum();
        assert_eq!(size, ROW_BYTES);
    }

    #[test]
    fn two_rows_become_one() {
        let mut row = ActivityRow {
            requests: 1,
            p50_us: 100,
            max_us: 300,
            running: 4,
            bytes_out: 10,
            ..ActivityRow::default()
        };
        row.absorb(&ActivityRow {
            requests: 3,
            p50_us: 200,
            max_us: 250,
            running: 2,
            bytes_out: u64::MAX,
            ..ActivityRow::default()
        });
        let told = (row.requests, row.p50_us, row.max_us, row.running);
        assert_eq!((told, row.bytes_out), ((4, 175, 300, 4), u64::MAX));
        // Rows without requests change no percentile.
        row.absorb(&ActivityRow::default());
        assert_eq!(row.p50_us, 175);
    }
}
