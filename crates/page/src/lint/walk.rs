//! Visits everything that stands in a file.

use crate::tree::{
    BodyNode, Call, Condition, Declaration, DefineEntry, DefineValue, FunctionBody, Name, Operand,
    Page, PageContents,
};

type Visit<'v> = &'v mut dyn FnMut(&BodyNode);

/// Visits every node of a file, with those inside strings, arguments and conditions.
pub(super) fn nodes(page: &Page, visit: Visit<'_>) {
    match &page.contents {
        PageContents::Declarations(declarations) => self::declarations(declarations, visit),
        PageContents::Body(body) => self::body(body, visit),
    }
    for function in &page.functions {
        if let FunctionBody::Statements(nodes) | FunctionBody::Exec(nodes) = &function.body {
            body(nodes, visit);
        }
        for report in &function.reports {
            body(&report.header, visit);
            report.row.iter().for_each(|row| body(row, visit));
            body(&report.footer, visit);
        }
        for message in &function.messages {
            body(&message.text, visit);
        }
    }
}

fn declarations(all: &[Declaration], visit: Visit<'_>) {
    for declaration in all {
        match declaration {
            Declaration::Define { entries, .. } => {
                entries.iter().for_each(|entry| define(entry, visit));
            }
            Declaration::Message(entries) => {
                entries.iter().for_each(|entry| body(&entry.text, visit));
            }
            Declaration::Entry(entry) => body(&entry.body, visit),
            Declaration::Include { file, .. } => body(file, visit),
            Declaration::If(node) => {
                for (condition, inner) in &node.arms {
                    self::condition(condition, visit);
                    declarations(inner, visit);
                }
                node.otherwise
                    .iter()
                    .for_each(|inner| declarations(inner, visit));
            }
            // A call among declarations is no node of a body, but its arguments have some.
            Declaration::Call(call) => arguments(call, visit),
            Declaration::Function(_) | Declaration::IncludeUrl { .. } => {}
        }
    }
}

/// Calls among declarations, which no body holds.
pub(super) fn declared_calls<'p>(all: &'p [Declaration], visit: &mut dyn FnMut(&'p Call)) {
    for declaration in all {
        match declaration {
            Declaration::Call(call) => visit(call),
            Declaration::If(node) => {
                let inner = node.arms.iter().map(|(_, inner)| inner);
                inner
                    .chain(&node.otherwise)
                    .for_each(|inner| declared_calls(inner, visit));
            }
            _ => {}
        }
    }
}

fn define(entry: &DefineEntry, visit: Visit<'_>) {
    match entry {
        DefineEntry::Variable { value, .. } => match value {
            DefineValue::Text(nodes) | DefineValue::Exec(nodes) => body(nodes, visit),
            DefineValue::Conditional(conditional) => {
                conditional
                    .test
                    .iter()
                    .for_each(|test| operand(test, visit));
                body(&conditional.then, visit);
                conditional
                    .otherwise
                    .iter()
                    .for_each(|other| body(other, visit));
            }
            DefineValue::Table(_) | DefineValue::Environment => {}
        },
        DefineEntry::List { separator, .. } => body(separator, visit),
        DefineEntry::Include { file, .. } => body(file, visit),
    }
}

pub(super) fn body(nodes: &[BodyNode], visit: Visit<'_>) {
    for node in nodes {
        visit(node);
        match node {
            BodyNode::Reference {
                name: Name::Computed(inner),
                ..
            } => body(inner, visit),
            BodyNode::Call(call) => arguments(call, visit),
            BodyNode::If(node) => {
                for (condition, inner) in &node.arms {
                    self::condition(condition, visit);
                    body(inner, visit);
                }
                node.otherwise.iter().for_each(|inner| body(inner, visit));
            }
            BodyNode::While(node) => {
                condition(&node.condition, visit);
                body(&node.body, visit);
            }
            BodyNode::Include { file, .. } => body(file, visit),
            _ => {}
        }
    }
}

fn arguments(call: &Call, visit: Visit<'_>) {
    call.arguments
        .iter()
        .for_each(|argument| operand(argument, visit));
}

fn operand(operand: &Operand, visit: Visit<'_>) {
    if let Operand::Value { body: nodes, .. } = operand {
        body(nodes, visit);
    }
}

fn condition(all: &Condition, visit: Visit<'_>) {
    match all {
        Condition::Any(inner) | Condition::All(inner) => {
            inner.iter().for_each(|inner| condition(inner, visit));
        }
        Condition::Not(inner) => condition(inner, visit),
        Condition::Holds(term) => operand(term, visit),
        Condition::Compares(left, _, right) => {
            operand(left, visit);
            operand(right, visit);
        }
    }
}
