//! `git http-backend`: a real git client clones and pushes through each server; 200 MB both ways
//! through hob. What arrived is told by its object ids.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::place::{DATE, Place, installed, succeeded};
use crate::servers::{self, Mount, PEERS, Server};

/// Files of this size, none of which can be packed smaller.
const FILE_BYTES: usize = 8 << 20;
const BIG_FILES: usize = 25;
const SMALL_FILES: usize = 1;
/// So many branches that a client's wants do not fit into what it sends uncompressed.
const BRANCHES: usize = 60;

/// git and its CGI program.
pub(crate) fn backend() -> Option<PathBuf> {
    installed("git", &["/usr/bin/git"])?;
    let files = [
        "/usr/lib/git-core/git-http-backend",
        "/usr/libexec/git-core/git-http-backend",
    ];
    installed("git http-backend", &files)
}

/// git, knowing no settings but these.
pub(crate) fn command(place: &Place) -> Command {
    let mut command = place.command("git");
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_AUTHOR_NAME", "Ann"),
        ("GIT_AUTHOR_EMAIL", "ann@example.org"),
        ("GIT_AUTHOR_DATE", DATE),
        ("GIT_COMMITTER_NAME", "Ann"),
        ("GIT_COMMITTER_EMAIL", "ann@example.org"),
        ("GIT_COMMITTER_DATE", DATE),
    ] {
        command.env(name, value);
    }
    command
}

/// Settings of all that git does here, in the CGI too: do not look for what noise does not have.
const SETTINGS: &str = "[core]\ncompression = 0\nbigFileThreshold = 1m\n\
    [transfer]\nunpackLimit = 1\n[gc]\nauto = 0\n[receive]\nautogc = false\n";

/// Runs git, which must succeed; what it printed.
pub(crate) fn git(place: &Place, arguments: &[&str]) -> String {
    let output = command(place).args(arguments).output().unwrap();
    succeeded("git", arguments, &output)
}

/// `repos/work.git`, small, with two commits, a tag, and names that have to be encoded.
pub(crate) fn repository(place: &Place) {
    place.folder("repos");
    git(place, &["init", "-q", "-b", "main", "work"]);
    place.folder("work/docs");
    place.write("work/README", "A repository to look at.\n");
    place.write("work/docs/a b+c%25.txt", "spaces & signs\n");
    place.write("work/docs/gr\u{fc}\u{df}e.txt", "umlauts\n");
    git(place, &["-C", "work", "add", "."]);
    git(place, &["-C", "work", "commit", "-q", "-m", "first"]);
    git(place, &["-C", "work", "tag", "-a", "-m", "one", "v1"]);
    place.write(
        "work/README",
        "A repository to look at.\nWith a second line.\n",
    );
    git(
        place,
        &[
            "-C",
            "work",
            "commit",
            "-q",
            "-a",
            "-m",
            "second <&> commit",
        ],
    );
    git(place, &["clone", "-q", "--bare", "work", "repos/work.git"]);
    place.write("repos/work.git/description", "work of the test\n");
}

/// Every object of a repository by id and size.
fn objects(place: &Place, repository: &str) -> String {
    let format = "--batch-check=%(objectname) %(objecttype) %(objectsize)";
    git(
        place,
        &["-C", repository, "cat-file", "--batch-all-objects", format],
    )
}

fn refs(place: &Place, repository: &str) -> String {
    git(
        place,
        &[
            "-C",
            repository,
            "for-each-ref",
            "--format=%(objectname) %(refname)",
        ],
    )
}

