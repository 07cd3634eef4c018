//! What people sign in with: files of accounts, credentials, signed links.
#![no_main]

use hob_server::step::auth::accounts::Accounts;
use hob_server::step::auth::basic;
use hob_server::step::auth::signed_urls::LinkKeys;
use libfuzzer_sys::fuzz_target;

const KEY: &str = "0123456789abcdef0123456789abcdef";

fuzz_target!(|input: (&str, &str, &[u8], &str)| {
    let (htpasswd, groups, value, target) = input;
    let (accounts, faults) = Accounts::parse(htpasswd, Some(groups));
    let lines = htpasswd.lines().count();
    assert!(
        accounts.len() <= lines && faults.iter().all(|fault| (1..=lines).contains(&fault.line))
    );
    if let Some((name, _)) = basic(value) {
        assert!(!name.is_empty() && !name.contains(':'));
        if let Some(account) = accounts.find(&name) {
            assert_eq!(*account.name, *name);
        }
    }
    let keys = LinkKeys::parse(KEY).expect("it is long enough");
    assert!(keys.check(target.as_bytes(), 0).is_err());
    let link = keys.sign(target, 2);
    assert!(keys.check(link.as_bytes(), 1).is_ok() && keys.check(link.as_bytes(), 2).is_err());
});
