//! gitweb, git's own web frontend, in Perl with CGI.pm.

use crate::compare::by_table;
use crate::git;
use crate::place::{Place, installed};
use crate::servers::Mount;

#[test]
fn gitweb_answers_as_under_other_servers() {
    let files = [
        "/usr/share/gitweb/gitweb.cgi",
        "/usr/lib/cgi-bin/gitweb.cgi",
    ];
    let (Some(script), Some(_)) = (installed("gitweb", &files), git::backend()) else {
        return;
    };
    let place = Place::new();
    git::repository(&place);
    let config = format!(
        "our $projectroot = '{}';\nour $site_name = 'Projects';\n\
         $feature{{'snapshot'}}{{'default'}} = ['tgz'];\n$feature{{'pathinfo'}}{{'override'}} = 0;\n1;\n",
        place.shown("repos")
    );
    place.write("gitweb.conf", &config);
    let config = place.shown("gitweb.conf");
    let mount = Mount::new(&place, "/gitweb", script).with("GITWEB_CONFIG", config);
    let mount = mount.warmed_by("perl");
    by_table(&place, &mount, include_str!("gitweb.txt"));
}
