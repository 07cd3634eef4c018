//! What every server serves: the temporary folder with files, programs and a certificate, and
//! who removes it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::copies;
use crate::error::CompareError;
use crate::mounts;
use crate::programs;
use crate::supervisor::ProgramCommand;

/// The files: name and bytes. The last three have the sizes of the old tables.
pub(crate) const FILES: &[(&str, u64)] = &[
    ("0k", 0),
    ("1k", 1 << 10),
    ("16k", 16 << 10),
    ("64k", 64 << 10),
    ("256k", 256 << 10),
    ("2406400", 2_406_400),
    ("4115968", 4_115_968),
    ("6882304", 6_882_304),
];

/// Many small files, where rows want them: so many folders of so many files.
pub(crate) const MANY: ManyFiles = ManyFiles {
    folder: "many",
    folders: 100,
    files: 1000,
};
/// Bytes of each.
pub(crate) const MANY_BYTES: u64 = 1 << 10;

/// The one file that rows have on several file systems.
pub(crate) const STORED_FILE: &str = "16k.txt";
pub(crate) const STORED_BYTES: u64 = 16 << 10;

/// A tree of files that are named by numbers.
pub(crate) struct ManyFiles {
    pub(crate) folder: &'static str,
    folders: usize,
    files: usize,
}

impl ManyFiles {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.folders * self.files
    }

    /// Their paths below the folder.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        let files = self.files;
        (0..self.folders)
            .flat_map(move |folder| (0..files).map(move |file| format!("{folder}/{file}.txt")))
    }

    fn write(&self, root: &Path) -> io::Result<()> {
        let place = root.join(self.folder);
        for folder in 0..self.folders {
            fs::create_dir_all(place.join(folder.to_string()))?;
        }
        let bytes = body(MANY_BYTES);
        self.paths()
            .try_for_each(|path| fs::write(place.join(path), &bytes))
    }
}

/// A folder that is gone when this is dropped.
pub(crate) struct ScratchFolder(PathBuf);

/// What is served.
pub(crate) struct ComparisonSite {
    /// Files, named as in [`FILES`] with `.txt` or `.bin` behind.
    pub(crate) root: PathBuf,
    /// [`MANY`] files are there, too.
    pub(crate) has_many: bool,
    /// Bytes of the compressed copy of a page; see [`copies`].
    pub(crate) copy_bytes: u64,
    /// A folder with one file, which rows have on several file systems.
    pub(crate) stored: PathBuf,
    /// What that folder lies on, as the kernel calls it.
    pub(crate) own_file_system: String,
    /// Programs that are started for each request.
    pub(crate) cgi: PathBuf,
    pub(crate) certificate: Option<CertificatePaths>,
    /// The program in C as CGI, FastCGI and lines; where there is a compiler.
    pub(crate) c: Option<PathBuf>,
    /// The same work as a module of Apache; where there is what builds one.
    pub(crate) module: Option<PathBuf>,
    /// The same work as a program over libhob; where that is installed.
    pub(crate) resident: Option<PathBuf>,
    /// The same for one visitor; likewise.
    pub(crate) visit: Option<PathBuf>,
    /// A program in C that asks a database, and that database; where there is a compiler.
    pub(crate) select: Option<DatabasePaths>,
    /// Macro pages.
    pub(crate) pages: PathBuf,
    /// Interpreters that scripts can be warm in.
    pub(crate) interpreters: Vec<&'static str>,
    /// php-cgi, where it is installed.
    pub(crate) php: Option<PathBuf>,
    /// What two hobs know each other by; where openssl made it.
    pub(crate) hobs: Option<HobCertificates>,
    /// What could not be made, and why.
    pub(crate) lacks: Vec<String>,
}

/// A database, and a program that asks it for one row.
pub(crate) struct DatabasePaths {
    pub(crate) program: PathBuf,
    pub(crate) database: PathBuf,
}

