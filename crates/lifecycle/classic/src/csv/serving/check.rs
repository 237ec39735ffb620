//! Serving checks: find problems with the objects around the servers of a CSV, as plain functions
//! of the observed state.

use super::certificate::{self, CertificateSecret};
use super::objects;
use super::observed::{ObservedServing, WebhookConfiguration};
use super::required::{self, OwnedApi};
use crate::csv::requirements::ObservedRequirements;
use crate::fields;
use jiff::Timestamp;
use mainstay_api::{ClusterServiceVersion, OperatorGroup, Time, names};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long an APIService that was available may be unavailable before its CSV fails. Replaced pods
/// take this long to become endpoints.
const UNAVAILABLE_GRACE: Duration = Duration::from_secs(30);

/// A problem with the objects around an APIService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) message: String,
    /// Whether a new install solves it.
    pub(crate) mendable: bool,
}

type Deployments = BTreeMap<String, Arc<fields::Deployment>>;

/// The problems with the objects around the APIServices of a CSV.
pub(crate) fn api_issue(
    csv: &ClusterServiceVersion,
    observed: &ObservedServing,
    deployments: &Deployments,
) -> Option<Issue> {
    let mut found = Vec::new();
    for api in required::apis(csv) {
        if observed.foreign.contains(&api.name) {
            found.push(format!("{} is unadoptable", api.name));
            return Some(Issue { message: joined(&found), mendable: false });
        }
        found.extend(issue_of(csv, &api, observed, deployments));
    }
    (!found.is_empty()).then(|| Issue { message: joined(&found), mendable: true })
}

