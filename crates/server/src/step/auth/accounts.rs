//! Files of accounts and groups, as Apache's `htpasswd` and `AuthGroupFile` are.

use std::collections::HashMap;
use std::sync::Arc;

use super::password::{self, HashScheme};

/// Accounts of an `[[auth]]`, as its files have them.
#[derive(Debug, Default)]
pub struct Accounts {
    all: HashMap<String, Arc<AuthAccount>>,
    /// A hash such as most accounts have, which takes as long: names that nobody has are checked
    /// by it, so that time does not tell them from others.
    common: String,
}

/// Who may sign in.
#[derive(Debug, PartialEq, Eq)]
pub struct AuthAccount {
    /// The name.
    pub name: Arc<str>,
    hash: String,
    /// Groups it is in.
    pub groups: Vec<String>,
}

/// Something in a file that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
pub struct AccountFileFault {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub text: String,
}

impl AuthAccount {
    /// Of somebody whom another route knows.
    pub fn of_route<'g>(name: &str, groups: impl Iterator<Item = &'g str>) -> AuthAccount {
        AuthAccount {
            name: name.into(),
            hash: String::new(),
            groups: groups.map(str::to_owned).collect(),
        }
    }
}

impl Accounts {
    /// The accounts of a file's text and of that of a file of groups, and what is wrong in the
    /// first. Lines that are wrong are nobody's account.
    pub fn parse(htpasswd: &str, groups: Option<&str>) -> (Accounts, Vec<AccountFileFault>) {
        let groups = groups.map(parse_groups).unwrap_or_default();
        let mut accounts = Accounts::default();
        let mut faults = Vec::new();
        let mut schemes: HashMap<String, (usize, String)> = HashMap::new();
        for (line, text) in (1..).zip(htpasswd.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let mut fault = |text: String| faults.push(AccountFileFault { line, text });
            let Some((name, rest)) = text.split_once(':').filter(|(name, _)| !name.is_empty())
            else {
                fault("this is no `NAME:HASH`".to_owned());
                continue;
            };
            let hash = rest.split(':').next().unwrap_or_default();
            match HashScheme::of(hash) {
                None => {
                    let what = "its password is not hashed in a way that can be checked";
                    fault(format!(
                        "{name} cannot sign in: {what}; set it anew with `hob password`"
                    ));
                    continue;
                }
                Some(scheme) if scheme.is_weak() => {
                    let what = "its password is hashed in a way that is fast to guess";
                    fault(format!("{name}: {what}; set it anew with `hob password`"));
                }
                Some(_) => {}
            }
            let alike = schemes.entry(cost_of(hash)).or_insert((0, hash.to_owned()));
            alike.0 += 1;
            let account = Arc::new(AuthAccount {
                name: name.into(),
                hash: hash.to_owned(),
                groups: groups.get(name).cloned().unwrap_or_default(),
            });
            if accounts.all.insert(name.to_owned(), account).is_some() {
                fault(format!("{name} stands here again; the last line counts"));
            }
        }
        let common = schemes.into_values().max_by_key(|(count, _)| *count);
        accounts.common = common.map(|(_, hash)| hash).unwrap_or_default();
        (accounts, faults)
    }

    /// The account of a name.
    pub fn find(&self, name: &str) -> Option<&Arc<AuthAccount>> {
        self.all.get(name)
    }

    /// The account of a name, if this is its password. A name that nobody has takes as long as a
    /// wrong password. Not for serving threads: see [`password::is_right`].
    pub fn check(&self, name: &str, password: &[u8]) -> Option<Arc<AuthAccount>> {
        let account = self.all.get(name);
        let hash = account.map_or(&self.common, |account| &account.hash);
        let is_right = password::is_right(password, hash);
        account.filter(|_| is_right).map(Arc::clone)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Nobody has one.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// The part of a hash by which it takes its time: scheme and parameters.
fn cost_of(hash: &str) -> String {
    let mut parts = hash.split('$').collect::<Vec<_>>();
    let is_cost = |part: &&str| part.contains('=') || part.len() <= 8;
    parts.retain(is_cost);
    parts.join("$")
}

/// The groups of each name, by lines `GROUP: NAME NAME`.
fn parse_groups(text: &str) -> HashMap<&str, Vec<String>> {
    let mut groups: HashMap<&str, Vec<String>> = HashMap::new();
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|line| !line.starts_with('#')) {
        let Some((group, names)) = line.split_once(':') else {
            continue;
        };
        for name in names.split_whitespace() {
            groups
                .entry(name)
                .or_default()
                .push(group.trim().to_owned());
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: &str = "$2y$05$M4BzimkK8gXCafgVbiaKg.Q/Rffa7Lm1NwKnBcAgB6oKJldjqUmMm";
    const SHA: &str = "{SHA}6dcfXufJLW3J6S/9rRe4vUlBj5g=";

    #[test]
    fn accounts_and_groups_are_read_and_faults_told() {
        let text = format!(
            "# people\n\nann:{B}\r\nbob:{SHA}:Bob Smith\n:x\nno colon\ncid:plain\nann:{B}\n dan:{B} \n"
        );
        let groups = "staff: ann dan\nlab:ann\n# none: bob\nno colon\nempty:\n";
        let (accounts, faults) = Accounts::parse(&text, Some(groups));
        assert_eq!(accounts.len(), 3);
        assert_eq!(accounts.find("ann").unwrap().groups, ["staff", "lab"]);
        assert!(accounts.find("bob").unwrap().groups.is_empty());
        assert_eq!(accounts.find("dan").unwrap().groups, ["staff"]);
        assert_eq!(accounts.find("cid"), None);
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [4, 5, 6, 7, 8]);
        assert!(accounts.check("ann", b"b").is_some());
        assert!(accounts.check("bob", b"b").is_some());
        assert!(accounts.check("ann", b"c").is_none());
        assert!(accounts.check("", b"b").is_none() && accounts.check("cid", b"plain").is_none());
    }

    #[test]
    fn a_name_that_nobody_has_is_checked_by_a_hash_like_most() {
        let text = format!("a:{SHA}\nb:{B}\nc:{B}\n");
        let (accounts, _) = Accounts::parse(&text, None);
        assert_eq!(accounts.common, B);
        assert!(accounts.check("nobody", b"b").is_none());
        let (none, faults) = Accounts::parse("", None);
        assert!(none.is_empty() && faults.is_empty() && none.check("a", b"").is_none());
    }
}
