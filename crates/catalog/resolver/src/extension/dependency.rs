//! Dependencies of bundles: what a bundle requires beside itself, and what meets it.
//!
//! Upstream refuses bundles with dependencies (SUP-05). With the annotation [`DEPENDENCIES_ANNOTATION`] a
//! ClusterExtension accepts them:
//!
//! * A package is provided by a ClusterExtension that has a bundle of it installed, if the version is in the
//!   range.
//! * An API is provided by an established CustomResourceDefinition, whoever created it, or by the bundle
//!   itself.
//! * A constraint is met by one provider that meets all its parts, as in OLM classic. The properties that a
//!   CEL rule sees are the package, the version and the APIs of the provider.

use super::api_range::common_range;
use super::package_content::{PROVIDED, PackageBundle, PackageProperty};
use crate::candidates::MAX_LOOKUP_STEPS;
use crate::predicate::{self, Predicate, RequirementError};
use crate::property::{BundleProperty, Facts, OperatorApi};
use mainstay_gocompat::quote;
use mainstay_object::Object;
use mainstay_version::Range;
use serde_json::json;
use std::fmt;

/// The annotation of a ClusterExtension that says what happens to bundles with dependencies: see
/// [`DependencyPolicy`].
pub const DEPENDENCIES_ANNOTATION: &str = "mainstay.dev/dependencies";

/// Labels of the objects of a ClusterExtension: kind and name of their owner.
const OWNER_KIND_LABEL: &str = "olm.operatorframework.io/owner-kind";
const OWNER_NAME_LABEL: &str = "olm.operatorframework.io/owner-name";

/// What happens to bundles with dependencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DependencyPolicy {
    /// They are refused, as upstream.
    #[default]
    Refuse,
    /// They are installed once their dependencies are satisfied.
    Require,
    /// They are installed, whether their dependencies are satisfied or not.
    Ignore,
}

impl DependencyPolicy {
    /// Its value of [`DEPENDENCIES_ANNOTATION`]; none for [`DependencyPolicy::Refuse`].
    pub const fn value(self) -> Option<&'static str> {
        match self {
            Self::Refuse => None,
            Self::Require => Some("Require"),
            Self::Ignore => Some("Ignore"),
        }
    }

    /// The policy of a value of [`DEPENDENCIES_ANNOTATION`]; an absent or unknown value means
    /// [`DependencyPolicy::Refuse`].
    pub fn of(value: Option<&str>) -> Self {
        match value {
            Some("Require") => Self::Require,
            Some("Ignore") => Self::Ignore,
            _ => Self::Refuse,
        }
    }
}

/// A dependency of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    requirement: Result<Predicate, RequirementError>,
    /// The type of its property.
    kind: String,
}

impl Dependency {
    /// The dependency in a property; none if the property requires nothing.
    pub fn of(property: &PackageProperty) -> Option<Self> {
        if !PackageBundle::is_dependency(&property.kind) {
            return None;
        }
        let requirement = predicate::from_property(&property.kind, &property.json)?;
        Some(Self { requirement, kind: property.kind.to_string() })
    }

    /// The dependencies of a bundle that the bundle does not meet itself, in their order.
    pub fn all_of(bundle: &PackageBundle) -> Vec<Self> {
        if bundle.dependencies().next().is_none() {
            return Vec::new();
        }
        let itself = Provider::bundle(bundle);
        let all = bundle.dependencies().filter_map(Self::of);
        let mut found: Vec<Self> = Vec::new();
        for dependency in all {
            if !dependency.is_met_by(&itself) && !found.contains(&dependency) {
                found.push(dependency);
            }
        }
        found
    }

