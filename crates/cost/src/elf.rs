//! Programs for x86-64 Linux as files, read and written: what a program is linked with, and a
//! program of our own that prints the head of an answer and then whatever it reads, in two hundred
//! bytes. It is written static, or linked with the libraries of another program: the difference
//! between the two is what dynamic linking costs, without a compiler on the machine.
//!
//! ```text
//! offset 0       ELF header, program headers, path of the loader, code, head of the answer
//! offset 4096    dynamic section, strings, symbol table, hash table; then a buffer in memory
//! ```

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::limits::PROGRAM_BYTES_MAX;

/// Where the parts are in memory.
const TEXT: u64 = 0x40_0000;
const WRITABLE: u64 = 0x50_0000;
const WRITABLE_OFFSET: u64 = 4096;
const BUFFER_BYTES: u32 = 64 * 1024;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERP: u32 = 3;
const STACK: u32 = 0x6474_e551;
const EXECUTABLE: u32 = 5;
const WRITE: u32 = 6;

const NEEDED: u64 = 1;
const HASH: u64 = 4;
const STRTAB: u64 = 5;
const SYMTAB: u64 = 6;
const STRSZ: u64 = 10;
const SYMENT: u64 = 11;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;

const HEADER_BYTES: u64 = 64;
const SEGMENT_BYTES: u64 = 56;
const SYMBOL_BYTES: u64 = 24;

/// What our program prints before it copies its input.
pub(crate) const HEAD: &[u8] = b"Content-Type: text/plain\n\n";

/// What a program is linked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DynamicLinking {
    /// The dynamic loader.
    pub(crate) loader: String,
    /// Libraries it names itself.
    pub(crate) needed: Vec<String>,
    /// Where they are looked for first.
    pub(crate) path: Option<String>,
}

/// Can our program run here?
pub(crate) const IS_OURS_POSSIBLE: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

/// Reads what a program is linked with; nothing for a static one, or for a file that is none.
pub(crate) fn links(program: &Path) -> Option<DynamicLinking> {
    let mut bytes = Vec::new();
    let mut file = File::open(program).ok()?.take(PROGRAM_BYTES_MAX);
    file.read_to_end(&mut bytes).ok()?;
    let origin = program.parent()?.to_str()?;
    parse(&bytes, origin)
}

fn parse(bytes: &[u8], origin: &str) -> Option<DynamicLinking> {
    let is_known = bytes.get(..6)? == b"\x7fELF\x02\x01" && number(bytes, 18, 2)? == 62;
    if !is_known {
        return None;
    }
    let (table, size) = (number(bytes, 32, 8)?, number(bytes, 54, 2)?);
    let count = number(bytes, 56, 2)?;
    let mut segments = Vec::new();
    for index in 0..count {
        let at = table.checked_add(index * size)?;
        segments.push(ElfSegment {
            kind: number(bytes, at, 4)? as u32,
            offset: number(bytes, at.saturating_add(8), 8)?,
            address: number(bytes, at.saturating_add(16), 8)?,
            bytes: number(bytes, at.saturating_add(32), 8)?,
        });
    }
    let one = |kind: u32| segments.iter().find(|segment| segment.kind == kind);
    let loader = text(bytes, one(INTERP)?.offset)?;
    let dynamic = one(DYNAMIC)?;
    let mut entries = Vec::new();
    for index in 0..dynamic.bytes / 16 {
        let at = dynamic.offset.checked_add(index * 16)?;
        let entry = (
            number(bytes, at, 8)?,
            number(bytes, at.saturating_add(8), 8)?,
        );
        match entry.0 {
            0 => break,
            _ => entries.push(entry),
        }
    }
    let value = |tag: u64| entries.iter().find(|entry| entry.0 == tag);
    let strings = offset_of(&segments, value(STRTAB)?.1)?;
    let name = |at: u64| text(bytes, strings.checked_add(at)?);
    let needed = entries.iter().filter(|entry| entry.0 == NEEDED);
    let path = value(RUNPATH).or_else(|| value(RPATH));
    Some(DynamicLinking {
        loader,
        needed: needed.map(|entry| name(entry.1)).collect::<Option<_>>()?,
        path: path
            .and_then(|entry| name(entry.1))
            .map(|path| path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)),
    })
}

struct ElfSegment {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

fn offset_of(segments: &[ElfSegment], address: u64) -> Option<u64> {
    let is_in = |segment: &&ElfSegment| {
        segment.kind == LOAD
            && (segment.address..segment.address.saturating_add(segment.bytes)).contains(&address)
    };
    let segment = segments.iter().find(is_in)?;
    (address - segment.address).checked_add(segment.offset)
}

fn number(bytes: &[u8], at: u64, count: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let part = bytes.get(at..at.checked_add(count)?)?;
    let mut whole = [0; 8];
    whole[..count].copy_from_slice(part);
    Some(u64::from_le_bytes(whole))
}

fn text(bytes: &[u8], at: u64) -> Option<String> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    String::from_utf8(rest[..end].to_vec()).ok()
}

