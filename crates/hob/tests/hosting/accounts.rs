//! A machine with accounts of its own: a mount namespace in which `/etc/passwd` and `/etc/group`
//! are others. Needs root, as whoever has programs run as their owners does.

use std::fmt::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use super::harness::{Hob, Place, User, is_root, write_program};

/// The first account's number, and its group's.
pub(crate) const FIRST: u32 = 30_000;

/// Prints who it is.
pub(crate) const WHO: &str =
    "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nid -un; id -u; id -g\n";

pub(crate) struct Machine {
    pub place: Place,
}

impl Machine {
    /// With these accounts, each of which has a home of its own; none where the tests are not
    /// root's.
    pub(crate) fn new(names: &[&str]) -> Option<Machine> {
        if !is_root() {
            println!("skipped: needs root");
            return None;
        }
        let machine = Machine {
            place: Place::for_user(User::Same),
        };
        machine.set_accounts(names);
        std::fs::create_dir(machine.place.path("home")).unwrap();
        for name in names {
            machine.folder(name, "");
        }
        Some(machine)
    }

    /// The system knows these accounts from now on, by the places they have in the list; an empty
    /// name is none.
    pub(crate) fn set_accounts(&self, names: &[&str]) {
        let mut passwd = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n\
            www-data:x:33:33::/:/bin/false\ndaemon:x:1:1::/:/bin/false\n"
            .to_owned();
        let mut group = "root:x:0:\nnogroup:x:65534:\nwww-data:x:33:\ndaemon:x:1:\n".to_owned();
        for (id, name) in (FIRST..).zip(names).filter(|(_, name)| !name.is_empty()) {
            let home = self.place.path("home").join(name);
            writeln!(passwd, "{name}:x:{id}:{id}::{}:/bin/sh", home.display()).unwrap();
            writeln!(group, "{name}:x:{id}:").unwrap();
        }
        // In place: they are mounted.
        std::fs::write(self.place.path("passwd"), passwd).unwrap();
        std::fs::write(self.place.path("group"), group).unwrap();
    }

    /// One more line of `/etc/passwd`.
    pub(crate) fn add_account(&self, line: &str) {
        let file = self.place.path("passwd");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{text}{line}\n")).unwrap();
    }

    /// The number of an account.
    pub(crate) fn id(&self, name: &str) -> u32 {
        let text = std::fs::read_to_string(self.place.path("passwd")).unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name}:")));
        line.unwrap().split(':').nth(2).unwrap().parse().unwrap()
    }

    /// A path below an account's home, which is the home for an empty name.
    pub(crate) fn path(&self, account: &str, name: &str) -> std::path::PathBuf {
        self.place.path("home").join(account).join(name)
    }

    /// Makes a folder of an account, and those above it.
    pub(crate) fn folder(&self, account: &str, name: &str) {
        let mut path = self.path(account, "");
        let parts = Path::new(name)
            .components()
            .map(|part| Some(part.as_os_str()));
        for part in [None].into_iter().chain(parts) {
            path.extend(part);
            if !path.is_dir() {
                std::fs::create_dir(&path).unwrap();
                self.give(account, &path, 0o755);
            }
        }
    }

    /// Writes a file of an account.
    pub(crate) fn write(&self, account: &str, name: &str, text: &str) {
        let path = self.path(account, name);
        std::fs::write(&path, text).unwrap();
        self.give(account, &path, 0o644);
    }

    /// Writes a program of an account.
    pub(crate) fn program(&self, account: &str, name: &str, text: &str) {
        let path = self.path(account, name);
        write_program(&path, text);
        self.give(account, &path, 0o755);
    }

    pub(crate) fn give(&self, account: &str, path: &Path, mode: u32) {
        let id = self.id(account);
        chown(path, Some(id), Some(id)).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    /// The program, among these accounts.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.place.command_of(Path::new("unshare"));
        let own = |name: &str| self.place.path(name).display().to_string();
        let script = format!(
            "mount --bind {} /etc/passwd && mount --bind {} /etc/group && exec {} \"$@\"",
            own("passwd"),
            own("group"),
            own("hob")
        );
        command.args(["--mount", "sh", "-c", &script, "hob"]);
        command
    }

    /// Serves exactly this config.
    pub(crate) fn serve(&self, text: &str) -> Hob {
        self.place.write("hob.toml", text);
        let mut command = self.command();
        command.args(["serve", "--config", "hob.toml"]);
        let hob = Hob::start(command);
        hob.wait_for("listening on ");
        hob
    }
}
