//! How values go to a program of a page, and how they come back.
//!
//! A program finds the values of parameters in variables: `name` is the value, and of a table `T`
//! there are `T_ROWS`, `T_COLS`, `T_N_column` and `T_V_row_column`, all counted from one. What it
//! sets it writes as text, one item behind the other:
//!
//! ```text
//! total = "12 pieces"   rest=7
//! text = "a ""word"" in quotes, and
//! a second line"
//! ```
//!
//! A value without quotes ends at the next blank; in quotes it may hold anything, a quote twice.
//! A table is set by the same names that it is found by.

use std::collections::HashMap;

use crate::fault::{FunctionFault, code};
use crate::host::ProgramCall;
use crate::value::{Table, TableShape, Text, ValueOrigin};

/// A name that a program has set, and its value.
pub type SetValue = (Box<str>, Vec<u8>);

/// What a program is told: each variable with its value.
///
/// # Errors
/// A value has a NUL byte, which ends every value of a variable (1007).
pub fn variables(call: &ProgramCall) -> Result<Vec<(String, Vec<u8>)>, FunctionFault> {
    let mut all = Vec::new();
    for (name, _, value) in &call.parameters {
        add(&mut all, name.to_string(), value)?;
    }
    for (name, table) in &call.tables {
        all.push((format!("{name}_ROWS"), count(table.rows.len())));
        all.push((format!("{name}_COLS"), count(table.columns.len())));
        for (at, column) in (1..).zip(&table.columns) {
            add(&mut all, format!("{name}_N_{at}"), column)?;
        }
        for (row, cells) in (1..).zip(&table.rows) {
            for (column, cell) in (1..).zip(cells) {
                add(&mut all, format!("{name}_V_{row}_{column}"), cell)?;
            }
        }
    }
    Ok(all)
}

fn count(count: usize) -> Vec<u8> {
    count.to_string().into_bytes()
}

fn add(all: &mut Vec<(String, Vec<u8>)>, name: String, value: &Text) -> Result<(), FunctionFault> {
    if value.bytes().contains(&0) {
        let message = format!("{name}: no program can be given a value with a NUL byte");
        return Err(FunctionFault::new(code::BAD_VALUE, message));
    }
    all.push((name, value.bytes().to_vec()));
    Ok(())
}

/// What is passed to a program is never one of its options, as for every program of hob.
///
/// # Errors
/// It would be one, or cannot be passed (1007).
pub fn check_argument(argument: &[u8]) -> Result<(), FunctionFault> {
    let why = if argument.starts_with(b"-") {
        "begins with `-`: it would be an option; pass it as a parameter of the function"
    } else if argument.contains(&0) {
        "has a NUL byte, with which no argument can be passed"
    } else {
        return Ok(());
    };
    let message = format!("an argument for a program {why}");
    Err(FunctionFault::new(code::BAD_VALUE, message))
}

/// Which of these programs a page means by a word, and what the word says besides: one of a folder.
///
/// A word is a name of the list; a name, a slash and more; or a path whose last part is a name,
/// as pages have them that were written elsewhere.
pub fn program_of<'w>(names: &[impl AsRef<str>], word: &'w str) -> Option<(usize, &'w str)> {
    let position = |is: &dyn Fn(&str) -> bool| names.iter().position(|name| is(name.as_ref()));
    if let Some(at) = position(&|name| name == word) {
        return Some((at, ""));
    }
    let rest_of = |name: &str| word.strip_prefix(name)?.strip_prefix('/');
    if let Some(at) = position(&|name| rest_of(name).is_some()) {
        let rest = rest_of(names[at].as_ref())?;
        return is_plain(rest).then_some((at, rest));
    }
    let last = word.rsplit('/').next().unwrap_or(word);
    Some((position(&|name| name.eq_ignore_ascii_case(last))?, ""))
}

/// Whether it is a path that leads down, of names without anything special.
fn is_plain(rest: &str) -> bool {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        !name.starts_with('.') && bytes.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    rest.split('/')
        .all(|name| !name.is_empty() && is_name(name))
}

