//! The explanation for programs.

use super::answer::{self, CompressedCopy, HeaderField};

use super::told::{
    ExplainedAnswer, ExplainedProgram, ExplainedRoute, Explanation, Handler, Log, LogTarget, OnDisk,
};

/// Of the shape.
const VERSION: u32 = 1;

impl Explanation {
    /// For programs.
    pub fn told(&self) -> answer::Explanation {
        let listeners = self.listeners.iter().map(|one| answer::ExplainedListener {
            address: one.address.clone(),
            direct: one.is_direct,
            log: one.log.clone(),
        });
        answer::Explanation {
            version: VERSION,
            method: self.method.clone(),
            url: self.url.clone(),
            listeners: listeners.collect(),
            refused: self.refused.clone(),
            host: self.host.clone(),
            site: self.site.as_ref().map(|site| answer::ExplainedSite {
                index: site.index,
                names: site.names.clone(),
                by: site.by.to_owned(),
                why: site.why.clone(),
                place: site.place.clone(),
            }),
            path: self.path.as_ref().map(|path| answer::ExplainedPath {
                raw: path.raw.clone(),
                normal: path.normal.clone().ok(),
                refused: path.normal.clone().err(),
            }),
            routes: self.routes.iter().map(ExplainedRoute::told).collect(),
            rewrite: self
                .rewrite
                .as_ref()
                .map(|rewrite| answer::ExplainedRewrite {
                    to: rewrite.to.clone(),
                    path: rewrite.path.clone().ok(),
                    refused: rewrite.path.clone().err(),
                }),
            answered_as: self.answered_as.clone(),
            handler: self.handler.as_ref().map(Handler::told),
            file: self.disk.as_ref().map(OnDisk::told),
            program: self.program.as_ref().map(ExplainedProgram::told),
            rules: self.rules.clone(),
            verdict: self.verdict(),
            answer: self.answer.told(),
            body_bytes_max: self.body_bytes_max,
            log: self.log.as_ref().map(Log::told),
            notes: self.notes.clone(),
            lines: None,
        }
    }
}

impl ExplainedRoute {
    fn told(&self) -> answer::ExplainedRoute {
        answer::ExplainedRoute {
            index: self.index,
            path: self.path.clone(),
            place: self.place.clone(),
            matches: self.mismatch.is_none(),
            why_not: self.mismatch.clone(),
            skipped: self.is_skipped,
            captures: self.captures.iter().cloned().collect(),
        }
    }
}

impl Handler {
    fn told(&self) -> answer::ExplainedHandler {
        let settings = self.settings.iter();
        answer::ExplainedHandler {
            name: self.name.to_owned(),
            settings: settings.cloned().collect(),
        }
    }
}

impl OnDisk {
    fn told(&self) -> answer::ExplainedFile {
        let told = answer::ExplainedFile {
            outcome: self.outcome.word().to_owned(),
            path: self.path.to_string_lossy().into_owned(),
            why: self.why.clone(),
            ..answer::ExplainedFile::default()
        };
        let Some(file) = &self.file else {
            return told;
        };
        let copies = file.siblings.iter();
        let copies = copies.map(|(coding, path, bytes)| CompressedCopy {
            coding: (*coding).to_owned(),
            path: path.to_string_lossy().into_owned(),
            bytes: *bytes,
        });
        let on_demand = file.compressed_on_demand.iter();
        answer::ExplainedFile {
            bytes: Some(file.bytes),
            media_type: Some(file.media_type.clone()),
            fallback: Some(file.is_fallback),
            precompressed: Some(copies.collect()),
            compressed_on_demand: Some(on_demand.map(|coding| (*coding).to_owned()).collect()),
            ..told
        }
    }
}

impl ExplainedProgram {
    fn told(&self) -> answer::ExplainedProgram {
        let (script_name, path_info) = self.parts.clone().unzip();
        answer::ExplainedProgram {
            file: self.file.clone(),
            arguments: self.arguments.clone(),
            dir: self.dir.clone(),
            script_name,
            path_info,
        }
    }
}

impl ExplainedAnswer {
    fn told(&self) -> answer::ExplainedAnswer {
        let fields = self.fields.iter().map(|(name, value)| HeaderField {
            name: name.clone(),
            value: value.clone(),
        });
        answer::ExplainedAnswer {
            status: Some(self.status).filter(|status| *status != 0),
            fields: fields.collect(),
            body_bytes: self.body_bytes,
            reason: self.reason.clone(),
            own_error_page: self.is_own_error_page,
        }
    }
}

impl Log {
    fn told(&self) -> answer::ExplainedLog {
        let target = match &self.target {
            LogTarget::To(name) => Some(name.clone()),
            LogTarget::Off | LogTarget::ByListener => None,
        };
        answer::ExplainedLog {
            by: self.by.to_owned(),
            target,
        }
    }
}
