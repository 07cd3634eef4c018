//! Does a program's start cost more when the server has grown? The same requests with a cache of
//! 10 MB, 100 MB and 1 GB in the server's memory. And when many start at once: a burst of requests
//! with and without a limit of starts.

use std::fs::{self, File};
use std::path::Path;

use crate::ask;
use crate::error::CostError;
use crate::experiment::has_room;
use crate::ladder::{self, Figures};
use crate::load::{ConnectionReuse, MeasuredRequest, series};
use crate::private::{Private, TemporaryFolder};
use crate::rungs::Rung;
use crate::site::{self, LISTENERS, PLAIN, Records};
use crate::stop::InterruptFlag;

/// Bytes of memory the server is to have.
const SIZES: [usize; 3] = [10_000_000, 100_000_000, 1_000_000_000];
/// One file under many names: each name is an entry of the cache of its own.
const FILE_BYTES: usize = 4_000_000;
/// Requests of a burst.
const BURST: usize = 200;
/// Starts at a time for each CPU, with a limit.
const STARTS_PER_CPU: usize = 2;

/// What is measured in both.
pub(crate) struct GrowthSubject<'a> {
    pub(crate) program: &'a Path,
    pub(crate) folder: &'a TemporaryFolder,
    pub(crate) rungs: &'a [Rung],
    /// The rung among them that starts a process for each request.
    pub(crate) index: usize,
    pub(crate) asked: &'a MeasuredRequest,
    pub(crate) count: u64,
    pub(crate) stop: &'a InterruptFlag,
}

/// The same program with a server of some size.
#[derive(Debug, Clone)]
pub(crate) struct Grown {
    pub(crate) wanted_bytes: usize,
    /// What the server had.
    pub(crate) server_bytes: u64,
    pub(crate) figures: Result<Figures, String>,
}

/// Many at once.
#[derive(Debug, Clone)]
pub(crate) struct Burst {
    pub(crate) starts: usize,
    /// How many may run at a time; none for all of them.
    pub(crate) limit: Option<usize>,
    pub(crate) figures: Figures,
}

/// Measures with the server at each size.
pub(crate) fn growth(subject: &GrowthSubject<'_>) -> Result<Vec<Grown>, CostError> {
    let names = SIZES[SIZES.len() - 1] / FILE_BYTES;
    let failed = || CostError::system("cannot write files for the cache");
    let first = subject.folder.path("site/0");
    let file = File::create(&first).map_err(failed())?;
    file.set_len(FILE_BYTES as u64).map_err(failed())?;
    for name in 1..names {
        let path = subject.folder.path(&format!("site/{name}"));
        fs::hard_link(&first, path).map_err(failed())?;
    }
    let config = site::config(subject.folder, subject.rungs, None)?;
    let cache = "cache = { bytes = \"1500MiB\", max_file = \"8MiB\", recheck = \"1h\" }\n";
    let config = format!("{cache}{config}");
    let hob = subject.start(&config)?;
    let mut filled = 0;
    let mut all = Vec::new();
    let nothing = MeasuredRequest::get();
    for wanted_bytes in SIZES {
        if !has_room(wanted_bytes) {
            all.push(Grown {
                wanted_bytes,
                server_bytes: 0,
                figures: Err("there is not enough free memory".to_owned()),
            });
            continue;
        }
        while filled < wanted_bytes / FILE_BYTES {
            subject.stop.check()?;
            ask::status_of(hob.ports[PLAIN], &format!("/{filled}"), &nothing)?;
            filled += 1;
        }
        let figures = subject.ask(&hob)?;
        all.push(Grown {
            wanted_bytes,
            server_bytes: hob.family.server_bytes(),
            figures: Ok(figures),
        });
    }
    Ok(all)
}

/// Measures a burst with a limit of starts, and without.
pub(crate) fn burst(subject: &GrowthSubject<'_>) -> Result<Vec<Burst>, CostError> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    for limit in [Some(STARTS_PER_CPU * cpus), None] {
        let concurrent = limit.unwrap_or(BURST);
        let config = site::config(subject.folder, subject.rungs, Some(concurrent))?;
        let hob = subject.start(&config)?;
        let url = hob.url(PLAIN, &subject.rungs[subject.index].path(subject.index));
        let ask = |connections: usize, count: u64| {
            series(
                &url,
                subject.asked,
                ConnectionReuse::Close,
                connections,
                count,
                subject.stop,
            )
        };
        ask(1, 1)?;
        let running = hob.resting_programs();
        let before = hob.family.used()?;
        let at_once = ask(BURST, BURST as u64)?;
        hob.settle(running);
        all.push(Burst {
            starts: BURST,
            limit,
            figures: Figures {
                times: at_once.times,
                cpu: hob.family.used()?.since(&before, at_once.answered),
            },
        });
    }
    Ok(all)
}

impl GrowthSubject<'_> {
    fn start(&self, config: &str) -> Result<Private, CostError> {
        // The log of the server before it is not this one's.
        let _ = fs::remove_file(self.folder.path("run/log"));
        Private::start(self.program, self.folder, config, LISTENERS, self.stop)
    }

    fn ask(&self, hob: &Private) -> Result<Figures, CostError> {
        let path = self.rungs[self.index].path(self.index);
        let records = Records::of(self.folder);
        if let Some(reason) = ladder::refused(hob, &records, &path, self.asked)? {
            return Err(CostError::Script(reason));
        }
        ladder::figures(hob, &path, self.asked, self.count, self.stop)
    }
}
