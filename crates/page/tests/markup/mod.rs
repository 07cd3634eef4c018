//! A reader of markup for tests: the states of the HTML standard's tokenizer that matter for tags.

/// A tag, with the names of its attributes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) attributes: Vec<String>,
}

/// All tags of a page, in their order; end tags begin with `/`, comments are `!`.
pub(crate) fn tags(page: &str) -> Vec<Tag> {
    let page: Vec<char> = page.chars().collect();
    let mut reader = Reader {
        page: &page,
        at: 0,
        tags: Vec::new(),
    };
    reader.text();
    reader.tags
}

struct Reader<'a> {
    page: &'a [char],
    at: usize,
    tags: Vec<Tag>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.page.get(self.at).copied()
    }

    fn starts(&self, text: &str) -> bool {
        let wanted = text.chars();
        let found = self.page[self.at..].iter();
        let same = wanted.zip(found).filter(|(a, b)| a.eq_ignore_ascii_case(b));
        same.count() == text.len()
    }

    fn text(&mut self) {
        while let Some(character) = self.peek() {
            self.at += 1;
            if character != '<' {
                continue;
            }
            match self.peek() {
                Some(next) if next.is_ascii_alphabetic() => self.tag(""),
                Some('/') => {
                    self.at += 1;
                    match self.peek() {
                        Some(next) if next.is_ascii_alphabetic() => self.tag("/"),
                        Some('>') => self.at += 1,
                        _ => self.bogus(),
                    }
                }
                Some('!') if self.starts("!--") => self.comment(),
                Some('!' | '?') => self.bogus(),
                _ => {}
            }
        }
    }

    /// Up to the next `>`.
    fn bogus(&mut self) {
        while self.peek().is_some_and(|character| character != '>') {
            self.at += 1;
        }
        self.at += 1;
        self.add("!".to_string(), Vec::new());
    }

    fn comment(&mut self) {
        self.at += 3;
        self.add("!".to_string(), Vec::new());
        if self.starts(">") {
            self.at += 1;
            return;
        }
        if self.starts("->") {
            self.at += 2;
            return;
        }
        while self.peek().is_some() {
            for end in ["-->", "--!>"] {
                if self.starts(end) {
                    self.at += end.len();
                    return;
                }
            }
            self.at += 1;
        }
    }

    fn add(&mut self, name: String, attributes: Vec<String>) {
        self.tags.push(Tag { name, attributes });
    }

    fn is_space(character: char) -> bool {
        matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{c}')
    }

    fn take_until(&mut self, is_end: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(|character| !is_end(character)) {
            self.at += 1;
        }
        let taken = self.page[start..self.at].iter();
        taken
            .map(|character| character.to_ascii_lowercase())
            .collect()
    }

    fn tag(&mut self, prefix: &str) {
        let name = self.take_until(|c| Self::is_space(c) || matches!(c, '/' | '>'));
        let mut attributes = Vec::new();
        loop {
            self.take_until(|c| !Self::is_space(c) && c != '/');
            match self.peek() {
                None => return,
                Some('>') => {
                    self.at += 1;
                    break;
                }
                _ => attributes.push(self.attribute()),
            }
        }
        self.add(format!("{prefix}{name}"), attributes);
        let raw = ["script", "style", "textarea", "title", "xmp", "iframe"];
        if prefix.is_empty() && raw.contains(&&*name) {
            self.raw(&name);
        }
    }

    fn attribute(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        self.take_until(|c| Self::is_space(c) || matches!(c, '/' | '>' | '='));
        let name = self.page[start..self.at].iter();
        let name = name
            .map(|character| character.to_ascii_lowercase())
            .collect();
        let behind = self.at;
        self.take_until(|c| !Self::is_space(c));
        if self.peek() != Some('=') {
            self.at = behind;
            return name;
        }
        self.at += 1;
        self.take_until(|c| !Self::is_space(c));
        match self.peek() {
            Some(quote @ ('"' | '\'')) => {
                self.at += 1;
                self.take_until(|c| c == quote);
                self.at += 1;
            }
            Some('>') | None => {}
            Some(_) => {
                self.take_until(|c| Self::is_space(c) || c == '>');
            }
        }
        name
    }

    /// The inside of an element without tags.
    fn raw(&mut self, name: &str) {
        let end = format!("</{name}");
        while self.peek().is_some() {
            if self.starts(&end) {
                let behind = self.page.get(self.at + end.len()).copied();
                if behind.is_none_or(|c| Self::is_space(c) || matches!(c, '/' | '>')) {
                    return;
                }
            }
            self.at += 1;
        }
    }
}
