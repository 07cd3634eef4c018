//! Flat files and registries on a disk: what pages do with them, what keeps them in their folder,
//! and that of many writers at once none is lost.
#![allow(clippy::unwrap_used)]

mod site;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hob_page::builtin::RowFormat;
use hob_page::fault::{FunctionFault, code};
use hob_page::files::{FileFolder, FlatFiles, RegistryFiles, SearchedFolders};
use hob_page::host::{Absent, Files, Host, Registries, RegistryChange};
use hob_page::ini::Ini;
use hob_page::limits::{FileLimits, PageUse};
use hob_page::run::{PageSettings, run};
use hob_page::tree::Page;
use rustix::fs::{CWD, FlockOperation, Mode, flock, mkfifoat};
use tempfile::TempDir;

use site::{Still, Taken, request};

fn folder(path: &Path) -> FileFolder {
    FileFolder {
        path: path.to_path_buf(),
        is_writable: true,
        limits: FileLimits {
            lock_wait: Duration::from_secs(60),
            ..FileLimits::default()
        },
        is_over: || false,
    }
}

fn flat_files(folder: FileFolder) -> FlatFiles {
    let searched = SearchedFolders::of(&folder.path, &Ini::default(), Path::new(""));
    FlatFiles::new(folder, searched)
}

