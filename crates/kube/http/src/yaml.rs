//! YAML bodies, as the API server reads them.

use mainstay_yaml::{DuplicateKeys, EmptyDocuments, NodeFault, Options, YamlError, YamlFault};
use serde_json::Value;
use std::fmt;

/// How much the aliases of a YAML body may add: twice what a body may have.
const MAX_ALIAS_BYTES: usize = 6 << 20;

/// A YAML body that cannot be read; the text has the form of Go's reader of YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlBodyError(YamlError);

impl std::error::Error for YamlBodyError {}

/// Reads the first document of YAML, as the original does; null if there is none.
///
/// # Errors
///
/// The body is no YAML, or its aliases add too much.
pub fn first_document(body: &[u8]) -> Result<(Value, Vec<String>), YamlBodyError> {
    let options = Options {
        duplicate_keys: DuplicateKeys::Note,
        empty: EmptyDocuments::Keep,
        max_alias_bytes: MAX_ALIAS_BYTES,
        ..Options::default()
    };
    match mainstay_yaml::documents(body, &options).next() {
        None => Ok((Value::Null, Vec::new())),
        Some(Ok(document)) => {
            let line = |one: mainstay_yaml::RepeatedKey| {
                format!("line {}: key {} already set in map", one.line, one.key)
            };
            Ok((document.value, document.repeated_keys.into_iter().map(line).collect()))
        }
        Some(Err(error)) => Err(YamlBodyError(error)),
    }
}

/// Go's reader of YAML counts the lines of its parser from zero and those of its scanner from one,
/// and names no line where it would be the first.
impl fmt::Display for YamlBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use NodeFault::{AliasOfItself, ExcessiveAliasing, UnknownAnchor};
        let YamlError { line, fault, .. } = &self.0;
        let nowhere = matches!(
            fault,
            YamlFault::Node(AliasOfItself { .. } | UnknownAnchor { .. } | ExcessiveAliasing)
        );
        let parser = match fault {
            YamlFault::BehindDocument => true,
            YamlFault::Syntax { message } => message.starts_with("did not find expected"),
            _ => false,
        };
        match line - usize::from(parser) {
            line if nowhere || line == 0 || (line == 1 && !parser) => write!(f, "yaml: {fault}"),
            line => write!(f, "yaml: line {line}: {fault}"),
        }
    }
}
