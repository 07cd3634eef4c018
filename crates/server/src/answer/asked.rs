//! What the format of an access log asks for beside what every record has: taken from the head of
//! the request when it is over, and from that of its answer when that is made.

use hob_http::{Answered, Request, Response};
use hob_trace::ThreadCounters;
use hob_trace::format::{AskedValue, AskedValueWriter};

use crate::step::cookie::cookie;

/// Writes what is asked for, for [`hob_trace::Texts::asked`].
#[cold]
pub(super) fn write(
    values: &[AskedValue],
    request: &Request,
    counters: &ThreadCounters,
    out: &mut Vec<u8>,
) {
    let head = request.sent_head();
    let mut writer = AskedValueWriter::new(out, values.len());
    let noted = request.answer_values();
    let mut noted_index = 0;
    for value in values {
        match value {
            AskedValue::Header(name) if name.eq_ignore_ascii_case("host") => {
                writer.put(present(head.host()));
            }
            // It may hold what opens doors.
            AskedValue::Header(name) if name.eq_ignore_ascii_case("referer") => {
                writer.put(present(request.shown_referer()));
            }
            AskedValue::Header(name) => writer.put(head.values(name.as_bytes())),
            AskedValue::Cookie(name) => {
                writer.put(cookie(request, name.as_bytes()).into_iter());
            }
            AskedValue::Response(_) => {
                writer.put_again(&noted, noted_index);
                noted_index += 1;
            }
        }
    }
    let cut_count = writer.finish();
    if cut_count > 0 {
        counters.limit_log_value.add(cut_count);
    }
}

fn present(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    Some(value).filter(|value| !value.is_empty()).into_iter()
}

/// The same answer; what is asked of its head is noted when it is there.
#[cold]
pub(super) fn note_answer(
    values: &[AskedValue],
    request: &Request,
    answered: Answered,
) -> Answered {
    let names = values.iter().filter_map(|value| match value {
        AskedValue::Response(name) => Some(name.clone()),
        AskedValue::Header(_) | AskedValue::Cookie(_) => None,
    });
    let names: Vec<String> = names.collect();
    match answered {
        Answered::Ready(response) => {
            note(&names, request, &response);
            Answered::Ready(response)
        }
        Answered::Later(future) => {
            let request = request.clone();
            Answered::Later(Box::pin(async move {
                let response = future.await;
                note(&names, &request, &response);
                response
            }))
        }
    }
}

fn note(names: &[String], request: &Request, response: &Response) {
    let mut noted = request.answer_values_mut();
    let mut writer = AskedValueWriter::new(&mut noted, names.len());
    for name in names {
        let fields = response.fields().iter();
        let values = fields.filter(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()));
        writer.put(values.map(|(_, value)| value));
    }
    // What is cut here is counted where it is written.
    writer.finish();
}
