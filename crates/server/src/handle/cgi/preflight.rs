//! What programs that are started for each request want of the machine.

use std::fs;
use std::path::{Path, PathBuf};

use hob_keeper::preflight::{ProgramCheck, Want};

use super::config::{Cgi, CgiRuns, CgiSpots};
use crate::handle::config::{Argument, Spot};

/// Files of a folder of programs that are looked at.
const FILES_MAX: usize = 1000;
/// Files of one folder that are told of.
const TOLD_MAX: usize = 5;

pub(super) fn look(cgi: &Cgi, spots: &CgiSpots, look: &mut ProgramCheck<'_, '_, '_>) {
    let interpreters: &[_] = match &cgi.runs {
        CgiRuns::Folder {
            captured: Some(captured),
            interpreters,
            ..
        } => {
            // Those of accounts are looked at when they are asked for.
            look.server_enters(&captured.fixed, spots.dir);
            interpreters
        }
        CgiRuns::Folder {
            dir, interpreters, ..
        } => {
            // The server looks for the program there.
            look.server_enters(dir, spots.dir);
            look.enters(dir, spots.dir);
            files_of(dir, interpreters, spots.dir, look);
            interpreters
        }
        CgiRuns::Script { file, interpreters } => {
            let folder = file.parent().unwrap_or(Path::new("/"));
            match has_interpreter(file, interpreters) {
                _ if !look.enters(folder, spots.script) => {}
                true => look.needs(file, Want::Read, spots.script),
                false => look.executes(file, spots.script),
            }
            interpreters
        }
        CgiRuns::Command { dir, arguments, .. } => {
            look.enters(dir, spots.dir);
            if let Some(Argument::Text(name)) = arguments.first() {
                look.runs(name, spots.command);
            }
            &[]
        }
    };
    for ((_, words), spot) in interpreters.iter().zip(&spots.interpreters) {
        if let Some(name) = words.first() {
            look.runs(name, *spot);
        }
    }
}

/// Scripts of a folder that look as if they were to be run and cannot be: among them may be files
/// that nobody asks for.
fn files_of(
    dir: &Path,
    interpreters: &[(String, Vec<String>)],
    spot: Spot,
    look: &mut ProgramCheck<'_, '_, '_>,
) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let files = entries
        .take(FILES_MAX)
        .filter_map(|entry| Some(entry.ok()?.path()));
    let is_script = |file: &PathBuf| file.is_file() && !has_interpreter(file, interpreters);
    let mut scripts: Vec<PathBuf> = files.filter(is_script).collect();
    scripts.sort();
    let faults = scripts.iter().filter_map(|file| look.unrunnable(file));
    for (message, hint) in faults.take(TOLD_MAX).collect::<Vec<_>>() {
        look.warn(spot, &message, &hint);
    }
}

fn has_interpreter(file: &Path, interpreters: &[(String, Vec<String>)]) -> bool {
    let name = file.as_os_str().as_encoded_bytes();
    let mut endings = interpreters.iter();
    endings.any(|(ending, _)| name.ends_with(ending.as_bytes()))
}