    /// The package and the range, if it asks for a package.
    pub fn package(&self) -> Option<(&str, &Range)> {
        match self.condition()? {
            Predicate::All(parts) => match parts.as_slice() {
                [Predicate::Package(package), Predicate::InRange(range)] => Some((package, range)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The range of its package as `spec.source.catalog.version`; none if it asks for something else, or the
    /// API cannot express the range.
    pub fn version_range(&self) -> Option<String> {
        common_range(&[self.package()?.1])
    }

    /// The API, if it asks for one.
    pub fn api(&self) -> Option<&OperatorApi> {
        match self.condition()? {
            Predicate::Api(api) => Some(api),
            _ => None,
        }
    }

    /// Whether the APIs of the cluster can decide it.
    pub fn concerns_apis(&self) -> bool {
        self.condition().is_some_and(concerns_apis)
    }

    /// Whether it is an invalid property, which nothing can meet.
    pub const fn is_unreadable(&self) -> bool {
        self.requirement.is_err()
    }

    /// Whether a provider meets it.
    pub fn is_met_by(&self, provider: &Provider) -> bool {
        let Ok(requirement) = &self.requirement else { return false };
        let mut steps = 0;
        let is_met = requirement.holds(("", None), &provider.facts, &mut steps);
        is_met && steps <= MAX_LOOKUP_STEPS
    }

    /// The first provider that meets it.
    pub fn provider<'p>(&self, providers: &'p [Provider]) -> Option<&'p Provider> {
        providers.iter().find(|provider| self.is_met_by(provider))
    }

    /// The condition without the message of its author.
    fn condition(&self) -> Option<&Predicate> {
        match self.requirement.as_ref().ok()? {
            Predicate::WithMessage { inner, .. } => Some(inner),
            condition => Some(condition),
        }
    }
}

fn concerns_apis(condition: &Predicate) -> bool {
    match condition {
        Predicate::Api(_) | Predicate::Cel { .. } => true,
        Predicate::Package(_) | Predicate::InRange(_) | Predicate::Label(_) => false,
        Predicate::All(parts) | Predicate::Any(parts) | Predicate::Not(parts) => {
            parts.iter().any(concerns_apis)
        }
        Predicate::WithMessage { inner, .. } => concerns_apis(inner),
    }
}

impl fmt::Display for Dependency {
    /// What is required: `package "b" in version range ">=1.0.0"`, `API Widget (example.com/v1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((package, range)) = self.package() {
            write!(f, "package {} in version range {}", quote(package), quote(range.as_str()))?;
        } else if let Some(api) = self.api() {
            write!(f, "API {api}")?;
        } else {
            match &self.requirement {
                Ok(requirement) => write!(f, "one operator {requirement}")?,
                Err(error) => write!(f, "property {}, which is invalid: {error}", self.kind)?,
            }
        }
        match &self.requirement {
            Ok(Predicate::WithMessage { message, .. }) => write!(f, " ({message})"),
            _ => Ok(()),
        }
    }
}

/// Something in a cluster, or to be installed there, that can meet dependencies.
#[derive(Clone, Debug)]
pub struct Provider {
    /// What it is.
    pub source: ProviderSource,
    /// Its package, for an extension and for a bundle.
    pub package: String,
    /// Its version as written, for an extension and for a bundle.
    pub version: String,
    facts: Facts,
}

/// What provides something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProviderSource {
    /// The ClusterExtension of this name.
    Extension(String),
    /// The CustomResourceDefinition of this name.
    Crd(String),
    /// The bundle of this name, which is not installed.
    Bundle(String),
}

impl fmt::Display for ProviderSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extension(name) => write!(f, "ClusterExtension {name}"),
            Self::Crd(name) => write!(f, "CustomResourceDefinition {name}"),
            Self::Bundle(name) => write!(f, "bundle {name}"),
        }
    }
}

impl Provider {
    /// The ClusterExtension `name`, which has a version of a package installed, with the APIs of its
    /// CustomResourceDefinitions.
    pub fn extension(
        name: &str,
        package: &str,
        version: &str,
        apis: impl IntoIterator<Item = OperatorApi>,
    ) -> Self {
        let mut facts = Facts::default();
        let value = json!({"packageName": package, "version": version}).to_string();
        facts.add(BundleProperty { kind: "olm.package", json: &value });
        apis.into_iter().for_each(|api| facts.add_provided_api(api));
        Self {
            source: ProviderSource::Extension(name.to_owned()),
            package: package.to_owned(),
            version: version.to_owned(),
            facts,
        }
    }

