//! The examples of `lang/c` answer as their comments say, over every carrier they can use.

mod worker;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use hob_ipc::lines::{self, OutputEvent, SentinelScanner, Sentinels, VariableFormat};
use hob_ipc::message::Carrier;

use worker::{Asked, Server, compiled, get, library};

#[test]
fn hello_counter_and_upload_answer_over_both_carriers() {
    for (carrier, word) in [(Carrier::Shm, "shm"), (Carrier::Stream, "stream")] {
        let mut hello = Server::start(&compiled("lang/c/examples/hello.c"), carrier, &[]);
        let text = String::from_utf8(hello.ask(&get("/x")).body).unwrap();
        assert!(
            text.ends_with(&format!("over {word}, you asked for \"/x\"\n")),
            "{text}"
        );
        hello.finish();

        let mut counter = Server::start(&compiled("lang/c/examples/counter.c"), carrier, &[]);
        for number in 1..=3 {
            let body = counter.ask(&get("/")).body;
            assert_eq!(body, format!("request number {number}\n").as_bytes());
        }
        counter.finish();

        let mut upload = Server::start(&compiled("lang/c/examples/upload.c"), carrier, &[]);
        let long = vec![b'-'; 1_000_000];
        let body = [
            &b"--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n--B\r\n"[..],
            b"Content-Disposition: form-data; name=\"f\"; filename=\"x.bin\"\r\n\r\n",
            &long,
            b"\r\n--B--\r\n",
        ]
        .concat();
        let mut form = Asked {
            method: "POST",
            content_type: "multipart/form-data; boundary=B",
            body: &body,
            ..get("/")
        };
        let answer = upload.ask(&form);
        assert_eq!(answer.body, b"a: 3 bytes\nf: x.bin, 1000000 bytes\n");
        form.body = &body[..body.len() / 2];
        assert_eq!(upload.ask(&form).status, 400, "a form that is cut");
        form.content_type = "text/plain";
        assert_eq!(upload.ask(&form).status, 415);
        upload.finish();
    }
}

#[test]
fn the_classic_program_needs_nothing_but_lines() {
    let sentinels = Sentinels::random().unwrap();
    // No pipe but 0 and 1: variables and body come over the same one, in turn.
    let mut child = Command::new(compiled("lang/c/examples/classic.c"))
        .envs(sentinels.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut scanner = SentinelScanner::new(sentinels);
    let mut format = VariableFormat::Record;
    for number in 1..=5 {
        let variables: [(&[u8], &[u8]); 3] = [
            (b"REQUEST_METHOD", b"POST"),
            (b"PATH_INFO", b"/a b"),
            (b"CONTENT_LENGTH", b"3"),
        ];
        let mut bytes = Vec::new();
        lines::append(&mut bytes, format, variables).unwrap();
        bytes.extend_from_slice(b"\x01\x02\x03");
        input.write_all(&bytes).unwrap();
        let mut text = Vec::new();
        'answer: loop {
            while let Some(event) = scanner.next_event().unwrap() {
                match event {
                    OutputEvent::Output(bytes) => text.extend_from_slice(bytes),
                    OutputEvent::End => break 'answer,
                    OutputEvent::Callout { text, wants_reply } => {
                        assert!(!wants_reply);
                        format = VariableFormat::asked_by(text).unwrap();
                    }
                }
            }
            let count = output.read(scanner.space()).unwrap();
            assert!(count > 0, "the program has not ended");
            scanner.filled(count);
        }
        let text = String::from_utf8(text).unwrap();
        let expected = format!(
            "Content-Type: text/plain\n\nrequest {number}: POST /a b\nsum of the body: 6\n"
        );
        assert_eq!(text, expected);
    }
    assert_eq!(format, VariableFormat::Struct, "asked for once");
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_folders_own_check_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = library().display();
    let output = Command::new(root.join("lang/c/check"))
        .env(
            "CFLAGS",
            format!("-I{}/crates/libhob/include", root.display()),
        )
        .env("LIBS", format!("-L{library} -lhob -Wl,-rpath,{library}"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "4 passed, 0 failed, 0 skipped\n");
    assert!(output.status.success());
}
