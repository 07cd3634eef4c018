//! The list of cases, and whether an answer is what a case wants.

use serde_json::Value;

use crate::asking::Got;
use crate::harness::library::root;
use crate::ways::Way;

/// One line of the list.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) claim: String,
    pub(crate) request: Asked,
    /// What the interface must have.
    pub(crate) needs: Vec<String>,
    answer: Wanted,
    /// The answer where a failure takes the request's process with it, if that differs.
    process: Option<Wanted>,
}

/// What the client sends.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) is_chunked: bool,
}

struct Wanted {
    status: u64,
    fields: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    trailers: Vec<(String, String)>,
    infos: Vec<(u64, Vec<(String, String)>)>,
    is_broken: bool,
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    let path = root().join("lang/probe/cases.json");
    let list: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    list["cases"].as_array().unwrap().iter().map(case).collect()
}

fn case(value: &Value) -> Case {
    let request = &value["request"];
    let path = request["path"].as_str().unwrap();
    let target = match request["query"].as_str() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    Case {
        name: value["name"].as_str().unwrap().to_owned(),
        claim: value["claim"].as_str().unwrap().to_owned(),
        needs: texts(&value["needs"]),
        request: Asked {
            method: request["method"].as_str().unwrap().to_owned(),
            target,
            fields: pairs(&request["headers"]),
            body: bytes(&request["body"]),
            is_chunked: request["chunked"].as_bool().unwrap_or(false),
        },
        answer: wanted(&value["answer"]),
        process: value.get("process").map(wanted),
    }
}

fn wanted(answer: &Value) -> Wanted {
    let infos = answer["infos"].as_array().into_iter().flatten();
    Wanted {
        status: answer["status"].as_u64().unwrap(),
        fields: pairs(&answer["headers"]),
        body: bytes(&answer["body"]),
        trailers: pairs(&answer["trailers"]),
        infos: infos
            .map(|info| (info[0].as_u64().unwrap(), pairs(&info[1])))
            .collect(),
        is_broken: answer["broken"].as_bool().unwrap_or(false),
    }
}

impl Case {
    /// Its answer breaks off, how much of it there is before that is up to chance.
    pub(crate) fn breaks_off(&self) -> bool {
        self.answer.is_broken
    }

    /// What is wrong with an answer.
    pub(crate) fn judge(&self, got: &Got, way: &Way) -> Result<(), String> {
        let process = self.process.as_ref().filter(|_| way.dies_with_request());
        let wanted = process.unwrap_or(&self.answer);
        if wanted.is_broken {
            return wanted.judge_broken(got);
        }
        same("status", &u64::from(got.status), &wanted.status)?;
        wanted.judge_fields(got)?;
        if let Some(body) = &wanted.body {
            same_bytes(&got.body, body)?;
        }
        same("it ended as its framing says", &got.is_whole, &true)?;
        same("trailers", &got.trailers, &in_lower_case(&wanted.trailers))?;
        let infos = wanted.infos.iter();
        let infos: Vec<_> = infos
            .map(|(status, fields)| (*status as u16, in_lower_case(fields)))
            .collect();
        same("informational answers", &got.infos, &infos)
    }
}

impl Wanted {
    /// The client can tell: it breaks off within the body; or nothing of it had left when the
    /// program failed (500) or died (502).
    fn judge_broken(&self, got: &Got) -> Result<(), String> {
        if matches!(got.status, 500 | 502) {
            return Ok(());
        }
        same("status", &u64::from(got.status), &self.status)?;
        self.judge_fields(got)?;
        same("it ended as its framing says", &got.is_whole, &false)?;
        let body = self.body.as_deref().unwrap_or_default();
        if !body.starts_with(&got.body) {
            return same_bytes(&got.body, body);
        }
        Ok(())
    }

    /// Each name has exactly the values it should have, in their order.
    fn judge_fields(&self, got: &Got) -> Result<(), String> {
        let wanted = in_lower_case(&self.fields);
        for (name, _) in &wanted {
            let of_name = |fields: &[(String, String)]| -> Vec<String> {
                let of_name = fields.iter().filter(|(other, _)| other == name);
                of_name.map(|(_, value)| value.clone()).collect()
            };
            same(name, &of_name(&got.fields), &of_name(&wanted))?;
        }
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, wanted: &T) -> Result<(), String> {
    match got == wanted {
        true => Ok(()),
        false => Err(format!("{what}: {got:?}, not {wanted:?}")),
    }
}

fn same_bytes(got: &[u8], wanted: &[u8]) -> Result<(), String> {
    if got == wanted {
        return Ok(());
    }
    let shown = |bytes: &[u8]| {
        let start = &bytes[..bytes.len().min(120)];
        format!("{} bytes {:?}", bytes.len(), String::from_utf8_lossy(start))
    };
    let at = got.iter().zip(wanted).position(|(one, other)| one != other);
    let at = at.unwrap_or(got.len().min(wanted.len()));
    Err(format!(
        "body: {}, not {}; they differ at {at}",
        shown(got),
        shown(wanted)
    ))
}

fn in_lower_case(fields: &[(String, String)]) -> Vec<(String, String)> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| (name.to_lowercase(), value.clone()))
        .collect()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    let pairs = value.as_array().into_iter().flatten().map(texts);
    pairs
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect()
}

/// A body of the list.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    if let Some(text) = value.as_str() {
        return Some(text.as_bytes().to_vec());
    }
    if let Some(hex) = value["hex"].as_str() {
        let pairs = hex.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        return Some(pairs.map(byte).collect());
    }
    let (text, count) = (value["repeat"].as_str()?, value["bytes"].as_u64()? as usize);
    let mut bytes = text.repeat(count / text.len() + 1).into_bytes();
    bytes.truncate(count);
    Some(bytes)
}
