//! Who signs in: accounts of an `[[auth]]`, and what a request shows of who sends it (RFC 7617).
//!
//! A password that was right is remembered for a while as a keyed hash of the field it came in, so
//! that few are hashed anew. The files are looked at once a second while they are used; when they
//! have changed nothing is remembered any more.

pub mod accounts;
pub mod captured;
pub mod failures;
pub mod pam;
pub mod password;
pub(crate) mod remembered;
pub mod signed_urls;
mod tag;
pub mod tokens;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hob_config::{AccountFiles, AccountSource, AuthSettings, ForwardRoute, SignInRule};
use hob_trace::Mutex;

use self::accounts::{Accounts, AuthAccount};
use self::captured::{AccountPlace, CapturedAuth};
use self::pam::PamSource;
pub(crate) use self::remembered::{PasswordTurn, RememberedPasswords};
use self::signed_urls::LinkKeys;
use self::tag::CredentialTag;
use self::tokens::TokenSource;
use self::tokens::issuer::Issuers;

/// Why nobody is signed in, in the words of the record.
pub const WRONG: &str = "require: the name or the password is wrong";
/// Why somebody who is may not.
pub const NOT_NAMED: &str =
    "require: the account is none that `users`, `groups` and `all_groups` let in";
/// Largest file of accounts or of groups, in bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files are looked at again after so long.
const LOOK_MS: u64 = 1000;

/// An `[[auth]]` as it is served.
pub enum ServedAuth {
    /// Its accounts are in files.
    Files(Arc<AuthSource>),
    /// Its accounts are in files, one for each account or host of a route.
    Captured(Arc<CapturedAuth>),
    /// Another route of the site knows them.
    Route(Arc<ForwardRoute>),
    /// Links are signed.
    SignedUrls(LinkKeys),
    /// Tokens are signed.
    Tokens(Arc<TokenSource>),
    /// The system's PAM knows them.
    Pam(Arc<PamSource>),
}

impl ServedAuth {
    /// Opens what a config, the `generation`th of this server, says. Waits for a disk; for keys of
    /// `issuers` nobody waits here.
    ///
    /// # Errors
    /// Why files cannot be read.
    pub fn open(
        settings: &AuthSettings,
        issuers: &Issuers,
        (generation, now_ms): (u64, u64),
    ) -> Result<ServedAuth, String> {
        match &settings.source {
            AccountSource::Files(files) if files.captured.is_some() => {
                let auth = CapturedAuth {
                    name: settings.name.clone(),
                    realm: settings.realm.clone(),
                    files: files.clone(),
                };
                Ok(ServedAuth::Captured(Arc::new(auth)))
            }
            AccountSource::Files(files) => {
                let source = AuthSource::open(settings, files, now_ms)
                    .map_err(|text| format!("auth \"{}\": {text}", settings.name))?;
                Ok(ServedAuth::Files(Arc::new(source)))
            }
            AccountSource::Route(asked) => Ok(ServedAuth::Route(Arc::new(asked.clone()))),
            AccountSource::SignedUrls(path) => LinkKeys::open(path)
                .map(ServedAuth::SignedUrls)
                .map_err(|text| format!("auth \"{}\": {text}", settings.name)),
            AccountSource::Tokens(rules) => TokenSource::open(settings, rules, issuers, now_ms)
                .map(|source| ServedAuth::Tokens(Arc::new(source)))
                .map_err(|text| format!("auth \"{}\": {text}", settings.name)),
            AccountSource::Pam(rules) => PamSource::open(settings, rules, generation, now_ms)
                .map(|source| ServedAuth::Pam(Arc::new(source)))
                .map_err(|text| format!("auth \"{}\": {text}", settings.name)),
        }
    }
}

/// Accounts of an `[[auth]]` that are in files.
pub struct AuthSource {
    /// What `require` calls them.
    pub name: String,
    /// What browsers show.
    pub realm: String,
    files: AccountFiles,
    /// Where `htpasswd` is, where that is not its own path.
    place: Option<Box<dyn AccountPlace>>,
    state: Mutex<AuthState>,
    times: LookTimes,
    pub(crate) passwords: Arc<RememberedPasswords>,
}

struct AuthState {
    /// Or why they cannot be read.
    accounts: Result<Arc<Accounts>, String>,
    versions: FileVersions,
}

/// What a file of accounts and one of groups were like when they were read.
type FileVersions = [Option<FileVersion>; 2];

