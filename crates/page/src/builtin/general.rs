//! Dates, cookies, the environment, transactions and visits.

use crate::fault::FunctionFault;
use crate::host::CivilTime;
use crate::value::Text;

use super::call::{Answer, BuiltInCall, bad_value};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

fn done() -> Answer {
    Ok(Text::new())
}

/// Days before the month, and whether the year has a leap day.
fn day_of_year(time: &CivilTime) -> u32 {
    const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let year = u32::from(time.year);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month = usize::from(time.month.clamp(1, 12)) - 1;
    BEFORE[month] + u32::from(time.day) + u32::from(is_leap && month > 1)
}

/// Sunday is 0.
fn weekday(time: &CivilTime) -> usize {
    let before = u32::from(time.year).saturating_sub(1);
    let days = before * 365 + before / 4 - before / 100 + before / 400 + day_of_year(time);
    (days % 7) as usize
}

pub(super) fn date(call: &mut BuiltInCall<'_>) -> Answer {
    let time = call.services.host().clock.civil();
    let (year, month, day) = (time.year, time.month, time.day);
    let name = MONTHS[usize::from(month.clamp(1, 12)) - 1];
    let short = year % 100;
    Ok(Text::of_macro(match call.option(0, b'N') {
        b'N' => format!("{day:02} {} {year}", &name[..3]),
        b'D' => day_of_year(&time).to_string(),
        b'E' => format!("{day:02}/{month:02}/{short:02}"),
        b'M' => name.to_string(),
        b'O' => format!("{short:02}/{month:02}/{day:02}"),
        b'S' => format!("{year}{month:02}{day:02}"),
        b'U' => format!("{month:02}/{day:02}/{short:02}"),
        b'W' => WEEKDAYS[weekday(&time)].to_string(),
        _ => return bad_value("the form of the date is none of N D E M O S U W"),
    }))
}

pub(super) fn time(call: &mut BuiltInCall<'_>) -> Answer {
    let time = call.services.host().clock.civil();
    let (hour, minute, second) = (time.hour, time.minute, time.second);
    let micros = time.micros;
    Ok(Text::of_macro(match call.option(0, b'N') {
        b'N' => format!("{hour:02}:{minute:02}:{second:02}"),
        b'C' => {
            let half = if hour < 12 { "am" } else { "pm" };
            format!("{}:{minute:02}{half}", (hour + 11) % 12 + 1)
        }
        b'L' => format!("{hour:02}:{minute:02}:{second:02}.{micros:06}"),
        b'X' => format!("{hour:02}:{minute:02}:{second:02}.{:03}", micros / 1000),
        _ => return bad_value("the form of the time is none of N C L X"),
    }))
}

pub(super) fn exit(call: &mut BuiltInCall<'_>) -> Answer {
    call.services.exit();
    done()
}

pub(super) fn environment(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(call.services.environment(call.text(0).bytes()))
}

pub(super) fn setenv(call: &mut BuiltInCall<'_>) -> Answer {
    let (name, value) = (call.text(0), call.text(1));
    call.services.set_environment(name.bytes(), value);
    done()
}

pub(super) fn getinidata(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(call.services.ini(call.text(0).bytes()))
}

pub(super) fn getcookie(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(call.services.cookie(call.text(0).bytes()))
}

/// Makes a `Set-Cookie` field. Its value is percent-encoded where the field could not hold it.
pub(super) fn setcookie(call: &mut BuiltInCall<'_>) -> Answer {
    let (name, value, options) = (call.string(0), call.text(1), call.string(2));
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return bad_value("a cookie's name is letters, digits and signs");
    }
    let mut cookie = format!("{name}=");
    for byte in value.bytes() {
        match byte {
            b'!' | b'#'..=b'+' | b'-'..=b':' | b'<'..=b'[' | b']'..=b'~' => {
                cookie.push(char::from(*byte));
            }
            _ => cookie += &format!("%{byte:02X}"),
        }
    }
    for option in options.split(';').map(str::trim).filter(|o| !o.is_empty()) {
        let word = option.split('=').next().unwrap_or_default().trim();
        let known = [
            "expires", "path", "domain", "secure", "httponly", "samesite", "max-age",
        ];
        let is_known = known.iter().any(|known| known.eq_ignore_ascii_case(word));
        if !is_known || option.bytes().any(|byte| !(b' '..0x7f).contains(&byte)) {
            return bad_value(format!("{word:?} is no option of a cookie"));
        }
        cookie += "; ";
        cookie += option;
    }
    call.services.set_cookie(cookie)?;
    done()
}

/// Pages are not kept by their own wish; the server's cache has its own rules.
pub(super) fn cache_page(_: &mut BuiltInCall<'_>) -> Answer {
    done()
}

pub(super) fn sendmail(_: &mut BuiltInCall<'_>) -> Answer {
    Err(FunctionFault::new(
        -1,
        "it is not there: pages send no mail; give the message to a program that does",
    ))
}

pub(super) fn commit(call: &mut BuiltInCall<'_>) -> Answer {
    call.services.commit()?;
    done()
}

pub(super) fn rollback(call: &mut BuiltInCall<'_>) -> Answer {
    call.services.rollback()?;
    done()
}

fn seconds(call: &BuiltInCall<'_>, index: usize) -> Result<Option<u64>, FunctionFault> {
    match call.has(index) {
        true => Ok(Some(call.count(index)? as u64)),
        false => Ok(None),
    }
}

/// `@DTW_STATIC`, whose name is a word of Rust.
pub(super) fn keep(call: &mut BuiltInCall<'_>) -> Answer {
    let seconds = seconds(call, 0)?;
    call.services.host().visits.keep(seconds)?;
    call.services.set_lasting(true);
    done()
}

pub(super) fn rtvhandle(call: &mut BuiltInCall<'_>) -> Answer {
    let handle = call.services.host().visits.handle()?;
    Ok(Text::of_macro(handle))
}

pub(super) fn accept(call: &mut BuiltInCall<'_>) -> Answer {
    let seconds = seconds(call, 1)?;
    let handle = call.text(0);
    call.services
        .host()
        .visits
        .accept(handle.bytes(), seconds)?;
    call.services.tell_visit();
    done()
}

pub(super) fn terminate(call: &mut BuiltInCall<'_>) -> Answer {
    call.services.host().visits.terminate()?;
    call.services.tell_visit();
    // The run commits at its end, as any other.
    call.services.set_lasting(false);
    done()
}
