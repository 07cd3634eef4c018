//! Accounts of the system: what PAM is asked and what it has said, and what a machine lacks for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_config::{AccountSource, AuthSettings, PAM_COMMAND, PAM_PROGRAM, PamRules};
use hob_keeper::preflight::{Accounts, PreflightReport};
use hob_keeper::process::{ProgramRef, Strings};
use hob_pam::message::SAID_BYTES_MAX;
use hob_pam::{PamReply, PamRequest};
use hob_trace::Mutex;
use tokio::sync::Semaphore;

use super::accounts::AuthAccount;
use super::remembered::RememberedPasswords;
use super::{FileVersion, GivenPassword, LookTimes, version};
use crate::config::Built;

/// Why nobody is signed in though the password is right, in the words of the record.
pub const LOCKED: &str = "require: PAM refuses the account: locked, expired, not here or not now, or it \
                          has to have a new password";
/// Why nobody knows.
pub const FAILED: &str = "require: PAM cannot say whether the password is right";
/// Why nobody has said anything in time.
pub const LATE: &str = "require: PAM has not answered within `timeout` of `pam`";
/// The process has ended, and nobody has killed it.
pub const GONE: &str = "require: the process that asks PAM has ended without an answer";
/// It was not started.
pub const NOT_STARTED: &str = "require: the process that asks PAM was not started";
/// As many ask as may.
pub const CROWDED: &str = "require: as many ask PAM as may (`processes` of `pam`), for longer than \
                           `timeout`";

/// Where the system's own accounts are; what changes here ends what is remembered.
const SYSTEM_FILES: [&str; 3] = ["/etc/passwd", SHADOW, "/etc/group"];
const SHADOW: &str = "/etc/shadow";

/// An `[[auth]]` that PAM knows.
pub struct PamSource {
    /// What `require` calls it.
    pub name: String,
    /// What browsers show.
    pub realm: String,
    /// How PAM is asked.
    pub rules: PamRules,
    /// What asks.
    pub program: ProgramRef,
    /// Conversations that may be had at a time.
    pub places: Arc<Semaphore>,
    pub(crate) passwords: Arc<RememberedPasswords>,
    looked: Mutex<LookedAt>,
    times: LookTimes,
}

/// What the service and the system's accounts were like.
#[derive(Default)]
struct LookedAt {
    versions: Vec<Option<FileVersion>>,
    /// How often that has changed.
    changes: u64,
}

/// What PAM is asked with, and how often anything had changed before.
pub(crate) struct PamQuestion {
    pub(crate) bytes: Vec<u8>,
    changes: u64,
}

impl PamSource {
    pub(super) fn open(
        settings: &AuthSettings,
        rules: &PamRules,
        generation: u64,
        now_ms: u64,
    ) -> Result<PamSource, String> {
        let index = u16::try_from(rules.program).map_err(|_| "there are too many programs")?;
        let source = PamSource {
            name: settings.name.clone(),
            realm: settings.realm.clone(),
            rules: rules.clone(),
            program: ProgramRef { generation, index },
            places: Arc::new(Semaphore::new(usize::from(rules.processes))),
            passwords: Arc::new(RememberedPasswords::new(rules.remember)?),
            looked: Mutex::default(),
            times: LookTimes::new(now_ms),
        };
        source.look();
        Ok(source)
    }

    /// True once a second, for one that has to [`PamSource::look`].
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.times.is_due(now_ms)
    }

    /// Remembers nothing any more where the service or accounts have changed. Waits for a disk.
    pub fn look(&self) {
        let files = self.rules.files().into_iter();
        let system = SYSTEM_FILES.iter().map(|file| Path::new(file).to_owned());
        let versions: Vec<_> = files.chain(system).map(|file| version(&file)).collect();
        let mut looked = self.looked.lock();
        if looked.versions != versions {
            looked.versions = versions;
            looked.changes += 1;
            self.passwords.forget_all();
        }
    }

    /// What PAM is asked with; `None` where that can be nobody's name or password.
    pub(crate) fn question(&self, given: &GivenPassword, address: String) -> Option<PamQuestion> {
        if !PamRequest::is_askable(&given.name, &given.password) {
            return None;
        }
        let services = self.rules.services.as_ref();
        let request = PamRequest {
            seconds: self.rules.timeout.as_secs().try_into().unwrap_or(u16::MAX),
            service: self.rules.service.clone(),
            services: services.map_or_else(Vec::new, |folder| {
                folder.as_os_str().as_encoded_bytes().to_vec()
            }),
            user: given.name.clone(),
            password: given.password.clone(),
            address,
        };
        let changes = self.looked.lock().changes;
        let bytes = request.encode().ok()?;
        Some(PamQuestion { bytes, changes })
    }

    /// The account that PAM has let in. Its password is remembered from now on, unless something
    /// has changed since it was asked.
    pub(crate) fn enter(
        &self,
        given: &GivenPassword,
        asked: &PamQuestion,
        reply: &PamReply,
        now_ms: u64,
    ) -> Arc<AuthAccount> {
        let groups = reply.groups.iter().map(String::as_str);
        let account = Arc::new(AuthAccount::of_route(&reply.text, groups));
        let looked = self.looked.lock();
        if looked.changes == asked.changes {
            self.passwords.remember(given, &account, now_ms);
        }
        account
    }

    /// What is executed.
    pub(crate) fn path() -> Vec<u8> {
        PAM_PROGRAM.as_bytes().to_vec()
    }

    /// With which arguments.
    pub(crate) fn arguments() -> Strings {
        let mut arguments = Strings::new();
        for word in ["hob", PAM_COMMAND] {
            let pushed = arguments.push(word.as_bytes());
            debug_assert!(pushed.is_ok(), "there is no NUL in it");
        }
        arguments
    }
}

/// Whether a service asks for what is in [`SHADOW`], by its own lines or those that Debian and
/// others have for all services.
fn names_unix(service: &str) -> bool {
    let mut lines = service.lines().map(str::trim_start);
    let known = ["pam_unix.so", "common-auth", "system-auth", "password-auth"];
    lines.any(|line| !line.starts_with('#') && known.iter().any(|name| line.contains(name)))
}

/// Tells what PAM lacks on this machine.
pub fn look(built: &Built, accounts: &Accounts, told: &mut PreflightReport<'_, '_>) {
    for (auth, [spot, _]) in built.config.auth.iter().zip(&built.spots.auth) {
        let AccountSource::Pam(rules) = &auth.source else {
            continue;
        };
        let install = "install it (Debian: `apt-get install libpam0g libpam-modules`)";
        told.loads("libpam.so.0", install, *spot);
        let files = rules.files();
        if !rules.service.is_empty() && !files.iter().any(|file| file.is_file()) {
            let file = files[0].display();
            told.error(
                *spot,
                &format!("PAM has no service {:?}: there is no {file}", rules.service),
                "make it, with what PAM is to ask: `auth required pam_unix.so` and, in another \
                 line, `account required pam_unix.so`",
            );
        }
        let asks_unix =
            |file: &PathBuf| std::fs::read_to_string(file).is_ok_and(|text| names_unix(&text));
        let is_read = accounts.may_read(rules.program, Path::new(SHADOW));
        if files.iter().any(asks_unix) && !is_read {
            told.warn(
                *spot,
                "PAM is to check passwords of this machine's accounts, and is asked as an account \
                 that may not read /etc/shadow",
                "have `user` name an account of its own in the group of that file, such as \
                 `hob-pam` of the package; that needs hob to be started as root",
            );
        }
    }
}

// What PAM says fits into what a record has.
const _: () = assert!(SAID_BYTES_MAX <= 1024);
