//! What a program reaches.

use super::harness::{Link, Outcome, Spawner, is_root, rules, run, shell};
use crate::process::orders::SpawnerReport;
use crate::process::policy::Rules;
use hob_config::{Namespace, Sandbox};

fn sandboxed(sandbox: Sandbox) -> Spawner {
    Spawner::with(vec![Rules { sandbox, ..rules() }])
}

fn spaced(namespaces: &[Namespace]) -> Spawner {
    sandboxed(Sandbox {
        namespaces: namespaces.to_vec(),
        ..Sandbox::default()
    })
}

/// Whether this machine lets a program have them; says why not.
fn has_namespaces(link: &mut Link) -> bool {
    match link.run(&shell(":")).0 {
        Outcome::Code(0) => true,
        refused => {
            println!("skipped: {refused:?}");
            false
        }
    }
}

#[test]
fn files_that_are_not_named_are_out_of_reach() {
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).unwrap();
    for name in ["read", "write", "other"] {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), format!("{name}\n")).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&path, open).unwrap();
    }
    let at = |name: &str| folder.path().join(name);
    let mut spawner = sandboxed(Sandbox {
        read: vec![at("read")],
        write: vec![at("write"), "/dev/null".into()],
        execute: ["/bin", "/usr", "/lib", "/lib64"].map(Into::into).to_vec(),
        ..Sandbox::default()
    });
    let mut link = spawner.link();
    let mut ask = shell(
        "cat read/file; cat write/file; cat other/file || echo no; \
         echo x > write/new && echo made; echo x > read/new || echo not made; \
         cat /etc/passwd || echo no; cp /bin/true write/; write/true || echo not run",
    );
    ask.folder = folder.path().to_str().unwrap().to_owned();
    ask.arguments[2].extend_from_slice(b" ; exit 0");
    let (outcome, text) = link.run(&ask);
    if let Some(SpawnerReport::Trouble { text }) = spawner.said_already() {
        return println!("skipped: {text}");
    }
    assert_eq!(outcome, Outcome::Code(0), "{text}");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("denied"))
        .collect();
    assert_eq!(
        lines,
        ["read", "write", "no", "made", "not made", "no", "not run"]
    );
}

#[test]
fn place_that_does_not_exist_is_said() {
    let mut spawner = sandboxed(Sandbox {
        read: vec!["/no/such/place".into()],
        execute: vec!["/".into()],
        no_new_privileges: false,
        ..Sandbox::default()
    });
    spawner.link().print(":");
    let said = spawner.said_already();
    assert!(
        matches!(&said, Some(SpawnerReport::Trouble { text }) if text.contains("sandbox")),
        "{said:?}"
    );
}

#[test]
fn rights_are_not_gained_unless_the_config_allows_it() {
    for no_new_privileges in [true, false] {
        let spawner = sandboxed(Sandbox {
            no_new_privileges,
            ..Sandbox::default()
        });
        let status = spawner.link().print("cat /proc/self/status");
        let expected = format!("NoNewPrivs:\t{}\n", u8::from(no_new_privileges));
        assert!(status.contains(&expected), "{status}");
    }
}

#[test]
fn program_without_network_has_none() {
    let spawner = spaced(&[Namespace::Net, Namespace::Ipc, Namespace::Uts]);
    let mut link = spawner.link();
    if !has_namespaces(&mut link) {
        return;
    }
    let devices = link.print("cat /proc/self/net/dev");
    let names: Vec<&str> = devices
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(str::trim)
        .collect();
    assert!(
        names
            .iter()
            .all(|name| *name == "lo" || name.ends_with('0')),
        "{names:?}"
    );
    let routes = link.print("cat /proc/self/net/route");
    assert!(routes.lines().count() <= 1, "only the heading: {routes}");
}

#[test]
fn program_with_processes_and_mounts_of_its_own_sees_no_others() {
    let spawner = spaced(&[Namespace::Pid, Namespace::Mount]);
    let mut link = spawner.link();
    if !has_namespaces(&mut link) {
        return;
    }
    assert_eq!(
        link.print("echo $$; ls /tmp | wc -l; echo a > /tmp/a; ls /tmp"),
        "1\n0\na\n"
    );
    assert_eq!(link.print("ls -d /proc/[0-9]* | head -1"), "/proc/1\n");
    assert_eq!(link.print("ls /tmp | wc -l"), "0\n", "each has its own");
    if is_root() {
        let status = link.print("cat /proc/self/status");
        assert!(
            status.contains("Uid:\t4321\t4321\t4321\t4321\n"),
            "{status}"
        );
    }
    // The end of the first process is the end of all.
    assert_eq!(
        link.run(&run(&["/bin/sh", "-c", "sleep 1030 & exit 4"])).0,
        Outcome::Code(4)
    );
    spawner.wait_until_childless();
}
