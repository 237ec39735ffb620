//! A manifest: one object of a bundle, with its file and line.

use crate::error::{BundleError, BundleProblem};
use mainstay_gocompat::json::{Html, Numbers};
use mainstay_schema::gojson::{Mismatch, ValuePathStep};
use serde_json::Value;
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

/// An object of the folder `manifests`: the first document of a file.
#[derive(Debug)]
pub struct Manifest {
    file: String,
    line: usize,
    value: Arc<Value>,
    source: Arc<Vec<u8>>,
    json: OnceLock<String>,
}

impl Manifest {
    pub(crate) fn new(
        file: String,
        line: usize,
        value: impl Into<Arc<Value>>,
        source: impl Into<Arc<Vec<u8>>>,
    ) -> Self {
        Self { file, line, value: value.into(), source: source.into(), json: OnceLock::new() }
    }

    /// The file, below the bundle's folder.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line (from 1) on which the object begins.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The object, for a caller that stores it.
    pub(crate) fn shared_value(&self) -> &Arc<Value> {
        &self.value
    }

    /// The bytes of the file.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// The object as JSON, byte for byte as upstream stores it: compact, keys sorted, escaped for
    /// HTML.
    pub fn json(&self) -> &str {
        self.json.get_or_init(|| {
            mainstay_gocompat::json::value(&self.value, Html::Escaped, Numbers::Object)
        })
    }

    /// `apiVersion`, if it is a text.
    pub fn api_version(&self) -> &str {
        self.value.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    /// `kind`, if it is a text.
    pub fn kind(&self) -> &str {
        self.value.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// Group and version of `apiVersion`; both empty if it has more than one slash.
    pub fn group_version(&self) -> (&str, &str) {
        let text = self.api_version();
        match text.split_once('/') {
            None => ("", text),
            Some((_, rest)) if rest.contains('/') => ("", ""),
            Some(both) => both,
        }
    }

    /// `metadata.name`, if it is a text.
    pub fn name(&self) -> &str {
        self.value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The line of a part of the object, or of its nearest parent that exists.
    pub(crate) fn line_of(&self, path: &[ValuePathStep]) -> Option<usize> {
        self.lines_of(std::iter::once(path)).pop().flatten()
    }

    /// As [`Manifest::line_of`] for many parts, in one pass over the text.
    pub(crate) fn lines_of<'p>(
        &self,
        paths: impl ExactSizeIterator<Item = &'p [ValuePathStep]>,
    ) -> Vec<Option<usize>> {
        let step = |step: &'p ValuePathStep| match step {
            ValuePathStep::Field(name) => mainstay_yaml::PathStep::Field(name),
            ValuePathStep::Item(at) => mainstay_yaml::PathStep::Item(*at),
        };
        let count = paths.len();
        if count == 0 {
            return Vec::new();
        }
        let paths: Vec<Vec<_>> = paths.map(|path| path.iter().map(step).collect()).collect();
        let Ok(text) = std::str::from_utf8(&self.source) else { return vec![None; count] };
        let places = mainstay_yaml::locate_all(text, &paths).into_iter();
        places.map(|place| place.map(|(line, _)| line).or(Some(self.line))).collect()
    }

    /// A problem of the object as a whole.
    pub(crate) fn problem(
        &self,
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> BundleProblem {
        BundleProblem {
            file: self.file.clone(),
            line: Some(self.line),
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// An error in a part of the object, with upstream's message.
    pub(crate) fn error(
        &self,
        message: impl Into<String>,
        path: &[ValuePathStep],
        remedy: impl Into<Cow<'static, str>>,
    ) -> BundleError {
        let message = message.into();
        let mut problem = self.problem(message.clone(), remedy);
        problem.line = self.line_of(path);
        BundleError::new(message, problem)
    }

    /// The error for a value that does not have its Go type, below `prefix`.
    pub(crate) fn type_error(&self, prefix: &[&str], mismatch: &Mismatch) -> BundleError {
        let mut path: Vec<ValuePathStep> =
            prefix.iter().map(|name| ValuePathStep::Field((*name).to_owned())).collect();
        path.extend_from_slice(&mismatch.path);
        self.error(mismatch.reason.to_string(), &path, "write a value of the type in the message")
    }
}