/// `repos/NAME.git` with a commit of noise and many branches.
fn noise(place: &Place, name: &str, files: usize) {
    place.write("home/.gitconfig", SETTINGS);
    git(place, &["init", "-q", "-b", "main", name]);
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    while bytes.len() < FILE_BYTES {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    for index in 0..files {
        // Other files, although of the same noise: nothing looks for it as far away as that.
        bytes.rotate_left(FILE_BYTES / 3 + index);
        let file = place.path(&format!("{name}/noise-{index}.bin"));
        File::create(file).unwrap().write_all(&bytes).unwrap();
    }
    git(place, &["-C", name, "add", "."]);
    git(place, &["-C", name, "commit", "-q", "-m", "noise"]);
    let tree = git(place, &["-C", name, "rev-parse", "main^{tree}"]);
    let mut updates = String::new();
    for index in 0..BRANCHES {
        let message = format!("branch {index}");
        let arguments = [
            "-C",
            name,
            "commit-tree",
            "-p",
            "main",
            "-m",
            &message,
            tree.trim(),
        ];
        let commit = git(place, &arguments);
        updates += &format!("create refs/heads/b{index} {commit}");
    }
    place.write("updates", &updates);
    let mut command = command(place);
    command.args(["-C", name, "update-ref", "--stdin"]);
    command.stdin(File::open(place.path("updates")).unwrap());
    succeeded("git", &["update-ref"], &command.output().unwrap());
}

/// Clones through a server, pushes what came into an empty repository through it, and compares.
fn goes_there_and_back(place: &Place, server: &Server, name: &str, source: &str) {
    let url = format!("http://127.0.0.1:{}/git", server.port);
    let copy = format!("{name}-copy.git");
    let traced = |arguments: &[&str]| {
        let mut command = command(place);
        command
            .env("GIT_TRACE_CURL", "1")
            .env("GIT_TRACE_CURL_NO_DATA", "1");
        let output = command.args(arguments).output().unwrap();
        succeeded("git", arguments, &output).to_lowercase()
    };
    // Protocol 0 asks for everything in one request, which is long enough to be compressed.
    let said = traced(&[
        "-c",
        "protocol.version=0",
        "clone",
        "-q",
        "--mirror",
        &format!("{url}/{source}"),
        &copy,
    ]);
    assert!(said.contains("content-encoding: gzip"), "{name}: {said}");
    assert_eq!(refs(place, &copy), refs(place, source), "{name}");

    let target = format!("{name}-target.git");
    git(place, &["init", "-q", "--bare", "-b", "main", &target]);
    git(
        place,
        &["-C", &target, "config", "http.receivepack", "true"],
    );
    let said = traced(&[
        "-C",
        &copy,
        "push",
        "-q",
        "--mirror",
        &format!("{url}/{target}"),
    ]);
    assert!(
        said.contains("transfer-encoding: chunked"),
        "{name}: {said}"
    );
    assert_eq!(refs(place, &target), refs(place, source), "{name}");
    assert_eq!(objects(place, &target), objects(place, source), "{name}");
}

fn mount(place: &Place) -> Option<Mount> {
    let mount = Mount::new(place, "/git", backend()?);
    let mount = mount.with("GIT_PROJECT_ROOT", place.shown(""));
    Some(mount.with("GIT_HTTP_EXPORT_ALL", "1"))
}

#[test]
fn git_clones_and_pushes_200_mb() {
    let place = Place::new();
    let Some(mount) = mount(&place) else {
        return;
    };
    noise(&place, "source", BIG_FILES);
    let hob = servers::hob(&place, &mount);
    goes_there_and_back(&place, &hob, "hob", "source");
    assert!(!hob.printed().contains("ERROR"), "{}", hob.printed());
}

#[test]
fn git_clones_and_pushes_as_through_other_servers() {
    let place = Place::new();
    let Some(mount) = mount(&place) else {
        return;
    };
    noise(&place, "source", SMALL_FILES);
    goes_there_and_back(&place, &servers::hob(&place, &mount), "hob", "source");
    for peer in PEERS {
        if let Some(server) = servers::peer(peer, &place, &mount) {
            goes_there_and_back(&place, &server, peer.name(), "source");
        }
    }
}

#[test]
fn git_http_backend_answers_as_under_other_servers() {
    let place = Place::new();
    let Some(mount) = mount(&place) else {
        return;
    };
    repository(&place);
    crate::compare::by_table(&place, &mount, include_str!("git.txt"));
}
