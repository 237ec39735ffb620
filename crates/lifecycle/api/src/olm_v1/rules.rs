//! Validation rules (CEL) and patterns of the schemas. Expressions, messages and their order are part of the
//! upstream API: the API server shows the messages to users.

use serde_json::{Value, json};

/// An expression and its message.
type Rule = (&'static str, &'static str);

/// `x-kubernetes-validations`.
pub(super) fn rules(rules: &[Rule]) -> Value {
    rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect()
}

/// The rules, then one that holds the value to a DNS subdomain and names the field.
pub(super) fn rules_and_subdomain(before: &[Rule], field: &str) -> Value {
    let mut rules = rules(before);
    if let Value::Array(rules) = &mut rules {
        let message = format!(
            "{field} must be a valid DNS1123 subdomain. It must contain only lowercase \
             alphanumeric characters, hyphens (-) or periods (.), start and end with an \
             alphanumeric character, and be no longer than 253 characters"
        );
        rules.push(json!({"rule": SUBDOMAIN, "message": message}));
    }
    rules
}

/// A name of at most 63 characters that is checked by the API server's own format.
pub(super) const LABEL_FORMAT: Rule = (
    "!format.dns1123Label().validate(self).hasValue()",
    "the value must consist of only lowercase alphanumeric characters and hyphens, and must start and \
     end with an alphanumeric character.",
);
pub(super) const LABEL: &str = r#"self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")"#;
pub(super) const SUBDOMAIN: &str =
    r#"self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")"#;

pub(super) const FIELD_PATH: Rule = (
    r"self.matches('^[a-zA-Z0-9]+(?:\\.[a-zA-Z0-9]+)*$')",
    r#"must contain a valid field path. valid fields contain upper or lower-case alphanumeric characters separated by the "." character."#,
);

/// A version or a range of versions; `[x|X|\*]` and the unbalanced brackets are upstream's.
pub(super) const VERSION_RANGE: Rule = (
    r#"self.matches("^(\\s*(=||!=|>|<|>=|=>|<=|=<|~|~>|\\^)\\s*(v?(0|[1-9]\\d*|[x|X|\\*])(\\.(0|[1-9]\\d*|x|X|\\*]))?(\\.(0|[1-9]\\d*|x|X|\\*))?(-([0-9A-Za-z\\-]+(\\.[0-9A-Za-z\\-]+)*))?(\\+([0-9A-Za-z\\-]+(\\.[0-9A-Za-z\\-]+)*))?)\\s*)((?:\\s+|,\\s*|\\s*\\|\\|\\s*)(=||!=|>|<|>=|=>|<=|=<|~|~>|\\^)\\s*(v?(0|[1-9]\\d*|x|X|\\*])(\\.(0|[1-9]\\d*|x|X|\\*))?(\\.(0|[1-9]\\d*|x|X|\\*]))?(-([0-9A-Za-z\\-]+(\\.[0-9A-Za-z\\-]+)*))?(\\+([0-9A-Za-z\\-]+(\\.[0-9A-Za-z\\-]+)*))?)\\s*)*$")"#,
    "invalid version expression",
);
pub(super) const BUNDLE_VERSION: Rule = (
    r#"self.matches("^([0-9]+)(\\.[0-9]+)?(\\.[0-9]+)?(-([-0-9A-Za-z]+(\\.[-0-9A-Za-z]+)*))?(\\+([-0-9A-Za-z]+(-\\.[-0-9A-Za-z]+)*))?")"#,
    "version must be well-formed semver",
);
pub(super) const BUNDLE_RELEASE: Rule = (
    r#"self.matches("^$|^(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*$")"#,
    "release must be empty or consist of dot-separated identifiers (numeric without leading zeros, or \
     alphanumeric)",
);

const IMAGE_DOMAIN: Rule = (
    r"self.matches('^([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])((\\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(:[0-9]+)?\\b')",
    r#"must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) separated by the "." character."#,
);
const IMAGE_NAME: Rule = (
    r#"self.find('(\\/[a-z0-9]+((([._]|__|[-]*)[a-z0-9]+)+)?((\\/[a-z0-9]+((([._]|__|[-]*)[a-z0-9]+)+)?)+)?)') != """#,
    r#"a valid name is required. valid names must contain lowercase alphanumeric characters separated only by the ".", "_", "__", "-" characters."#,
);
const DIGEST_ALGORITHM: Rule = (
    r#"self.find('(@.*:)') != "" ? self.find('(@.*:)').matches('(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*[:])') : true"#,
    r#"digest algorithm is not valid. valid algorithms must start with an uppercase or lowercase alpha character followed by alphanumeric characters and may contain the "-", "_", "+", and "." characters."#,
);
const DIGEST_LENGTH: Rule = (
    r#"self.find('(@.*:)') != "" ? self.find(':.*$').substring(1).size() >= 32 : true"#,
    "digest is not valid. the encoded string must be at least 32 characters",
);
const DIGEST_HEX: Rule = (
    r#"self.find('(@.*:)') != "" ? self.find(':.*$').matches(':[0-9A-Fa-f]*$') : true"#,
    "digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)",
);

/// Rules of an image reference with a tag or a digest.
pub(super) const IMAGE_REFERENCE: &[Rule] = &[
    IMAGE_DOMAIN,
    IMAGE_NAME,
    (r#"self.find('(@.*:)') != "" || self.find(':.*$') != """#, "must end with a digest or a tag"),
    (
        r#"self.find('(@.*:)') == "" ? (self.find(':.*$') != "" ? self.find(':.*$').substring(1).size() <= 127 : true) : true"#,
        "tag is invalid. the tag must not be more than 127 characters",
    ),
    (
        r#"self.find('(@.*:)') == "" ? (self.find(':.*$') != "" ? self.find(':.*$').matches(':[\\w][\\w.-]*$') : true) : true"#,
        r#"tag is invalid. valid tags must begin with a word character (alphanumeric + "_") followed by word characters or ".", and "-" characters"#,
    ),
    DIGEST_ALGORITHM,
    DIGEST_LENGTH,
    DIGEST_HEX,
];

/// Rules of an image reference with a digest.
pub(super) const RESOLVED_IMAGE_REFERENCE: &[Rule] = &[
    IMAGE_DOMAIN,
    IMAGE_NAME,
    (r#"self.find('(@.*:)') != """#, "must end with a digest"),
    DIGEST_ALGORITHM,
    DIGEST_LENGTH,
    DIGEST_HEX,
];

/// Rules of the base URL of a catalog.
pub(super) const BASE_URL: &[Rule] = &[
    ("isURL(self)", "must be a valid URL"),
    (
        r#"isURL(self) ? (url(self).getScheme() == "http" || url(self).getScheme() == "https") : true"#,
        "scheme must be either http or https",
    ),
];

/// The source of a catalog has the field that its type names.
pub(super) const CATALOG_SOURCE_UNION: &[Rule] = &[(
    "has(self.type) && self.type == 'Image' ? has(self.image) : !has(self.image)",
    "image is required when source type is Image, and forbidden otherwise",
)];
