//! Write access to a registry: the account and its credentials.
//!
//! Everybody who reaches the port may read, as in a public registry; private images do not belong
//! in the served store. Writing requires the account's name and password as `Basic` credentials,
//! which `docker login` sends. The base of the API always requires them, because clients probe it
//! to find out whether to send credentials. A client without credentials continues and reads.

use crate::{digest::Digest, registry::RegistrySecret};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, header};

/// The name and the password for changes of a registry.
#[derive(Clone, Debug)]
pub struct Account {
    name: String,
    password: RegistrySecret,
}

/// The result of checking the credentials of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CredentialCheck {
    /// The request has no credentials.
    Nothing,
    /// The name or the password is wrong.
    Wrong,
    /// The credentials are those of the account.
    Account,
}

impl Account {
    /// An account with a random password.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn random(name: &str) -> std::io::Result<Self> {
        let mut random = [0_u8; 32];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let password = RegistrySecret::new(String::from(crate::digest::hex(&random)));
        Ok(Self { name: name.to_owned(), password })
    }

    /// A credentials file for these registries, as `docker login` and `podman login` write it.
    pub fn credentials_file(&self, registries: &[String]) -> String {
        let joined = STANDARD.encode(self.joined());
        let entry = serde_json::json!({ "auth": joined });
        let auths: serde_json::Map<_, _> =
            registries.iter().map(|registry| (registry.clone(), entry.clone())).collect();
        let mut text = serde_json::json!({ "auths": auths }).to_string();
        text.push('\n');
        text
    }

    fn joined(&self) -> String {
        format!("{}:{}", self.name, self.password.reveal())
    }

    /// Checks the credentials of a request.
    pub(super) fn check_credentials(&self, headers: &HeaderMap) -> CredentialCheck {
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return CredentialCheck::Nothing;
        };
        let basic = value.to_str().ok().and_then(|text| {
            let (scheme, rest) = text.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("basic").then_some(rest.trim())
        });
        let Some(sent) = basic.and_then(|text| STANDARD.decode(text).ok()) else {
            return CredentialCheck::Wrong;
        };
        // Containers' tools send this after a challenge if they have no credentials.
        if sent == b":" {
            return CredentialCheck::Nothing;
        }
        // Comparing digests hides the password from timing attacks.
        let same = Digest::of(&sent) == Digest::of(self.joined().as_bytes());
        if same { CredentialCheck::Account } else { CredentialCheck::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_the_name_and_password_of_the_account_are_accepted() {
        let account = Account::random("mainstay").unwrap();
        let other = Account::random("mainstay").unwrap();
        assert_ne!(account.joined(), other.joined());
        assert!(!format!("{account:?}").contains(account.password.reveal()));
        let shown = |value: &str| {
            let value = HeaderValue::from_str(value).unwrap();
            account.check_credentials(&HeaderMap::from_iter([(header::AUTHORIZATION, value)]))
        };
        assert_eq!(account.check_credentials(&HeaderMap::new()), CredentialCheck::Nothing);
        let good = STANDARD.encode(account.joined());
        for (value, wanted) in [
            (format!("Basic {good}"), CredentialCheck::Account),
            (format!("basic  {good} "), CredentialCheck::Account),
            (format!("Basic {}", STANDARD.encode(other.joined())), CredentialCheck::Wrong),
            (format!("Basic {}", STANDARD.encode("mainstay:")), CredentialCheck::Wrong),
            ("Basic Og==".to_owned(), CredentialCheck::Nothing),
            ("Basic !".to_owned(), CredentialCheck::Wrong),
            (format!("Bearer {good}"), CredentialCheck::Wrong),
            ("Basic".to_owned(), CredentialCheck::Wrong),
        ] {
            assert_eq!(shown(&value), wanted, "{value}");
        }
    }
}
