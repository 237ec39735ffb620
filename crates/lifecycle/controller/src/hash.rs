//! Hashes in names and labels: SHA-224 of Go JSON, in base 62.

use crate::gojson::{self, GoType};
use mainstay_gocompat::values;
use serde_json::Value;
use sha2::{Digest, Sha224};

const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The longest name that a generated role gets.
const NAME_MAX: usize = 63;

/// SHA-224 of the bytes as a number in base 62, most significant digit first.
pub fn base62_sha224(data: &[u8]) -> String {
    let mut number: Vec<u8> = Sha224::digest(data).to_vec();
    let mut digits = Vec::with_capacity(38);
    while number.iter().any(|byte| *byte != 0) {
        let mut remainder = 0_u16;
        for byte in &mut number {
            let value = remainder * 256 + u16::from(*byte);
            *byte = (value / 62).to_le_bytes()[0];
            remainder = value % 62;
        }
        digits.push(char::from(DIGITS[usize::from(remainder)]));
    }
    if digits.is_empty() {
        return "0".to_owned();
    }
    digits.iter().rev().collect()
}

/// The characters of names that API servers generate: no vowels, and none that look alike.
const SUFFIX_CHARACTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A name suffix as API servers generate it, but the same for the same text.
pub fn suffix(text: &str) -> String {
    let digest = Sha224::digest(text.as_bytes());
    digest
        .iter()
        .take(5)
        .map(|byte| char::from(SUFFIX_CHARACTERS[usize::from(*byte) % SUFFIX_CHARACTERS.len()]))
        .collect()
}

/// The label `olm.permissions.hash` of a role, from its rules.
pub fn rules(rules: &Value) -> String {
    base62_sha224(gojson::encode(GoType::PolicyRules, rules).as_bytes())
}

/// The label `olm.permissions.hash` of a binding, from its role and its subjects.
pub fn binding(role_ref: &Value, subjects: &Value) -> String {
    let text = format!(
        "{{\"RoleRef\":{},\"Subjects\":{}}}",
        gojson::encode(GoType::RoleRef, role_ref),
        gojson::encode(GoType::Subjects, subjects)
    );
    base62_sha224(text.as_bytes())
}

/// The name of the role for one namespaced permission of a CSV.
pub fn role_name(csv: &str, account: &str, permission: &Value) -> String {
    let content = format!(
        "{{{}\"permission\":{}}}\n",
        json_member("name", csv),
        gojson::encode(GoType::Permission, permission)
    );
    generated_name(&format!("{csv}-{account}"), &content)
}

/// The name of the cluster role for one cluster permission of a CSV.
pub fn cluster_role_name(csv: &str, namespace: &str, permission: &Value) -> String {
    let content = format!(
        "{{{}{}\"permission\":{}}}\n",
        json_member("name", csv),
        json_member("namespace", namespace),
        gojson::encode(GoType::Permission, permission)
    );
    generated_name(csv, &content)
}

/// Label `olm.deployment-spec-hash`.
pub fn deployment_spec(spec: &Value) -> String {
    let mut text = gojson::encode(GoType::DeploymentSpec, spec);
    text.push('\n');
    base62_sha224(text.as_bytes())
}

/// Label `olm.pod-spec-hash`.
pub fn pod_spec(spec: &Value) -> String {
    base62_sha224((gojson::encode(GoType::PodSpec, spec) + "\n").as_bytes())
}

/// Label `olm.service-spec-hash`.
pub fn service_spec(spec: &Value) -> String {
    base62_sha224((gojson::encode(GoType::ServiceSpec, spec) + "\n").as_bytes())
}

/// Label `olm.webhook-description-hash`.
pub fn webhook(description: &Value) -> String {
    base62_sha224((gojson::encode(GoType::WebhookDescription, description) + "\n").as_bytes())
}

/// `"name":"value",`, or nothing for an empty value.
fn json_member(name: &str, value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    format!("\"{name}\":{},", values::json(&Value::from(value)))
}