    /// The CustomResourceDefinition `name` with the APIs that it serves.
    pub fn crd(name: &str, apis: impl IntoIterator<Item = OperatorApi>) -> Self {
        let mut facts = Facts::default();
        apis.into_iter().for_each(|api| facts.add_provided_api(api));
        Self {
            source: ProviderSource::Crd(name.to_owned()),
            package: String::new(),
            version: String::new(),
            facts,
        }
    }

    /// A bundle of a catalog, with what is known of it once it is installed: package, version and APIs.
    pub fn bundle(bundle: &PackageBundle) -> Self {
        let mut facts = Facts::default();
        for PackageProperty { kind, json } in &bundle.properties {
            if PROVIDED.contains(&&**kind) {
                facts.add(BundleProperty { kind, json });
            }
        }
        let package = facts.packages.first().map(|(package, _)| package.clone());
        Self {
            source: ProviderSource::Bundle(bundle.name.to_string()),
            package: package.unwrap_or_default(),
            version: bundle.version.to_string(),
            facts,
        }
    }
}

/// What a cluster provides, by its ClusterExtensions and CustomResourceDefinitions: extensions that have a
/// bundle installed, with their APIs, then CustomResourceDefinitions.
pub fn cluster_providers<'o>(
    extensions: impl IntoIterator<Item = &'o Object>,
    crds: impl IntoIterator<Item = &'o Object>,
) -> Vec<Provider> {
    let crds: Vec<(&Object, Vec<OperatorApi>)> =
        crds.into_iter().map(|crd| (crd, established_apis(crd))).collect();
    let extensions = extensions.into_iter().filter(|extension| !extension.is_terminating());
    let mut providers: Vec<Provider> = extensions
        .filter_map(|extension| {
            let package = extension.str(&["spec", "source", "catalog", "packageName"])?;
            let version = extension.str(&["status", "install", "bundle", "version"])?;
            let own =
                crds.iter().filter(|(crd, _)| owning_extension(crd) == Some(extension.name()));
            let apis = own.flat_map(|(_, apis)| apis.iter().cloned());
            Some(Provider::extension(extension.name(), package, version, apis))
        })
        .collect();
    let served = crds.into_iter().filter(|(_, apis)| !apis.is_empty());
    providers.extend(served.map(|(crd, apis)| Provider::crd(crd.name(), apis)));
    providers
}

/// The APIs that an established CustomResourceDefinition serves; none while it is being deleted.
pub fn established_apis(crd: &Object) -> Vec<OperatorApi> {
    if crd.is_terminating() || crd.condition("Established") != Some("True") {
        return Vec::new();
    }
    let text = |path: &[&str]| crd.str(path).unwrap_or_default();
    let (group, kind) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]));
    let versions = crd.array(&["spec", "versions"]).iter();
    let served = versions.filter(|version| version["served"] == true);
    let names = served.filter_map(|version| version["name"].as_str());
    names.map(|version| OperatorApi::new(group, version, kind)).collect()
}

/// The name of the ClusterExtension that has an object, by its labels.
pub fn owning_extension(object: &Object) -> Option<&str> {
    let is_extension = object.label(OWNER_KIND_LABEL) == Some("ClusterExtension");
    object.label(OWNER_NAME_LABEL).filter(|_| is_extension)
}

/// The dependencies of a bundle that nothing meets. Displays as the message of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct UnmetDependencies {
    /// The name of the bundle.
    pub bundle: String,
    /// The dependencies, each with the ClusterExtensions of its package that have another version: name and
    /// version.
    pub unmet: Vec<(Dependency, Vec<(String, String)>)>,
}

