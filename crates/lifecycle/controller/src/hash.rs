//! Hashes that are part of names and labels: SHA-224 of Go's JSON, written in base 62.

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
        let mut rest = 0_u16;
        for byte in &mut number {
            let value = rest * 256 + u16::from(*byte);
            *byte = (value / 62).to_le_bytes()[0];
            rest = value % 62;
        }
        digits.push(char::from(DIGITS[usize::from(rest)]));
    }
    if digits.is_empty() {
        return "0".to_owned();
    }
    digits.iter().rev().collect()
}

/// The letters of names that servers make up: none that looks like another, no vowels.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The end of a name as servers make it up, but the same for the same text.
pub fn suffix(text: &str) -> String {
    let digest = Sha224::digest(text.as_bytes());
    digest
        .iter()
        .take(5)
        .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]))
        .collect()
}

/// Label `olm.permissions.hash` of a role: its rules.
pub fn rules(rules: &Value) -> String {
    base62_sha224(gojson::encode(GoType::PolicyRules, rules).as_bytes())
}

/// Label `olm.permissions.hash` of a binding: what it binds to whom.
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
        member("name", csv),
        gojson::encode(GoType::Permission, permission)
    );
    generated(&format!("{csv}-{account}"), &content)
}

/// The name of the cluster role for one cluster permission of a CSV.
pub fn cluster_role_name(csv: &str, namespace: &str, permission: &Value) -> String {
    let content = format!(
        "{{{}{}\"permission\":{}}}\n",
        member("name", csv),
        member("namespace", namespace),
        gojson::encode(GoType::Permission, permission)
    );
    generated(csv, &content)
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
fn member(name: &str, value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    format!("\"{name}\":{},", values::json(&Value::from(value)))
}

fn generated(base: &str, content: &str) -> String {
    let hash = base62_sha224(content.as_bytes());
    let room = NAME_MAX - hash.len() - 1;
    // The original keeps one character more when base and hash fill the limit exactly, because it
    // counts the dash only when it cuts. Names are API, so this does the same.
    let base =
        if base.len() + hash.len() > NAME_MAX { base.get(..room).unwrap_or(base) } else { base };
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
    fn names_and_labels_of_recorded_roles_come_out_the_same() {
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
    fn the_hash_of_a_recorded_deployment_comes_out_the_same() {
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
    fn the_hash_of_a_recorded_webhook_comes_out_the_same() {
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
    fn a_base_that_fills_the_limit_exactly_makes_a_name_of_sixty_four() {
        let hash = base62_sha224(b"x");
        let base = "b".repeat(NAME_MAX - hash.len());
        assert_eq!(generated(&base, "x").len(), 64);
        assert_eq!(generated(&format!("{base}b"), "x").len(), 63);
    }
}
