//! Generated names: a base with a hash or a word as suffix.

use super::registry_v1::Permission;
use crate::go_field;
use mainstay_gocompat::json::{Html, Numbers, quoted};
use serde_json::Value;
use sha2::{Digest, Sha224};

/// The longest generated name, except for one case of [`with_suffix`].
const MAX_LENGTH: usize = 63;

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// `BASE-SUFFIX`, with as much of the base as fits. The dash counts only if the base is truncated,
/// so base and suffix of 63 together give a name of 64. Names are API, so this follows upstream.
pub(super) fn with_suffix(base: &str, suffix: &str) -> String {
    let prefix = if base.len() + suffix.len() > MAX_LENGTH {
        let room = MAX_LENGTH.saturating_sub(suffix.len() + 1);
        &base[..base.floor_char_boundary(room)]
    } else {
        base
    };
    format!("{prefix}-{suffix}")
}

/// The name of the role and binding of one permission.
pub(super) fn permission_name(csv: &str, account: &str, permission: &Permission) -> String {
    let mut text = String::from("{\"serviceAccountName\":");
    text.push_str(&compact(&Value::from(permission.account.as_str())));
    text.push_str(",\"rules\":");
    match &permission.rules {
        None => text.push_str("null"),
        Some(rules) => {
            text.push('[');
            for (at, rule) in rules.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_rule(&mut text, rule);
            }
            text.push(']');
        }
    }
    text.push_str("}\n");
    with_suffix(&format!("{csv}-{account}"), &base36(Sha224::digest(text.as_bytes()).to_vec()))
}

/// A rule as Go encodes it: fields in the order of the type, without empty ones except for the
/// verbs.
fn write_rule(out: &mut String, rule: &Value) {
    let list = |name: &str| go_field::field(rule, name).filter(|list| list.is_array());
    out.push_str("{\"verbs\":");
    out.push_str(&compact(list("verbs").unwrap_or(&Value::Null)));
    for name in ["apiGroups", "resources", "resourceNames", "nonResourceURLs"] {
        if let Some(list) =
            list(name).filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
        {
            out.push(',');
            out.push_str(&quoted(name));
            out.push(':');
            out.push_str(&compact(list));
        }
    }
    out.push('}');
}

fn compact(value: &Value) -> String {
    mainstay_gocompat::json::value(value, Html::Escaped, Numbers::Object)
}

/// A number, most significant byte first, in base 36.
fn base36(mut number: Vec<u8>) -> String {
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u16;
        for byte in &mut number {
            let value = rest * 256 + u16::from(*byte);
            // Below 256, as the rest is below 36.
            *byte = (value / 36).to_le_bytes()[0];
            rest = value % 36;
        }
        digits.push(char::from(DIGITS[usize::from(rest)]));
    }
    if digits.is_empty() { "0".to_owned() } else { digits.iter().rev().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_base_is_truncated_and_one_of_the_limit_is_not() {
        let name_length = |length: usize| with_suffix(&"b".repeat(length), "service").len();
        assert_eq!(
            [name_length(10), name_length(55), name_length(56), name_length(57), name_length(100)],
            [18, 63, 64, 63, 63]
        );
        assert_eq!(with_suffix(&"é".repeat(40), "cert").len(), 63);
    }

    #[test]
    fn a_permission_has_the_recorded_name() {
        let rules = vec![
            json!({"apiGroups": [""], "resources": ["configmaps"],
                "verbs": ["get", "list", "watch", "create", "update"]}),
            json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                "verbs": ["get", "create", "update"]}),
        ];
        let account = "kiln-keeper-manager";
        let permission = Permission { account: account.to_owned(), rules: Some(rules) };
        assert_eq!(
            permission_name("kiln-keeper.v0.9.0", account, &permission),
            "kiln-keeper.v0.9.0-146401ty91oaq1bfqsjf59m12ugnbt0sc0orkoyu5zn3"
        );
    }

    #[test]
    fn base36_numbers_have_no_leading_zeroes() {
        assert_eq!(base36(vec![0, 0]), "0");
        assert_eq!(base36(vec![0, 35]), "z");
        assert_eq!(base36(vec![1, 0]), "74");
    }
}
