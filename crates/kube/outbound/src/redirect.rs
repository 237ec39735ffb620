//! Where a redirect leads.

use super::dial::Origin;
use super::{ClientConfig, Destination, joined};

/// A `Location` is no place that is called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// It has no host.
    #[error("failed to parse Location header {location:?}")]
    Malformed {
        /// The location.
        location: String,
    },
    /// It is not reached over HTTPS.
    #[error("redirected to {location:?}, which is not HTTPS")]
    NotHttps {
        /// The location.
        location: String,
    },
}

/// The place that a `Location` means for whoever was called at another one, and its query with `?`
/// (which may be empty). Who signs stays the same.
///
/// # Errors
/// It is no place that is called.
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
    if let Some(elsewhere) = absolute {
        let (authority, path) = elsewhere.split_at(elsewhere.find('/').unwrap_or(elsewhere.len()));
        let same = authority == from.authority()
            || authority.strip_suffix(":443").is_some_and(|host| host == from.authority());
        if same {
            return Ok((with_path(from, joined(path)), query));
        }
        let wrong = || RedirectError::Malformed { location: location.to_owned() };
        let authority: http::uri::Authority = authority.parse().map_err(|_| wrong())?;
        let place = Destination::Url {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(443),
            path: joined(path),
            // Whoever answers says so, not who wrote the URL.
            origin: Origin::User,
        };
        return Ok((ClientConfig { destination: place, ca: from.ca.clone() }, query));
    }
    if rest.split('/').next().is_some_and(|first| first.contains(':')) {
        return Err(RedirectError::NotHttps { location: location.to_owned() });
    }
    let path = if rest.starts_with('/') {
        joined(rest)
    } else if rest.is_empty() {
        from.path().to_owned()
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        joined(&format!("{folder}/{rest}"))
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
    fn a_location_is_read_from_where_it_was_said() {
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
