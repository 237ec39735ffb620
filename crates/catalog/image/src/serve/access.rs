//! Who may change what a registry has: whoever knows its account.
//!
//! Reading is for everybody who reaches the port, as in a public registry; what is not for everybody
//! is not put into the store that is served. Writing needs the account's name and password, sent as
//! `Basic` as `docker login` does. The base of the API asks for them in any case, because clients look
//! there whether they are to send them at all; one that has none goes on without and reads.

use crate::{digest::Digest, registry::Secret};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, header};

/// The name and the password with which a registry may be changed.
#[derive(Clone, Debug)]
pub struct Account {
    name: String,
    password: Secret,
}

/// What a request says of whoever sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing.
    Nothing,
    /// A name or a password that is not the account's.
    Wrong,
    /// The account.
    Account,
}

impl Account {
    /// An account with a password that nobody can guess.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn random(name: &str) -> std::io::Result<Self> {
        let mut random = [0_u8; 32];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let password = Secret::new(String::from(crate::digest::hex(&random)));
        Ok(Self { name: name.to_owned(), password })
    }

    /// A file of credentials for these registries, as `docker login` and `podman login` write it.
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

    /// What a request shows.
    pub(super) fn credentials(&self, headers: &HeaderMap) -> Shown {
        let Some(value) = headers.get(header::AUTHORIZATION) else { return Shown::Nothing };
        let basic = value.to_str().ok().and_then(|text| {
            let (scheme, rest) = text.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("basic").then_some(rest.trim())
        });
        let Some(sent) = basic.and_then(|text| STANDARD.decode(text).ok()) else {
            return Shown::Wrong;
        };
        // What containers' tools send that were asked and know nothing.
        if sent == b":" {
            return Shown::Nothing;
        }
        // Digests are compared, so that how long it takes says nothing of the password.
        let same = Digest::of(&sent) == Digest::of(self.joined().as_bytes());
        if same { Shown::Account } else { Shown::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_the_name_and_password_of_the_account_are_the_account() {
        let account = Account::random("mainstay").unwrap();
        let other = Account::random("mainstay").unwrap();
        assert_ne!(account.joined(), other.joined());
        assert!(!format!("{account:?}").contains(account.password.reveal()));
        let shown = |value: &str| {
            let value = HeaderValue::from_str(value).unwrap();
            account.credentials(&HeaderMap::from_iter([(header::AUTHORIZATION, value)]))
        };
        assert_eq!(account.credentials(&HeaderMap::new()), Shown::Nothing);
        let good = STANDARD.encode(account.joined());
        for (value, wanted) in [
            (format!("Basic {good}"), Shown::Account),
            (format!("basic  {good} "), Shown::Account),
            (format!("Basic {}", STANDARD.encode(other.joined())), Shown::Wrong),
            (format!("Basic {}", STANDARD.encode("mainstay:")), Shown::Wrong),
            ("Basic Og==".to_owned(), Shown::Nothing),
            ("Basic !".to_owned(), Shown::Wrong),
            (format!("Bearer {good}"), Shown::Wrong),
            ("Basic".to_owned(), Shown::Wrong),
        ] {
            assert_eq!(shown(&value), wanted, "{value}");
        }
    }
}
