//! The validator `is_recommended-practices`.

use super::{
    csv_fields::{field_at, field_value, items},
    finding::{BadValue, ManifestResult, ValidationFinding, field_path, item_path},
    load::LoadedBundle,
    object::{permissions, permits},
    removed_apis::quote_ascii_list,
};
use crate::go_field;
use mainstay_gocompat::quote;
use mainstay_schema::gojson::ValuePathStep;
use std::collections::BTreeSet;

const FAILED: &str = "ValidationFailed";

/// Validates a bundle.
pub(crate) fn validate(subject: &LoadedBundle) -> ManifestResult {
    let (name, csv) = (subject.csv_name(), subject.csv.0);
    let mut found = ManifestResult::new(subject.name.clone());
    let doubt = |detail: String| {
        ValidationFinding::warning(FAILED, BadValue::Text(name.to_owned()), detail)
    };
    if field_value(subject.install(), "deployments").is_null() {
        let detail = "unable to find a deployment to install in the CSV";
        let finding = ValidationFinding::error(FAILED, BadValue::Text(name.to_owned()), detail);
        let location = field_path(&["spec", "install", "spec", "deployments"]);
        found.add(finding.at(csv, &location).with_remedy("list the operator's deployments"));
    }
    for (number, (_, pod)) in subject.deployments().enumerate() {
        for (at, container) in items(pod, "containers").iter().enumerate() {
            if !field_at(container, &["resources", "requests"]).is_null() {
                continue;
            }
            let detail = format!(
                "unable to find the resource requests for the container: ({}). It is recommended to ensure \
                 the resource request for CPU and Memory. Be aware that for some clusters configurations it \
                 is required to specify requests or limits for those values. Otherwise, the system or quota \
                 may reject Pod creation. More info: \
                 https://master.sdk.operatorframework.io/docs/best-practices/managing-resources/",
                go_field::text(container, "name")
            );
            let mut location = item_path(&["spec", "install", "spec", "deployments"], number);
            location.extend(field_path(&["spec", "template", "spec", "containers"]));
            location.push(ValuePathStep::Item(at));
            let remedy = "write resources.requests with cpu and memory";
            found.add(doubt(detail).at(csv, &location).with_remedy(remedy));
        }
    }
    for which in ["owned", "required"] {
        for (number, crd) in subject.resources(which).iter().enumerate() {
            if go_field::text(crd, "description").is_empty() {
                let crd = quote(go_field::text(crd, "name"));
                let location = item_path(&["spec", "customresourcedefinitions", which], number);
                let finding = doubt(format!("{which} CRD {crd} has an empty description"));
                found.add(finding.at(csv, &location).with_remedy("describe what it is for"));
            }
        }
    }
    if let Some(detail) = check_channels(subject) {
        let remedy = "let the names of channels begin with stable, fast or candidate";
        found.add(doubt(detail).with_remedy(remedy));
    }
    let groups = &["apiextensions.k8s.io"];
    let resources = &["customresourcedefinitions", "*", "[*]"];
    let verbs = &["create", "*", "[*]", "patch"];
    let creates_crds = ["permissions", "clusterPermissions"].into_iter().find_map(|field| {
        let mut rules = permissions(subject, field);
        rules
            .find(|(_, _, rule)| permits(rule, groups, resources, verbs))
            .map(|rule| (field, rule.0))
    });
    if let Some((field, at)) = creates_crds {
        let detail = "CSV contains permissions to create CRD. An Operator shouldn't deploy or manage other \
             operators (such patterns are known as meta or super operators or include CRDs in its \
             Operands). It's the Operator Lifecycle Manager's job to manage the deployment and lifecycle of \
             operators.  Please, review the design of your solution and if you should not be using \
             Dependency Resolution from OLM instead. More info: \
             https://sdk.operatorframework.io/docs/best-practices/common-recommendation/";
        let location = item_path(&["spec", "install", "spec", field], at);
        let remedy = "let OLM install the CRDs: own or require them";
        found.add(doubt(detail.to_owned()).at(csv, &location).with_remedy(remedy));
    }
    let location = field_path(&["metadata", "name"]);
    let remedy = "name it OPERATOR.vVERSION";
    if !ends_in_version(name) {
        let detail = format!(
            "csv.metadata.Name {name} is not following the versioning convention (MAJOR.MINOR.PATCH e.g \
             0.0.1): https://semver.org/"
        );
        found.add(doubt(detail).at(csv, &location).with_remedy(remedy));
    }
    if name.matches(".v").count() != 1 {
        let detail = format!(
            "csv.metadata.Name {name} is not following the recommended naming convention: \
             <operator-name>.v<semver> e.g. memcached-operator.v0.0.1"
        );
        found.add(doubt(detail).at(csv, &location).with_remedy(remedy));
    }
    found
}

/// The finding for channel names without a recommended prefix. Upstream lists them in random order.
fn check_channels(subject: &LoadedBundle) -> Option<String> {
    let all = subject.channels.iter().chain([&subject.default_channel]);
    let names: BTreeSet<&str> = all.map(|name| name.trim()).collect();
    let is_recommended =
        |name: &str| ["candidate", "stable", "fast"].iter().any(|prefix| name.starts_with(prefix));
    let others: Vec<&str> =
        names.into_iter().filter(|name| !name.is_empty() && !is_recommended(name)).collect();
    (!others.is_empty()).then(|| {
        format!(
            "channel(s) {} are not following the recommended naming convention: \
             https://olm.operatorframework.io/docs/best-practices/channel-naming",
            quote_ascii_list(&others)
        )
    })
}

/// Whether the first part of a name that looks like a version is one.
fn ends_in_version(name: &str) -> bool {
    let starts = name.char_indices().filter(|(_, c)| c.is_ascii_digit());
    let found = starts.map(|(at, _)| &name[at..]).find(|rest| looks_like_version(rest));
    found.is_some_and(|text| mainstay_version::parse_strict(text).is_ok())
}

/// Three numbers, then optionally a pre-release and build metadata.
fn looks_like_version(text: &str) -> bool {
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let (text, build) =
        text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (text, before) =
        text.split_once('-').map_or((text, None), |(text, rest)| (text, Some(rest)));
    let numbers: Vec<&str> = text.split('.').collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.len() == 3
        && numbers.iter().all(digits)
        && before.is_none_or(|before| before.split('.').all(word))
        && build.is_none_or(word)
}

#[cfg(test)]
mod tests {
    use super::ends_in_version;

    #[test]
    fn names_end_in_versions() {
        for name in ["a.v1.2.3", "a1.2.3-rc.1", "1.2.3.4", "a.v1.2.3+build", "x-1.0.0-1-2"] {
            assert!(ends_in_version(name), "{name}");
        }
        for name in ["a", "a.v1.2", "a.v01.2.3", "a.v1.2.3-", "a.v1.2.3x", "a.v1.2.3-01"] {
            assert!(!ends_in_version(name), "{name}");
        }
    }
}
