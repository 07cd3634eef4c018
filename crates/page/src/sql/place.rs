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

const VALUE_WORDS: &[&str] = &[
    "AND", "BETWEEN", "CASE", "DIV", "ELSE", "ESCAPE", "FIRST", "GLOB", "HAVING", "ILIKE", "LIKE",
    "LIMIT", "MATCH", "MOD", "NEXT", "NOT", "OFFSET", "OR", "REGEXP", "RETURN", "RLIKE", "THEN",
    "TOP", "WHEN", "WHERE",
];
const COLUMNS_WORDS: &[&str] = &["BY", "RETURNING", "SELECT", "SET", "DISTINCT", "UNION"];
const NAMES_WORDS: &[&str] = &[
    "ALTER",
    "CREATE",
    "DELETE",
    "DROP",
    "FROM",
    "INDEX",
    "INSERT",
    "INTO",
    "JOIN",
    "TABLE",
    "UPDATE",
    "USING",
    "VIEW",
    "WITH",
    "COLUMN",
    "REFERENCES",
];
const VALUES_WORDS: &[&str] = &["CALL", "HAVING", "LIMIT", "ON", "VALUES", "WHERE", "OFFSET"];

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
        let upper = String::from_utf8_lossy(word).to_ascii_uppercase();
        let upper = upper.as_str();
        // `AS` names what stands before it; the clause goes on.
        if upper == "AS" {
            self.previous = Previous::Operand;
            return;
        }
        if VALUES_WORDS.contains(&upper) {
            self.clause = Clause::Values;
        } else if COLUMNS_WORDS.contains(&upper) {
            self.clause = Clause::Columns;
        } else if NAMES_WORDS.contains(&upper) {
            self.clause = Clause::Names;
        }
        self.previous = match VALUE_WORDS.contains(&upper) {
            true => Previous::ValueWord,
            false => Previous::Operand,
        };
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
