//! Accounts of a machine, as `/etc/shadow` has them: a mount namespace in which that is another.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use super::harness::client::{Answer, ask};
use super::harness::{Hob, Place, User, children_of, is_root, status_line, wait_for_end};
use super::{basic, config, reason};

/// What the package's own service is.
const UNIX: &str = "auth required pam_unix.so\naccount required pam_unix.so\n";

/// The number of hob-pam, who may read passwords, and of somebody who may not.
const ASKER: u32 = 30_010;
const OTHER: u32 = 30_011;

/// Days since 1970 of a password's last change, and the day that an account ends.
const ACCOUNTS: [(&str, &str, &str); 5] = [
    ("ann", "19000", ""),
    ("locked", "19000", ""),
    ("expired", "19000", "1"),
    ("aged", "0", ""),
    ("empty", "19000", ""),
];

/// A machine on which all of these have `sesame`, unless their account is otherwise; none where the
/// tests are not root's.
fn machine() -> Option<Place> {
    if !is_root() {
        println!("skipped: needs root");
        return None;
    }
    let place = Place::for_user(User::Same);
    place.folder("site/inner");
    place.folder("pam.d");
    place.write("site/inner/a.txt", super::INNER);
    place.write("pam.d/hob", UNIX);
    let hash = Command::new("openssl")
        .args(["passwd", "-6", "sesame"])
        .output();
    let hash = String::from_utf8(hash.unwrap().stdout).unwrap();
    let shadow_group = std::fs::metadata("/etc/shadow").unwrap().gid();
    let mut passwd = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n\
        daemon:x:1:1::/:/bin/false\n"
        .to_owned();
    passwd += &format!("hob-pam:x:{ASKER}:{ASKER}::/:/bin/false\n");
    passwd += &format!("other:x:{OTHER}:{OTHER}::/:/bin/false\n");
    let group = format!(
        "root:x:0:\nnogroup:x:65534:\ndaemon:x:1:\nshadow:x:{shadow_group}:hob-pam\n\
         hob-pam:x:{ASKER}:\nother:x:{OTHER}:\nlab:x:30020:ann\nann:x:30000:\n"
    );
    let mut shadow = String::new();
    for (id, (name, changed, ends)) in (30_000..).zip(ACCOUNTS) {
        let hash = match name {
            "locked" => format!("!{}", hash.trim()),
            "empty" => String::new(),
            _ => hash.trim().to_owned(),
        };
        passwd += &format!("{name}:x:{id}:{id}::/:/bin/sh\n");
        shadow += &format!("{name}:{hash}:{changed}:0:99999:7::{ends}:\n");
    }
    place.write("passwd", &passwd);
    place.write("group", &group);
    place.write("shadow", &shadow);
    chown(place.path("shadow"), Some(0), Some(shadow_group)).unwrap();
    let mode = PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(place.path("shadow"), mode).unwrap();
    Some(place)
}

/// Serves on that machine, with nothing that gains rights, as the unit of the package has it.
fn serve_as(place: &Place, user: &str) -> Hob {
    let keys = format!(", user = {user:?}");
    let text = config(
        &keys,
        "{ auth = \"system\", users = [\"aged\"], groups = [\"lab\"] }",
    );
    let text = format!("user = \"nobody\"\n{text}");
    place.write("hob.toml", &text);
    let mut command = place.command_of(Path::new("unshare"));
    let own = |name: &str| place.path(name).display().to_string();
    let mounts = ["passwd", "group", "shadow"]
        .map(|name| format!("mount --bind {} /etc/{name} && ", own(name)))
        .concat();
    let script = format!("{mounts}exec setpriv --no-new-privs {} \"$@\"", own("hob"));
    command.args(["--mount", "sh", "-c", &script, "hob"]);
    command.args(["serve", "--config", "hob.toml"]);
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    hob
}

fn get(hob: &Hob, name: &str, password: &str) -> Answer {
    let path = format!("/inner/a.txt?{name}");
    ask(hob.port(), "GET", &path, &basic(name, password.as_bytes()))
}

