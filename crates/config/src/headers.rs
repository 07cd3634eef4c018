//! Header rules: what a site and its routes set, add and remove in every answer.

/// One rule. Rules are followed in order, so a later one has the last word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderRule {
    /// The field has this value and no other.
    Set(String, String),
    /// The field has this value where the answer has none of its own.
    Default(String, String),
    /// One more field, whatever there is.
    Add(String, String),
    /// No field of this name.
    Remove(String),
}

/// All rules for the answers of one route, or of a site where no route answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderRules {
    rules: Vec<HeaderRule>,
}

impl HeaderRules {
    /// Takes the rules in the order in which they are to be followed.
    pub fn new(rules: Vec<HeaderRule>) -> HeaderRules {
        HeaderRules { rules }
    }

    /// True when answers stay as they are.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules in order.
    pub fn iter(&self) -> impl Iterator<Item = &HeaderRule> {
        self.rules.iter()
    }
}
