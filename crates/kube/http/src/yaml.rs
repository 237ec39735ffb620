//! YAML request bodies.

use mainstay_yaml::{DuplicateKeys, EmptyDocuments, NodeFault, Options, YamlError, YamlFault};
use serde_json::Value;
use std::fmt;

/// How many bytes the aliases of a YAML body may add: twice the limit of a body.
const MAX_ALIAS_BYTES: usize = 6 << 20;

/// A YAML body that does not parse; the text has the form of Go's YAML parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlBodyError(YamlError);

impl std::error::Error for YamlBodyError {}

/// Parses the first document of a YAML body, as kube-apiserver does; null if the body has none.
///
/// # Errors
///
/// The body is no YAML, or its aliases add too many bytes.
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
            let line = |key: mainstay_yaml::RepeatedKey| {
                format!("line {}: key {} already set in map", key.line, key.key)
            };
            Ok((document.value, document.repeated_keys.into_iter().map(line).collect()))
        }
        Some(Err(error)) => Err(YamlBodyError(error)),
    }
}

/// Go's YAML parser counts the lines of its parser from zero and those of its scanner from one. It
/// omits the number of the first line.
impl fmt::Display for YamlBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use NodeFault::{AliasOfItself, ExcessiveAliasing, UnknownAnchor};
        let YamlError { line, fault, .. } = &self.0;
        let has_no_line = matches!(
            fault,
            YamlFault::Node(AliasOfItself { .. } | UnknownAnchor { .. } | ExcessiveAliasing)
        );
        let is_parser_fault = match fault {
            YamlFault::BehindDocument => true,
            YamlFault::Syntax { message } => message.starts_with("did not find expected"),
            _ => false,
        };
        match line - usize::from(is_parser_fault) {
            line if has_no_line || line == 0 || (line == 1 && !is_parser_fault) => {
                write!(f, "yaml: {fault}")
            }
            line => write!(f, "yaml: line {line}: {fault}"),
        }
    }
}