/// A certificate and its key, as paths.
pub(crate) struct CertificatePaths {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A certificate for `localhost` that two hobs share, and who has signed it.
pub(crate) struct HobCertificates {
    pub(crate) authority: String,
    pub(crate) pair: CertificatePaths,
}

impl ScratchFolder {
    /// Makes a folder below another one.
    pub(crate) fn make(place: &Path) -> Result<ScratchFolder, CompareError> {
        let mut tried = None;
        for number in 0..100 {
            let path = place.join(format!("hob-compare-{}-{number}", std::process::id()));
            // Servers that give up root's rights must be able to read what is in it.
            match DirBuilder::new().mode(0o755).create(&path) {
                Ok(()) => {
                    let open = fs::Permissions::from_mode(0o755);
                    fs::set_permissions(&path, open).map_err(CompareError::system(format!(
                        "cannot open {}",
                        path.display()
                    )))?;
                    return Ok(ScratchFolder(path));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    tried = Some(error);
                }
                Err(error) => {
                    tried = Some(error);
                    break;
                }
            }
        }
        let error = tried.unwrap_or_else(|| io::Error::other("no name is free"));
        let tried = format!("cannot make a folder in {}", place.display());
        Err(CompareError::System { tried, error })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl ComparisonSite {
    /// Writes everything below a folder. What cannot be made is left out and said in `lacks`.
    pub(crate) fn write(
        folder: &Path,
        around: &SearchPaths<'_>,
        wants: Wants,
    ) -> Result<ComparisonSite, CompareError> {
        let mut site = ComparisonSite {
            root: folder.join("www"),
            has_many: wants.many,
            copy_bytes: 0,
            stored: folder.join("stored"),
            own_file_system: mounts::kind_of(folder),
            cgi: folder.join("cgi"),
            certificate: None,
            c: None,
            module: None,
            resident: None,
            visit: None,
            select: None,
            pages: folder.join("pages"),
            interpreters: vec![],
            php: None,
            hobs: None,
            lacks: vec![],
        };
        let system = |path: &Path| CompareError::system(format!("cannot write {}", path.display()));
        for path in [&site.root, &site.cgi, &site.pages, &site.stored] {
            DirBuilder::new()
                .mode(0o755)
                .create(path)
                .map_err(system(path))?;
        }
        for (name, bytes) in FILES {
            let path = site.root.join(file_name(name, *bytes));
            fs::write(&path, body(*bytes)).map_err(system(&path))?;
        }
        let stored = site.stored.join(STORED_FILE);
        fs::write(&stored, body(STORED_BYTES)).map_err(system(&stored))?;
        site.copy_bytes = copies::write(&site.root).map_err(system(&site.root))?;
        if wants.many {
            MANY.write(&site.root).map_err(system(&site.root))?;
        }
        if wants.tls {
            match certificate(folder) {
                Ok(pair) => site.certificate = Some(pair),
                Err(why) => site.lacks.push(format!("no rows over TLS: {why}")),
            }
        }
        if wants.compiled {
            match hobs(folder) {
                Ok(hobs) => site.hobs = Some(hobs),
                Err(why) => site
                    .lacks
                    .push(format!("no rows of programs on another machine: {why}")),
            }
        }
        if wants.programs {
            programs::write(folder, around, wants, &mut site).map_err(system(&site.cgi.clone()))?;
        }
        Ok(site)
    }

    /// The program that answers over FastCGI at this socket, or at this port of all addresses.
    pub(crate) fn fast_cgi_program(&self, socket: &str) -> Option<ProgramCommand> {
        let program = self.c.as_ref()?.display().to_string();
        Some(ProgramCommand {
            name: "fastcgi".to_owned(),
            command: vec![program, "fastcgi".to_owned(), socket.to_owned()],
            environment: vec![],
        })
    }
}

/// Where things are found on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchPaths<'a> {
    /// hob itself.
    pub(crate) program: &'a Path,
    /// Where programs are looked for.
    pub(crate) folders: &'a [PathBuf],
}

/// What a comparison needs besides files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wants {
    pub(crate) tls: bool,
    /// Many files.
    pub(crate) many: bool,
    pub(crate) programs: bool,
    /// Programs in C, which must be built.
    pub(crate) compiled: bool,
}

/// The name of a file below the root.
pub(crate) fn file_name(name: &str, bytes: u64) -> String {
    let ending = if bytes <= 64 << 10 { "txt" } else { "bin" };
    format!("{name}.{ending}")
}

/// Lines of 1,024 bytes.
fn body(bytes: u64) -> Vec<u8> {
    let line = |index: u64| if index % 1024 == 1023 { b'\n' } else { b'x' };
    (0..bytes).map(line).collect()
}

/// A certificate that signs itself, with a key on P-256.
fn certificate(folder: &Path) -> Result<CertificatePaths, String> {
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    certify(folder, ["cert.pem", "key.pem"], &["-addext", names])
}

/// An authority, and a certificate that it has signed.
fn hobs(folder: &Path) -> Result<HobCertificates, String> {
    let config = folder.join("hobs.cnf");
    fs::write(&config, HOBS)
        .map_err(|error| format!("cannot write {}: {error}", config.display()))?;
    let config = config.display().to_string();
    let own = ["hobs.pem", "hobs.key"];
    let authority = certify(
        folder,
        own,
        &["-config", &config, "-extensions", "authority"],
    )?;
    let signed = [
        "-config",
        &config,
        "-extensions",
        "hob",
        "-CA",
        &authority.certificate,
    ];
    let words = [&signed[..], &["-CAkey", &authority.key]].concat();
    Ok(HobCertificates {
        pair: certify(folder, ["hob.pem", "hob.key"], &words)?,
        authority: authority.certificate,
    })
}

/// What the two are good for.
const HOBS: &str = "[req]\ndistinguished_name = name\n[name]\n\
    [authority]\nbasicConstraints = critical, CA:TRUE\n\
    [hob]\nbasicConstraints = critical, CA:FALSE\nsubjectAltName = DNS:localhost\n";

/// A certificate and its key, made with further words for openssl.
fn certify(folder: &Path, names: [&str; 2], words: &[&str]) -> Result<CertificatePaths, String> {
    let [certificate, key] = names.map(|name| folder.join(name).display().to_string());
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
    ]);
    command.args(["-nodes", "-days", "30", "-subj", "/CN=localhost"]);
    command.args(words);
    command.args(["-keyout", &key, "-out", &certificate]);
    let output = command.stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            // H2O and others read it after they have given up root's rights.
            let _ = fs::set_permissions(&key, fs::Permissions::from_mode(0o644));
            Ok(CertificatePaths { certificate, key })
        }
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().last().unwrap_or_default();
            Err(format!("openssl made no certificate: {last}"))
        }
        Err(error) => Err(format!("openssl, which makes the certificate: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_is_written_and_its_folder_goes_with_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = ScratchFolder::make(place.path()).unwrap();
        let around = SearchPaths {
            program: Path::new("/bin/hob"),
            folders: &[],
        };
        let wants = Wants {
            tls: false,
            many: false,
            programs: false,
            compiled: false,
        };
        let site = ComparisonSite::write(folder.path(), &around, wants).unwrap();
        for (name, bytes) in FILES {
            let file = site.root.join(file_name(name, *bytes));
            assert_eq!(fs::metadata(file).unwrap().len(), *bytes);
        }
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
