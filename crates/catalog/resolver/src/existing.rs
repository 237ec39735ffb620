//! Existing `ClusterServiceVersion`s of a namespace, as entries of a virtual catalog.

use crate::go_json::{self, JsonError};
use crate::input::{CrdReference, ExistingCsv, ResolutionInput};
use crate::property::{BundleProperty, Facts, OperatorApi};
use crate::snapshot::{EntryFacts, Snapshot, SnapshotBuilder};
use mainstay_bundle::TypeError;
use mainstay_gocompat::quote;
use mainstay_version::Version;
use serde::Deserializer as _;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The name of the virtual catalog of existing `ClusterServiceVersion`s.
pub(crate) const CATALOG: &str = "@existing";

/// Why the existing `ClusterServiceVersion`s cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExistingError {
    /// The chain of `spec.replaces` of ClusterServiceVersions is a cycle.
    #[error("csv {namespace}/{csv} has already been seen")]
    Circle {
        /// The namespace.
        namespace: String,
        /// The ClusterServiceVersion that closes the cycle.
        csv: String,
    },
    /// A ClusterServiceVersion is replaced by another one and is not in the phase `Replacing`.
    #[error("csv {namespace}/{csv} in phase {phase} instead of Replacing")]
    NotReplacing {
        /// The namespace.
        namespace: String,
        /// The ClusterServiceVersion.
        csv: String,
        /// Its phase.
        phase: String,
    },
    /// A ClusterServiceVersion names a custom resource definition without a group.
    #[error("error parsing crd name: {crd}")]
    ParseCrdName {
        /// The name.
        crd: String,
    },
    /// The annotation with the properties of a ClusterServiceVersion cannot be read.
    #[error(
        "failed to retrieve properties of csv {}: failed to unmarshal properties annotation: \
         {error}",
        quote(csv)
    )]
    ParseProperties {
        /// The ClusterServiceVersion.
        csv: String,
        /// The error of the annotation.
        error: AnnotationError,
    },
}

/// Why the annotation `operatorframework.io/properties` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnnotationError {
    /// The text is not JSON.
    #[error(transparent)]
    ParseJson(#[from] JsonError),
    /// A value has another type than its field.
    #[error(transparent)]
    Decode(#[from] TypeError),
}

/// The existing `ClusterServiceVersion`s of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Existing {
    /// The `ClusterServiceVersion`s as the entries of a catalog.
    pub snapshot: Snapshot,
    /// For each entry, whether it is the `status.installedCSV` of a Subscription.
    pub subscribed: Vec<bool>,
    /// Why the `ClusterServiceVersion`s cannot be read; the snapshot is empty then.
    pub error: Option<ExistingError>,
}

impl Existing {
    /// Reads the existing `ClusterServiceVersion`s of an input.
    pub(crate) fn of(input: &ResolutionInput<'_>, fail_forward: bool) -> Self {
        let mut csvs: Vec<&ExistingCsv> = input.csvs.iter().collect();
        csvs.sort_by(|a, b| a.name.cmp(&b.name));
        match read(input, &csvs, fail_forward) {
            Ok(existing) => existing,
            Err(error) => Self { error: Some(error), ..Self::default() },
        }
    }
}

fn read(
    input: &ResolutionInput<'_>,
    csvs: &[&ExistingCsv],
    fail_forward: bool,
) -> Result<Existing, ExistingError> {
    let successors: HashMap<&str, &ExistingCsv> = csvs
        .iter()
        .filter(|csv| !csv.replaces.is_empty())
        .map(|csv| (csv.replaces.as_str(), *csv))
        .collect();
    let mut builder = SnapshotBuilder::default();
    let installed: HashSet<&str> = input
        .subscriptions
        .iter()
        .map(|subscription| subscription.installed_csv.as_str())
        .collect();
    for csv in csvs.iter().filter(|csv| !csv.copied) {
        if fail_forward
            && !mainstay_fault::is_on("failed-upgrades-stay-in-the-way")
            && chain_fails(&input.namespace, csv, &successors)?
            && csv.phase == "Replacing"
        {
            continue;
        }
        let (package, facts) = facts(input, csv)?;
        let version = Some(csv.version.clone().unwrap_or_else(|| Version::new(0, 0, 0)));
        let known = builder.add_facts(&package, version, facts);
        builder.entry(&known, &EntryFacts { name: &csv.name, ..EntryFacts::default() });
    }
    let snapshot = builder.finish();
    let entries = snapshot.entries.iter();
    let subscribed = entries.map(|entry| installed.contains(&*entry.name)).collect();
    Ok(Existing { snapshot, subscribed, error: None })
}

