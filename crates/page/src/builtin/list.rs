//! The table of built-in functions. A correction of the order of arguments is one line here.

use crate::value::Direction;

use super::call::{BuiltIn, BuiltInForms, BuiltInParameter, CallForm, Tier};
use super::{files, general, html_table, math, registry, string, table as tables, word};

const fn parameter(name: &'static str, direction: Direction) -> BuiltInParameter {
    BuiltInParameter {
        name,
        direction,
        is_optional: false,
        is_table: false,
    }
}

/// `name` is a value, `[name]` one that may be left out, `{name}` a table, `(name)` comes back.
macro_rules! parameter {
    ([$name:ident]) => {
        BuiltInParameter {
            is_optional: true,
            ..parameter(stringify!($name), Direction::In)
        }
    };
    ({$name:ident}) => {
        BuiltInParameter {
            is_table: true,
            ..parameter(stringify!($name), Direction::InOut)
        }
    };
    (($name:ident)) => {
        parameter(stringify!($name), Direction::Out)
    };
    ($name:ident) => {
        parameter(stringify!($name), Direction::In)
    };
}

macro_rules! built_ins {
    ($(
        $name:ident $forms:ident ($($parameter:tt),*) $tier:ident $run:path, $summary:literal;
    )*) => {
        /// The table.
        pub const LIST: &[BuiltIn] = &[$(BuiltIn {
            name: stringify!($name),
            forms: BuiltInForms::$forms,
            parameters: &[$(parameter!($parameter)),*],
            tier: Tier::$tier,
            summary: $summary,
            run: $run,
        }),*];
    };
}

