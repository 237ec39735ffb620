//! Error responses of registries, without the secrets of the request.

use super::{
    Inner, ListedError, RegistryError, RegistrySecret,
    send::{Repository, display_url},
};
use http::Response;
use hyper::body::Incoming;

impl Inner {
    /// The error for a response, with the text of the registry.
    pub(super) async fn response_error(
        &self,
        repository: &Repository,
        url: &str,
        answer: Response<Incoming>,
        secret: Option<&RegistrySecret>,
    ) -> RegistryError {
        let status = answer.status();
        let text = self.read_body(url, answer, 64 << 10).await.unwrap_or_default();
        let errors: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        // The registry may repeat a secret in its response.
        let login = self.settings.keyring.login(&repository.full).await.ok().flatten();
        let mut hidden: Vec<String> = Vec::new();
        hidden.extend(
            secret.map(|secret| {
                secret.reveal().split(' ').next_back().unwrap_or_default().to_owned()
            }),
        );
        hidden.extend(login.map(|login| login.secret().reveal().to_owned()));
        let shown = |text: &str| {
            let mut text = text.to_owned();
            for secret in hidden.iter().filter(|secret| !secret.is_empty()) {
                text = text.replace(secret.as_str(), "***");
            }
            text.chars().filter(|letter| !letter.is_control()).take(300).collect::<String>()
        };
        let listed = |error: &serde_json::Value| {
            let text = |name: &str| shown(error[name].as_str().unwrap_or_default());
            ListedError { code: text("code"), message: text("message") }
        };
        let list = errors["errors"].as_array().map(|list| list.iter().take(3).map(listed));
        let mut list: Vec<ListedError> = list.map(Iterator::collect).unwrap_or_default();
        let texts = list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let detail: String = texts.join("; ").chars().take(300).collect();
        let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
        list.truncate(1);
        let first = list.pop().unwrap_or_default();
        RegistryError::Status { url: display_url(url), status, detail, first }
    }
}
