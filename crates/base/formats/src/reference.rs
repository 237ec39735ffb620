//! Image references: the grammar of the distribution project, and the errors of the version that
//! opm and the bundle validators use. Pulling of images follows a newer version, which accepts IPv6
//! addresses and has more precise errors.

/// Why a text is not an image reference; `None` if it is one.
pub fn reference_error(text: &str) -> Option<String> {
    const FORMAT: &str = "invalid reference format";
    const LOWERCASE: &str = "invalid reference format: repository name must be lowercase";
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == 64 && text.bytes().all(lower_hex) {
        return Some(format!(
            "invalid repository name ({text}), cannot specify 64-byte hexadecimal strings"
        ));
    }
    // The part before the first slash is a registry only if it looks like a host.
    let registry = text
        .split_once('/')
        .filter(|(first, _)| first.contains(['.', ':']) || *first == "localhost");
    let (domain, rest) = registry.unwrap_or(("docker.io", text));
    let repository = rest.split_once(':').map_or(rest, |(repository, _)| repository);
    if repository.to_lowercase() != repository {
        return Some(LOWERCASE.to_owned());
    }
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let is_valid = is_domain(domain)
        && path.split('/').all(is_path_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(looks_like_digest);
    if !is_valid {
        return Some(FORMAT.to_owned());
    }
    // Names without a slash are below `library/`.
    let implied = if registry.is_none() && !path.contains('/') { "library/".len() } else { 0 };
    if domain.len() + 1 + implied + path.len() > 255 {
        return Some("repository name must not be more than 255 characters".to_owned());
    }
    digest.and_then(digest_error).map(str::to_owned)
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (domain, None),
    };
    host.split('.').all(is_label)
        && port
            .is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a text is a host label: letters, digits and inner hyphens.
pub fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether a text is a path component: lower-case words joined by `.`, `_`, `__` or any number of
/// `-`.
pub fn is_path_component(component: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    let bytes = component.as_bytes();
    if !bytes.first().is_some_and(|&byte| word(byte))
        || !bytes.last().is_some_and(|&byte| word(byte))
    {
        return false;
    }
    bytes.split(|&byte| word(byte)).all(|separator| {
        matches!(separator, b"" | b"." | b"_" | b"__") || separator.iter().all(|&b| b == b'-')
    })
}

/// Whether a text is a tag: up to 128 letters, digits, `_`, `.` and `-`; it begins with none of the
/// last two.
pub fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&tag.len())
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

fn looks_like_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(part)
        && hex.len() >= 32
        && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn digest_error(digest: &str) -> Option<&'static str> {
    let (algorithm, hex) = digest.split_once(':')?;
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Some("unsupported digest algorithm"),
    };
    if hex.len() != length {
        Some("invalid checksum digest length")
    } else if hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Some("invalid checksum digest format")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::reference_error;

    #[test]
    fn references_are_accepted_and_refused_as_by_container_tools() {
        let hex = "0".repeat(64);
        let long = format!("example.com/{}", "a".repeat(250));
        let accepted = [
            "a",
            "a:v1",
            "Example.com/a",
            "localhost/a/b-c__d.e:v1.0_x",
            "example.com:5000/a@sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "a---b",
        ];
        for text in accepted {
            assert_eq!(reference_error(text), None, "{text}");
        }
        let format = "invalid reference format";
        let lowercase = "invalid reference format: repository name must be lowercase";
        let refused = [
            ("", format),
            ("[::1]:5000/a", format),
            ("a/B", lowercase),
            ("UPPER/x:y:z", lowercase),
            ("example.com/A", lowercase),
            ("example.com/a:b c", format),
            ("example.com/a@md5:00000000000000000000000000000000", "unsupported digest algorithm"),
            ("a//b", format),
            ("example.com/a..b", format),
            ("docker://example.com/a:v1", format),
            (" example.com/a:v1", format),
            ("example.com:port/a", format),
            ("example.com/a:-x", format),
            (
                "example.com/a@sha256:00000000000000000000000000000000",
                "invalid checksum digest length",
            ),
            (&long, "repository name must not be more than 255 characters"),
        ];
        for (text, expected) in refused {
            assert_eq!(reference_error(text).as_deref(), Some(expected), "{text}");
        }
        let identifier = reference_error(&hex).unwrap();
        assert!(identifier.contains("cannot specify 64-byte hexadecimal strings"), "{identifier}");
    }
}
