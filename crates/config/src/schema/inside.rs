//! Keys of what can be seen inside: the history of requests, and the server's activity.

use super::*;

/// `[history]`
pub static HISTORY: SchemaTable = SchemaTable {
    name: "history",
    header: "`[history]`",
    text: "The history: finished requests with all that is known of them, to be looked at with `hob \
           history` and on the admin pages. It survives a reload; with `file` it survives restarts.",
    base: None,
    keys: &[
        SchemaKey::new(
            "bytes",
            Size {
                min: 0,
                max: 64 * GIB,
            },
            Preset::Size(8 * MIB),
        )
        .says(
            "Memory for it; the oldest requests make room. A request takes some 80 to 200 bytes, so \
             a MiB is about 8,000 of them. 0 keeps no history.",
        )
        .example("\"64MiB\"")
        .aka(&["size", "memory"]),
        SchemaKey::new(
            "time",
            Time {
                min: Duration::from_secs(1),
                max: Duration::from_secs(366 * 86_400),
            },
            secs(3600),
        )
        .says("How old requests get there; older ones go even when there is room.")
        .example("\"24h\"")
        .aka(&["keep", "age", "retention"]),
        SchemaKey::new("file", OrWord("off", &Path), Nothing("`\"off\"`: none"))
            .says(
                "File in which the history outlives the server. It is opened by the user that \
                 starts hob, and for that user alone (0600); its folder must exist. New requests \
                 are written once a second, so a server that is killed loses the last second at \
                 most. Another file takes effect with the next start or upgrade.",
            )
            .example("\"/var/lib/hob/history\""),
        SchemaKey::new(
            "file_size",
            Size {
                min: MIB,
                max: 64 * GIB,
            },
            Preset::Size(64 * MIB),
        )
        .says("Size of that file at most; then the oldest requests in it are written over.")
        .example("\"256MiB\""),
    ],
};

/// `[activity]`
pub static ACTIVITY: SchemaTable = SchemaTable {
    name: "activity",
    header: "`[activity]`",
    text: "What the server did in each second of the last hour and each minute of the last four \
           weeks: requests, errors, bytes, response times, workers, CPU time and memory. \
           `activity = \"off\"` keeps none of it, and no histograms by route; then the overview, \
           the graphs and `/metrics` have no rates and times, and no alert tells of failed \
           requests. A change takes effect with the next start or upgrade.",
    base: None,
    keys: &[SchemaKey::new(
        "file",
        OrWord("off", &Path),
        Nothing("`activity` in the folder `state`, where the config names one; else none"),
    )
    .says(
        "File of 4 MiB in which it outlives the server. It is opened by the user that starts hob, \
         and for that user alone (0600); its folder must exist. Another file takes effect with the \
         next start or upgrade.",
    )
    .example("\"/var/lib/hob/activity\"")],
};
