//! YAML bodies, as the API server reads them.

use mainstay_yaml::{DuplicateKeys, EmptyDocuments, NodeFault, Options, YamlError, YamlFault};
use serde_json::Value;

/// How much the aliases of a YAML body may add: twice what a body may have.
const MAX_ALIAS_BYTES: usize = 6 << 20;

/// Reads the first document of YAML, as the original does; null if there is none.
pub fn first_document(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let options = Options {
        duplicate_keys: DuplicateKeys::Note,
        empty: EmptyDocuments::Keep,
        max_alias_bytes: MAX_ALIAS_BYTES,
        ..Options::default()
    };
    match mainstay_yaml::documents(body, &options).next() {
        None => Ok((Value::Null, Vec::new())),
        Some(Ok(document)) => {
            let line = |one: mainstay_yaml::Repeated| {
                format!("line {}: key {} already set in map", one.line, one.key)
            };
            Ok((document.value, document.repeated.into_iter().map(line).collect()))
        }
        Some(Err(error)) => Err(go_yaml(&error)),
    }
}

/// A refusal in the form of Go's reader of YAML, which counts the lines of its parser from zero and
/// those of its scanner from one, and names no line where it would be the first.
fn go_yaml(error: &YamlError) -> String {
    use NodeFault::{AliasOfItself, ExcessiveAliasing, UnknownAnchor};
    let message = &error.fault;
    let nowhere = matches!(
        message,
        YamlFault::Node(AliasOfItself { .. } | UnknownAnchor { .. } | ExcessiveAliasing)
    );
    let parser = match message {
        YamlFault::BehindDocument => true,
        YamlFault::Syntax { words } => words.starts_with("did not find expected"),
        _ => false,
    };
    match error.line - usize::from(parser) {
        line if nowhere || line == 0 || (line == 1 && !parser) => format!("yaml: {message}"),
        line => format!("yaml: line {line}: {message}"),
    }
}
