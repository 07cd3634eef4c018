//! What `hob check` says of pages and their databases.

use crate::harness::{Place, text_of};
use crate::place::place;

/// The lines that are told of a config; it is right all the same.
fn told(place: &Place, config: &str) -> String {
    place.write("hob.toml", config);
    let checked = place.run(&["check"]);
    let text = text_of(&checked);
    assert_eq!(checked.status.code(), Some(0), "{text}");
    text
}

#[test]
fn every_database_is_looked_at_and_told_of_once() {
    let place = place();
    let text = told(
        &place,
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[database]]\nname = \"own\"\nurl = \"sqlite:data/own.db\"\ncreate = true\n\
         [[database]]\nname = \"other\"\nurl = \"sqlite:data/other.db\"\n\
         [[database]]\nname = \"far\"\nurl = \"postgres://shop@db.example/shop\"\n\
         password_file = \"keys/far\"\n\
         [[site]]\n\
         [[site.route]]\npath = \"/a/*\"\npage = { dir = \"macros\", database = \"own\" }\n\
         [[site.route]]\npath = \"/b/*\"\npage = { dir = \"macros\" }\n",
    );
    let missing = ["no database", "no password file"].map(|what| format!("there is {what} "));
    for what in missing {
        assert_eq!(text.matches(&what).count(), 1, "{text}");
    }
    assert!(
        text.contains("data/other.db") && !text.contains("own.db"),
        "{text}"
    );
}

#[test]
fn pages_that_a_route_sends_as_files_are_told_of() {
    let place = place();
    let config = |path: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \".\"\n\
             [[site.route]]\npath = \"{path}\"\npage = {{ dir = \"macros\" }}\n"
        )
    };
    let warning = "whoever asks for one there reads its source";
    let text = told(&place, &config("/app/*"));
    assert_eq!(text.matches(warning).count(), 1, "{text}");
    // Where the pages answer at the path by which they lie there, nobody reads them.
    let text = told(&place, &config("/macros/*"));
    assert!(!text.contains(warning), "{text}");
}