/// Our program: static, or linked like another.
pub(crate) fn echo(links: Option<&DynamicLinking>) -> Vec<u8> {
    let count = if links.is_some() { 5 } else { 3 };
    let loader_at = HEADER_BYTES + SEGMENT_BYTES * count;
    let loader = links.map_or(Vec::new(), |links| zero_ended(&links.loader));
    let code_at = loader_at + loader.len() as u64;
    let dynamic = links.map_or(Vec::new(), dynamic);
    let buffer = WRITABLE + 64 * 1024;
    let head_at = code_at + code(0, 0).len() as u64;
    let code = code(TEXT + head_at, buffer);
    let text_bytes = head_at + HEAD.len() as u64;

    let mut file = header(code_at, count as u16);
    let all = [EXECUTABLE, WRITE, WRITE, 4, WRITE];
    let parts = [
        (LOAD, 0, TEXT, text_bytes, text_bytes),
        (
            LOAD,
            WRITABLE_OFFSET,
            WRITABLE,
            dynamic.len() as u64,
            buffer - WRITABLE + u64::from(BUFFER_BYTES),
        ),
        (STACK, 0, 0, 0, 0),
        (
            INTERP,
            loader_at,
            TEXT + loader_at,
            loader.len() as u64,
            loader.len() as u64,
        ),
        (
            DYNAMIC,
            WRITABLE_OFFSET,
            WRITABLE,
            dynamic.len() as u64,
            dynamic.len() as u64,
        ),
    ];
    for ((kind, offset, address, in_file, in_memory), flags) in
        parts.into_iter().zip(all).take(count as usize)
    {
        file.extend_from_slice(&kind.to_le_bytes());
        file.extend_from_slice(&flags.to_le_bytes());
        for value in [offset, address, address, in_file, in_memory, 4096] {
            file.extend_from_slice(&value.to_le_bytes());
        }
    }
    file.extend_from_slice(&loader);
    file.extend_from_slice(&code);
    file.extend_from_slice(HEAD);
    file.resize(WRITABLE_OFFSET as usize, 0);
    file.extend_from_slice(&dynamic);
    file
}

fn zero_ended(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

fn header(entry: u64, segment_count: u16) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    for value in [2u16, 62] {
        file.extend_from_slice(&value.to_le_bytes());
    }
    file.extend_from_slice(&1u32.to_le_bytes());
    for value in [TEXT + entry, HEADER_BYTES, 0] {
        file.extend_from_slice(&value.to_le_bytes());
    }
    file.extend_from_slice(&0u32.to_le_bytes());
    for value in [HEADER_BYTES as u16, SEGMENT_BYTES as u16, segment_count] {
        file.extend_from_slice(&value.to_le_bytes());
    }
    file.resize(HEADER_BYTES as usize, 0);
    file
}

/// What the loader needs: libraries, where to look, and tables with nothing in them.
fn dynamic(links: &DynamicLinking) -> Vec<u8> {
    let mut strings = vec![0];
    let mut entries = Vec::new();
    for name in &links.needed {
        entries.push((NEEDED, strings.len() as u64));
        strings.extend(zero_ended(name));
    }
    if let Some(path) = &links.path {
        entries.push((RUNPATH, strings.len() as u64));
        strings.extend(zero_ended(path));
    }
    strings.resize(strings.len().next_multiple_of(8), 0);
    let strings_at = WRITABLE + (entries.len() as u64 + 6) * 16;
    let symbols_at = strings_at + strings.len() as u64;
    entries.extend([
        (HASH, symbols_at + SYMBOL_BYTES),
        (STRTAB, strings_at),
        (SYMTAB, symbols_at),
        (STRSZ, strings.len() as u64),
        (SYMENT, SYMBOL_BYTES),
        (0, 0),
    ]);
    let mut bytes = Vec::new();
    for (tag, value) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes.extend(strings);
    bytes.extend([0; SYMBOL_BYTES as usize]);
    // One bucket, one entry in the chain, both the symbol that is none.
    for value in [1u32, 1, 0, 0] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// Prints the head, then copies descriptor 0 to 1 until it ends.
fn code(head: u64, buffer: u64) -> Vec<u8> {
    let mut code = Vec::new();
    let mut add = |bytes: &[u8]| code.extend_from_slice(bytes);
    add(b"\xb8\x01\0\0\0"); //                         mov eax, 1 (write)
    add(b"\xbf\x01\0\0\0"); //                         mov edi, 1
    add(b"\x48\xbe"); //                               mov rsi, head
    add(&head.to_le_bytes());
    add(b"\xba"); //                                   mov edx, length
    add(&(HEAD.len() as u32).to_le_bytes());
    add(b"\x0f\x05"); //                               syscall
    // Again from here.
    add(b"\x31\xc0"); //                               xor eax, eax (read)
    add(b"\x31\xff"); //                               xor edi, edi
    add(b"\x48\xbe"); //                               mov rsi, buffer
    add(&buffer.to_le_bytes());
    add(b"\xba"); //                                   mov edx, size
    add(&BUFFER_BYTES.to_le_bytes());
    add(b"\x0f\x05"); //                               syscall
    add(b"\x48\x85\xc0"); //                           test rax, rax
    add(b"\x7e\x10"); //                               jle end
    add(b"\x89\xc2"); //                               mov edx, eax
    add(b"\xb8\x01\0\0\0"); //                         mov eax, 1 (write)
    add(b"\xbf\x01\0\0\0"); //                         mov edi, 1
    add(b"\x0f\x05"); //                               syscall
    add(b"\xeb\xd6"); //                               jmp again
    // The end.
    add(b"\x31\xff"); //                               xor edi, edi
    add(b"\xb8\x3c\0\0\0"); //                         mov eax, 60 (exit)
    add(b"\x0f\x05"); //                               syscall
    code
}

#[cfg(test)]
mod tests;