/// Several errors in the format of Go's error aggregate.
fn joined(all: &[String]) -> String {
    match all {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

fn issue_of(
    csv: &ClusterServiceVersion,
    api: &OwnedApi,
    observed: &ObservedServing,
    deployments: &Deployments,
) -> Option<String> {
    let (service, secret) = (required::service(&api.deployment), required::secret(&api.deployment));
    let missing = |kind: &str, name: &str| Some(format!("{kind} \"{name}\" not found"));
    let Some(found) = observed.apis.get(&api.name) else {
        return missing("apiservice.apiregistration.k8s.io", &api.name);
    };
    if !observed.services.contains_key(&service) {
        return missing("service", &service);
    }
    if found.service.as_ref() != Some(&(csv.metadata.namespace.clone(), service)) {
        return Some("found APIService and service reference mismatch".to_owned());
    }
    if found.ca_hashes.is_empty() {
        return Some("cert PEM empty".to_owned());
    }
    let Some(certificate) = observed.certificates.get(&api.deployment) else {
        return missing("secret", &secret);
    };
    if !certificate.readable {
        return Some("cert PEM empty".to_owned());
    }
    if !found.ca_hashes.contains(&certificate.annotated_ca_hash) {
        return Some(format!("secret {secret} CA cert hash does not match expected"));
    }
    let Some(deployment) = deployments.get(&api.deployment) else {
        return missing("deployment.apps", &api.deployment);
    };
    if deployment.template_annotations.get(names::CA_HASH) != Some(&certificate.annotated_ca_hash) {
        return Some(format!("deployment {} CA cert hash does not match expected", api.deployment));
    }
    None
}

/// Whether another owner has an APIService of a CSV.
pub(crate) fn has_foreign_api(observed: &ObservedServing) -> bool {
    !observed.foreign.is_empty()
}

/// Whether certificates of a CSV must be replaced: they are due, missing or invalid.
pub(crate) fn certificates_are_due(
    csv: &ClusterServiceVersion,
    observed: &ObservedServing,
    now: Time,
) -> bool {
    let servers = required::servers(csv);
    let stale = |server: &required::Server| {
        let found = observed.certificates.get(&server.deployment);
        found.is_none_or(|certificate| !certificate.is_fresh(now.timestamp()))
    };
    !servers.is_empty() && (rotation_is_due(csv, now.timestamp()) || servers.iter().any(stale))
}

/// Whether the status of a CSV says that its certificates are due.
pub(crate) fn rotation_is_due(csv: &ClusterServiceVersion, now: Timestamp) -> bool {
    csv.status.certs_rotate_at.is_some_and(|time| time.timestamp() <= now)
}

/// Whether a certificate was replaced, but the status of its CSV does not say so because of an
/// interruption. The status then says that the old certificate is due. The new one must not be
/// replaced again, as each replacement restarts the pods.
pub(crate) fn is_unrecorded(csv: &ClusterServiceVersion, certificate: &CertificateSecret) -> bool {
    let recorded = csv.status.certs_last_updated.map(Time::timestamp);
    recorded.is_some() && certificate.made_at() > recorded
}

/// When a certificate of a running CSV is due.
pub(crate) fn next_rotation(
    csv: &ClusterServiceVersion,
    observed: &ObservedServing,
) -> Option<Timestamp> {
    let servers = required::servers(csv);
    let validity =
        |server: &required::Server| observed.certificates.get(&server.deployment)?.validity;
    let lives =
        servers.iter().filter_map(validity).map(|validity| certificate::rotation(validity.until));
    let recorded = csv.status.certs_rotate_at.filter(|_| !servers.is_empty()).map(Time::timestamp);
    lives.chain(recorded).min()
}

/// Whether all APIServices of a CSV are available.
pub(crate) fn apis_are_available(csv: &ClusterServiceVersion, observed: &ObservedServing) -> bool {
    required::apis(csv)
        .iter()
        .all(|api| observed.apis.get(&api.name).is_some_and(|service| service.available))
}

/// How long an unavailable APIService of a running CSV may still be unavailable; none if the grace
/// period is over.
pub(crate) fn remaining_grace(
    csv: &ClusterServiceVersion,
    observed: &ObservedServing,
    now: Timestamp,
) -> Option<Duration> {
    let apis = required::apis(csv);
    let unavailable = apis
        .iter()
        .filter_map(|api| observed.apis.get(&api.name))
        .filter(|service| !service.available);
    let since = unavailable.filter_map(|service| service.since).min()?;
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    UNAVAILABLE_GRACE.checked_sub(waited).filter(|left| !left.is_zero())
}

/// Whether the callers of the servers of a CSV are configured and trust the current CAs. With
/// `only_current_ca`, they must trust no other CA.
pub(crate) fn is_published(
    csv: &ClusterServiceVersion,
    group: &OperatorGroup,
    requirements: &ObservedRequirements,
    only_current_ca: bool,
) -> bool {
    let observed = &requirements.serving;
    let trusts = |deployment: &str, ca_hashes: &[String]| {
        let Some(certificate) = observed.certificates.get(deployment) else { return false };
        ca_hashes.contains(&certificate.ca_hash) && (!only_current_ca || ca_hashes.len() == 1)
    };
    let selector = objects::namespaces(group);
    let mut descriptions = required::admission_webhooks(csv);
    let webhooks = descriptions.all(|description| {
        let mut found = observed.webhook_configurations.iter().filter(|configuration| {
            configuration.configuration.labels.get(names::WEBHOOK_GENERATE_NAME)
                == Some(&description.generate_name)
        });
        let (Some(configuration), None) = (found.next(), found.next()) else { return false };
        let wanted = objects::webhook(csv, description, &selector, None);
        configuration.mutating == super::observed::is_mutating(&description.kind)
            && configuration.configuration.labels.get(names::WEBHOOK_HASH)
                == Some(&required::webhook_hash(description))
            && is_covered(&configuration.configuration, &wanted)
            && trusts(&description.deployment_name, &configuration.configuration.ca_hashes)
    });
    let listed = observed.webhook_configurations.len() == required::admission_webhooks(csv).count();
    let conversions = required::conversion_webhooks(csv).all(|description| {
        description.conversion_crds.iter().all(|name| {
            let found = requirements.crds.get(name).and_then(|crd| crd.conversion.as_ref());
            found.is_some_and(|conversion| {
                objects::is_conversion(csv, description, conversion)
                    && trusts(&description.deployment_name, &conversion.ca_hashes)
            })
        })
    });
    let apis = required::apis(csv).iter().all(|api| {
        observed
            .apis
            .get(&api.name)
            .is_some_and(|service| trusts(&api.deployment, &service.ca_hashes))
    });
    webhooks && listed && conversions && apis
}

fn is_covered(found: &WebhookConfiguration, wanted: &Value) -> bool {
    matches!(found.webhooks.as_slice(), [one] if covers(one, wanted))
}

/// Whether a value contains everything that is wanted; defaults of the server do not count. An
/// empty object only covers an empty one, as in selectors.
pub(crate) fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            (!wanted.is_empty() || live.is_empty())
                && wanted
                    .iter()
                    .all(|(key, value)| live.get(key).is_some_and(|present| covers(present, value)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(a, b)| covers(a, b))
        }
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_certificates::Validity;

    #[test]
    fn a_certificate_newer_than_the_status_is_not_replaced_again() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let validity =
            Validity { from: time("2026-01-01T09:00:00Z"), until: time("2028-01-01T10:00:00Z") };
        let certificate =
            CertificateSecret { validity: Some(validity), ..CertificateSecret::default() };
        assert_eq!(certificate.made_at(), Some(time("2026-01-01T10:00:00Z")));
        let mut csv = ClusterServiceVersion::new("ns", "v");
        for (recorded, unrecorded) in [
            (None, false),
            (Some("2024-01-02T10:00:00Z"), true),
            (Some("2026-01-01T09:59:59Z"), true),
            (Some("2026-01-01T10:00:00Z"), false),
        ] {
            csv.status.certs_last_updated = recorded.map(|timestamp| Time::new(time(timestamp)));
            assert_eq!(is_unrecorded(&csv, &certificate), unrecorded, "{recorded:?}");
            // An invalid certificate has no creation time.
            assert!(!is_unrecorded(&csv, &CertificateSecret::default()), "{recorded:?}");
        }
    }
}
