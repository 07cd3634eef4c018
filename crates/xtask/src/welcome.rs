//! `cargo xtask welcome`: what examples/welcome needs and does not commit: large files, which are
//! the same on every machine, a C program, which has to be compiled on each, and a database.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "site/download";
const NOISE: &str = "noise-4MiB.bin";
const NOISE_BYTES: usize = 4 * 1024 * 1024;
const PRIMES: &str = "primes.txt";
const PRIMES_BELOW: usize = 2_500_000;
/// A CGI program in C, and what it is compiled into.
const SOURCE: &str = "boil.c";
const PROGRAM: &str = "cgi-bin/boil";

/// The folder of pages with SQL, their database, and what fills it.
const PAGES: &str = "stock";
const DATABASE: &str = "shelf.db";
const FILL: &str = "\
import sqlite3, sys
shelf = sqlite3.connect(sys.argv[1])
shelf.execute('CREATE TABLE IF NOT EXISTS tea (id INTEGER PRIMARY KEY, name TEXT NOT NULL,'
    ' minutes INTEGER, grams INTEGER)')
shelf.execute('CREATE TABLE IF NOT EXISTS order_line (number INTEGER, tea INTEGER, grams INTEGER)')
if not shelf.execute('SELECT count(*) FROM tea').fetchone()[0]:
    shelf.executemany('INSERT INTO tea (name, minutes, grams) VALUES (?, ?, ?)', [
        ('assam', 4, 120), ('darjeeling', 3, 80), ('earl grey', 4, 210), ('genmaicha', 2, 45),
        ('gunpowder', 3, 150), ('lapsang souchong', 4, 30), ('oolong', 3, 95),
        ('pu-erh', 5, 250), ('rooibos', 7, 300), ('sencha', 2, 60), ('white peony', 5, 40),
        ('chamomile', 6, 110)])
shelf.commit()
";

/// Makes them in the repository.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask welcome".to_string());
    }
    make(&root.join("examples/welcome"))?;
    Ok(true)
}

/// Makes what is missing below `example`.
pub(crate) fn make(example: &Path) -> Result<(), String> {
    make_downloads(example)?;
    fill_shelf(example)?;
    compile(example)
}

/// Makes of the database of the pages what is missing. Where root serves the example, the server is
/// somebody else, who may write to it all the same.
fn fill_shelf(example: &Path) -> Result<(), String> {
    let folder = example.join(PAGES);
    let mut python = Command::new("python3");
    python.args(["-c", FILL, DATABASE]).current_dir(&folder);
    match python.status() {
        Ok(status) if status.success() => {}
        Ok(_) => return Err(format!("python3 does not make {DATABASE} of the example")),
        Err(error) => return Err(format!("starting python3 for {DATABASE}: {error}")),
    }
    let is_root = fs::metadata(folder.join(DATABASE)).is_ok_and(|made| made.uid() == 0);
    for (path, mode) in [(folder.join(DATABASE), 0o666), (folder, 0o777)] {
        if is_root {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Compiles the C program, unless it is newer than its source.
fn compile(example: &Path) -> Result<(), String> {
    let changed = |path: &str| fs::metadata(example.join(path))?.modified();
    let (source, program) = (changed(SOURCE), changed(PROGRAM));
    if matches!((source, program), (Ok(source), Ok(program)) if program > source) {
        return Ok(());
    }
    let mut command = Command::new("cc");
    command.args(["-O2", "-o", PROGRAM, SOURCE]);
    match command.current_dir(example).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("cc does not compile {SOURCE} of the example")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("welcome: there is no cc: /{PROGRAM} will not be found, all else is there");
            Ok(())
        }
        Err(error) => Err(format!("starting cc for {SOURCE}: {error}")),
    }
}

fn make_downloads(example: &Path) -> Result<(), String> {
    let folder = example.join(FOLDER);
    let named = |error: std::io::Error| format!("writing {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(named)?;
    if fs::metadata(folder.join(NOISE)).is_ok_and(|found| found.len() == NOISE_BYTES as u64)
        && folder.join(PRIMES).exists()
    {
        return Ok(());
    }
    fs::write(folder.join(NOISE), noise()).map_err(named)?;
    fs::write(folder.join(PRIMES), primes()).map_err(named)
}

/// Bytes that do not compress: xorshift64*, from a fixed seed.
fn noise() -> Vec<u8> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = Vec::with_capacity(NOISE_BYTES);
    while bytes.len() < NOISE_BYTES {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes
}

/// Text that does: the primes below a bound, ten a line.
fn primes() -> String {
    let mut composite = vec![false; PRIMES_BELOW];
    let (mut text, mut count) = (String::new(), 0usize);
    for number in 2..PRIMES_BELOW {
        if composite[number] {
            continue;
        }
        for multiple in (number * number..PRIMES_BELOW).step_by(number) {
            composite[multiple] = true;
        }
        count += 1;
        let end = if count.is_multiple_of(10) { '\n' } else { ' ' };
        // Writing to a String does not fail.
        let _ = write!(text, "{number}{end}");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_the_same_everywhere() {
        let bytes = noise();
        assert_eq!(bytes.len(), NOISE_BYTES);
        let sum = bytes
            .iter()
            .fold(0u32, |sum, &b| sum.rotate_left(5) ^ u32::from(b));
        assert_eq!(sum, 732646237);
    }

    #[test]
    fn primes_are_ten_a_line() {
        let text = primes();
        assert!(text.starts_with("2 3 5 7 11 13 17 19 23 29\n31 "));
        assert_eq!(text.split_whitespace().count(), 183_072);
    }
}
