//! How long an answer took so far, told to its client: `Server-Timing`.

use std::fmt::Write;

use hob_http::{Answered, Request, Response};

/// The same answer with the field.
pub(super) fn tell(request: &Request, answered: Answered) -> Answered {
    match answered {
        Answered::Ready(response) => Answered::Ready(with_field(request, response)),
        Answered::Later(future) => {
            let request = request.clone();
            Answered::Later(Box::pin(async move {
                let response = future.await;
                with_field(&request, response)
            }))
        }
    }
}

fn with_field(request: &Request, mut response: Response) -> Response {
    let total_us = request.age_us();
    let record = request.record();
    let mut value = String::new();
    for (name, us) in [
        ("queue", record.queue_us),
        ("start", record.start_us),
        ("program", record.program_us),
        ("disk", record.disk_wait_us),
    ] {
        if us > 0 {
            push(name, us, &mut value);
            value.push_str(", ");
        }
    }
    push("total", total_us, &mut value);
    // A program may say of its own parts what it likes.
    response
        .fields_mut()
        .add(b"Server-Timing", value.as_bytes());
    response
}

/// In milliseconds with three digits behind the point.
fn push(name: &str, us: u64, value: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(value, "{name};dur={}.{:03}", us / 1000, us % 1000);
}
