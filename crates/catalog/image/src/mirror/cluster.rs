//! Mirror rules of a cluster: `ImageDigestMirrorSet`, `ImageTagMirrorSet`,
//! `ImageContentSourcePolicy`.

use super::{FileError, Mirror, MirrorRule, MirrorRules, PullScope, file::location};
use serde_json::Value;

/// Why a mirror object is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name}: {why}")]
pub struct ClusterError {
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// Why it is invalid.
    pub why: String,
}

/// The rules of `ImageDigestMirrorSet`, `ImageTagMirrorSet` (`config.openshift.io/v1`) and
/// `ImageContentSourcePolicy` (`operator.openshift.io/v1alpha1`); other kinds are ignored.
///
/// As in the cluster, objects are applied in the order of their names. Mirrors of one source are
/// merged without duplicates. One object with `NeverContactSource` blocks the source.
pub fn from_objects<'o>(
    objects: impl IntoIterator<Item = &'o Value>,
) -> Result<MirrorRules, ClusterError> {
    let mut objects: Vec<(&str, &str, &Value)> = objects
        .into_iter()
        .map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            (object["kind"].as_str().unwrap_or_default(), name, object)
        })
        .collect();
    objects.sort_by_key(|(kind, name, _)| (name.to_owned(), kind.to_owned()));
    let mut rules: Vec<MirrorRule> = Vec::new();
    for (kind, name, object) in objects {
        let (list, pulls) = match kind {
            "ImageDigestMirrorSet" => ("imageDigestMirrors", PullScope::DigestOnly),
            "ImageTagMirrorSet" => ("imageTagMirrors", PullScope::TagOnly),
            "ImageContentSourcePolicy" => ("repositoryDigestMirrors", PullScope::DigestOnly),
            _ => continue,
        };
        let wrong =
            |why: String| ClusterError { kind: kind.to_owned(), name: name.to_owned(), why };
        for entry in object["spec"][list].as_array().into_iter().flatten() {
            let source = entry["source"].as_str().unwrap_or_default();
            if source.is_empty() {
                return Err(wrong("a list of mirrors has no source".to_owned()));
            }
            let prefix = if let Some(domain) = source.strip_prefix("*.") {
                location(domain).map(|_| source.to_owned())
            } else {
                location(source)
            };
            let prefix = prefix.map_err(|error| wrong(error.to_string()))?;
            let blocked = match entry["mirrorSourcePolicy"].as_str() {
                None | Some("" | "AllowContactingSource") => false,
                Some("NeverContactSource") => true,
                Some(other) => {
                    return Err(wrong(format!("mirrorSourcePolicy {other:?} is unknown")));
                }
            };
            let place = rules.iter().position(|rule| rule.prefix == prefix);
            let place = place.unwrap_or_else(|| {
                rules.push(MirrorRule { prefix: prefix.clone(), ..MirrorRule::default() });
                rules.len() - 1
            });
            let Some(rule) = rules.get_mut(place) else { continue };
            rule.blocked |= blocked;
            for mirror in entry["mirrors"].as_array().into_iter().flatten() {
                let Some(mirror) = mirror.as_str() else { continue };
                let location =
                    location(mirror).map_err(|error: FileError| wrong(error.to_string()))?;
                let mirror = Mirror { location, insecure: false, pulls };
                // The source itself comes last in any case.
                if mirror.location != prefix && !rule.mirrors.contains(&mirror) {
                    rule.mirrors.push(mirror);
                }
            }
        }
    }
    Ok(MirrorRules { rules, search: Vec::new() })
}
