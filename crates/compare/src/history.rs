//! Figures of old documents in a line, with footnotes for those that are odd.

use hob_load::history::figures_of;

/// What is odd about the figures that are told: footnotes, counted from one in the order in which
/// they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Remarks(Vec<&'static str>);

impl Remarks {
    /// The figures under an id in a line, with the marks of their footnotes.
    pub(crate) fn line(&mut self, id: &str) -> String {
        let mut line = String::new();
        let mut server = "";
        for then in figures_of(id) {
            let mark = self.mark(&then.remark);
            let figure = format!("{} {}{mark}", then.figure, then.unit);
            let condition = match then.condition.as_str() {
                "" => String::new(),
                condition => format!(" ({condition})"),
            };
            if !line.is_empty() {
                line.push_str(", ");
            }
            // Columns of one line of the document stand together.
            if std::mem::replace(&mut server, &then.server) != then.server {
                line.push_str(&then.server);
                line.push(' ');
            }
            line.push_str(&format!("{figure}{condition}"));
        }
        format!("{line} [{id}]")
    }

    fn mark(&mut self, remark: &'static str) -> String {
        if remark.is_empty() {
            return String::new();
        }
        let known = self.0.iter().position(|known| *known == remark);
        let index = known.unwrap_or(self.0.len());
        if known.is_none() {
            self.0.push(remark);
        }
        format!(" ({})", index + 1)
    }

    /// The remarks with their marks.
    pub(crate) fn footnotes(&self) -> impl Iterator<Item = String> {
        let all = self.0.iter().enumerate();
        all.map(|(index, remark)| format!("({}) {remark}", index + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_figures_have_a_footnote_and_the_same_one_where_the_same_is_odd() {
        let mut remarks = Remarks::default();
        assert_eq!(
            remarks.line("A.file.cache.0k.c1"),
            "WASD 5.2 210 req/s, 0.95 s (200 requests) [A.file.cache.0k.c1]"
        );
        assert_eq!(remarks.footnotes().count(), 0);
        assert_eq!(
            remarks.line("A.file.cache.64k.c1"),
            "WASD 5.2 43 req/s (1), 4.74 s (200 requests) [A.file.cache.64k.c1]"
        );
        assert_eq!(
            remarks.line("B.h1.tls.0k.c10"),
            "WASD 11.5 175 req/s (2), 0.58 MB/s (3), VMS Apache 46 req/s (2), 0.112 MB/s (4) \
             [B.h1.tls.0k.c10]"
        );
        let slip = |mark: u32, bytes: u32| {
            format!(
                "({mark}) probably ten times too high: a tenth of it is {bytes} bytes an answer, as \
                 other rows have"
            )
        };
        let footnotes: Vec<String> = remarks.footnotes().collect();
        assert_eq!(
            footnotes,
            [
                "(1) 200 requests in the printed 4.74 s are 42.2/s".to_owned(),
                "(2) fewer requests than at c1, unexplained in the original".to_owned(),
                slip(3, 348),
                slip(4, 255),
            ]
        );
    }
}