impl UnmetDependencies {
    /// The dependencies of a bundle that none of the providers meets; none if all are met.
    pub fn of(bundle: &str, dependencies: &[Dependency], providers: &[Provider]) -> Option<Self> {
        let unmet = dependencies.iter().filter(|one| one.provider(providers).is_none());
        let others = |dependency: &Dependency| {
            let wanted = dependency.package().map(|(package, _)| package);
            let others = providers.iter().filter_map(|provider| match &provider.source {
                ProviderSource::Extension(name) if Some(&*provider.package) == wanted => {
                    Some((name.clone(), provider.version.clone()))
                }
                _ => None,
            });
            others.collect()
        };
        let unmet: Vec<_> = unmet.map(|one| (one.clone(), others(one))).collect();
        (!unmet.is_empty()).then(|| Self { bundle: bundle.to_owned(), unmet })
    }
}

/// The beginning of the message about dependencies that are not satisfied.
pub const UNMET_DEPENDENCIES: &str = "unsatisfied dependencies of bundle ";

impl fmt::Display for UnmetDependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{UNMET_DEPENDENCIES}{}: ", quote(&self.bundle))?;
        for (at, (dependency, others)) in self.unmet.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{dependency}")?;
            if let [(name, version), ..] = others.as_slice() {
                write!(f, ": ClusterExtension {} has version {version}", quote(name))?;
            } else if dependency.package().is_some() {
                f.write_str(": no ClusterExtension has it installed")?;
            } else if dependency.api().is_some() {
                f.write_str(": no CustomResourceDefinition serves it")?;
            } else if dependency.requirement.is_ok() {
                f.write_str(": nothing in the cluster meets it")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn dependency(kind: &str, value: &Value) -> Dependency {
        let property = PackageProperty { kind: kind.into(), json: value.to_string().into() };
        Dependency::of(&property).unwrap()
    }

    /// A package in version 1.5.0 with an API, another package, and an API of nobody.
    fn providers() -> Vec<Provider> {
        vec![
            Provider::extension("my-b", "b", "1.5.0+7", [OperatorApi::new("x.io", "v1", "Pot")]),
            Provider::extension("my-c", "c", "2.0.0", []),
            Provider::crd("cups.x.io", [OperatorApi::new("x.io", "v1", "Cup")]),
        ]
    }

    #[test]
    fn dependency_is_met_by_one_provider() {
        let package = |package: &str, range: &str| json!({"package": {"packageName": package, "versionRange": range}});
        let gvk = |kind: &str| json!({"gvk": {"group": "x.io", "version": "v1", "kind": kind}});
        let all = |parts: &[Value]| json!({"all": {"constraints": parts}});
        let cel = |rule: &str| json!({"failureMessage": "m", "cel": {"rule": rule}});
        let pot = "properties.exists(p, p.type == 'olm.gvk' && p.value.kind == 'Pot')";
        let in_range = "properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, '1.5.0') == 0)";
        for (kind, value, expected) in [
            (
                "olm.package.required",
                json!({"packageName": "b", "versionRange": ">=1.0.0 <2.0.0"}),
                Some("my-b"),
            ),
            ("olm.package.required", json!({"packageName": "b", "versionRange": ">=2.0.0"}), None),
            ("olm.package.required", json!({"packageName": "d", "versionRange": ">=1.0.0"}), None),
            (
                "olm.gvk.required",
                json!({"group": "x.io", "version": "v1", "kind": "Cup"}),
                Some("cups.x.io"),
            ),
            ("olm.gvk.required", json!({"group": "x.io", "version": "v2", "kind": "Cup"}), None),
            ("olm.constraint", package("b", "1.5.0"), Some("my-b")),
            ("olm.constraint", all(&[package("b", "1.x"), gvk("Pot")]), Some("my-b")),
            // Of two providers, none meets both parts.
            ("olm.constraint", all(&[package("b", "1.x"), gvk("Cup")]), None),
            (
                "olm.constraint",
                json!({"any": {"constraints": [package("d", "1.x"), package("c", "2.x")]}}),
                Some("my-c"),
            ),
            (
                "olm.constraint",
                all(&[gvk("Pot"), json!({"not": {"constraints": [package("b", "1.5.0")]}})]),
                None,
            ),
            ("olm.constraint", cel(pot), Some("my-b")),
            ("olm.constraint", cel(in_range), Some("my-b")),
            ("olm.constraint", cel("properties.exists("), None),
            ("olm.constraint", json!({}), None),
            ("olm.package.required", json!({"packageName": "b", "versionRange": "wrong"}), None),
        ] {
            let providers = providers();
            let found = dependency(kind, &value).provider(&providers).map(|one| &one.source);
            let found = found.map(|source| match source {
                ProviderSource::Extension(name)
                | ProviderSource::Crd(name)
                | ProviderSource::Bundle(name) => name.as_str(),
            });
            assert_eq!(found, expected, "{kind} {value}");
        }
    }

    #[test]
    fn bundle_meets_its_own_dependencies_and_each_counts_once() {
        let property = |kind: &str, value: Value| PackageProperty {
            kind: kind.into(),
            json: value.to_string().into(),
        };
        let pot = json!({"group": "x.io", "version": "v1", "kind": "Pot"});
        let cup = json!({"group": "x.io", "version": "v1", "kind": "Cup"});
        let bundle = PackageBundle {
            name: "a.v1".into(),
            properties: vec![
                property("olm.package", json!({"packageName": "a", "version": "1.0.0"})),
                property("olm.gvk", pot.clone()),
                property("olm.gvk.required", pot),
                property("olm.gvk.required", cup.clone()),
                property("olm.gvk.required", cup),
                property("olm.maxOpenShiftVersion", json!("4.20")),
            ],
            ..PackageBundle::default()
        };
        let texts: Vec<String> =
            Dependency::all_of(&bundle).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["API Cup (x.io/v1)"]);
    }

    #[test]
    fn message_names_each_dependency_and_what_is_there_instead() {
        let dependencies = [
            dependency(
                "olm.package.required",
                &json!({"packageName": "b", "versionRange": ">=2.0.0"}),
            ),
            dependency(
                "olm.package.required",
                &json!({"packageName": "c", "versionRange": ">=2.0.0"}),
            ),
            dependency(
                "olm.package.required",
                &json!({"packageName": "d", "versionRange": ">=2.0.0"}),
            ),
            dependency(
                "olm.gvk.required",
                &json!({"group": "x.io", "version": "v2", "kind": "Cup"}),
            ),
            dependency(
                "olm.constraint",
                &json!({"failureMessage": "use d", "any": {"constraints": [
                    {"package": {"packageName": "d", "versionRange": "1.x"}},
                    {"gvk": {"group": "x.io", "version": "v2", "kind": "Pot"}},
                ]}}),
            ),
            dependency("olm.constraint", &json!({})),
        ];
        let unmet = UnmetDependencies::of("a.v1", &dependencies, &providers()).unwrap();
        assert_eq!(
            unmet.to_string().replace("; ", ";\n"),
            "unsatisfied dependencies of bundle \"a.v1\": \
             package \"b\" in version range \">=2.0.0\": ClusterExtension \"my-b\" has version 1.5.0+7;\n\
             package \"d\" in version range \">=2.0.0\": no ClusterExtension has it installed;\n\
             API Cup (x.io/v2): no CustomResourceDefinition serves it;\n\
             one operator with package: d and with version in range: 1.x or providing an API with group: x.io, version: v2, kind: Pot (use d): nothing in the cluster meets it;\n\
             property olm.constraint, which is invalid: convert olm.constraint to resolver predicate: constraint is empty"
        );
        assert_eq!(UnmetDependencies::of("a.v1", &dependencies[1..2], &providers()), None);
    }
}
