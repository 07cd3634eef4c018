//! `cargo xtask conformance`: other people's programs judge hob, serving the welcome example.
//!
//! A judge is a folder of conformance/; judge.py there says how one is run and how it ends. What
//! conformance/more.toml adds to the example is for them: listeners with certificates of an
//! authority that is made for the run. A judge that cannot be had is an error, unless
//! `--skip-missing` is said.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::examples::folders_of;
use crate::run::{self, Scratch};
use crate::served::Served;
use crate::tally::TestTally;

const LIMIT: Duration = Duration::from_secs(15 * 60);
const SKIP_MISSING: &str = "--skip-missing";

/// How the last line of a judge begins, or its only one.
const ENDING: &str = "judge: ";
const MISSING: &str = "missing: ";

/// What the certificate of a listener says beside its name: as those of an authority do.
const EXTENSIONS: &str = "subjectAltName=DNS:localhost,IP:127.0.0.1\n\
    basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n\
    extendedKeyUsage=serverAuth\ncrlDistributionPoints=URI:http://localhost/judges.crl\n\
    subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n";

/// Runs the judges named, or all.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let all = folders_of(&root.join("conformance"))?;
    let is_skipping = arguments.iter().any(|word| word == SKIP_MISSING);
    let named: Vec<&String> = arguments.iter().filter(|w| *w != SKIP_MISSING).collect();
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no judge {unknown:?}; there are {all:?}"));
    }
    let authority = Scratch::new("judges")?;
    make_certificates(&authority.0)?;
    let (mut sum, mut endings) = (TestTally::default(), Vec::new());
    for name in all
        .iter()
        .filter(|name| named.is_empty() || named.contains(name))
    {
        println!("conformance/{name}");
        let (tally, said) = match judged(root, name, &authority.0) {
            Ok(said) => verdict(name, &said, is_skipping),
            Err(message) => (TestTally::FAILED, vec![format!("{name}: {message}")]),
        };
        sum += tally;
        endings.extend(said);
    }
    println!("\n{}\n{sum}", endings.join("\n"));
    Ok(sum.is_good())
}

/// What a judge prints about a server of its own.
fn judged(root: &Path, name: &str, authority: &Path) -> Result<run::Finished, String> {
    let folder = root.join("conformance");
    let served = Served::start_with(root, "welcome", &|example| add(&folder, authority, example))?;
    let log = root
        .join("target/ci")
        .join(format!("conformance-{name}.log"));
    let mut command = Command::new(folder.join(name).join("run"));
    command.arg(&served.url).args(&served.tls_urls);
    command.arg(authority.join("ca.pem")).current_dir(root);
    let finished = run::shown(&mut command, &log, LIMIT)?;
    served
        .stop()
        .map_err(|message| format!("afterwards {message}"))?;
    Ok(finished)
}

/// Puts what judges need beside the example, and gives what to add to its config.
fn add(folder: &Path, authority: &Path, example: &Path) -> Result<String, String> {
    let mut files = vec![folder.join("count.py"), folder.join("sockets.py")];
    for kind in ["rsa", "ecdsa"] {
        files.extend(["pem", "key"].map(|ending| authority.join(format!("{kind}.{ending}"))));
    }
    for file in files {
        let target = example.join(file.file_name().unwrap_or_default());
        let copied = fs::copy(&file, &target).and_then(|_| {
            // A server that dropped its privileges runs the one.
            fs::set_permissions(&target, fs::Permissions::from_mode(0o755))
        });
        copied.map_err(|error| format!("copying {}: {error}", file.display()))?;
    }
    let more = folder.join("more.toml");
    fs::read_to_string(&more).map_err(|error| format!("{}: {error}", more.display()))
}

/// The counts in a judge's last lines, and those lines.
fn verdict(name: &str, finished: &run::Finished, is_skipping: bool) -> (TestTally, Vec<String>) {
    let lines = finished.text.lines();
    let endings = lines.filter(|line| line.starts_with(ENDING) || line.starts_with(MISSING));
    let (mut sum, mut said) = (TestTally::default(), Vec::new());
    for line in endings {
        if let Some(reason) = line.strip_prefix(MISSING) {
            said.push(format!("{name}: cannot be had: {reason}"));
            sum += match is_skipping {
                true => TestTally::SKIPPED,
                false => TestTally::FAILED,
            };
        } else {
            let (cases, failures) = (count(line, "cases"), count(line, "failures"));
            sum += TestTally {
                passed: cases.saturating_sub(failures),
                failed: failures,
                skipped: 0,
            };
            said.push(line[ENDING.len()..].to_string());
        }
    }
    if said.is_empty() || (!finished.is_success && sum.failed + sum.skipped == 0) {
        said.push(format!("{name}: it did not come to its end"));
        sum += TestTally::FAILED;
    }
    (sum, said)
}

/// The number before a word.
fn count(line: &str, word: &str) -> u64 {
    let items = line.split(", ");
    let found = items.filter_map(|item| item.strip_suffix(word)?.trim().parse().ok());
    found.last().unwrap_or(0)
}

/// An authority in `folder`, and a certificate from it for each kind of key.
fn make_certificates(folder: &Path) -> Result<(), String> {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        let command = command.args(arguments.split(' ')).current_dir(folder);
        run::captured(command).map(|_| ())
    };
    let extensions = folder.join("extensions");
    fs::write(&extensions, EXTENSIONS).map_err(|e| format!("{}: {e}", extensions.display()))?;
    let elliptic = "-newkey ec -pkeyopt ec_paramgen_curve:P-256";
    openssl(&format!(
        "req -x509 {elliptic} -nodes -keyout ca.key -out ca.pem -days 90 -subj /CN=judges \
         -addext keyUsage=critical,keyCertSign,cRLSign"
    ))?;
    for (kind, key) in [("rsa", "-newkey rsa:2048"), ("ecdsa", elliptic)] {
        openssl(&format!(
            "req {key} -nodes -keyout {kind}.key -out {kind}.csr -subj /CN=localhost"
        ))?;
        openssl(&format!(
            "x509 -req -in {kind}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 80 -sha256 \
             -extfile extensions -out {kind}.pem"
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(text: &str, is_success: bool) -> run::Finished {
        run::Finished {
            is_success,
            text: text.to_string(),
        }
    }

    fn counts(text: &str, is_success: bool, is_skipping: bool) -> (u64, u64, u64) {
        let tally = verdict("x", &finished(text, is_success), is_skipping).0;
        (tally.passed, tally.failed, tally.skipped)
    }

    #[test]
    fn last_lines_of_judges_are_counted() {
        let text = "known a: b\njudge: x 1.0, 12 cases, 2 failures, 1 known\n\
                    judge: y, of Debian, 3 cases, 0 failures, 0 known\n";
        assert_eq!(counts(text, false, false), (13, 2, 0));
    }

    #[test]
    fn judge_that_is_missing_is_an_error_unless_that_is_allowed() {
        assert_eq!(counts("missing: no Go\n", false, false), (0, 1, 0));
        assert_eq!(counts("missing: no Go\n", false, true), (0, 0, 1));
    }

    #[test]
    fn judge_that_breaks_off_is_a_failure() {
        assert_eq!(counts("Traceback\n", false, true), (0, 1, 0));
        let text = "judge: x 1.0, 2 cases, 0 failures, 0 known\n";
        assert_eq!(counts(text, false, false), (2, 1, 0));
    }
}
