//! Server-sent events, from bytes as they come.
//!
//! ```text
//! event: NAME      the next event's name; `message` when none is given
//! data: LINE       more than once for more lines
//! : anything       a comment, which only keeps the connection alive
//!                  an empty line ends the event
//! ```
//!
//! A line ends with CR, LF or both. What has no data is no event. Nothing of this crate is used
//! here: a fuzz target takes the file as it is.

/// Bytes of an event that are kept; a line that is longer ends the stream.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSentEvent {
    /// What kind it is.
    pub(crate) name: String,
    /// Its lines.
    pub(crate) data: String,
}

/// An event is longer than what is read of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Reads events.
#[derive(Debug, Default)]
pub(crate) struct EventStream {
    /// The line that has begun.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// The last byte was a CR: an LF now belongs to it.
    after_return: bool,
    /// A line has ended: a byte order mark may not come any more.
    has_begun: bool,
}

impl EventStream {
    /// Takes bytes as they came and gives the events that they end.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<ServerSentEvent>,
    ) -> Result<(), TooLong> {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            let (text, end) = match piece {
                [text @ .., end @ (b'\r' | b'\n')] => (text, Some(*end)),
                text => (text, None),
            };
            let is_rest = self.after_return && text.is_empty() && end == Some(b'\n');
            self.after_return = end == Some(b'\r');
            if is_rest {
                continue;
            }
            if self.line.len() + self.data.len() + text.len() > EVENT_BYTES_MAX {
                return Err(TooLong);
            }
            self.line.extend_from_slice(text);
            if end.is_some() {
                self.end_line(events);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<ServerSentEvent>) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = match self.has_begun {
            true => text.as_ref(),
            false => text.strip_prefix('\u{feff}').unwrap_or(&text),
        };
        self.has_begun = true;
        if text.is_empty() {
            self.end_event(events);
            return;
        }
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            // Comments have no name; `id` and `retry` are for those who come back.
            _ => {}
        }
    }

    fn end_event(&mut self, events: &mut Vec<ServerSentEvent>) {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            let name = match name.is_empty() {
                true => "message".to_owned(),
                false => name,
            };
            events.push(ServerSentEvent { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, cut: usize) -> Vec<(String, String)> {
        let mut stream = EventStream::default();
        let mut events = Vec::new();
        stream.read(&text.as_bytes()[..cut], &mut events).unwrap();
        stream.read(&text.as_bytes()[cut..], &mut events).unwrap();
        let pair = |event: ServerSentEvent| (event.name, event.data);
        events.into_iter().map(pair).collect()
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let text = "\u{feff}event: event\ndata: {\"a\":1}\n\n: alive\n\ndata:x\ndata: y\r\n\
                    id: 7\r\rdata\n\nevent: gone\n\ndata: half";
        let wanted = [
            event("event", "{\"a\":1}"),
            event("message", "x\ny"),
            event("message", ""),
        ];
        for cut in 0..=text.len() {
            if text.is_char_boundary(cut) {
                assert_eq!(read(text, cut), wanted, "cut at {cut}");
            }
        }
    }

    #[test]
    fn event_longer_than_its_limit_ends_the_stream() {
        let mut stream = EventStream::default();
        let mut events = Vec::new();
        let line = format!("data: {}\n", "x".repeat(1_000_000));
        for _ in 0..4 {
            assert_eq!(stream.read(line.as_bytes(), &mut events), Ok(()));
        }
        assert_eq!(stream.read(line.as_bytes(), &mut events), Err(TooLong));
        let mut stream = EventStream::default();
        let endless = vec![b'x'; EVENT_BYTES_MAX + 1];
        assert_eq!(stream.read(&endless, &mut events), Err(TooLong));
        assert_eq!(events, []);
    }
}
