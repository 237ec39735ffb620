//! Name validation of Kubernetes, with its messages.
//!
//! Each function returns a message for each violated rule; empty if the name is valid.

/// Longest DNS label.
pub const LABEL_MAX: usize = 63;
/// Longest DNS subdomain.
pub const SUBDOMAIN_MAX: usize = 253;

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Messages about names say characters, those about labels say bytes. Both mean bytes.
fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn is_lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn is_label_shape(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            is_lower_alnum(*first)
                && is_lower_alnum(*last)
                && bytes.iter().all(|b| is_lower_alnum(*b) || *b == b'-')
        }
        _ => false,
    }
}

/// RFC 1123 label: namespaces, container names.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > LABEL_MAX {
        found.push(too_long(LABEL_MAX));
    }
    if !is_label_shape(name) {
        // Upstream has its own message for a name that is a subdomain.
        if is_subdomain_shape(name) {
            found.push("must not contain dots".to_owned());
        } else {
            found.push(LABEL_RULE.to_owned());
        }
    }
    found
}

fn is_subdomain_shape(name: &str) -> bool {
    name.split('.').all(is_label_shape)
}

/// RFC 1123 subdomain: most object names.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > SUBDOMAIN_MAX {
        found.push(too_long(SUBDOMAIN_MAX));
    }
    if !is_subdomain_shape(name) {
        found.push(SUBDOMAIN_RULE.to_owned());
    }
    found
}

/// RFC 1035 label: Services before they were relaxed, CRD singular and plural names.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > LABEL_MAX {
        found.push(too_long(LABEL_MAX));
    }
    if !is_label_shape(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        found.push(LABEL_1035_RULE.to_owned());
    }
    found
}

/// A segment of a URL path, the rule for RBAC names: anything but `.`, `..`, `/` and `%`.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| name.contains(**bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        }
        _ => false,
    }
}

/// Keys of labels and annotations, finalizers: an optional subdomain, `/`, a name part.
pub fn qualified_name(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                found.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > SUBDOMAIN_MAX {
                    found.push(format!("prefix part {}", too_many_bytes(SUBDOMAIN_MAX)));
                }
                if !is_subdomain_shape(prefix) {
                    found.push(format!("prefix part {SUBDOMAIN_RULE}"));
                }
            }
            *name
        }
        _ => {
            return vec![
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
                    .to_owned(),
            ];
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        found.push(format!("name part {}", too_many_bytes(LABEL_MAX)));
    }
    if !is_name_part(name) {
        found.push(QUALIFIED_RULE.to_owned());
    }
    found
}

/// Values of labels.
pub fn label_value(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    if value.len() > LABEL_MAX {
        found.push(too_many_bytes(LABEL_MAX));
    }
    if !value.is_empty() && !is_name_part(value) {
        found.push(VALUE_RULE.to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_accepts_valid_and_refuses_invalid_names() {
        for good in ["a", "a-b", "1", "abc-123"] {
            assert!(dns1123_label(good).is_empty(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", &"x".repeat(64)] {
            assert!(!dns1123_label(bad).is_empty(), "{bad}");
        }
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert!(dns1123_subdomain("a.b-c.d").is_empty());
        assert!(!dns1123_subdomain("a..b").is_empty());
        assert!(!dns1035_label("1a").is_empty());
        assert_eq!(path_segment(".."), ["may not be '..'"]);
        assert!(path_segment("system:admin").is_empty());
        assert!(qualified_name("example.com/My_Name").is_empty());
        assert!(!qualified_name("/x").is_empty());
        assert!(!qualified_name("a/b/c").is_empty());
        assert!(label_value("").is_empty());
        assert!(!label_value("a b").is_empty());
    }
}
