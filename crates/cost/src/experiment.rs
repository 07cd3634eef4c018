//! The bare experiment of 1995 again: a process is made, 1,000 bytes go to it and come back, it
//! ends. With and without exec, in each way of making one, by a parent of little and of much
//! memory.

use std::path::Path;

use hob_machine::hardware::memory_available_bytes;

use crate::bare::{self, Bare, BareJob, BareRun};
use crate::elf;
use crate::error::CostError;
use crate::kernel::start::How;
use crate::limits::EXCHANGE_BYTES;
use crate::private::{NOBODY, TemporaryFolder, is_root};
use crate::stop::InterruptFlag;

/// Memory of the parent besides its own, and the share of the runs that is enough: a fork of 1 GB
/// takes ten thousand times as long as a small one's.
const PARENTS: [(usize, u64); 3] = [(0, 1), (100_000_000, 4), (1_000_000_000, 20)];
/// Memory that is left to others.
const SPARE_BYTES: u64 = 512 * 1024 * 1024;

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct ExperimentRow {
    pub(crate) parent_bytes: usize,
    pub(crate) how: How,
    pub(crate) has_exec: bool,
    pub(crate) count: u64,
    pub(crate) bare: Result<Bare, String>,
}

/// Measures all rows.
pub(crate) fn measure(
    program: &Path,
    folder: &TemporaryFolder,
    count: u64,
    stop: &InterruptFlag,
) -> Result<Vec<ExperimentRow>, CostError> {
    let executed = match elf::IS_OURS_POSSIBLE {
        true => folder.program("static", &elf::echo(None))?,
        false => Path::new("/bin/cat").to_owned(),
    };
    let executed = vec![executed.to_string_lossy().into_owned()];
    let ways = [
        (How::Fork, false),
        (How::Fork, true),
        (How::PosixSpawn, true),
        (How::Vfork, false),
        (How::Vfork, true),
    ];
    let mut all = Vec::new();
    for (parent_bytes, share) in PARENTS {
        let count = count.div_ceil(share);
        let run = |(how, has_exec): (How, bool)| BareRun {
            how,
            arguments: if has_exec {
                executed.clone()
            } else {
                Vec::new()
            },
            variables: Vec::new(),
        };
        let job = BareJob {
            runs: ways.map(run).to_vec(),
            count,
            input: vec![b'x'; EXCHANGE_BYTES],
            touch_bytes: parent_bytes,
            folder: folder.path("programs"),
            account: is_root().then_some(NOBODY),
        };
        let measured = match has_room(parent_bytes) {
            true => Ok(bare::measure(program, &job, stop)?),
            false => Err("there is not enough free memory".to_owned()),
        };
        for (index, (how, has_exec)) in ways.into_iter().enumerate() {
            all.push(ExperimentRow {
                parent_bytes,
                how,
                has_exec,
                count,
                bare: measured
                    .as_ref()
                    .map(|all| all[index])
                    .map_err(String::clone),
            });
        }
    }
    Ok(all)
}

/// Is so much memory free, and some for others?
pub(crate) fn has_room(bytes: usize) -> bool {
    memory_available_bytes().is_none_or(|free| bytes == 0 || free > bytes as u64 + SPARE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read() {
        assert!(has_room(0) && !has_room(usize::MAX >> 1));
    }
}