#[test]
fn by_system_accounts_get_in_by_their_passwords_alone() {
    let Some(place) = machine() else {
        return;
    };
    let hob = serve_as(&place, "hob-pam");
    let status = |name: &str, password: &str| get(&hob, name, password).status;
    assert_eq!(status_line(hob.server(), "NoNewPrivs"), "1");
    // Her group is one of those that may.
    assert_eq!(status("ann", "sesame"), 200);
    for (name, password) in [
        ("ann", "sesam"),
        ("nobody-there", "sesame"),
        ("locked", "sesame"),
        ("locked", "!"),
        ("empty", "x"),
        ("empty", ""),
    ] {
        assert_eq!(status(name, password), 401, "{name} {password}");
    }
    for (name, said) in [
        ("expired", "pam_acct_mgmt: User account has expired"),
        (
            "aged",
            "pam_acct_mgmt: Authentication token is no longer valid",
        ),
    ] {
        assert_eq!(status(name, "sesame"), 401, "{name}");
        let (reason, detail) = reason(&place, &format!("/inner/a.txt?{name}"));
        assert!(
            reason.starts_with("require: PAM refuses the account"),
            "{reason}"
        );
        assert!(detail.starts_with(said), "{detail}");
    }
    // A password that is not right does not tell that the account has ended.
    assert_eq!(status("expired", "x"), 401);
    hob.stop();
}

#[test]
fn by_system_changed_password_counts_at_once() {
    let Some(place) = machine() else {
        return;
    };
    let hob = serve_as(&place, "hob-pam");
    assert_eq!(get(&hob, "ann", "sesame").status, 200);
    let shadow = std::fs::read_to_string(place.path("shadow")).unwrap();
    // In place: it is mounted.
    std::fs::write(place.path("shadow"), shadow.replacen("ann:$", "ann:!$", 1)).unwrap();
    let until = std::time::Instant::now() + super::DEADLINE;
    while get(&hob, "ann", "sesame").status != 401 {
        assert!(
            std::time::Instant::now() < until,
            "she is let in all the same"
        );
    }
    hob.stop();
}

#[test]
fn by_system_account_that_may_not_read_passwords_lets_nobody_in() {
    let Some(place) = machine() else {
        return;
    };
    let hob = serve_as(&place, "other");
    hob.wait_for("may not read /etc/shadow");
    assert_eq!(get(&hob, "ann", "sesame").status, 503);
    let (reason, detail) = reason(&place, "/inner/a.txt?ann");
    assert_eq!(
        reason,
        "require: PAM cannot say whether the password is right"
    );
    assert!(
        detail.contains("cannot retrieve authentication info"),
        "{detail}"
    );
    hob.stop();
}

#[test]
fn by_system_process_is_its_account_and_has_no_rights_besides() {
    let Some(place) = machine() else {
        return;
    };
    let told = place.path("told");
    place.script(
        "check",
        &format!(
            "#!/bin/sh\nread -r given\ngrep -E '^(Uid|Gid|Groups|NoNewPrivs|CapEff):' \
             /proc/$PPID/status > {0}.next\nls -ln /proc/$PPID/ | grep environ >> {0}.next\n\
             mv {0}.next {0}\n",
            told.display()
        ),
    );
    // Only there may it write.
    chown(place.path(""), Some(ASKER), Some(ASKER)).unwrap();
    let stack = super::checked_by(&place, "check");
    place.write("pam.d/hob", &format!("{stack}{}", super::ANY_ACCOUNT));
    let hob = serve_as(&place, "hob-pam");
    assert_eq!(get(&hob, "ann", "sesame").status, 200);
    let text = std::fs::read_to_string(&told).unwrap();
    let group = std::fs::metadata("/etc/shadow").unwrap().gid();
    let line = |name: &str| {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("Uid:"), [ASKER.to_string().as_str(); 4].join(" "));
    assert_eq!(line("Gid:"), [ASKER.to_string().as_str(); 4].join(" "));
    assert!(
        line("Groups:")
            .split(' ')
            .any(|one| one == group.to_string()),
        "{text}"
    );
    assert_eq!(
        (line("NoNewPrivs:"), line("CapEff:")),
        ("1".to_owned(), "0".repeat(16))
    );
    // Root's: nobody of that account may look into it.
    assert!(text.lines().last().unwrap().contains(" 0 0 "), "{text}");
    children_of(hob.spawner())
        .into_iter()
        .for_each(wait_for_end);
    hob.stop();
}