/// Reads what a program has set. What is no item is passed over.
pub fn set_values(text: &[u8]) -> Vec<SetValue> {
    let mut all = Vec::new();
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let is_over = |byte: &u8| *byte == b'=' || byte.is_ascii_whitespace();
        let end = rest.iter().position(is_over).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let behind = behind.trim_ascii_start();
        let Some(behind) = behind.strip_prefix(b"=") else {
            rest = behind;
            continue;
        };
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let blanks = behind.iter().take_while(is_blank).count();
        let (value, behind) = match behind[blanks..].strip_prefix(b"\"") {
            Some(quoted) => quoted_value(quoted),
            None => {
                let plain = &behind[blanks..];
                let ends = |byte: &u8| byte.is_ascii_whitespace();
                let end = plain.iter().position(ends).unwrap_or(plain.len());
                (plain[..end].to_vec(), &plain[end..])
            }
        };
        if let (Ok(name), false) = (std::str::from_utf8(name), name.is_empty()) {
            all.push((name.into(), value));
        }
        rest = behind.trim_ascii_start();
    }
    all
}

/// A value behind its first quote, and what follows its last. One without an end is the rest.
fn quoted_value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut rest = text;
    loop {
        let Some(quote) = memchr::memchr(b'"', rest) else {
            value.extend_from_slice(rest);
            return (value, b"");
        };
        value.extend_from_slice(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix(b"\"") {
            Some(behind) => {
                value.push(b'"');
                rest = behind;
            }
            None => return (value, rest),
        }
    }
}