/// Whether the chain of `ClusterServiceVersion`s that replace `csv` ends with one in the phase
/// `Failed`.
///
/// Each `ClusterServiceVersion` of the chain but the last must be in the phase `Replacing`.
fn chain_fails(
    namespace: &str,
    csv: &ExistingCsv,
    successors: &HashMap<&str, &ExistingCsv>,
) -> Result<bool, ExistingError> {
    let mut seen = HashSet::new();
    let mut current = csv;
    loop {
        if !seen.insert(&*current.name) {
            return Err(ExistingError::Circle {
                namespace: namespace.to_owned(),
                csv: current.name.clone(),
            });
        }
        let Some(next) = successors.get(current.name.as_str()) else {
            return Ok(current.phase == "Failed");
        };
        if current.phase != "Replacing" {
            return Err(ExistingError::NotReplacing {
                namespace: namespace.to_owned(),
                csv: current.name.clone(),
                phase: current.phase.clone(),
            });
        }
        current = next;
    }
}

/// The package of a `ClusterServiceVersion`, empty if unknown, and its decoded properties.
fn facts(input: &ResolutionInput<'_>, csv: &ExistingCsv) -> Result<(String, Facts), ExistingError> {
    // Invalid names of CRDs are errors even if the annotation overrides the lists.
    let owned = apis(&csv.owned_crds, &csv.owned_apis)?;
    let required = apis(&csv.required_crds, &csv.required_apis)?;
    let mut facts = Facts::default();
    if let Some(annotation) = &csv.properties {
        let properties = annotated(annotation)
            .map_err(|error| ExistingError::ParseProperties { csv: csv.name.clone(), error })?;
        for (kind, json) in properties {
            facts.add(BundleProperty {
                kind: &kind,
                json: json.as_deref().map_or("null", RawValue::get),
            });
        }
    } else {
        for api in owned {
            facts.add_provided_api(api);
        }
        for api in required {
            facts.add_required_api(api);
        }
        if let Some(package) = inferred_package(input, csv) {
            let version = csv.version.as_ref().map(ToString::to_string);
            let version = version.filter(|version| version != "0.0.0").unwrap_or_default();
            let value = json!({"packageName": package, "version": version}).to_string();
            facts.add(BundleProperty { kind: "olm.package", json: &value });
        }
    }
    let package = facts.packages.iter().map(|(name, _)| name).max().cloned().unwrap_or_default();
    Ok((package, facts))
}

/// The package of the Subscriptions that have a `ClusterServiceVersion` installed, if all of them
/// name the same package.
fn inferred_package<'a>(input: &'a ResolutionInput<'_>, csv: &ExistingCsv) -> Option<&'a str> {
    let packages: BTreeSet<&str> = input
        .subscriptions
        .iter()
        .filter(|sub| sub.installed_csv == csv.name && !sub.package.is_empty())
        .map(|sub| sub.package.as_str())
        .collect();
    (packages.len() == 1).then(|| packages.into_iter().next()).flatten()
}

fn apis(
    crds: &[CrdReference],
    served: &[OperatorApi],
) -> Result<BTreeSet<OperatorApi>, ExistingError> {
    let mut all: BTreeSet<OperatorApi> = served.iter().cloned().collect();
    for crd in crds {
        let Some((_, group)) = crd.name.split_once('.') else {
            return Err(ExistingError::ParseCrdName { crd: crd.name.clone() });
        };
        all.insert(OperatorApi::new(group, &*crd.version, &*crd.kind));
    }
    Ok(all)
}

type Annotated = Vec<(String, Option<Box<RawValue>>)>;

