//! Targets of redirects.

use super::dial::AddressAuthor;
use super::{ClientConfig, Destination, join_path};

/// A `Location` is no valid target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// The location has no host.
    #[error("failed to parse Location header {location:?}")]
    Malformed {
        /// The location.
        location: String,
    },
    /// The location is not HTTPS.
    #[error("redirected to {location:?}, which is not HTTPS")]
    NotHttps {
        /// The location.
        location: String,
    },
}

/// The target of a `Location` in a response from `from`, and its query with `?` (may be empty). The
/// CA bundle stays the same.
///
/// # Errors
/// The `Location` is no valid target.
pub(super) fn target(
    from: &ClientConfig,
    location: &str,
) -> Result<(ClientConfig, String), RedirectError> {
    let location = location.split('#').next().unwrap_or_default();
    let (rest, query) = match location.split_once('?') {
        Some((rest, query)) => (rest, format!("?{query}")),
        None => (location, String::new()),
    };
    let absolute = rest.strip_prefix("https:").unwrap_or(rest).strip_prefix("//");
    if let Some(rest) = absolute {
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_same = authority == from.authority()
            || authority.strip_suffix(":443").is_some_and(|host| host == from.authority());
        if is_same {
            return Ok((with_path(from, join_path(path)), query));
        }
        let malformed = || RedirectError::Malformed { location: location.to_owned() };
        let authority: http::uri::Authority = authority.parse().map_err(|_| malformed())?;
        let destination = Destination::Url {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(443),
            path: join_path(path),
            // The responding server wrote this address, not the author of the `clientConfig`.
            author: AddressAuthor::User,
        };
        return Ok((ClientConfig { destination, ca: from.ca.clone() }, query));
    }
    if rest.split('/').next().is_some_and(|first| first.contains(':')) {
        return Err(RedirectError::NotHttps { location: location.to_owned() });
    }
    let path = if rest.starts_with('/') {
        join_path(rest)
    } else if rest.is_empty() {
        from.path().to_owned()
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        join_path(&format!("{folder}/{rest}"))
    };
    Ok((with_path(from, path), query))
}

fn with_path(from: &ClientConfig, path: String) -> ClientConfig {
    let mut config = from.clone();
    let (Destination::Url { path: own, .. } | Destination::Service { path: own, .. }) =
        &mut config.destination;
    *own = path;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_relative_to_the_called_url() {
        let service = ClientConfig {
            destination: Destination::Service {
                namespace: "n".to_owned(),
                name: "s".to_owned(),
                port: 443,
                path: "/a/b".to_owned(),
            },
            ca: "ca".into(),
        };
        for (location, expected) in [
            ("/c", "s.n.svc:443 /c service"),
            ("/c?x=y#z", "s.n.svc:443 /c ?x=y service"),
            ("c", "s.n.svc:443 /a/c service"),
            ("?x", "s.n.svc:443 /a/b ?x service"),
            ("https://s.n.svc:443/c", "s.n.svc:443 /c service"),
            ("//s.n.svc:443", "s.n.svc:443 / service"),
            ("https://other:8443/c", "other:8443 /c url"),
            ("https://other", "other / url"),
            ("http://other/c", "redirected to \"http://other/c\", which is not HTTPS"),
            ("file:///etc/passwd", "redirected to \"file:///etc/passwd\", which is not HTTPS"),
            ("https://", "failed to parse Location header \"https://\""),
        ] {
            let found = match target(&service, location) {
                Err(error) => error.to_string(),
                Ok((config, query)) => {
                    assert_eq!(config.ca, service.ca);
                    let kind = if matches!(config.destination, Destination::Url { .. }) {
                        "url"
                    } else {
                        "service"
                    };
                    let blank = if query.is_empty() { "" } else { " " };
                    format!("{} {}{blank}{query} {kind}", config.authority(), config.path())
                }
            };
            assert_eq!(found, expected, "{location}");
        }
    }
}
