//! Our program runs, as every kind it is written in; files that are no programs are nothing.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::*;

fn run(program: &[u8], input: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("echo");
    std::fs::write(&path, program).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let mut child = loop {
        let mut command = Command::new(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        match command.spawn() {
            Ok(child) => break child,
            // Another test forks while the file is still open for writing in its child.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            Err(error) => panic!("{error}"),
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let mut output = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut output)
        .unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    output
}

#[test]
fn echo_answers_with_what_it_reads_static_and_linked() {
    if !IS_OURS_POSSIBLE {
        println!("skipped: the program is for x86-64");
        return;
    }
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    let linked = links(&shell).expect("sh is linked with libc");
    assert!(linked.loader.starts_with('/'), "{linked:?}");
    assert!(!linked.needed.is_empty());
    let long: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
    for program in [echo(None), echo(Some(&linked))] {
        for input in [&b""[..], b"tea", &long] {
            assert_eq!(run(&program, input), [HEAD, input].concat());
        }
    }
    let own = echo(Some(&linked));
    assert_eq!(parse(&own, "/"), Some(linked));
    assert_eq!(parse(&echo(None), "/"), None);
}

#[test]
fn origin_is_the_folder_of_the_program() {
    let links = DynamicLinking {
        loader: "/lib/ld.so".to_owned(),
        needed: vec!["libtea.so".to_owned(), "libc.so.6".to_owned()],
        path: Some("$ORIGIN/../lib:${ORIGIN}".to_owned()),
    };
    let found = parse(&echo(Some(&links)), "/opt/bin").unwrap();
    assert_eq!(found.needed, links.needed);
    assert_eq!(found.path.as_deref(), Some("/opt/bin/../lib:/opt/bin"));
}

#[test]
fn file_that_is_no_program_or_is_cut_has_no_links() {
    let whole = echo(links(Path::new("/bin/sh")).as_ref());
    assert_eq!(parse(b"#!/bin/sh\n", "/"), None);
    for end in 0..whole.len() - 64 {
        // Nothing panics, whatever is missing.
        let _ = parse(&whole[..end], "/");
    }
    let mut wrong = whole.clone();
    for at in 0..HEADER_BYTES as usize + 56 * 5 {
        wrong[at] = 0xff;
        let _ = parse(&wrong, "/");
        wrong[at] = whole[at];
    }
}
