//! Facts in JSON that another process told: each may be missing, null, or of another kind than it
//! should be, and is then not known.

use serde_json::Value;

/// An object, or what should be one.
#[derive(Clone, Copy)]
pub(crate) struct JsonView<'a>(pub(crate) &'a Value);

impl<'a> JsonView<'a> {
    /// What a name or, with dots, a path of names leads to.
    fn at(self, path: &str) -> Option<&'a Value> {
        let mut names = path.split('.');
        names.try_fold(self.0, |value, name| value.get(name))
    }

    /// What is below a name.
    pub(crate) fn below(self, path: &str) -> JsonView<'a> {
        JsonView(self.at(path).unwrap_or(&Value::Null))
    }

    /// A text that is not empty.
    pub(crate) fn text(self, path: &str) -> Option<&'a str> {
        let text = self.at(path)?.as_str()?;
        (!text.is_empty()).then_some(text)
    }

    /// A whole number.
    pub(crate) fn count(self, path: &str) -> Option<u64> {
        self.at(path)?.as_u64()
    }

    /// Any number.
    pub(crate) fn number(self, path: &str) -> Option<f64> {
        self.at(path)?.as_f64()
    }

    /// True; false where it is not known.
    pub(crate) fn is(self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool) == Some(true)
    }

    /// The items of a list.
    pub(crate) fn list(self, path: &str) -> &'a [Value] {
        let list = self.at(path).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// The same, as facts.
    pub(crate) fn each(self, path: &str) -> impl Iterator<Item = JsonView<'a>> + use<'a> {
        self.list(path).iter().map(JsonView)
    }

    /// The items, where this is itself a list.
    pub(crate) fn each_item(self) -> impl Iterator<Item = JsonView<'a>> + use<'a> {
        self.0.as_array().into_iter().flatten().map(JsonView)
    }

    /// Texts of a list, joined; none where there are none.
    pub(crate) fn texts(self, path: &str) -> Option<String> {
        let texts: Vec<&str> = self.list(path).iter().filter_map(Value::as_str).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}