built_ins! {
    DTW_ACCEPT Plain (handle, [seconds]) B general::accept,
        "Waits for another request of this visit, for so many seconds.";
    DTW_ADDQUOTE Change (s) B string::addquote,
        "The text with each `'` doubled; a statement binds what it was before.";
    DTW_CACHE_PAGE Plain ([id], [page], [age], [status]) C general::cache_page,
        "Does nothing: the server's cache has rules of its own.";
    DTW_COMMIT Plain () B general::commit,
        "Makes what was written last.";
    DTW_DATATYPE Value (s) B string::datatype,
        "`NUM` if the text is a number, else `CHAR`.";
    DTW_DATE Value ([form]) A general::date,
        "The date: N as 28 Nov 2026, D day of the year, E dd/mm/yy, M month, O yy/mm/dd, S \
         yyyymmdd, U mm/dd/yy, W weekday.";
    DTW_EXIT Plain () A general::exit,
        "Ends the page; what was printed is sent.";
    DTW_GETCOOKIE Value (name) A general::getcookie,
        "The value of a cookie of the request.";
    DTW_GETENV Value (name) B general::environment,
        "The value of a variable of the request's environment.";
    DTW_GETINIDATA Value (name) C general::getinidata,
        "A value of the initialization file.";
    DTW_HTMLENCODE Value (s) B string::htmlencode,
        "The text with `& < > \"` as references; it is not encoded again when it is printed.";
    DTW_QHTMLENCODE Value (s) B string::qhtmlencode,
        "As DTW_HTMLENCODE, and `'` too.";
    DTW_RAW Value (s) Ours string::raw,
        "Trusted markup: data that is printed as it is. Never give it what a visitor may write.";
    DTW_ROLLBACK Plain () B general::rollback,
        "Undoes what was written since the last commit.";
    DTW_RTVHANDLE Value () B general::rtvhandle,
        "The handle of this visit, for the links of the page.";
    DTW_SENDMAIL Plain (from, to, text, [subject], [cc], [bcc], [reply_to], [organization])
        C general::sendmail,
        "Is not there, and says so.";
    DTW_SETCOOKIE Plain (name, value, [options]) A general::setcookie,
        "Adds a `Set-Cookie` field; 1007 once the first output has left.";
    DTW_SETENV Plain (name, value) B general::setenv,
        "Sets a variable of the environment for this run.";
    DTW_STATIC Plain ([seconds]) B general::keep,
        "This page lasts over the requests of a visit.";
    DTW_TERMINATE Plain () B general::terminate,
        "This was the last request of the visit; what was written is made last.";
    DTW_TIME Value ([form]) A general::time,
        "The time: N as 22:35:00, C as 10:35pm, L and X with fractions of a second.";
    DTW_URLESCSEQ Value (s) A string::urlescseq,
        "The text with percent signs, for a part of an address.";
    DTW_ADD Value (a, b, [precision]) A math::add,
        "The sum.";
    DTW_SUBTRACT Value (a, b, [precision]) A math::subtract,
        "The difference.";
    DTW_MULTIPLY Value (a, b, [precision]) A math::multiply,
        "The product.";
    DTW_DIVIDE Value (a, b, [precision]) A math::divide,
        "The quotient.";
    DTW_INTDIV Value (a, b, [precision]) B math::intdiv,
        "The whole part of the quotient.";
    DTW_DIVREM Value (a, b, [precision]) B math::divrem,
        "What is left over by DTW_INTDIV.";
    DTW_POWER Value (a, b, [precision]) B math::power,
        "The first number to the power of the second, which is whole.";
    DTW_EVAL Value (expression) B math::eval,
        "The value of an expression with `+ - * / % // **` and parentheses; 4003 if it is none, \
         4004 for a division by zero.";
    DTW_FORMAT Value (n, [before], [after], [expp], [expt], [precision]) B math::format,
        "The number with so many places before and behind the point.";
    DTW_ASSIGN Plain ((variable), value) A string::assign,
        "Gives the variable the value.";
    DTW_CHARTOHEX Value (s) B string::chartohex,
        "The text as hexadecimal digits.";
    DTW_CONCAT Value (a, b) A string::concat,
        "The second text behind the first.";
    DTW_DELSTR Value (s, start, [length]) B string::delstr,
        "The text without this part.";
    DTW_HEXTOCHAR Value (hex) B string::hextochar,
        "The text that hexadecimal digits stand for; `0D25`, as on the AS/400, is the end of a line.";
    DTW_INSERT Value (new, target, [after], [length], [pad]) B string::insert,
        "The target with the new text behind so many characters.";
    DTW_LASTPOS Value (needle, s, [start]) B string::lastpos,
        "Where the needle stands last; 0 if it does not.";
    DTW_LENGTH Value (s) A string::length,
        "How many characters the text has.";
    DTW_LOWERCASE Change (s) A string::lowercase,
        "The text in lower case.";
    DTW_PAD Value (s, length, [char], [side]) B string::pad,
        "The text filled up to a length: L before it, R behind it.";
    DTW_POS Value (needle, s, [start]) A string::pos,
        "Where the needle stands first; 0 if it does not.";
    DTW_REPLACE Value (s, from, to, [start], [which]) A string::replace,
        "The text with A all, or F the first, of its parts replaced.";
    DTW_REVERSE Value (s) B string::reverse,
        "The text from its end to its start.";
    DTW_STRIP Value (s, [side], [char]) A string::strip,
        "The text without blanks at B both ends, at L its start or T its end.";
    DTW_SUBSTR Value (s, start, [length], [pad]) A string::substr,
        "A part of the text, filled up if a length is given.";
    DTW_TRANSLATE Value (s, [to], [from], [default]) B string::translate,
        "The text with each character of `from` as the one of `to`; without both in upper case.";
    DTW_UPPERCASE Change (s) A string::uppercase,
        "The text in upper case.";
    DTW_DELWORD Value (s, n, [count]) B word::delword,
        "The text without these words.";
    DTW_SUBWORD Value (s, n, [count]) B word::subword,
        "Some words of the text.";
    DTW_WORD Value (s, n) B word::word,
        "One word of the text.";
    DTW_WORDINDEX Value (s, n) B word::wordindex,
        "Where a word begins.";
    DTW_WORDLENGTH Value (s, n) B word::wordlength,
        "How many characters a word has.";
    DTW_WORDPOS Value (phrase, s, [start]) B word::wordpos,
        "Which word the phrase begins with; 0 if it is not there.";
    DTW_WORDS Value (s) B word::words,
        "How many words the text has.";
    DTW_TB_APPENDROW Plain ({t}, count) B tables::appendrow,
        "Adds empty rows.";
    DTW_TB_CHECKBOX Print ({t}, name, [values], [labels], [chosen]) B html_table::checkbox,
        "Prints a check box for each row.";
    DTW_TB_COLS Value ({t}) B tables::cols,
        "How many columns the table has.";
    DTW_TB_DELETECOL Plain ({t}, start, [count]) B tables::deletecol,
        "Takes columns out.";
    DTW_TB_DELETEROW Plain ({t}, start, [count]) A tables::deleterow,
        "Takes rows out.";
    DTW_TB_DLIST Print ({t}, [terms], [meanings]) B html_table::dlist,
        "Prints a list of terms and meanings.";
    DTW_TB_DUMPH Print ({t}) B html_table::dumph,
        "Prints all rows, one a line.";
    DTW_TB_DUMPV Print ({t}) B html_table::dumpv,
        "Prints all values, one a line.";
    DTW_TB_GETN Value ({t}, column) B tables::getn,
        "The name of a column.";
    DTW_TB_GETV Value ({t}, row, column) A tables::getv,
        "The value of a cell.";
    DTW_TB_HTMLENCODE Plain ({t}, [columns]) B tables::htmlencode,
        "Encodes the cells of all columns, or of those that are listed.";
    DTW_TB_INPUT_CHECKBOX Print ({t}, name, [values], [labels], [chosen]) B html_table::checkbox,
        "As DTW_TB_CHECKBOX.";
    DTW_TB_INPUT_RADIO Print ({t}, name, [values], [labels], [chosen]) B html_table::radio,
        "Prints a radio button for each row.";
    DTW_TB_INPUT_TEXT Print ({t}, name, [values]) B html_table::input_text,
        "Prints a line to write into for each row.";
    DTW_TB_INSERTCOL Plain ({t}, after, count) B tables::insertcol,
        "Puts empty columns behind one.";
    DTW_TB_INSERTROW Plain ({t}, after, count) B tables::insertrow,
        "Puts empty rows behind one.";
    DTW_TB_LIST Print ({t}, [kind]) B html_table::list,
        "Prints a list of all values: U with dots, O with numbers.";
    DTW_TB_MAXROWS Value ({t}) B tables::maxrows,
        "How many rows the table may have; `ALL` is any number.";
    DTW_TB_QUERYCOLNONJ Value ({t}, name) A tables::querycolnonj,
        "The number of the column with this name; 0 if there is none.";
    DTW_TB_ROWS Value ({t}) A tables::rows,
        "How many rows the table has.";
    DTW_TB_SELECT Print ({t}, name, [labels], [size], [multiple], [rows], [chosen], [values])
        B html_table::select,
        "Prints a choice of these rows, as `1-3 5`; labels and values are numbers of columns.";
    DTW_TB_SETCOLS Plain ({t}, count) B tables::setcols,
        "Gives the table so many columns.";
    DTW_TB_SETN Plain ({t}, name, column) B tables::setn,
        "Names a column.";
    DTW_TB_SETV Plain ({t}, value, row, column) A tables::setv,
        "Sets the value of a cell.";
    DTW_TB_TABLE Print ({t}, [options]) B html_table::table,
        "Prints the table.";
    DTW_TB_TEXTAREA Print ({t}, name, [values]) B html_table::textarea,
        "Prints a field of several lines for each row.";
    DTWF_APPEND Plain (file, transform, delimiter, {t}, [retry]) B files::append,
        "Adds the table's rows to the end.";
    DTWF_CLOSE Plain (file, [retry]) B files::close,
        "Does nothing: files are open while they are used.";
    DTWF_COPY Plain (from, to) B files::copy,
        "Copies a file.";
    DTWF_DELETE Plain (file, transform, delimiter, [retry], [start], [rows]) B files::delete,
        "Takes rows out of the file.";
    DTWF_EXISTS Value (file) A files::exists,
        "`Y` if there is such a file, else `N`.";
    DTWF_INSERT Plain (file, transform, delimiter, {t}, [retry], [start], [rows]) B files::insert,
        "Puts the table's rows behind one of the file.";
    DTWF_OPEN Plain (file, mode, [retry]) B files::open,
        "Looks whether a file is there; `a` makes it, `w` empties it.";
    DTWF_READ Plain (file, transform, delimiter, {t}, [retry], [rows], [start]) B files::read,
        "Reads the file's rows into the table.";
    DTWF_REMOVE Plain (file, [retry]) B files::remove,
        "Removes a file.";
    DTWF_SEARCH Plain (file, transform, delimiter, {t}, text, [retry], [rows], [start])
        B files::search,
        "Reads the rows in which the text stands.";
    DTWF_UPDATE Plain (file, transform, delimiter, {t}, [retry], [rows], [start]) B files::update,
        "Replaces rows that are there by those of the table.";
    DTWF_WRITE Plain (file, transform, delimiter, {t}, [retry], [rows], [start]) B files::write,
        "Makes the file of the table's rows.";
    DTWR_ADDENTRY Plain (registry, name, value, [index]) B registry::addentry,
        "Adds an entry; 3003 if there is one.";
    DTWR_CLEARREG Plain (registry) B registry::clear,
        "Removes all entries.";
    DTWR_CLOSEREG Plain (registry) B registry::close,
        "Does nothing: registries are open while they are used.";
    DTWR_CREATEREG Plain (registry, [security]) B registry::create,
        "Makes an empty registry.";
    DTWR_DELENTRY Plain (registry, name, [index]) B registry::delentry,
        "Removes an entry.";
    DTWR_DELREG Plain (registry) B registry::delete,
        "Removes a registry.";
    DTWR_LISTREG Plain (registry, {t}) B registry::listreg,
        "Fills the table with all names and values.";
    DTWR_LISTSUB Plain (registry, name, {t}) B registry::listsub,
        "Fills the table with the indexes and values of one name.";
    DTWR_OPENREG Plain (registry) B registry::open,
        "Looks whether there is such a registry.";
    DTWR_RTVENTRY Value (registry, name, [index]) B registry::rtventry,
        "The value of an entry.";
    DTWR_UPDATEENTRY Plain (registry, name, value, [index]) B registry::updateentry,
        "Sets the value of an entry that is there.";
}

