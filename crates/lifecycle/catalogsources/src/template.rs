//! Catalog image templates: image references with the version of the cluster.
//!
//! The annotation `olm.catalogImageTemplate` is a reference with placeholders; the resolved
//! reference replaces `spec.image`. If a placeholder cannot be resolved, the image stays and
//! conditions report why.

use mainstay_api::{CatalogSource, Condition, ConditionStatus, Time, names};
use mainstay_image::reference::ImageReference;

const TEMPLATES_RESOLVED: &str = "TemplatesHaveResolved";
const RESOLVED_IMAGE: &str = "ResolvedImage";

/// An image template with its placeholders replaced.
#[derive(Debug, PartialEq, Eq)]
struct ResolvedTemplate {
    image: String,
    /// Why the result is no image reference.
    error: Option<String>,
}

/// Major, minor and patch of a Kubernetes version such as `v1.35.0+build`.
fn version_parts(version: &str) -> Option<[&str; 3]> {
    let bare = version.strip_prefix('v').unwrap_or(version);
    let mut parts = bare.splitn(3, '.');
    let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some([major, minor, &rest[..end]])
}

fn resolve(template: &str, version: Option<&str>) -> ResolvedTemplate {
    let parts = version.and_then(version_parts);
    let mut image = template.to_owned();
    let mut unknown: Vec<String> = Vec::new();
    for (at, name) in ["{kube_major_version}", "{kube_minor_version}", "{kube_patch_version}"]
        .into_iter()
        .enumerate()
    {
        if !image.contains(name) {
            continue;
        }
        match parts.map(|parts| parts[at]).filter(|part| !part.is_empty()) {
            Some(part) => image = image.replace(name, part),
            None => unknown.push(name.to_owned()),
        }
    }
    // Placeholders for fields of objects: upstream recognises them and resolves none.
    let mut rest = image.as_str();
    while let Some((_, behind)) = rest.split_once("{group:") {
        let Some((inner, behind)) = behind.split_once('}') else { break };
        unknown.push(format!("{{group:{inner}}}"));
        rest = behind;
    }
    let sound = ImageReference::parse(&image).is_ok();
    let start = "cannot construct catalog image reference, because";
    let syntax = "one or more template(s) has improper syntax";
    let names = unknown.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let error = match (unknown.is_empty(), sound) {
        (true, true) => None,
        (true, false) => Some(format!("{start} {syntax}")),
        (false, true) => Some(format!("{start} variable(s) {names} could not be resolved")),
        (false, false) => {
            Some(format!("{start} variable(s) {names} could not be resolved and {syntax}"))
        }
    };
    ResolvedTemplate { image, error }
}

/// Applies the template of a CatalogSource: returns the new image if it differs, and the
/// conditions.
pub(crate) fn apply(
    source: &CatalogSource,
    version: Option<&str>,
    now: Time,
) -> (Option<String>, Vec<Condition>) {
    let old = &source.status.conditions;
    let others = old
        .iter()
        .filter(|condition| {
            condition.kind != TEMPLATES_RESOLVED && condition.kind != RESOLVED_IMAGE
        })
        .cloned();
    let mut conditions: Vec<Condition> = others.collect();
    let Some(template) = template(source) else { return (None, conditions) };
    let ResolvedTemplate { image, error } = resolve(template, version);
    let good = error.is_none();
    let (status, reason) = if good {
        (ConditionStatus::True, "AllTemplatesResolved")
    } else {
        (ConditionStatus::False, "UnableToResolve")
    };
    let message =
        error.unwrap_or_else(|| "catalog image reference was successfully resolved".into());
    let mut set = |kind: &str, message: &str| {
        let before =
            old.iter().find(|condition| condition.kind == kind && condition.status == status);
        conditions.push(Condition {
            kind: kind.to_owned(),
            status: status.clone(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: before
                .map_or(Some(now), |condition| condition.last_transition_time),
            ..Condition::default()
        });
    };
    set(TEMPLATES_RESOLVED, &message);
    set(RESOLVED_IMAGE, &image);
    let other = (good && image != source.spec.image).then_some(image);
    (other, conditions)
}

/// The template of a CatalogSource, if it has one.
pub(crate) fn template(source: &CatalogSource) -> Option<&str> {
    let template = source.metadata.annotations.get(names::CATALOG_IMAGE_TEMPLATE);
    template.map(String::as_str).filter(|template| !template.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(template: &str, image: &str) -> CatalogSource {
        let mut source = CatalogSource::new("ns", "cat");
        let key = names::CATALOG_IMAGE_TEMPLATE.to_owned();
        source.metadata.annotations.insert(key, template.to_owned());
        source.spec.image = image.to_owned();
        source
    }

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn placeholders_are_version_parts_and_unknown_ones_are_reported() {
        let start = "cannot construct catalog image reference, because";
        let names = "variable(s) \"{kube_minor_version}\" could not be resolved";
        for (template, version, image, error) in [
            ("q.io/c:v{kube_major_version}.{kube_minor_version}", "v1.23.4", "q.io/c:v1.23", None),
            (
                "q.io/c:v{kube_major_version}.{kube_minor_version}.{kube_patch_version}",
                "1.24.3-rc.1+x",
                "q.io/c:v1.24.3",
                None,
            ),
            ("q.io/c:v1", "", "q.io/c:v1", None),
            (
                "q.io/c:v{kube_minor_version}",
                "",
                "q.io/c:v{kube_minor_version}",
                Some(format!("{start} {names} and one or more template(s) has improper syntax")),
            ),
            (
                "q.io/c:{other}",
                "v1.23.4",
                "q.io/c:{other}",
                Some(format!("{start} one or more template(s) has improper syntax")),
            ),
        ] {
            let version = Some(version).filter(|version| !version.is_empty());
            let filled = ResolvedTemplate { image: image.to_owned(), error };
            // shows CAT-20 AT-CAT-01 AT-CAT-02
            assert_eq!(resolve(template, version), filled, "{template}");
        }
    }

    #[test]
    fn image_follows_the_template_and_is_written_once() {
        let mut source = source("q.io/c:v{kube_major_version}.{kube_minor_version}", "q.io/c:old");
        let (image, conditions) = apply(&source, Some("v1.23.4"), time(1));
        // shows CAT-21
        assert_eq!(image.as_deref(), Some("q.io/c:v1.23"));
        assert_eq!(conditions[1].message, "q.io/c:v1.23");
        source.spec.image = "q.io/c:v1.23".to_owned();
        source.status.conditions = conditions.clone();
        assert_eq!(apply(&source, Some("v1.23.4"), time(9)), (None, conditions));
        // An upgraded cluster has another image.
        let (image, conditions) = apply(&source, Some("v1.24.0"), time(9));
        // shows CAT-24
        assert_eq!(image.as_deref(), Some("q.io/c:v1.24"));
        assert_eq!(conditions[1].message, "q.io/c:v1.24");
        let (image, conditions) = apply(&source, None, time(9));
        assert_eq!((image, conditions[0].status.clone()), (None, ConditionStatus::False));
        source.metadata.annotations.clear();
        assert_eq!(apply(&source, None, time(9)), (None, Vec::new()));
    }
}
