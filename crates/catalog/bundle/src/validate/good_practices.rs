//! The validator of good practices.

use super::{
    csv_fields::{deep, items, part},
    finding::{BadValue, ManifestResult, ValidationFinding, fields, item},
    load::LoadedBundle,
    object::{permissions, permits},
    removed_apis::list,
};
use crate::go_field;
use mainstay_gocompat::quote;
use mainstay_schema::gojson::Step;
use std::collections::BTreeSet;

const FAILED: &str = "ValidationFailed";

/// Judges a bundle.
pub(crate) fn validate(subject: &LoadedBundle) -> ManifestResult {
    let (name, csv) = (subject.csv_name(), subject.csv.0);
    let mut found = ManifestResult::new(subject.name.clone());
    let doubt = |detail: String| {
        ValidationFinding::warning(FAILED, BadValue::Text(name.to_owned()), detail)
    };
    if part(subject.install(), "deployments").is_null() {
        let detail = "unable to find a deployment to install in the CSV";
        let finding = ValidationFinding::error(FAILED, BadValue::Text(name.to_owned()), detail);
        let place = fields(&["spec", "install", "spec", "deployments"]);
        found.add(finding.at(csv, &place).with_remedy("list the operator's deployments"));
    }
    for (number, (_, pod)) in subject.deployments().enumerate() {
        for (at, container) in items(pod, "containers").iter().enumerate() {
            if !deep(container, &["resources", "requests"]).is_null() {
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
            let mut place = item(&["spec", "install", "spec", "deployments"], number);
            place.extend(fields(&["spec", "template", "spec", "containers"]));
            place.push(Step::Item(at));
            let remedy = "write resources.requests with cpu and memory";
            found.add(doubt(detail).at(csv, &place).with_remedy(remedy));
        }
    }
    for which in ["owned", "required"] {
        for (number, crd) in subject.resources(which).iter().enumerate() {
            if go_field::text(crd, "description").is_empty() {
                let crd = quote(go_field::text(crd, "name"));
                let place = item(&["spec", "customresourcedefinitions", which], number);
                let finding = doubt(format!("{which} CRD {crd} has an empty description"));
                found.add(finding.at(csv, &place).with_remedy("describe what it is for"));
            }
        }
    }
    if let Some(detail) = channels(subject) {
        let remedy = "let the names of channels begin with stable, fast or candidate";
        found.add(doubt(detail).with_remedy(remedy));
    }
    let groups = &["apiextensions.k8s.io"];
    let resources = &["customresourcedefinitions", "*", "[*]"];
    let verbs = &["create", "*", "[*]", "patch"];
    let making = ["permissions", "clusterPermissions"].into_iter().find_map(|field| {
        let mut rules = permissions(subject, field);
        rules
            .find(|(_, _, rule)| permits(rule, groups, resources, verbs))
            .map(|rule| (field, rule.0))
    });
    if let Some((field, at)) = making {
        let detail = "CSV contains permissions to create CRD. An Operator shouldn't deploy or manage other \
             operators (such patterns are known as meta or super operators or include CRDs in its \
             Operands). It's the Operator Lifecycle Manager's job to manage the deployment and lifecycle of \
             operators.  Please, review the design of your solution and if you should not be using \
             Dependency Resolution from OLM instead. More info: \
             https://sdk.operatorframework.io/docs/best-practices/common-recommendation/";
        let place = item(&["spec", "install", "spec", field], at);
        let remedy = "let the lifecycle manager install definitions: own or require them";
        found.add(doubt(detail.to_owned()).at(csv, &place).with_remedy(remedy));
    }
    let place = fields(&["metadata", "name"]);
    let remedy = "name it OPERATOR.vVERSION";
    if !ends_in_version(name) {
        let detail = format!(
            "csv.metadata.Name {name} is not following the versioning convention (MAJOR.MINOR.PATCH e.g \
             0.0.1): https://semver.org/"
        );
        found.add(doubt(detail).at(csv, &place).with_remedy(remedy));
    }
    if name.matches(".v").count() != 1 {
        let detail = format!(
            "csv.metadata.Name {name} is not following the recommended naming convention: \
             <operator-name>.v<semver> e.g. memcached-operator.v0.0.1"
        );
        found.add(doubt(detail).at(csv, &place).with_remedy(remedy));
    }
    found
}

/// Channels whose names do not begin as they should. Upstream names them in random order.
fn channels(subject: &LoadedBundle) -> Option<String> {
    let all = subject.channels.iter().chain([&subject.default_channel]);
    let names: BTreeSet<&str> = all.map(|name| name.trim()).collect();
    let good =
        |name: &str| ["candidate", "stable", "fast"].iter().any(|prefix| name.starts_with(prefix));
    let odd: Vec<&str> = names.into_iter().filter(|name| !name.is_empty() && !good(name)).collect();
    (!odd.is_empty()).then(|| {
        format!(
            "channel(s) {} are not following the recommended naming convention: \
             https://olm.operatorframework.io/docs/best-practices/channel-naming",
            list(&odd)
        )
    })
}

/// Whether a name ends in what looks like a version, and is one.
fn ends_in_version(name: &str) -> bool {
    let starts = name.char_indices().filter(|(_, c)| c.is_ascii_digit());
    let found = starts.map(|(at, _)| &name[at..]).find(|rest| looks_like_version(rest));
    found.is_some_and(|text| mainstay_version::parse_strict(text).is_ok())
}

/// Three numbers, then perhaps what comes before a release and of what it was built.
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