/// Which function a call names, and in which form. Upper and lower case are the same.
pub fn find(name: &str) -> Option<(&'static BuiltIn, CallForm)> {
    let of = |name: &str| {
        LIST.iter()
            .find(|known| known.name.eq_ignore_ascii_case(name))
    };
    if !name.as_bytes().get(..3)?.eq_ignore_ascii_case(b"DTW") {
        return None;
    }
    if let Some(function) = of(name) {
        return Some((function, CallForm::Plain));
    }
    for prefix in ["DTW_TB_", "DTW_", "DTWF_", "DTWR_"] {
        let has_prefix = name.get(..prefix.len());
        if !has_prefix.is_some_and(|start| start.eq_ignore_ascii_case(prefix)) {
            continue;
        }
        let (form, rest) = match name.as_bytes().get(prefix.len()) {
            Some(b'r' | b'R') => (CallForm::Value, &name[prefix.len() + 1..]),
            Some(b'm' | b'M') => (CallForm::Change, &name[prefix.len() + 1..]),
            _ => continue,
        };
        let Some(function) = of(&format!("{prefix}{rest}")) else {
            continue;
        };
        let has_form = match form {
            CallForm::Change => function.forms == BuiltInForms::Change,
            _ => matches!(function.forms, BuiltInForms::Value | BuiltInForms::Change),
        };
        return has_form.then_some((function, form));
    }
    None
}