/// What tells one state of a file from another: its inode, size, and times of change.
pub(crate) type FileVersion = (u64, u64, i64, i64);

/// When files were looked at last, in milliseconds of loop time.
struct LookTimes(AtomicU64);

impl LookTimes {
    fn new(now_ms: u64) -> LookTimes {
        LookTimes(AtomicU64::new(now_ms))
    }

    /// True once a second, for one that has to look.
    fn is_due(&self, now_ms: u64) -> bool {
        let looked_ms = self.0.load(Ordering::Relaxed);
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        now_ms >= looked_ms + LOOK_MS
            && self
                .0
                .compare_exchange(looked_ms, now_ms, success, failure)
                .is_ok()
    }
}

/// What a request shows of who sends it.
pub enum ShownCredentials {
    /// Nothing that counts here.
    None,
    /// A password that was right a moment ago.
    Known(Arc<AuthAccount>),
    /// A name and a password.
    Password(GivenPassword),
}

/// A name and a password, and how they are remembered.
pub struct GivenPassword {
    /// Whose.
    pub name: String,
    password: Vec<u8>,
    tag: CredentialTag,
}

impl AuthSource {
    /// The accounts of these files. Waits for a disk.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn open(
        settings: &AuthSettings,
        files: &AccountFiles,
        now_ms: u64,
    ) -> Result<AuthSource, String> {
        let names = (settings.name.clone(), settings.realm.clone());
        let source = AuthSource::new(names, files.clone(), None, now_ms)?;
        source.accounts().map(|_| source)
    }

    /// The same by what it is called and what browsers show, with the reason why they cannot be
    /// read in the place of accounts. Waits for a disk.
    pub(crate) fn new(
        (name, realm): (String, String),
        files: AccountFiles,
        place: Option<Box<dyn AccountPlace>>,
        now_ms: u64,
    ) -> Result<AuthSource, String> {
        let passwords = RememberedPasswords::new(files.remember)?;
        let source = AuthSource {
            name,
            realm,
            files,
            place,
            state: Mutex::new(AuthState {
                accounts: Err(String::new()),
                versions: [None; 2],
            }),
            times: LookTimes::new(now_ms),
            passwords: Arc::new(passwords),
        };
        source.look();
        Ok(source)
    }

    /// The accounts there are.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn accounts(&self) -> Result<Arc<Accounts>, String> {
        self.state.lock().accounts.clone()
    }

    /// True once a second, for one that has to [`AuthSource::look`].
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.times.is_due(now_ms)
    }

    /// Reads the files anew where they have changed, and remembers nothing then. Waits for a disk.
    pub fn look(&self) {
        let htpasswd = match &self.place {
            None => version(&self.files.htpasswd),
            Some(place) => place.version(),
        };
        let versions = [htpasswd, self.files.groups.as_deref().and_then(version)];
        if self.state.lock().versions == versions && versions[0].is_some() {
            return;
        }
        let accounts = self.read();
        let mut state = self.state.lock();
        if let Err(text) = &accounts
            && state.accounts.as_ref().err() != Some(text)
        {
            tracing::error!(auth = self.name, "nobody can sign in: {text}");
        }
        state.accounts = accounts.map(Arc::new);
        state.versions = versions;
        self.passwords.forget_all();
    }

    fn read(&self) -> Result<Accounts, String> {
        let htpasswd = &self.files.htpasswd;
        let text = match &self.place {
            None => read_file(htpasswd)?,
            Some(place) => place.read(htpasswd).or_else(|text| match self.is_gone() {
                // Nobody has an account then.
                true => Ok(String::new()),
                false => Err(text),
            })?,
        };
        let groups = self.files.groups.as_deref().map(read_file).transpose()?;
        let (accounts, faults) = Accounts::parse(&text, groups.as_deref());
        for fault in faults {
            let place = format!("{}:{}", htpasswd.display(), fault.line);
            tracing::warn!(auth = self.name, "{place}: {}", fault.text);
        }
        Ok(accounts)
    }

    /// The account, if the password is right; it is remembered then. Takes long: see
    /// [`password::is_right`].
    ///
    /// # Errors
    /// Why the accounts cannot be read.
    pub fn check(
        &self,
        given: &GivenPassword,
        now_ms: u64,
    ) -> Result<Option<Arc<AuthAccount>>, String> {
        let accounts = self.accounts()?;
        let Some(account) = accounts.check(&given.name, &given.password) else {
            return Ok(None);
        };
        let state = self.state.lock();
        // Else they have changed meanwhile, and the password may have, too: it was right when it
        // was asked for.
        let is_same = matches!(&state.accounts, Ok(now) if Arc::ptr_eq(now, &accounts));
        if is_same {
            self.passwords.remember(given, &account, now_ms);
        }
        drop(state);
        Ok(Some(account))
    }
}

