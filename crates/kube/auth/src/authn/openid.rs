//! `OpenID` Connect Discovery 1.0: the documents with which other systems verify our tokens.

use super::{Authenticator, ISSUER};
use serde_json::json;

/// The path of the keys.
pub const KEYS_PATH: &str = "/openid/v1/jwks";
/// The path of the configuration, which names the path of the keys.
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";

impl Authenticator {
    /// The document of [`CONFIGURATION_PATH`] for a server with this address (`host:port`).
    pub fn openid_configuration(&self, address: &str) -> String {
        let text = |value: &str| json!(value).to_string();
        format!(
            r#"{{"issuer":{},"jwks_uri":{},"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":{}}}"#,
            text(ISSUER),
            text(&format!("https://{address}{KEYS_PATH}")),
            json!(self.keys.algorithms()),
        )
    }

    /// The document of [`KEYS_PATH`].
    pub fn openid_keys(&self) -> String {
        self.keys.jwks()
    }
}