/// The table as it stands in the reference.
pub fn reference() -> String {
    let mut page = String::from("| function | forms | arguments | what it does |\n");
    page += "| --- | --- | --- | --- |\n";
    for function in LIST {
        let forms = match function.forms {
            BuiltInForms::Plain | BuiltInForms::Print => "",
            BuiltInForms::Value => "r",
            BuiltInForms::Change => "r m",
        };
        let mut arguments = String::new();
        for (index, parameter) in function.parameters.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            arguments += &match (parameter.is_optional, parameter.is_table) {
                (true, _) => format!("[{comma}{}]", parameter.name),
                (_, true) => format!("{comma}*{}*", parameter.name),
                _ if parameter.direction == Direction::Out => {
                    format!("{comma}**{}**", parameter.name)
                }
                _ => format!("{comma}{}", parameter.name),
            };
        }
        let (name, summary) = (function.name, function.summary);
        page += &format!("| {name} | {forms} | {arguments} | {summary} |\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_found_whatever_its_case() {
        for function in LIST {
            assert_eq!(
                find(function.name).map(|found| found.1),
                Some(CallForm::Plain)
            );
        }
        let found = |name| find(name).map(|(function, form)| (function.name, form));
        assert_eq!(found("dtw_rSubstr"), Some(("DTW_SUBSTR", CallForm::Value)));
        assert_eq!(
            found("DTW_mUPPERCASE"),
            Some(("DTW_UPPERCASE", CallForm::Change))
        );
        assert_eq!(
            found("DTW_TB_rGETV"),
            Some(("DTW_TB_GETV", CallForm::Value))
        );
        assert_eq!(
            found("DTWF_rEXISTS"),
            Some(("DTWF_EXISTS", CallForm::Value))
        );
        assert_eq!(found("DTW_REVERSE"), Some(("DTW_REVERSE", CallForm::Plain)));
        assert_eq!(found("DTW_mSUBSTR"), None);
        assert_eq!(found("DTW_rASSIGN"), None);
        assert_eq!(found("other"), None);
    }

    #[test]
    fn what_may_be_left_out_stands_last() {
        for function in LIST {
            let optional = function.parameters.iter().map(|known| known.is_optional);
            assert!(optional.is_sorted(), "{}", function.name);
        }
    }
}