fn code_of<T>(done: Result<T, FunctionFault>) -> i64 {
    done.map_or_else(|fault| fault.code, |_| 0)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs a block over files and registries of this folder.
fn ask(source: &str, target: &str, home: &Path, settings: &PageSettings) -> (String, PageUse) {
    let page = Arc::new(Page::parse("page", source.as_bytes()).unwrap());
    let files = flat_files(folder(home));
    let registries = RegistryFiles::new(folder(home));
    let host = Host {
        environment: &Absent,
        sources: &Absent,
        database: None,
        programs: &Absent,
        files: &files,
        registries: &registries,
        visits: &Absent,
        clock: &Still,
    };
    let (request, mut taken) = (request(target), Taken::default());
    let outcome = run(&page, &request, settings, None, host, &mut taken, None).unwrap();
    let text = String::from_utf8_lossy(&taken.bytes);
    let words: Vec<&str> = text.split_whitespace().collect();
    (words.join(" "), outcome.used)
}

fn asked(source: &str, target: &str, home: &TempDir) -> String {
    ask(source, target, home.path(), &PageSettings::default()).0
}

/// A table, and blocks that do something with a file.
const ROWS: &str = "%DEFINE { t = %TABLE u = %TABLE f = \"a.txt\" d = \";\" %}
%MACRO_FUNCTION two() { @DTW_TB_SETCOLS(u, \"2\") @DTW_TB_APPENDROW(u, \"2\")
  @DTW_TB_SETV(u, \"x\", \"1\", \"1\") @DTW_TB_SETV(u, \"y;z\", \"1\", \"2\")
  @DTW_TB_SETV(u, \"w\", \"2\", \"1\") %}
%HTML(write) { @two() @DTWF_WRITE(f, \"DELIMITED\", d, u) $(RETURN_CODE) %}
%HTML(second) { @two() @DTWF_WRITE(f, \"DELIMITED\", d, u, \"0\", \"1\", \"2\") $(RETURN_CODE) %}
%HTML(append) { @two() @DTWF_APPEND(f, \"DELIMITED\", d, u) $(RETURN_CODE) %}
%HTML(update) { @two() @DTWF_UPDATE(f, \"DELIMITED\", d, u, \"0\", \"0\", at) $(RETURN_CODE) %}
%HTML(insert) { @two() @DTWF_INSERT(f, \"DELIMITED\", d, u, \"0\", at, \"1\") $(RETURN_CODE) %}
%HTML(delete) { @DTWF_DELETE(f, \"DELIMITED\", d, \"0\", at, count) $(RETURN_CODE) %}
%HTML(search) { @DTWF_SEARCH(f, \"DELIMITED\", d, t, text) @DTW_TB_rROWS(t) @DTW_TB_rGETV(t, \"1\", \"1\") %}
%HTML(read) { @DTWF_READ(f, \"DELIMITED\", d, t, \"0\", count, at) $(RETURN_CODE)
  @DTW_TB_rROWS(t) @DTW_TB_rCOLS(t) [@DTW_TB_rGETV(t, \"1\", \"1\")] [@DTW_TB_rGETV(t, \"1\", \"2\")] %}
%HTML(open) { @DTWF_OPEN(f, mode) $(RETURN_CODE) %}
%HTML(copy) { @DTWF_COPY(f, to) $(RETURN_CODE) %}
%HTML(remove) { @DTWF_REMOVE(f) $(RETURN_CODE) @DTWF_rEXISTS(f) %}
";

#[test]
fn rows_are_written_changed_and_read() {
    let home = tempfile::tempdir().unwrap();
    let content = || fs::read_to_string(home.path().join("a.txt")).unwrap();
    assert_eq!(asked(ROWS, "read", &home), "2000 0 0 [] []");
    assert_eq!(asked(ROWS, "write", &home), "0");
    assert_eq!(content(), "x;y\u{10}dz\nw;\n");
    assert_eq!(asked(ROWS, "read", &home), "0 2 2 [x] [y;z]");
    assert_eq!(asked(ROWS, "read?at=2&count=1", &home), "0 1 2 [w] []");
    assert_eq!(asked(ROWS, "search?text=z", &home), "1 x");
    // Lines of others stay as they are, byte by byte.
    fs::write(home.path().join("a.txt"), "1;one\r\n2;two\n3;three").unwrap();
    assert_eq!(asked(ROWS, "append", &home), "0");
    assert_eq!(content(), "1;one\r\n2;two\n3;three\nx;y\u{10}dz\nw;\n");
    assert_eq!(asked(ROWS, "delete?at=4", &home), "0");
    assert_eq!(asked(ROWS, "insert?at=1", &home), "0");
    assert_eq!(content(), "1;one\r\nx;y\u{10}dz\n2;two\n3;three\n");
    assert_eq!(asked(ROWS, "update?at=4", &home), "0");
    let wanted = "1;one\r\nx;y\u{10}dz\n2;two\nx;y\u{10}dz\n";
    assert_eq!(content(), wanted, "no line is added");
    assert_eq!(asked(ROWS, "delete?at=2&count=2", &home), "0");
    assert_eq!(content(), "1;one\r\nx;y\u{10}dz\n");
    assert_eq!(asked(ROWS, "second", &home), "0");
    assert_eq!(content(), "w;\n");
    assert_eq!(asked(ROWS, "copy?to=b.txt", &home), "0");
    assert_eq!(names(home.path()), ["a.txt", "b.txt"]);
    assert_eq!(asked(ROWS, "remove", &home), "0 N");
    assert_eq!(asked(ROWS, "open?mode=r", &home), "2000");
    assert_eq!(asked(ROWS, "open?mode=a", &home), "0");
    assert_eq!(asked(ROWS, "open?mode=r%2B", &home), "0");
    assert_eq!(asked(ROWS, "open?mode=x", &home), "1007");
    assert_eq!(asked(ROWS, "write?d=", &home), "1007");
}

#[test]
fn registries_hold_entries() {
    let home = tempfile::tempdir().unwrap();
    let source = "%DEFINE { t = %TABLE %}
%HTML(make) { @DTWR_CREATEREG(\"r\") $(RETURN_CODE) %}
%HTML(add) { @DTWR_ADDENTRY(\"r\", name, value, index) $(RETURN_CODE) %}
%HTML(update) { @DTWR_UPDATEENTRY(\"r\", name, value) $(RETURN_CODE) %}
%HTML(get) { @DTWR_RTVENTRY(\"r\", name, index, v) $(RETURN_CODE) $(v) %}
%HTML(drop) { @DTWR_DELENTRY(\"r\", name) $(RETURN_CODE) %}
%HTML(all) { @DTWR_LISTREG(\"r\", t) @DTW_TB_DUMPV(t) %}
%HTML(sub) { @DTWR_LISTSUB(\"r\", \"a\", t) @DTW_TB_rROWS(t) @DTW_TB_rGETV(t, \"1\", \"1\") @DTW_TB_rGETV(t, \"1\", \"2\") %}
%HTML(clear) { @DTWR_CLEARREG(\"r\") @DTWR_LISTREG(\"r\", t) @DTW_TB_rROWS(t) %}
%HTML(remove) { @DTWR_DELREG(\"r\") $(RETURN_CODE) @DTWR_OPENREG(\"r\") $(RETURN_CODE) %}
";
    let get = |target| asked(source, target, &home);
    assert_eq!(get("add?name=a&value=1"), "3001");
    assert_eq!((get("make"), get("make")), ("0".into(), "3003".into()));
    assert_eq!(get("add?name=a&value=1"), "0");
    assert_eq!(get("add?name=a&value=2"), "3003");
    assert_eq!(get("add?name=a&value=%3Ci%3E%0A&index=x"), "0");
    assert_eq!(get("get?name=a"), "0 1");
    assert_eq!(get("get?name=a&index=x"), "0 &lt;i&gt;");
    assert_eq!(get("get?name=b"), "3002");
    assert_eq!(get("update?name=a&value=3"), "0");
    assert_eq!(get("update?name=b&value=3"), "3002");
    assert_eq!(get("sub"), "1 x &lt;i&gt;");
    let all = get("all");
    assert!(all.contains("a(x)") && all.contains('3'), "{all}");
    assert_eq!(
        (get("drop?name=a"), get("drop?name=a")),
        ("0".into(), "3002".into())
    );
    assert_eq!(names(home.path()), ["r.registry"]);
    assert_eq!(get("clear"), "0");
    assert_eq!(get("remove"), "0 3001");
    assert_eq!(names(home.path()), [""; 0]);
    fs::write(home.path().join("r.registry"), "some other file\n").unwrap();
    assert_eq!(
        get("add?name=a&value=1"),
        "<p>This page met an error (-551).</p>"
    );
}

#[test]
fn nothing_outside_of_the_folder_is_reached() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    fs::create_dir_all(path("data/sub/.hidden")).unwrap();
    fs::write(path("secret.txt"), "secret\n").unwrap();
    fs::write(path("secret.registry"), "hob registry 1\na=b\n").unwrap();
    for name in ["data/in.txt", "data/sub/in.txt", "data/sub/.hidden/in.txt"] {
        fs::write(path(name), "in\n").unwrap();
    }
    fs::write(path("data/.dot"), "in\n").unwrap();
    symlink("../secret.txt", path("data/up.txt")).unwrap();
    symlink(path("secret.txt"), path("data/far.txt")).unwrap();
    symlink("..", path("data/parent")).unwrap();
    symlink("sub/in.txt", path("data/within.txt")).unwrap();
    symlink("/proc/self/root/etc/passwd", path("data/magic.txt")).unwrap();
    symlink("../secret.registry", path("data/far.registry")).unwrap();
    mkfifoat(CWD, path("data/pipe"), Mode::RWXU).unwrap();
    let files = flat_files(folder(&path("data")));
    let secret = path("secret.txt").to_string_lossy().into_owned();
    for name in [
        "../secret.txt",
        "sub/../../secret.txt",
        "sub/../in.txt",
        &secret,
        "up.txt",
        "far.txt",
        "parent/secret.txt",
        "magic.txt",
        "/etc/passwd",
        ".dot",
        "sub/.hidden/in.txt",
        ".",
        "",
        "in.txt\0",
        "in.txt/x",
    ] {
        assert_eq!(code_of(files.read(name)), code::NO_FILE, "{name}");
        assert!(!files.exists(name).unwrap(), "{name}");
        assert_ne!(code_of(files.append(name, b"x")), 0, "{name}");
        assert_ne!(code_of(files.remove(name)), 0, "{name}");
    }
    for name in ["pipe", "sub"] {
        assert_eq!(code_of(files.read(name)), code::REFUSED, "{name}");
        assert_eq!(code_of(files.write(name, b"x")), code::REFUSED, "{name}");
        assert!(!files.exists(name).unwrap(), "{name}");
    }
    let own = path("data/sub/in.txt").to_string_lossy().into_owned();
    for name in ["in.txt", "/in.txt", "sub/in.txt", "within.txt", &own] {
        assert_eq!(files.read(name).unwrap(), b"in\n", "{name}");
    }
    // A link is read, and nothing takes its place.
    assert_eq!(code_of(files.write("within.txt", b"x")), code::REFUSED);
    assert_eq!(fs::read_to_string(path("secret.txt")).unwrap(), "secret\n");
    let registries = RegistryFiles::new(folder(&path("data")));
    for name in ["../secret", "far", "parent/secret"] {
        assert_eq!(
            code_of(registries.entries(name)),
            code::NO_REGISTRY,
            "{name}"
        );
        let add = RegistryChange::Add(b"c", b"d");
        assert_ne!(code_of(registries.change(name, &add)), 0, "{name}");
    }
    let kept = fs::read_to_string(path("secret.registry")).unwrap();
    assert_eq!(kept, "hob registry 1\na=b\n");
    let left = names(&path("data"));
    assert!(left.iter().all(|name| !name.ends_with(".hob")), "{left:?}");
}

#[test]
fn folders_of_the_old_settings_are_searched_in_their_order() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    for name in ["data/new", "data/old", "else"] {
        fs::create_dir_all(path(name)).unwrap();
    }
    for (name, text) in [
        ("data/old/a.txt", "old"),
        ("data/new/b.txt", "new"),
        ("data/old/b.txt", "old"),
        ("data/c.txt", "own"),
        ("else/d.txt", "else"),
    ] {
        fs::write(path(name), text).unwrap();
    }
    let old = path("data/old").to_string_lossy().into_owned();
    let text = format!("FFI_PATH data/new;{old};else;none;/etc\n");
    let ini = Ini::parse("db2www.ini", text.as_bytes()).unwrap();
    let searched = SearchedFolders::of(&path("data"), &ini, home.path());
    assert_eq!(searched.folders, [Path::new("new"), Path::new("old")]);
    let refused = [path("else"), path("none"), Path::new("/etc").to_owned()];
    assert_eq!(searched.refused, refused);
    let files = FlatFiles::new(folder(&path("data")), searched);
    assert_eq!(files.read("a.txt").unwrap(), b"old");
    assert_eq!(files.read("b.txt").unwrap(), b"new");
    for name in ["c.txt", "d.txt", "passwd"] {
        assert_eq!(code_of(files.read(name)), code::NO_FILE, "{name}");
    }
    files.append("a.txt", b"er").unwrap();
    files.write("e.txt", b"made").unwrap();
    assert_eq!(fs::read(path("data/old/a.txt")).unwrap(), b"old\ner");
    assert_eq!(fs::read(path("data/new/e.txt")).unwrap(), b"made");
    let none = Ini::parse("db2www.ini", b"FFI_PATH /etc\n").unwrap();
    let searched = SearchedFolders::of(&path("data"), &none, home.path());
    assert_eq!(searched.folders, [Path::new("")]);
}

#[test]
fn folder_that_is_read_only_stays_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("a.txt"), "a\n").unwrap();
    let files = flat_files(FileFolder {
        is_writable: false,
        ..folder(home.path())
    });
    assert_eq!(files.read("a.txt").unwrap(), b"a\n");
    for done in [
        files.write("a.txt", b""),
        files.write("b.txt", b""),
        files.append("a.txt", b"b"),
        files.change("a.txt", &mut |_| Ok(Vec::new())),
        files.remove("a.txt"),
    ] {
        assert_eq!(code_of(done), code::READ_ONLY);
    }
    assert_eq!(names(home.path()), ["a.txt"]);
}

#[test]
fn file_that_somebody_changes_is_busy_and_what_a_killed_run_left_is_no_hindrance() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("a.txt"), "a\n").unwrap();
    fs::set_permissions(home.path().join("a.txt"), PermissionsExt::from_mode(0o604)).unwrap();
    let left = home.path().join(".a.txt.hob");
    fs::write(
        &left,
        "half of what a run that was killed would have written",
    )
    .unwrap();
    let files = flat_files(FileFolder {
        limits: FileLimits {
            lock_wait: Duration::from_millis(5),
            ..FileLimits::default()
        },
        ..folder(home.path())
    });
    let held = File::open(&left).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    assert_eq!(code_of(files.append("a.txt", b"b\n")), code::BUSY);
    assert_eq!(files.read("a.txt").unwrap(), b"a\n", "it is read meanwhile");
    files.append("b.txt", b"b\n").unwrap();
    drop(held);
    files.append("a.txt", b"b\n").unwrap();
    assert_eq!(files.read("a.txt").unwrap(), b"a\nb\n");
    assert_eq!(names(home.path()), ["a.txt", "b.txt"]);
    let mode = fs::metadata(home.path().join("a.txt"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o604);
    // A run whose time is up does not wait.
    let over = flat_files(FileFolder {
        is_over: || true,
        ..folder(home.path())
    });
    let held = File::create(&left).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    assert_eq!(code_of(over.append("a.txt", b"c\n")), code::BUSY);
}

#[test]
fn hundred_writers_at_once_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let files = flat_files(folder(home.path()));
    let registries = RegistryFiles::new(folder(home.path()));
    registries.create("seen").unwrap();
    registries.create("count").unwrap();
    let zero = RegistryChange::Add(b"one", b"first");
    registries.change("count", &zero).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..100 {
            let (files, registries) = (&files, &registries);
            scope.spawn(move || {
                let line = format!("line of {writer}\n");
                files.append("log.txt", line.as_bytes()).unwrap();
                let made = files.change("log.txt", &mut |content| {
                    Ok([content, b"changed\n"].concat())
                });
                made.unwrap();
                let (name, value) = (format!("name {writer}"), writer.to_string());
                let add = RegistryChange::Add(name.as_bytes(), value.as_bytes());
                registries.change("seen", &add).unwrap();
                // One of all makes it.
                let add = RegistryChange::Add(b"two", value.as_bytes());
                let added = code_of(registries.change("count", &add));
                assert!(added == 0 || added == code::EXISTS, "{added}");
            });
        }
    });
    let log = String::from_utf8(files.read("log.txt").unwrap()).unwrap();
    let mut lines: Vec<&str> = log.lines().filter(|line| *line != "changed").collect();
    assert_eq!((log.lines().count(), lines.len()), (200, 100));
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 100);
    assert_eq!(registries.entries("seen").unwrap().len(), 100);
    assert_eq!(registries.entries("count").unwrap().len(), 2);
    assert_eq!(
        names(home.path()),
        ["count.registry", "log.txt", "seen.registry"]
    );
}

#[test]
fn each_limit_refuses_what_goes_beyond_it() {
    let home = tempfile::tempdir().unwrap();
    let limits = FileLimits {
        bytes_max: 40,
        entries_max: 2,
        ..FileLimits::default()
    };
    let small = FileFolder {
        limits,
        ..folder(home.path())
    };
    let files = flat_files(small.clone());
    files.write("a.txt", &[b'x'; 40]).unwrap();
    assert_eq!(code_of(files.append("a.txt", b"x")), code::LIMIT);
    assert_eq!(code_of(files.write("a.txt", &[b'y'; 41])), code::LIMIT);
    assert_eq!(files.read("a.txt").unwrap(), [b'x'; 40]);
    fs::write(home.path().join("large.txt"), [b'x'; 41]).unwrap();
    assert_eq!(code_of(files.read("large.txt")), code::LIMIT);
    files.write("large.txt", b"").unwrap();
    let registries = RegistryFiles::new(small);
    registries.create("r").unwrap();
    for (name, wanted) in [(b"a", 0), (b"b", 0), (b"c", code::LIMIT)] {
        let add = RegistryChange::Add(name, b"");
        assert_eq!(code_of(registries.change("r", &add)), wanted);
    }
    let more = "hob registry 1\na=\nb=\nc=\n";
    fs::write(home.path().join("r.registry"), more).unwrap();
    assert_eq!(code_of(registries.entries("r")), code::LIMIT);
    assert_eq!(names(home.path()), ["a.txt", "large.txt", "r.registry"]);
}

#[test]
fn run_that_uses_too_much_is_told_by_its_code() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("a.txt"), "a;b;c\n".repeat(10)).unwrap();
    let source = "%DEFINE t = %TABLE
%MESSAGE { -1001 : { [$(RETURN_CODE)] %} : CONTINUE %}
%HTML(read) { @DTWF_READ(\"a.txt\", \"DELIMITED\", \";\", t) $(RETURN_CODE) %}
%HTML(delete) { @DTWF_DELETE(\"a.txt\", \"ASCIITEXT\", \"\", \"0\", \"1\", \"1\") $(RETURN_CODE) %}
%HTML(often) { @DTWF_rEXISTS(\"a.txt\") @DTWR_OPENREG(\"r\") @DTWF_rEXISTS(\"a.txt\") %}
";
    let within = |change: &dyn Fn(&mut PageSettings), target| {
        let mut settings = PageSettings::default();
        change(&mut settings);
        let (text, used) = ask(source, target, home.path(), &settings);
        (text, used.files, used.refused_files)
    };
    let told = |text: &str, files, refused| (text.to_owned(), files, refused);
    for (rows_max, wanted) in [(10, told("0", 1, 0)), (9, told("[-1001] -1001", 1, 1))] {
        let change = |settings: &mut PageSettings| settings.limits.file_rows_max = rows_max;
        assert_eq!(within(&change, "read"), wanted);
    }
    let few_rows = |settings: &mut PageSettings| settings.limits.file_rows_max = 9;
    assert_eq!(within(&few_rows, "delete"), told("[-1001] -1001", 1, 1));
    for (cells_max, wanted) in [(30, told("0", 1, 0)), (29, told("[-1001] -1001", 1, 1))] {
        let change = |settings: &mut PageSettings| settings.limits.cells_max = cells_max;
        assert_eq!(within(&change, "read"), wanted);
    }
    let two = |settings: &mut PageSettings| settings.limits.files_max = 2;
    assert_eq!(within(&two, "often"), told("Y [-1001]", 2, 1));
    // Without a message it ends the page.
    let ends = source.replace("-1001 :", "-1002 :");
    let mut settings = PageSettings::default();
    settings.limits.files_max = 0;
    let (text, used) = ask(&ends, "often", home.path(), &settings);
    assert_eq!(text, "<p>This page met an error (-1001).</p>");
    assert_eq!((used.files, used.refused_files), (0, 1));
}

/// A generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    fn bytes(&mut self, of: &[u8], most: usize) -> Vec<u8> {
        let count = self.next(most + 1);
        (0..count).map(|_| of[self.next(of.len())]).collect()
    }
}

#[test]
fn whatever_is_in_a_field_comes_back_from_the_file_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let files = flat_files(folder(home.path()));
    let nasty = b"abdnre;;, \n\r\x10\x10JMP\0\"'\\%\xff";
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for round in 0..2_000 {
        let delimiter = numbers.bytes(nasty, 4);
        let Some(format) = RowFormat::delimited(&delimiter) else {
            continue;
        };
        let columns = 1 + numbers.next(3);
        let rows: Vec<Vec<Vec<u8>>> = (0..numbers.next(4))
            .map(|_| (0..columns).map(|_| numbers.bytes(nasty, 8)).collect())
            .collect();
        let mut content = Vec::new();
        for row in &rows {
            format.push_row(row.iter().map(Vec::as_slice), &mut content);
        }
        // A disk takes its time.
        if round % 50 == 0 {
            files.write("a.txt", &content).unwrap();
            assert_eq!(files.read("a.txt").unwrap(), content);
        }
        let found: Vec<Vec<Vec<u8>>> = RowFormat::lines(&content)
            .map(|line| format.cells(line))
            .collect();
        assert_eq!(found, rows, "round {round}, delimiter {delimiter:?}");
    }
}

#[test]
fn field_of_a_form_is_one_value_of_a_file_whatever_is_in_it() {
    let source = "%DEFINE t = %TABLE
%HTML(put) { @DTW_TB_SETCOLS(t, \"2\") @DTW_TB_APPENDROW(t, \"1\")
  @DTW_TB_SETV(t, name, \"1\", \"1\") @DTW_TB_SETV(t, \"guest\", \"1\", \"2\")
  @DTWF_APPEND(\"a.txt\", \"DELIMITED\", \";\", t)
  @DTWF_READ(\"a.txt\", \"DELIMITED\", \";\", t)
  @DTW_TB_rROWS(t) @DTW_TB_rCOLS(t) @DTW_TB_rGETV(t, \"1\", \"2\")|@DTW_TB_rGETV(t, \"1\", \"1\")| %}
";
    for (sent, shown) in [
        ("ann", "ann"),
        ("ann%3Badmin%0Aeve%3Badmin", "ann;admin eve;admin"),
        (
            "%3Cb%3E%24%28t%29%40DTW_EXIT%28%29",
            "&lt;b&gt;$(t)@DTW_EXIT()",
        ),
        ("", ""),
    ] {
        let home = tempfile::tempdir().unwrap();
        let text = asked(source, &format!("put?name={sent}"), &home);
        assert_eq!(text, format!("1 2 guest|{shown}|"));
    }
}