/// Whether a route answers those with an account, or leaves them to the next one.
pub fn answers(rule: &SignInRule, account: &AuthAccount) -> bool {
    rule.when.as_ref().is_none_or(|when| {
        let is_user =
            when.users.is_empty() || when.users.iter().any(|name| **name == *account.name);
        let is_member = |group| account.groups.contains(group);
        is_user && (when.groups.is_empty() || when.groups.iter().any(is_member))
    })
}

/// Whether an account is one of those that a rule lets in.
pub fn may(rule: &SignInRule, account: &AuthAccount) -> bool {
    let is_any = rule.users.is_empty() && rule.groups.is_empty();
    let is_member = |group: &String| account.groups.contains(group);
    let is_named = is_any
        || rule.users.iter().any(|name| **name == *account.name)
        || rule.groups.iter().any(is_member);
    is_named && rule.all_groups.iter().all(is_member)
}

/// Name and password of `Basic` credentials (RFC 7617 section 2): names are UTF-8.
pub fn basic(value: &[u8]) -> Option<(String, Vec<u8>)> {
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let mut name = BASE64_STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = name.iter().position(|byte| *byte == b':')?;
    let password = name.split_off(colon + 1);
    name.pop();
    let name = String::from_utf8(name).ok()?;
    let is_name = !name.is_empty() && !name.chars().any(char::is_control);
    is_name.then_some((name, password))
}

pub(crate) fn version(path: &Path) -> Option<FileVersion> {
    std::fs::metadata(path).ok().map(|found| version_of(&found))
}

pub(crate) fn version_of(found: &std::fs::Metadata) -> FileVersion {
    let ns = |seconds: i64, ns: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(ns);
    let changed = ns(found.ctime(), found.ctime_nsec());
    let modified = ns(found.mtime(), found.mtime_nsec());
    (found.ino(), found.size(), modified, changed)
}

