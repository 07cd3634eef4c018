//! What is made of results: pages, logs of histograms, one result of several, the difference
//! between two.

use std::fs;
use std::path::{Path, PathBuf};

use hob_load::{ChangeLimit, ResultComparison, SavedResult};

use super::{CROSSED, wrong};
use crate::args::MergeOptions;
use crate::{CommandFailure, output};

/// Longest result that is read.
const RESULT_BYTES_MAX: u64 = 1 << 30;

/// Files to be written when there is a result.
pub(super) struct ResultFiles {
    html: Option<PathBuf>,
    hdr: Option<PathBuf>,
}

impl ResultFiles {
    /// Sees before anything is measured that the files can be written.
    pub(super) fn new(
        html: Option<&Path>,
        hdr: Option<&Path>,
    ) -> Result<ResultFiles, CommandFailure> {
        for (flag, path) in [("--html", html), ("--hdr", hdr)] {
            let Some(path) = path else { continue };
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if !folder.is_dir() || path.is_dir() {
                return Err(wrong(format!(
                    "{flag} {}: this is no place for a file",
                    path.display()
                )));
            }
        }
        Ok(ResultFiles {
            html: html.map(Path::to_owned),
            hdr: hdr.map(Path::to_owned),
        })
    }

    pub(super) fn write(&self, result: &SavedResult) -> Result<(), CommandFailure> {
        if let Some(path) = &self.html {
            write(path, &result.page().html())?;
        }
        if let Some(path) = &self.hdr {
            let is_text = path.extension().is_some_and(|end| end == "hgrm");
            let text = if is_text {
                result.hdr_percentiles()
            } else {
                result.hdr_log()
            };
            write(
                path,
                &text.map_err(|text| CommandFailure { code: 1, text })?,
            )?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), CommandFailure> {
    fs::write(path, text).map_err(|error| CommandFailure {
        code: 1,
        text: format!("cannot write {}: {error}", path.display()),
    })
}

/// All results of a file.
fn read(path: &Path) -> Result<Vec<SavedResult>, CommandFailure> {
    let refused = |why: String| wrong(format!("{}: {why}", path.display()));
    let bytes = fs::metadata(path)
        .map_err(|error| refused(error.to_string()))?
        .len();
    if bytes > RESULT_BYTES_MAX {
        return Err(refused(format!("longer than {RESULT_BYTES_MAX} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    SavedResult::read(&text).map_err(refused)
}

/// `hob bench merge`.
pub(super) fn merge(options: &MergeOptions) -> Result<(), CommandFailure> {
    let files = ResultFiles::new(options.html.as_deref(), options.hdr.as_deref())?;
    let mut all = Vec::new();
    for path in &options.files {
        all.extend(read(path)?);
    }
    let merged = SavedResult::merge(&all).map_err(wrong)?;
    if options.json {
        output::line(&merged.json().to_string());
    } else {
        output::write(&merged.summary());
    }
    files.write(&merged)?;
    match merged.has_failed() {
        true => Err(CommandFailure {
            code: CROSSED,
            text: String::new(),
        }),
        false => Ok(()),
    }
}

/// `hob bench --compare`.
pub(super) fn compare(
    files: &[PathBuf],
    limits: &[String],
    is_json: bool,
) -> Result<(), CommandFailure> {
    let limits = limits.iter().map(|text| text.parse::<ChangeLimit>());
    let limits = limits.collect::<Result<Vec<_>, _>>();
    let limits = limits.map_err(|text| wrong(format!("--fail-if: {text}")))?;
    let [before, after] = files else {
        return Err(wrong("--compare takes two files".to_owned()));
    };
    let comparison = ResultComparison::of(&read(before)?, &read(after)?, &limits).map_err(wrong)?;
    if is_json {
        output::line(&comparison.json().to_string());
    } else {
        output::write(&comparison.table());
    }
    match comparison.has_failed() {
        true => Err(CommandFailure {
            code: CROSSED,
            text: String::new(),
        }),
        false => Ok(()),
    }
}
