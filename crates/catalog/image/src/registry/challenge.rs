//! Authentication challenges of registries, and the tokens for them.

use super::{RegistryError, RegistrySecret};
use mainstay_clock::{Clock, Stamp};
use parking_lot::Mutex;
use std::{collections::BTreeMap, time::Duration};

/// The challenge of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// Parses `WWW-Authenticate` headers. Bearer is preferred, because it does not send the password to
/// the registry.
pub(super) fn read<'h>(values: impl Iterator<Item = &'h str>) -> Option<Challenge> {
    let mut basic = None;
    for value in values.take(8) {
        let mut rest = value.trim();
        while !rest.is_empty() && rest.len() <= 8192 {
            let (scheme, tail) = rest.split_once(' ').unwrap_or((rest, ""));
            let (parameters, tail) = parameters(tail);
            rest = tail;
            if scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Challenge::Basic);
            } else if scheme.eq_ignore_ascii_case("bearer")
                && let Some(realm) = parameters.get("realm")
            {
                let one = |name: &str| parameters.get(name).cloned();
                let (service, scope) = (one("service"), one("scope"));
                return Some(Challenge::Bearer { realm: realm.clone(), service, scope });
            }
        }
    }
    basic
}

/// Parses `name="value", name=value`. Returns the rest of the text: the next scheme.
fn parameters(mut text: &str) -> (BTreeMap<String, String>, &str) {
    let mut found = BTreeMap::new();
    loop {
        text = text.trim_start_matches([' ', ',', '\t']);
        let Some((name, rest)) = text.split_once('=') else { return (found, "") };
        let name = name.trim();
        if name.contains(' ') || name.is_empty() {
            // A scheme, as in `Basic realm=…`.
            return (found, text);
        }
        let (value, rest) = if let Some(quoted) = rest.strip_prefix('"') {
            let (mut value, mut escaped, mut end) = (String::new(), false, quoted.len());
            for (place, letter) in quoted.char_indices() {
                match letter {
                    _ if escaped => {
                        value.push(letter);
                        escaped = false;
                    }
                    '\\' => escaped = true,
                    '"' => {
                        end = place;
                        break;
                    }
                    _ => value.push(letter),
                }
            }
            (value, quoted.get(end + 1..).unwrap_or_default())
        } else {
            let end = rest.find([',', ' ']).unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        };
        found.insert(name.to_lowercase(), value);
        text = rest;
    }
}

/// Tokens by host, repository and access.
#[derive(Default)]
pub(super) struct Tokens {
    known: Mutex<BTreeMap<Key, CachedToken>>,
}

/// A value for `Authorization`, the time of its issue, and its lifetime. Both clocks decide on
/// expiry: the issuer counts wall-clock time, and this machine may have been suspended.
struct CachedToken {
    secret: RegistrySecret,
    since: Stamp,
    good: Duration,
}

/// Host, repository, and whether it allows writing.
pub(super) type Key = (String, String, bool);

impl Tokens {
    /// A value for `Authorization` that has not expired.
    pub(super) fn get(&self, key: &Key, clock: Clock) -> Option<RegistrySecret> {
        let mut known = self.known.lock();
        known.retain(|_, token| clock.is_within(token.since, token.good));
        known.get(key).map(|token| token.secret.clone())
    }

    pub(super) fn put(&self, key: Key, secret: RegistrySecret, since: Stamp, good: Duration) {
        let mut known = self.known.lock();
        // A process uses few repositories; this limits a map that grows by mistake.
        if known.len() >= 4096 {
            known.clear();
        }
        known.insert(key, CachedToken { secret, since, good });
    }

    pub(super) fn forget(&self, key: &Key) {
        self.known.lock().remove(key);
    }
}

/// Parses the response of a token service: the token and its lifetime.
pub(super) fn token(url: &str, bytes: &[u8]) -> Result<(RegistrySecret, Duration), RegistryError> {
    #[derive(serde::Deserialize)]
    struct Answer {
        #[serde(default)]
        token: Option<String>,
        #[serde(default)]
        access_token: Option<String>,
        #[serde(default)]
        expires_in: Option<u64>,
    }
    let wrong = |why: &str| RegistryError::Answer { url: url.to_owned(), why: why.to_owned() };
    let answer: Answer = serde_json::from_slice(bytes)
        .map_err(|_| wrong("the response of the token service is not valid JSON"))?;
    let text = answer.token.filter(|text| !text.is_empty()).or(answer.access_token);
    let text = text.filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| wrong("the response of the token service has no token"))?;
    if text.bytes().any(|byte| !(0x21..0x7f).contains(&byte)) {
        return Err(wrong("the response of the token service has a token with invalid characters"));
    }
    // The default lifetime is the specification's. A token is renewed 5 s before it expires.
    let seconds = answer.expires_in.unwrap_or(60).clamp(10, 3600);
    Ok((RegistrySecret::new(text), Duration::from_secs(seconds.saturating_sub(5))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn token_expires_by_either_clock_and_stays_expired() {
        let key: Key = ("host".to_owned(), "path".to_owned(), false);
        let (clock, hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
        let minute = jiff::SignedDuration::from_mins(1);
        let tokens = Tokens::default();
        let put = || {
            let secret = RegistrySecret::new("Bearer x".to_owned());
            tokens.put(key.clone(), secret, clock.stamp(), Duration::from_mins(1));
        };
        put();
        assert!(tokens.get(&key, clock).is_some());
        hands.step(minute);
        assert!(tokens.get(&key, clock).is_none(), "a step forward");
        hands.step(-minute);
        assert!(tokens.get(&key, clock).is_none(), "and back");
        put();
        hands.suspend(Duration::from_mins(1));
        assert!(tokens.get(&key, clock).is_none(), "a suspend");
        put();
        hands.step(-minute);
        assert!(tokens.get(&key, clock).is_none(), "a step back behind its beginning");
        put();
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(tokens.get(&key, clock).is_none(), "time");
    }

    #[test]
    fn challenges_are_parsed() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
                scope: scope.map(str::to_owned),
            })
        };
        let cases: [(&[&str], Option<Challenge>); 9] = [
            (&["Basic realm=\"x\""], Some(Challenge::Basic)),
            (&["basic"], Some(Challenge::Basic)),
            (
                &["Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:a:pull,push\""],
                bearer("https://a/t", Some("s"), Some("repository:a:pull,push")),
            ),
            (&["bearer realm=https://a/t, service=s"], bearer("https://a/t", Some("s"), None)),
            (&["Basic realm=\"x\"", "Bearer realm=\"r\""], bearer("r", None, None)),
            (&["Basic realm=\"x\", Bearer realm=\"a\\\"b\""], bearer("a\"b", None, None)),
            (&["Bearer service=\"s\""], None),
            (&["Negotiate"], None),
            (&["Bearer realm=\"never ends"], bearer("never ends", None, None)),
        ];
        for (values, want) in cases {
            assert_eq!(read(values.iter().copied()), want, "{values:?}");
        }
    }
}
