//! Where in a statement the text is: which clause, behind what, and so whether a value may stand.
//!
//! This is no parser of SQL. It knows enough to tell a value from a name; where it is not sure it
//! says no, and the statement is refused.

/// What stands before the next token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Previous {
    Nothing,
    /// A sign like `=`, `+` or `||`.
    Operator,
    Comma,
    Open,
    /// A word that a value follows, like `LIKE`.
    ValueWord,
    /// Anything that no value follows: a name, a literal, `)`.
    Operand,
}

/// What the text between two keywords or inside parentheses holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clause {
    /// Expressions: conditions, arguments, values.
    Values,
    /// Columns of a result, assignments, orders: names, with values inside expressions only.
    Columns,
    /// Names of tables and columns.
    Names,
}

/// What a word says of what follows it.
struct SqlWord {
    /// The clause it begins, if it begins one.
    clause: Option<Clause>,
    /// Whether a value follows it.
    is_before_value: bool,
}

/// Letters of the longest word that matters.
const WORD_BYTES_MAX: usize = 10;

/// What a word says; `AS` names what stands before it, and like any other word says nothing.
fn known_word(upper: &[u8]) -> SqlWord {
    let clause = match upper {
        b"CALL" | b"HAVING" | b"LIMIT" | b"ON" | b"VALUES" | b"WHERE" | b"OFFSET" => {
            Some(Clause::Values)
        }
        b"BY" | b"RETURNING" | b"SELECT" | b"SET" | b"DISTINCT" | b"UNION" => Some(Clause::Columns),
        b"ALTER" | b"CREATE" | b"DELETE" | b"DROP" | b"FROM" | b"INDEX" | b"INSERT" | b"INTO"
        | b"JOIN" | b"TABLE" | b"UPDATE" | b"USING" | b"VIEW" | b"WITH" | b"COLUMN"
        | b"REFERENCES" => Some(Clause::Names),
        _ => None,
    };
    let is_before_value = matches!(
        upper,
        b"AND"
            | b"BETWEEN"
            | b"CASE"
            | b"DIV"
            | b"ELSE"
            | b"ESCAPE"
            | b"FIRST"
            | b"GLOB"
            | b"HAVING"
            | b"ILIKE"
            | b"LIKE"
            | b"LIMIT"
            | b"MATCH"
            | b"MOD"
            | b"NEXT"
            | b"NOT"
            | b"OFFSET"
            | b"OR"
            | b"REGEXP"
            | b"RETURN"
            | b"RLIKE"
            | b"THEN"
            | b"TOP"
            | b"WHEN"
            | b"WHERE"
    );
    SqlWord {
        clause,
        is_before_value,
    }
}

/// Where the text is. Only text of the author comes here, and a mark for each value.
#[derive(Clone, Debug)]
pub(super) struct SqlPlace {
    previous: Previous,
    clause: Clause,
    outer: Vec<Clause>,
}

impl SqlPlace {
    pub(super) fn new() -> Self {
        Self {
            previous: Previous::Nothing,
            clause: Clause::Names,
            outer: Vec::new(),
        }
    }

    /// Whether a value may stand here.
    pub(super) fn takes_value(&self) -> bool {
        match self.previous {
            Previous::Operator | Previous::ValueWord => true,
            Previous::Comma | Previous::Open => self.clause == Clause::Values,
            Previous::Nothing | Previous::Operand => false,
        }
    }

    /// A whole word was passed.
    pub(super) fn word(&mut self, word: &[u8]) {
        self.previous = Previous::Operand;
        let mut upper = [0; WORD_BYTES_MAX];
        let Some(upper) = upper.get_mut(..word.len()) else {
            return;
        };
        upper.copy_from_slice(word);
        upper.make_ascii_uppercase();
        let known = known_word(upper);
        self.clause = known.clause.unwrap_or(self.clause);
        if known.is_before_value {
            self.previous = Previous::ValueWord;
        }
    }

    /// A literal, a quoted name or a value was passed.
    pub(super) fn operand(&mut self) {
        self.previous = Previous::Operand;
    }

    /// A sign was passed.
    pub(super) fn sign(&mut self, sign: u8) {
        match sign {
            b'(' => {
                self.outer.push(self.clause);
                if self.clause != Clause::Names {
                    self.clause = Clause::Values;
                }
                self.previous = Previous::Open;
            }
            b')' => {
                self.clause = self.outer.pop().unwrap_or(Clause::Names);
                self.previous = Previous::Operand;
            }
            b',' => self.previous = Previous::Comma,
            b';' => *self = Self::new(),
            b'.' => self.previous = Previous::Operand,
            _ => self.previous = Previous::Operator,
        }
    }
}