/// Writes an item that [`set_values`] reads.
pub fn write_value(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    for &byte in value {
        if byte == b'"' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.extend_from_slice(b"\"\n");
}

/// The table of this name that was set, if one was: as many rows and columns of it as its shape
/// has room for.
///
/// # Errors
/// It would have more cells than a table may (-1001).
pub(crate) fn set_table(
    values: &[SetValue],
    name: &str,
    shape: TableShape,
    cells_max: usize,
) -> Result<Option<Table>, FunctionFault> {
    let prefix = format!("{name}_").to_ascii_uppercase();
    let known: HashMap<String, &[u8]> = values
        .iter()
        .filter_map(|(known, value)| {
            let known = known.to_ascii_uppercase();
            let part = known.strip_prefix(&prefix)?;
            Some((part.to_owned(), &value[..]))
        })
        .collect();
    let number = |part: &str| {
        let text = std::str::from_utf8(known.get(part)?).ok()?;
        text.trim().parse::<usize>().ok()
    };
    let (Some(rows), Some(columns)) = (number("ROWS"), number("COLS")) else {
        return Ok(None);
    };
    let rows = rows.min(shape.rows_max.unwrap_or(rows));
    let columns = columns.min(shape.columns_max.unwrap_or(columns));
    if rows.saturating_mul(columns).max(rows).max(columns) > cells_max {
        let message = format!("{name}: a program sets more cells than a table may have");
        return Err(FunctionFault::new(-1001, message));
    }
    let cell = |part: String| {
        let value = known.get(&part).copied().unwrap_or_default();
        Text::of_data(value, ValueOrigin::Program)
    };
    let mut table = Table::new(shape);
    table.columns = (1..=columns).map(|at| cell(format!("N_{at}"))).collect();
    let row = |row| (1..=columns).map(move |at| format!("V_{row}_{at}"));
    table.rows = (1..=rows).map(|at| row(at).map(cell).collect()).collect();
    Ok(Some(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_that_would_be_an_option_is_refused() {
        for (argument, is_good) in [
            (&b"a"[..], true),
            (b"", true),
            (b"-a", false),
            (b"a\0", false),
        ] {
            assert_eq!(check_argument(argument).is_ok(), is_good, "{argument:?}");
        }
    }

    fn read(text: &str) -> Vec<(String, String)> {
        let values = set_values(text.as_bytes()).into_iter();
        let text = |value: Vec<u8>| String::from_utf8(value).unwrap();
        values
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect()
    }

    #[test]
    fn word_means_a_program_of_the_list_or_none() {
        let names = ["rpt.pl", "tools"];
        let of = |word| program_of(&names, word);
        assert_eq!(of("rpt.pl"), Some((0, "")));
        assert_eq!(of("/usr/bin/RPT.PL"), Some((0, "")));
        assert_eq!(of("tools/a/b.sh"), Some((1, "a/b.sh")));
        for word in [
            "",
            "rpt",
            "tools/",
            "tools/../x",
            "tools/a//b",
            "tools/.a",
            "tools/a b",
            "sh",
            "rpt.pl ",
        ] {
            assert_eq!(of(word), None, "{word}");
        }
    }

    #[test]
    fn items_are_read_and_words_passed_over() {
        let all = read("a=1 b = two\nc=\"x \"\"y\"\"\nz\" noise d\t=\t\"\"e= f=\"open\nend");
        let wanted = [
            ("a", "1"),
            ("b", "two"),
            ("c", "x \"y\"\nz"),
            ("d", ""),
            ("e", "f=\"open"),
        ];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(all, wanted);
        assert_eq!(read("a=\"never ends\nb=2").len(), 1);
        assert!(read(" = 5 =").is_empty() && read("").is_empty());
    }

    #[test]
    fn value_that_was_written_is_read_as_it_was() {
        for value in ["", " ", "a\"b\"\"", "$(x) ; `y`\n= \"", "\0\u{e4}"] {
            let mut text = Vec::new();
            write_value("name", value.as_bytes(), &mut text);
            write_value("next", b"1", &mut text);
            let read = set_values(&text);
            let wanted = [("name", value.as_bytes()), ("next", b"1")];
            let wanted = wanted.map(|(name, value)| (name.into(), value.to_vec()));
            assert_eq!(read, wanted);
        }
    }

    #[test]
    fn table_goes_there_and_back() {
        let mut table = Table::new(TableShape::default());
        table.columns = ["id", "title"].map(Text::of_macro).to_vec();
        table.rows = [["1", "a \"b\""], ["2", ""]]
            .map(|row| row.map(Text::of_macro).to_vec())
            .to_vec();
        let call = ProgramCall {
            language: "DTW_SYSTEM".into(),
            arguments: Vec::new(),
            parameters: vec![("n".into(), None, Text::of_macro("5"))],
            tables: vec![("T".into(), table)],
        };
        let mut text = Vec::new();
        for (name, value) in variables(&call).unwrap() {
            write_value(&name, &value, &mut text);
        }
        let values = set_values(&text);
        let of = |shape, max| set_table(&values, "t", shape, max);
        let back = of(TableShape::default(), 4).unwrap().unwrap();
        let cells = |row: &Vec<Text>| row.iter().map(|cell| cell.to_str().into_owned()).collect();
        let rows: Vec<Vec<String>> = back.rows.iter().map(cells).collect();
        assert_eq!(rows, [["1", "a \"b\""], ["2", ""]]);
        assert!(back.rows[0][0].has_data() && back.columns[1].bytes() == b"title");
        assert_eq!(of(TableShape::default(), 3).unwrap_err().code, -1001);
        let small = TableShape {
            rows_max: Some(1),
            columns_max: Some(1),
        };
        let small = of(small, 1).unwrap().unwrap();
        assert_eq!((small.rows.len(), small.columns.len()), (1, 1));
        assert!(set_table(&values, "n", small.shape, 9).unwrap().is_none());
    }

    #[test]
    fn value_with_a_nul_byte_is_refused() {
        let call = ProgramCall {
            language: "DTW_PERL".into(),
            arguments: Vec::new(),
            parameters: vec![("n".into(), None, Text::of_macro("a\0b"))],
            tables: Vec::new(),
        };
        assert_eq!(variables(&call).unwrap_err().code, 1007);
    }
}
