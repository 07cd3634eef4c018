//! awstats.pl, statistics of access logs, in Perl.

use crate::compare::by_table;
use crate::place::{Place, installed};
use crate::servers::Mount;

#[test]
fn awstats_answers_as_under_other_servers() {
    let files = [
        "/usr/lib/cgi-bin/awstats.pl",
        "/usr/share/awstats/wwwroot/cgi-bin/awstats.pl",
    ];
    let Some(script) = installed("awstats", &files) else {
        return;
    };
    let place = Place::new();
    place.folder("stats");
    place.folder("conf");
    let visits = (0..200).map(|number| {
        let (host, minute) = (number % 7 + 1, number % 60);
        format!(
            "192.0.2.{host} - - [06/May/2024:07:{minute:02}:09 +0000] \"GET /page-{}.html HTTP/1.1\" \
             200 {number} \"http://example.org/<&>\" \"Mozilla/5.0 (X11; Linux x86_64; rv:109.0) \
             Gecko/20100101 Firefox/115.0\"\n",
            number % 11
        )
    });
    place.write("access.log", &visits.collect::<String>());
    let config = format!(
        "LogFile=\"{}\"\nLogFormat=1\nLogType=W\nLogSeparator=\" \"\nSiteDomain=\"example.org\"\n\
         HostAliases=\"example.org\"\nDNSLookup=0\nDirData=\"{}\"\nDirCgi=\"/\"\n\
         DirIcons=\"/icon\"\nAllowToUpdateStatsFromBrowser=1\nLang=\"en\"\n",
        place.shown("access.log"),
        place.shown("stats")
    );
    place.write("conf/awstats.site.conf", &config);
    let argument = format!("-configdir={}", place.shown("conf"));
    let program = script.to_str().unwrap();
    place.run("perl", &[program, "-config=site", &argument, "-update"]);
    // The CGI looks for settings in folders of its own, and in this one.
    let folder = place.shown("conf");
    let mount = Mount::new(&place, "/awstats.pl", script);
    let mount = mount.with("AWSTATS_ENABLE_CONFIG_DIR", folder.clone());
    // Rows with the same count stand in the order of a hash.
    let mount = mount.with("PERL_HASH_SEED", "0").warmed_by("perl");
    let table =
        include_str!("awstats.txt").replace("@CONFIG@", &format!("config=site&configdir={folder}"));
    by_table(&place, &mount, &table);
}