fn read_file(path: &Path) -> Result<String, String> {
    let fail = |error: std::io::Error| {
        let user = rustix::process::geteuid().as_raw();
        format!(
            "{} cannot be read: {error}; the server runs as user {user}: let that user read it",
            path.display()
        )
    };
    let found = std::fs::metadata(path).map_err(fail)?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        let what = "is no file of accounts: not a file, or of more than 16 MiB";
        return Err(format!("{} {what}", path.display()));
    }
    std::fs::read_to_string(path).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::tag::TagKey;
    use super::*;

    fn settings(htpasswd: std::path::PathBuf) -> AuthSettings {
        AuthSettings {
            name: "staff".to_owned(),
            realm: "staff".to_owned(),
            source: AccountSource::Files(AccountFiles {
                htpasswd,
                captured: None,
                groups: None,
                remember: std::time::Duration::from_secs(10),
            }),
        }
    }

    fn given(text: &str) -> Option<(String, Vec<u8>)> {
        basic(format!("Basic {}", BASE64_STANDARD.encode(text)).as_bytes())
    }

    #[test]
    fn names_and_passwords_are_those_of_the_rfc() {
        assert_eq!(
            basic(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            Some(("Aladdin".to_owned(), b"open sesame".to_vec()))
        );
        assert_eq!(
            basic("basic dGVzdDoxMjPCow==".as_bytes()),
            Some(("test".to_owned(), "123£".as_bytes().to_vec()))
        );
        assert_eq!(given("a::b:"), Some(("a".to_owned(), b":b:".to_vec())));
        assert_eq!(given("a:"), Some(("a".to_owned(), vec![])));
    }

    #[test]
    fn what_is_no_name_and_password_is_nothing() {
        for text in ["", "a", ":", ":a", "a\n:b", "a\0:b"] {
            assert_eq!(given(text), None, "{text:?}");
        }
        for value in [
            &b"Basic"[..],
            b"Basic ",
            b"Basic  ",
            b"Basic QWxh!",
            b"Basic QTpi=",
            b"BasicQTpi",
            b"Bearer QTpi",
            b"Basic QTpi QTpi",
            b"Basic /zpi",
        ] {
            assert_eq!(basic(value), None, "{:?}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn a_changed_file_ends_what_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users");
        let line = "ann:{SHA}6dcfXufJLW3J6S/9rRe4vUlBj5g=\n";
        std::fs::write(&path, line).unwrap();
        let settings = settings(path.clone());
        let Ok(ServedAuth::Files(source)) =
            ServedAuth::open(&settings, &Issuers::default(), (0, 0))
        else {
            panic!("it can be read")
        };
        let value = format!("Basic {}", BASE64_STANDARD.encode("ann:b"));
        let shown = |now_ms: u64| source.passwords.shown(Some(value.as_bytes()), now_ms);
        let ShownCredentials::Password(password) = shown(0) else {
            panic!("nothing is known yet")
        };
        assert_eq!(
            source.check(&password, 0).unwrap().unwrap().name.as_ref(),
            "ann"
        );
        assert!(
            matches!(shown(9_999), ShownCredentials::Known(account) if &*account.name == "ann")
        );
        assert!(matches!(shown(10_000), ShownCredentials::Password(_)));
        assert!(!source.is_due(999) && source.is_due(1000) && !source.is_due(1500));
        source.look();
        assert!(matches!(shown(0), ShownCredentials::Known(_)));
        std::fs::write(&path, format!("{line}bob:x\n")).unwrap();
        source.look();
        assert!(matches!(shown(0), ShownCredentials::Password(_)));
        assert!(source.check(&password, 0).unwrap().is_some());
        std::fs::remove_file(&path).unwrap();
        source.look();
        assert!(source.check(&password, 0).unwrap_err().contains("users"));
        assert!(ServedAuth::open(&settings, &Issuers::default(), (0, 0)).is_err());
    }

    #[test]
    fn nothing_is_left_of_turns_whose_clients_have_left() {
        use std::future::Future;
        use std::task::{Context, Waker};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users");
        std::fs::write(&path, "").unwrap();
        let settings = settings(path);
        let Ok(ServedAuth::Files(source)) =
            ServedAuth::open(&settings, &Issuers::default(), (0, 0))
        else {
            panic!("it can be read")
        };
        let key = TagKey::new().unwrap();
        let given = |number: u8| GivenPassword {
            name: String::new(),
            password: Vec::new(),
            tag: key.tag(&[number]),
        };
        let (one, two) = (given(1), given(2));
        let mut now = Context::from_waker(Waker::noop());
        let mut turns: Vec<_> = [&one, &one, &one, &two]
            .map(|given| Box::pin(source.passwords.alone(given)))
            .into();
        let first = turns[0].as_mut().poll(&mut now);
        assert!(first.is_ready() && turns[1].as_mut().poll(&mut now).is_pending());
        assert!(turns[2].as_mut().poll(&mut now).is_pending());
        let other = turns[3].as_mut().poll(&mut now);
        assert!(other.is_ready() && source.passwords.checking.lock().len() == 2);
        drop(first);
        // The second leaves, and it is the third's turn.
        drop(turns.remove(1));
        let third = turns[1].as_mut().poll(&mut now);
        assert!(third.is_ready());
        drop((other, turns));
        assert_eq!(source.passwords.checking.lock().len(), 1);
        drop(third);
        assert!(source.passwords.checking.lock().is_empty());
    }

    #[test]
    fn rules_let_in_whom_they_name() {
        let (accounts, _) = Accounts::parse("ann:{SHA}x\n", Some("staff: ann\nlab: ann\n"));
        let ann = accounts.find("ann").unwrap();
        let texts = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
        let of_all = |users: &[&str], groups: &[&str], all_groups: &[&str]| SignInRule {
            auth: 0,
            users: texts(users),
            groups: texts(groups),
            all_groups: texts(all_groups),
            is_alternative: false,
            when: None,
        };
        let rule = |users: &[&str], groups: &[&str]| of_all(users, groups, &[]);
        assert!(may(&rule(&[], &[]), ann) && may(&rule(&["bob", "ann"], &[]), ann));
        assert!(may(&rule(&["bob"], &["staff"]), ann) && may(&rule(&[], &["x", "staff"]), ann));
        assert!(!may(&rule(&["bob"], &[]), ann) && !may(&rule(&["Ann"], &["it"]), ann));
        assert!(may(&of_all(&[], &[], &["staff", "lab"]), ann));
        assert!(!may(&of_all(&[], &[], &["staff", "it"]), ann));
        assert!(!may(&of_all(&["ann"], &["lab"], &["it"]), ann));
        assert!(!may(&of_all(&["bob"], &["it"], &["lab"]), ann));
    }
}