fn generated_name(base: &str, content: &str) -> String {
    let hash = base62_sha224(content.as_bytes());
    let max_base = NAME_MAX - hash.len() - 1;
    // Upstream allows one character more when base and hash fill the limit exactly, because it counts
    // the dash only when it truncates. Names are API, so this code does the same.
    let base = if base.len() + hash.len() > NAME_MAX {
        base.get(..max_base).unwrap_or(base)
    } else {
        base
    };
    format!("{base}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn permission(account: &str, rules: &Value) -> Value {
        json!({"serviceAccountName": account, "rules": rules})
    }

    #[test]
    fn role_names_and_hash_labels_match_recorded_ones() {
        let own = json!([{
            "apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["get", "list", "watch", "create", "update"],
        }]);
        let cluster =
            json!([{"apiGroups": ["c019.example.com"], "resources": ["*"], "verbs": ["*"]}]);
        assert_eq!(rules(&own), "7nshezlauGzI6D1amhN0FlAc8bYAjLo6mD4teS");
        assert_eq!(rules(&cluster), "7Ho6kExahj2YNuuICiW3NwvfwUWx7RDyrGUQ7p");
        let csv = "anvil-c019.v1.0.0";
        let name = role_name(csv, "anvil-c019-sa", &permission("anvil-c019-sa", &own));
        assert_eq!(name, "anvil-c019.v1.0.0-anvil--aspd4XDVx9VKObpruiegGekQHprtKITMNaCRLy");
        assert_eq!(
            cluster_role_name(csv, "c019", &permission("anvil-c019-sa", &cluster)),
            "anvil-c019.v1.0.0-1ReyZfLqfEHhdrrV3ENss4AQ27of4jh2c5MJtC"
        );
        let role_ref =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
        let subjects =
            json!([{"kind": "ServiceAccount", "name": "anvil-c019-sa", "namespace": "c019"}]);
        assert_eq!(binding(&role_ref, &subjects), "3wbGtDUToHky4YoKC4Jq8rEtq40QdDxSeZMzKN");
    }

    #[test]
    fn deployment_spec_hash_matches_a_recorded_one() {
        let spec = json!({
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": {"app": "anvil-c019-controller"}},
            "strategy": {},
            "template": {
                "metadata": {
                    "annotations": {
                        "olm.operatorGroup": "og",
                        "olm.operatorNamespace": "c019",
                        "olm.targetNamespaces": "c019",
                        "operatorframework.io/properties": "{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"anvil-c019\",\"version\":\"1.0.0\"}},{\"type\":\"olm.gvk\",\"value\":{\"group\":\"c019.example.com\",\"kind\":\"Anvil\",\"version\":\"v1\"}}]}",
                    },
                    "labels": {"app": "anvil-c019-controller"},
                },
                "spec": {
                    "containers": [{
                        "args": ["--leader-elect=false"],
                        "env": [{"name": "OPERATOR_CONDITION_NAME", "value": "anvil-c019.v1.0.0"}],
                        "image": "registry.invalid/anvil-c019:1.0.0",
                        "name": "manager",
                        "resources": {},
                    }],
                    "serviceAccountName": "anvil-c019-sa",
                },
            },
        });
        assert_eq!(deployment_spec(&spec), "1LyW2c2CcxlZGsfOF8inqYh69UxAqXnXCWOXge");
    }

    #[test]
    fn webhook_hash_matches_a_recorded_one() {
        let description = json!({
            "admissionReviewVersions": ["v1"], "containerPort": 443,
            "deploymentName": "nodeployment-c237-controller", "failurePolicy": "Ignore",
            "generateName": "g.c237.example.com", "sideEffects": "None", "targetPort": 4343,
            "type": "ValidatingAdmissionWebhook", "webhookPath": "/hook",
            "rules": [{
                "apiGroups": ["c237.example.com"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["anvils"], "scope": "*",
            }],
        });
        assert_eq!(webhook(&description), "aE9lPnPPj9jKRA7vLyBrqXPOP1lgOoROnPglGI");
        let read: mainstay_api::WebhookDescription = serde_json::from_value(description).unwrap();
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(webhook(&written), "aE9lPnPPj9jKRA7vLyBrqXPOP1lgOoROnPglGI");
    }

    #[test]
    fn base_that_fills_the_limit_exactly_yields_a_name_of_64_characters() {
        let hash = base62_sha224(b"x");
        let base = "b".repeat(NAME_MAX - hash.len());
        assert_eq!(generated_name(&base, "x").len(), 64);
        assert_eq!(generated_name(&format!("{base}b"), "x").len(), 63);
    }
}