/// The properties in the text of the annotation.
fn annotated(text: &str) -> Result<Annotated, AnnotationError> {
    if let Some(error) = go_json::fault(text) {
        return Err(error.into());
    }
    let wrong_field = |raw: &str, owner: &'static str, path: &str, expected: &str| {
        let found = go_json::kind(raw).to_owned();
        TypeError::WrongField { found, owner, path: path.to_owned(), expected: expected.to_owned() }
    };
    let wrong_item = |raw: &str, expected: &str| {
        wrong_field(raw, "propertiesAnnotation", "properties", expected)
    };
    let list = fields(text, |raw| TypeError::WrongValue {
        found: go_json::kind(raw).to_owned(),
        expected: "projection.propertiesAnnotation".to_owned(),
    })?;
    let Some(items) = list.get("properties").map(|items| items.get()) else {
        return Ok(Vec::new());
    };
    let items: Vec<&RawValue> = match go_json::kind(items) {
        "null" => return Ok(Vec::new()),
        "array" => serde_json::from_str(items).map_err(unsupported)?,
        _ => return Err(wrong_item(items, "[]projection.property").into()),
    };
    let property = |item: &RawValue| {
        let fields = fields(item.get(), |raw| wrong_item(raw, "projection.property"))?;
        let kind = match fields.get("type").map(|raw| raw.get()) {
            None => String::new(),
            Some(raw) => match go_json::kind(raw) {
                "null" => String::new(),
                "string" => serde_json::from_str(raw).map_err(unsupported)?,
                _ => return Err(wrong_field(raw, "property", "properties.type", "string").into()),
            },
        };
        Ok((kind, fields.get("value").map(|raw| (*raw).to_owned())))
    };
    items.into_iter().map(property).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn unsupported(error: serde_json::Error) -> JsonError {
    JsonError::Unsupported(error.to_string())
}

/// The fields of a JSON object by their names in lower case; the last field of a name counts. Null
/// has no fields, and any other value is the error `type_error`.
fn fields(
    text: &str,
    type_error: impl FnOnce(&str) -> TypeError,
) -> Result<HashMap<String, &RawValue>, AnnotationError> {
    struct Fields;
    impl<'de> serde::de::Visitor<'de> for Fields {
        type Value = HashMap<String, &'de RawValue>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut fields = HashMap::new();
            while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                fields.insert(key.to_ascii_lowercase(), value);
            }
            Ok(fields)
        }
    }
    match go_json::kind(text) {
        "null" => Ok(HashMap::new()),
        "object" => serde_json::Deserializer::from_str(text)
            .deserialize_map(Fields)
            .map_err(|error| unsupported(error).into()),
        _ => Err(type_error(text).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(name: &str, replaces: &str, phase: &str) -> ExistingCsv {
        ExistingCsv {
            name: name.to_owned(),
            replaces: replaces.to_owned(),
            phase: phase.to_owned(),
            ..ExistingCsv::default()
        }
    }

    #[test]
    fn replacement_chain_reports_whether_its_last_csv_failed() {
        let chain = |csvs: &[ExistingCsv]| {
            let successors =
                csvs.iter().map(|csv| (csv.replaces.as_str(), csv)).collect::<HashMap<_, _>>();
            chain_fails("bar", &csvs[0], &successors).map_err(|error| error.to_string())
        };
        let (r, f, s) = ("Replacing", "Failed", "Succeeded");
        assert_eq!(chain(&[csv("v1", "", f)]), Ok(true));
        assert_eq!(chain(&[csv("v1", "", s)]), Ok(false));
        assert_eq!(chain(&[csv("v1", "", r), csv("v2", "v1", s)]), Ok(false));
        assert_eq!(chain(&[csv("v1", "", r), csv("v2", "v1", r), csv("v3", "v2", f)]), Ok(true));
        assert_eq!(
            chain(&[csv("v1", "", r), csv("v2", "v1", f), csv("v3", "v2", f)]),
            Err("csv bar/v2 in phase Failed instead of Replacing".to_owned())
        );
        assert_eq!(
            chain(&[csv("v1", "v2", r), csv("v2", "v1", r)]),
            Err("csv bar/v1 has already been seen".to_owned())
        );
    }
}
