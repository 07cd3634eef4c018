//! cgit, the hyperfast web frontend for git, in C.

use crate::compare::by_table;
use crate::git;
use crate::place::{Place, installed};
use crate::servers::Mount;

#[test]
fn cgit_answers_as_under_other_servers() {
    let files = ["/usr/lib/cgit/cgit.cgi", "/usr/share/webapps/cgit/cgit.cgi"];
    let (Some(script), Some(_)) = (installed("cgit", &files), git::backend()) else {
        return;
    };
    let place = Place::new();
    git::repository(&place);
    let config = format!(
        "cache-size=0\nvirtual-root=/cgit\nlocal-time=0\nsnapshots=tar.gz\nmax-atom-items=9\n\
         enable-index-owner=0\nrepo.url=pots\nrepo.path={}\nrepo.desc=work of the test\n",
        place.shown("repos/work.git")
    );
    place.write("cgitrc", &config);
    let mount = Mount::new(&place, "/cgit", script).with("CGIT_CONFIG", place.shown("cgitrc"));
    by_table(&place, &mount, include_str!("cgit.txt"));
}
