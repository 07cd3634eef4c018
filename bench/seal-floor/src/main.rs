//! The floor of an encrypted answer: a bare epoll loop that reads a request and sends 64 KiB.
//!
//! usage: seal-floor PORT
//!
//! /file    from a file, by sendfile
//! /memory  from memory, in one send
//! /sealed  from memory into five AES-256-GCM records as hob cuts them, and these in one send
//!
//! There is no handshake and requests are not encrypted: the client counts the bytes of records as
//! a body. Only what every sealed answer needs is there.

use std::io::{Read, Seek, Write};
use std::net::{TcpListener, TcpStream};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::{MemfdFlags, memfd_create};

const BODY_BYTES: usize = 64 * 1024;
/// Text of the records: on a busy connection all are large, and the head goes with the body.
const RECORDS: [usize; 5] = [16384, 16384, 16384, 16384, 256];
const HEADER_BYTES: usize = 5;
const TAG_BYTES: usize = 16;

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let Some(port) = port else {
        eprintln!("usage: seal-floor PORT");
        std::process::exit(2);
    };
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(
        &set,
        &listener,
        EventData::new_u64(u64::MAX),
        EventFlags::IN,
    )?;
    let body = vec![b'x'; BODY_BYTES];
    let mut file = std::fs::File::from(memfd_create("body", MemfdFlags::CLOEXEC)?);
    file.write_all(&body)?;
    file.rewind()?;
    let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(std::io::Error::other)?;
    let mut floor = Floor {
        key: LessSafeKey::new(key),
        number: 0,
        file,
        body,
        input: vec![0; 4096],
        sealed: vec![0; 80 * 1024],
    };
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut events = Vec::with_capacity(64);
    loop {
        events.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let Some(place) = connections.get_mut(event.data.u64() as usize) else {
                let (connection, _) = listener.accept()?;
                connection.set_nodelay(true)?;
                let number = EventData::new_u64(connections.len() as u64);
                epoll::add(&set, &connection, number, EventFlags::IN)?;
                connections.push(Some(connection));
                continue;
            };
            let still_there = place
                .as_mut()
                .is_some_and(|connection| floor.answer(connection).is_ok());
            if !still_there {
                *place = None;
            }
        }
    }
}

struct Floor {
    key: LessSafeKey,
    number: u64,
    file: std::fs::File,
    body: Vec<u8>,
    input: Vec<u8>,
    sealed: Vec<u8>,
}

impl Floor {
    /// Answers one request; an error is the end of the connection.
    fn answer(&mut self, connection: &mut TcpStream) -> std::io::Result<()> {
        let count = connection.read(&mut self.input)?;
        match &self.input[..count] {
            [] => Err(std::io::ErrorKind::UnexpectedEof.into()),
            text if text.starts_with(b"GET /file") => {
                connection.write_all(&head(BODY_BYTES))?;
                let mut offset = 0;
                while (offset as usize) < BODY_BYTES {
                    let left = BODY_BYTES - offset as usize;
                    rustix::fs::sendfile(&*connection, &self.file, Some(&mut offset), left)?;
                }
                Ok(())
            }
            text if text.starts_with(b"GET /memory") => {
                let mut answer = head(BODY_BYTES);
                answer.extend_from_slice(&self.body);
                connection.write_all(&answer)
            }
            _ => {
                let len = seal(&self.key, &mut self.number, &self.body, &mut self.sealed);
                connection.write_all(&self.sealed[..len])
            }
        }
    }
}

fn head(len: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").into_bytes()
}

/// Writes a head and the body's records; returns their length.
fn seal(key: &LessSafeKey, number: &mut u64, body: &[u8], out: &mut [u8]) -> usize {
    let text_bytes: usize = RECORDS.iter().sum();
    let len = text_bytes + RECORDS.len() * (HEADER_BYTES + 1 + TAG_BYTES);
    let head = head(len);
    out[..head.len()].copy_from_slice(&head);
    let (mut at, mut from) = (head.len(), 0);
    for size in RECORDS {
        *number += 1;
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&number.to_be_bytes());
        let record = &mut out[at..at + HEADER_BYTES + size + 1 + TAG_BYTES];
        let (header, rest) = record.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&[23, 3, 3, 0, 0]);
        let (room, trailer) = rest.split_at_mut(size);
        let nonce = Nonce::assume_unique_for_key(nonce);
        // The last record, which holds what the head took of the first, has no text of its own.
        let text = &body[from % (BODY_BYTES - size + 1)..][..size];
        let done =
            key.seal_out_of_place_scatter(nonce, Aad::from(&*header), text, room, &[23], trailer);
        done.expect("the sizes are those of the cipher");
        at += record.len();
        from += size;
    }
    at
}
