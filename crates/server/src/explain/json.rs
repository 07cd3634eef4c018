//! The explanation for programs. The shape is stable: `version` moves when something in it changes
//! its meaning or goes.

use serde_json::{Value, json};

use super::told::{ExplainedProgram, Explanation, LogTarget, OnDisk, Setting};

/// Of the shape below.
const VERSION: u32 = 1;

impl Explanation {
    /// For programs; what does not apply is `null`.
    pub fn to_json(&self) -> Value {
        let listener = |one: &super::told::Listener| json!({ "address": one.address, "direct": one.is_direct, "log": one.log });
        let site = self.site.as_ref().map(|site| {
            json!({
                "index": site.index, "names": site.names, "by": site.by, "why": site.why,
                "place": site.place,
            })
        });
        let path = self.path.as_ref().map(|path| {
            json!({
                "raw": path.raw, "normal": path.normal.as_ref().ok(),
                "refused": path.normal.as_ref().err(),
            })
        });
        let route = |route: &super::told::ExplainedRoute| {
            let captures = route.captures.iter();
            let captures: serde_json::Map<_, _> = captures
                .map(|(name, text)| (name.clone(), json!(text)))
                .collect();
            json!({
                "index": route.index, "path": route.path, "place": route.place,
                "matches": route.mismatch.is_none(), "why_not": route.mismatch,
                "captures": captures,
            })
        };
        let rewrite = self.rewrite.as_ref().map(|rewrite| {
            json!({
                "to": rewrite.to, "path": rewrite.path.as_ref().ok(),
                "refused": rewrite.path.as_ref().err(),
            })
        });
        let handler = self.handler.as_ref().map(|handler| {
            let settings = handler.settings.iter();
            let settings: serde_json::Map<_, _> = settings
                .map(|(key, value)| ((*key).to_owned(), value.to_json()))
                .collect();
            json!({ "name": handler.name, "settings": settings })
        });
        json!({
            "version": VERSION,
            "method": self.method,
            "url": self.url,
            "listeners": self.listeners.iter().map(listener).collect::<Vec<_>>(),
            "refused": self.refused,
            "host": self.host,
            "site": site,
            "path": path,
            "routes": self.routes.iter().map(route).collect::<Vec<_>>(),
            "rewrite": rewrite,
            "answered_as": self.answered_as,
            "handler": handler,
            "file": self.disk.as_ref().map(OnDisk::to_json),
            "program": self.program.as_ref().map(ExplainedProgram::to_json),
            "answer": self.answer.to_json(),
            "body_bytes_max": self.body_bytes_max,
            "log": self.log_json(),
            "notes": self.notes,
        })
    }

    fn log_json(&self) -> Value {
        let Some(log) = &self.log else {
            return Value::Null;
        };
        let target = match &log.target {
            LogTarget::To(name) => Some(name),
            LogTarget::Off | LogTarget::ByListener => None,
        };
        json!({ "by": log.by, "target": target })
    }
}

impl super::told::ExplainedAnswer {
    fn to_json(&self) -> Value {
        let fields = self.fields.iter();
        let fields: Vec<Value> = fields
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        json!({
            "status": (self.status != 0).then_some(self.status), "fields": fields, "body_bytes": self.body_bytes,
            "reason": self.reason, "own_error_page": self.is_own_error_page,
        })
    }
}

impl OnDisk {
    fn to_json(&self) -> Value {
        let mut json = json!({
            "outcome": self.outcome.word(),
            "path": self.path.to_string_lossy(),
            "why": self.why,
        });
        if let Some(file) = &self.file {
            let siblings = file.siblings.iter();
            let siblings = siblings.map(|(coding, path, bytes)| {
                json!({ "coding": coding, "path": path.to_string_lossy(), "bytes": bytes })
            });
            json["bytes"] = json!(file.bytes);
            json["media_type"] = json!(file.media_type);
            json["fallback"] = json!(file.is_fallback);
            json["precompressed"] = siblings.collect();
            json["compressed_on_demand"] = json!(file.compressed_on_demand);
        }
        json
    }
}

impl ExplainedProgram {
    fn to_json(&self) -> Value {
        let parts = self.parts.as_ref();
        json!({
            "file": self.file,
            "arguments": self.arguments,
            "dir": self.dir,
            "script_name": parts.map(|(name, _)| name),
            "path_info": parts.map(|(_, info)| info),
        })
    }
}

impl Setting {
    fn to_json(&self) -> Value {
        match self {
            Setting::Flag(flag) => json!(flag),
            Setting::Number(number) => json!(number),
            Setting::Text(text) => json!(text),
            Setting::Texts(texts) => json!(texts),
        }
    }
}
