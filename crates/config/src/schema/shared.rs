//! What several sites or routes say alike, once: `[defaults]` and `[[snippet]]`.

use super::*;

/// `[defaults]`, with all its keys.
pub const fn defaults(answers: &'static SchemaTable) -> SchemaTable {
    SchemaTable {
        name: "defaults",
        header: "`[defaults]`",
        text: "Keys of `[[site]]` about answers that hold for every site that does not say \
               otherwise, as if they stood in each. Of `headers` and `error_pages` each entry is \
               one thing, of `files` each key; `headers_add` and `headers_remove` add up; of all \
               else, a site that says it says all of it. A `rate` counts for each site alone.",
        base: Some(answers),
        keys: &[],
    }
}

/// The key of the top level that is a list of snippets.
pub const SNIPPETS: SchemaKey = SchemaKey::new("snippet", Tables(&SNIPPET), Nothing(""));

/// `[[snippet]]`
static SNIPPET: SchemaTable = SchemaTable {
    name: "snippet",
    header: "`[[snippet]]`",
    text: "Keys that sites and routes take over by its name, in `snippets`, as if they stood in \
           each. What a site or route says itself comes first, then its snippets in their order, \
           then for a site `[defaults]`, for a route its site.",
    base: Some(&ANSWER),
    keys: &[SchemaKey::new("name", Text, Required)
        .says("What `snippets` calls it.")
        .example("\"quiet\"")],
};

/// The key of a site or a route that names snippets.
pub(super) const KEY: SchemaKey = SchemaKey::new("snippets", TextOrTexts, Preset::Texts(&[]))
    .says("Names of each `[[snippet]]` whose keys hold here, unless they are said here.")
    .example("[\"quiet\", \"private\"]")
    .aka(&["use", "snippet"]);
