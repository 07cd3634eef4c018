//! The C header, from the Rust declarations of `crates/libhob/src/abi.rs`.
//!
//! Not a parser of Rust: it knows what such a file holds, which is a comment, constants, opaque
//! types and functions, each as rustfmt writes it, and refuses what it does not know.

const GUARD: &str = "HOB_H";

/// The header for these declarations.
pub(crate) fn made_from(source: &str) -> Result<String, String> {
    let mut header = format!("#ifndef {GUARD}\n#define {GUARD}\n\n");
    header.push_str(&comment(&comments(source, "//!")));
    header.push_str("\n#include <stddef.h>\n#include <stdint.h>\n\n");
    header.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    let mut lines = source.lines();
    let mut said = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("///") {
            said.push(text.trim_start().to_string());
        } else if line.starts_with("#[") {
            continue;
        } else if let Some(rest) = line.strip_prefix("pub const ") {
            header.push_str(&format!("\n{}{}", comment(&said), constant(rest)?));
            said.clear();
        } else if let Some(rest) = line.strip_prefix("pub struct ") {
            let name = rest.split_whitespace().next().unwrap_or_default();
            let comment = comment(&said);
            header.push_str(&format!("\n{comment}typedef struct {name} {name};\n"));
            said.clear();
        } else if let Some(rest) = line.strip_prefix("pub unsafe extern \"C\" fn ") {
            let mut signature = rest.to_string();
            while !signature.ends_with('{') {
                let more = lines.next().ok_or("a function without a body")?;
                signature.push(' ');
                signature.push_str(more.trim());
            }
            header.push_str(&format!("\n{}{}", comment(&said), function(&signature)?));
            said.clear();
        } else {
            said.clear();
        }
    }
    header.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n");
    header.push_str(&format!("#endif /* {GUARD} */\n"));
    Ok(header)
}

/// The lines of the comment at the top of the file.
fn comments(source: &str, mark: &str) -> Vec<String> {
    let lines = source.lines().map_while(|line| line.strip_prefix(mark));
    lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_string())
        .filter(|line| !line.starts_with("```"))
        .collect()
}

fn comment(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        [line] => format!("/* {line} */\n"),
        [first, rest @ ..] => {
            let mut text = format!("/* {first}\n");
            for line in rest {
                text.push_str(format!(" * {line}").trim_end());
                text.push('\n');
            }
            text + " */\n"
        }
    }
}

/// `NAME: c_int = VALUE;`
fn constant(rest: &str) -> Result<String, String> {
    let (name, value) = rest
        .strip_suffix(';')
        .and_then(|rest| rest.split_once(": c_int = "))
        .ok_or_else(|| format!("a constant that is no c_int: {rest}"))?;
    let value = match value.strip_prefix('-') {
        Some(_) => format!("({value})"),
        None => value.to_string(),
    };
    Ok(format!("#define {name} {value}\n"))
}

/// `name(arg: Type, ...) -> Type {`
fn function(signature: &str) -> Result<String, String> {
    let unknown = || format!("a function that is not understood: {signature}");
    let (name, rest) = signature.split_once('(').ok_or_else(unknown)?;
    let (arguments, result) = rest.rsplit_once(')').ok_or_else(unknown)?;
    let result = match result
        .trim()
        .trim_end_matches('{')
        .trim()
        .strip_prefix("-> ")
    {
        Some(rust) => c_type(rust)?,
        None => "void ".to_string(),
    };
    let mut parts = Vec::new();
    for argument in arguments
        .split(',')
        .map(str::trim)
        .filter(|a| !a.is_empty())
    {
        let (name, rust) = argument.split_once(": ").ok_or_else(unknown)?;
        parts.push(format!("{}{name}", c_type(rust)?));
    }
    if parts.is_empty() {
        parts.push("void".to_string());
    }
    Ok(wrapped(&format!("{result}{name}("), &parts))
}

/// One line if it fits, else a line for each argument.
fn wrapped(start: &str, parts: &[String]) -> String {
    let line = format!("{start}{});\n", parts.join(", "));
    if line.len() <= 100 {
        return line;
    }
    format!("{start}\n    {});\n", parts.join(",\n    "))
}

/// A type with what stands between it and a name: `int `, `const char *`.
fn c_type(rust: &str) -> Result<String, String> {
    if let Some(inner) = rust.strip_prefix("*mut ") {
        return Ok(c_type(inner)?.trim_end().to_string() + after(inner) + "*");
    }
    if let Some(inner) = rust.strip_prefix("*const ") {
        if inner.starts_with('*') {
            return Err(format!("a pointer to a constant pointer: {rust}"));
        }
        return Ok(format!("const {}*", c_type(inner)?));
    }
    let name = match rust {
        "c_int" => "int",
        "c_char" => "char",
        "c_void" => "void",
        "usize" => "size_t",
        "i64" => "int64_t",
        "u32" => "uint32_t",
        "hob" | "hob_request" => rust,
        _ => return Err(format!("a type that has no place in the header: {rust}")),
    };
    Ok(format!("{name} "))
}

fn after(inner: &str) -> &'static str {
    if inner.starts_with('*') { "" } else { " " }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_become_c() {
        let source = "//! Top.\n\nuse x;\n\n/// One.\npub const HOB_A: c_int = -1;\n\n/// Two\n\
            /// lines.\n#[no_mangle]\npub unsafe extern \"C\" fn hob_a(\n    a: *mut *const c_char,\n    \
            b: usize,\n) -> *const c_char {\n    body();\n}\n/// T.\npub struct hob {\n";
        let header = made_from(source).unwrap();
        for expected in [
            "/* Top. */\n",
            "/* One. */\n#define HOB_A (-1)\n",
            "/* Two\n * lines.\n */\nconst char *hob_a(const char **a, size_t b);\n",
            "/* T. */\ntypedef struct hob hob;\n",
        ] {
            assert!(header.contains(expected), "{expected:?} in {header}");
        }
        assert!(made_from("pub const A: u8 = 1;\n").is_err());
    }
}
