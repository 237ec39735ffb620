//! Continue tokens of lists: byte for byte those of kube-apiserver.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mainstay_object::Status;
use serde::{Deserialize, Serialize};

const VERSION: &str = "meta.k8s.io/v1";

/// The position at which a list continues.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ContinueToken {
    #[serde(default)]
    v: String,
    /// The revision of the list; a negative one continues in the current state.
    #[serde(default)]
    pub(super) rv: i64,
    /// The key after which the list continues, relative to the collection, followed by a zero byte.
    #[serde(default)]
    start: String,
}

impl ContinueToken {
    /// Encodes the token that continues after an object. `namespace` is empty when the list is of
    /// one namespace or of a cluster-scoped kind.
    pub(super) fn encode_after(revision: i64, namespace: &str, name: &str) -> String {
        let slash = if namespace.is_empty() { "" } else { "/" };
        let token = Self {
            v: VERSION.to_owned(),
            rv: revision,
            start: format!("/{namespace}{slash}{name}\0"),
        };
        // Strings and a number always encode.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    /// Parses a token; an invalid one gets 400 with kube-apiserver's text.
    pub(super) fn parse(text: &str) -> Result<Self, Status> {
        let refuse = |why: String| {
            Err(Status::bad_request(format!(
                "invalid continue token: continue key is not valid{why}"
            )))
        };
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(text) else {
            return refuse(format!(": illegal base64 data at input byte {}", invalid_byte(text)));
        };
        let Ok(token) = serde_json::from_slice::<Self>(&bytes) else {
            return refuse(format!(": {}", json_error(&bytes)));
        };
        if token.v != VERSION {
            return refuse(format!(": server does not recognize this encoded version {}", token.v));
        }
        if token.rv == 0 {
            return refuse(format!(
                ": incorrect encoded start resourceVersion (version {VERSION})"
            ));
        }
        if token.start.is_empty() {
            return refuse(format!(": encoded start key empty (version {VERSION})"));
        }
        let key = token.start.strip_prefix('/').unwrap_or(&token.start);
        if key.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            return refuse(format!(": {}", token.start));
        }
        Ok(token)
    }

    /// The namespace (empty unless the list is of all namespaces) and name after which the list
    /// continues.
    pub(super) fn position(&self, of_all_namespaces: bool) -> (&str, &str) {
        let key = self.start.strip_prefix('/').unwrap_or(&self.start);
        let key = key.strip_suffix('\0').unwrap_or(key);
        if of_all_namespaces { key.split_once('/').unwrap_or((key, "")) } else { ("", key) }
    }
}

/// The position of the invalid byte that Go's decoder reports.
fn invalid_byte(text: &str) -> usize {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match text.bytes().position(|byte| !is_base64(byte)) {
        Some(at) => at,
        // A single letter at the end encodes no byte.
        None => text.len().saturating_sub(1),
    }
}

/// The error of Go's JSON parser for the first byte.
fn json_error(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.trim_start().chars().next() {
        None => "unexpected end of JSON input".to_owned(),
        Some('{') => "json: cannot unmarshal".to_owned(),
        Some(first) => {
            format!("invalid character {first:?} looking for beginning of value")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_decodes_to_what_was_encoded() {
        for (namespace, name, all) in [("n", "a", true), ("", "a", false)] {
            let token =
                ContinueToken::parse(&ContinueToken::encode_after(7, namespace, name)).unwrap();
            assert_eq!((token.rv, token.position(all)), (7, (namespace, name)));
        }
        let text = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDUyLCJzdGFydCI6Ii9hXHUwMDAwIn0";
        assert_eq!(ContinueToken::encode_after(452, "", "a"), text);
    }

    #[test]
    fn an_invalid_token_is_refused_with_the_text_of_kube_apiserver() {
        let encoded = |text: &str| URL_SAFE_NO_PAD.encode(text);
        for (token, why) in [
            ("x".to_owned(), ": illegal base64 data at input byte 0"),
            ("ab%d".to_owned(), ": illegal base64 data at input byte 2"),
            (encoded("{}"), ": server does not recognize this encoded version "),
            (
                encoded(r#"{"v":"meta.k8s.io/v1"}"#),
                ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                encoded(r#"{"v":"meta.k8s.io/v1","rv":1}"#),
                ": encoded start key empty (version meta.k8s.io/v1)",
            ),
            (encoded(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#), ": ../a"),
            (encoded("nonsense"), ": invalid character 'n' looking for beginning of value"),
        ] {
            let message = ContinueToken::parse(&token).unwrap_err().message;
            assert_eq!(message, format!("invalid continue token: continue key is not valid{why}"));
        }
    }
}
