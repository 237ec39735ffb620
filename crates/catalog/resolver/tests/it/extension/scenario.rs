//! Extension scenarios in plain data: a request, catalogs, and the expected result.

use mainstay_resolver::extension::{
    self, CatalogEvaluation, CatalogResult, ExtensionChoice, ExtensionFailure, ExtensionRequest,
    InputCatalog, InputCatalogContent, InstalledExtensionBundle, PackageBundle, PackageContent,
    PackageProperty, UpgradePolicy,
};
use mainstay_updates::{EntryEdges, Graph};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) name: String,
    /// The rules and tests of the specification that it shows.
    #[serde(default)]
    #[expect(dead_code, reason = "for the list of what is covered")]
    pub(super) ids: Value,
    pub(super) request: RequestData,
    #[serde(default)]
    pub(super) installed: Option<InstalledBundle>,
    #[serde(default)]
    pub(super) explicit_releases: bool,
    #[serde(default)]
    pub(super) catalogs: Vec<Source>,
    pub(super) expect: Expected,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RequestData {
    pub(super) package: String,
    #[serde(default)]
    pub(super) channels: Vec<String>,
    #[serde(default)]
    pub(super) version: String,
    #[serde(default)]
    pub(super) policy: String,
    #[serde(default)]
    pub(super) selector: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct InstalledBundle {
    pub(super) name: String,
    pub(super) version: String,
    #[serde(default)]
    pub(super) release: Option<String>,
}

/// A catalog.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) priority: i32,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) unavailable: bool,
    pub(super) not_served: bool,
    pub(super) not_loaded: bool,
    pub(super) failed: String,
    pub(super) package: Option<Package>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Package {
    pub(super) channels: Vec<Channel>,
    pub(super) bundles: Vec<Entry>,
    pub(super) deprecations: Option<Deprecations>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) entries: Vec<Entry>,
}

/// A bundle or an entry of a channel: a version, short for the name `package.vVERSION`, or all
/// fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Entry {
    Version(String),
    EntryFields(EntryFields),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct EntryFields {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) release: Option<String>,
    pub(super) properties: Vec<String>,
    pub(super) image: String,
    pub(super) replaces: String,
    pub(super) skips: Vec<String>,
    pub(super) skip_range: String,
}

impl Entry {
    /// All fields, with the name that follows from the version.
    pub(super) fn fields(&self, package: &str) -> EntryFields {
        let mut fields = match self {
            Self::Version(version) => {
                EntryFields { version: version.clone(), ..EntryFields::default() }
            }
            Self::EntryFields(fields) => fields.clone(),
        };
        if fields.name.is_empty() {
            fields.name = format!("{package}.v{}", fields.version);
        }
        fields
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Deprecations {
    pub(super) package: String,
    pub(super) channels: BTreeMap<String, String>,
    pub(super) bundles: BTreeMap<String, String>,
}

/// The expected result; only the given fields are compared.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Expected {
    pub(super) catalog: Option<String>,
    pub(super) bundle: Option<String>,
    version: Option<String>,
    release: Option<String>,
    image: Option<String>,
    /// The deprecation message of the bundle in its catalog; null for none.
    deprecated: Option<BTreeMap<String, String>>,
    pub(super) error: Option<String>,
    /// The evaluated catalogs, by name.
    eligible: Option<Vec<String>>,
    /// The bundles of all catalogs that fit, in order of preference.
    fits: Option<Vec<String>>,
    /// The texts of all repairs.
    repairs: Option<Vec<String>>,
    /// The consequence of the failure.
    then: Option<String>,
}

impl Scenario {
    /// Reads a list of scenarios.
    pub(super) fn read(yaml: &str) -> Vec<Self> {
        let value = mainstay_yaml::one(yaml.as_bytes(), &mainstay_yaml::Options::default());
        serde_json::from_value(value.unwrap()).unwrap()
    }

    pub(super) fn request(&self) -> ExtensionRequest {
        let request = &self.request;
        ExtensionRequest {
            package: request.package.clone(),
            channels: request.channels.clone(),
            version: request.version.clone(),
            policy: match request.policy.as_str() {
                "SelfCertified" => UpgradePolicy::SelfCertified,
                "" | "CatalogProvided" => UpgradePolicy::CatalogProvided,
                other => panic!("{other}"),
            },
            selector: request.selector.clone(),
            explicit_releases: self.explicit_releases,
            ..ExtensionRequest::default()
        }
    }

    pub(super) fn installed(&self) -> Option<InstalledExtensionBundle> {
        self.installed.as_ref().map(|installed| InstalledExtensionBundle {
            name: installed.name.clone(),
            version: installed.version.clone(),
            release: installed.release.clone(),
        })
    }

    /// The package content of each catalog.
    pub(super) fn package_contents(&self) -> Vec<Option<PackageContent>> {
        let package = &self.request.package;
        let content_of = |source: &Source| {
            source.package.as_ref().map(|content| content.package_content(package))
        };
        self.catalogs.iter().map(content_of).collect()
    }

    /// The catalogs with their contents.
    pub(super) fn catalogs<'a>(
        &self,
        contents: &'a [Option<PackageContent>],
    ) -> Vec<InputCatalog<'a>> {
        let with = |(source, content): (&Source, &'a Option<PackageContent>)| InputCatalog {
            labels: source.labels.clone(),
            priority: source.priority,
            available: !source.unavailable,
            ..InputCatalog::new(&*source.name, source.content(content.as_ref()))
        };
        self.catalogs.iter().zip(contents).map(with).collect()
    }

    /// Resolves the request.
    pub(super) fn answer(&self) -> Result<ExtensionChoice, Box<ExtensionFailure>> {
        let contents = self.package_contents();
        let catalogs = self.catalogs(&contents);
        extension::resolve(&self.request(), self.installed().as_ref(), &catalogs)
    }

    /// Compares the result with the expected one.
    pub(super) fn check(&self) {
        let (name, expected) = (&self.name, &self.expect);
        let answer = self.answer();
        let same = |what: &str, expected: &Option<String>, actual: &str| {
            if let Some(expected) = expected {
                assert_eq!(expected, actual, "{name}: {what}");
            }
        };
        let considered = match &answer {
            Ok(choice) => &choice.considered,
            Err(failure) => &failure.considered,
        };
        if let Some(expected) = &expected.eligible {
            let evaluated: Vec<&str> = considered
                .iter()
                .filter(|considered| is_evaluated(considered))
                .map(|considered| &*considered.catalog)
                .collect();
            assert_eq!(*expected, evaluated, "{name}");
        }
        if let Some(expected) = &expected.fits {
            let fits: Vec<&str> = considered.iter().flat_map(fits).collect();
            assert_eq!(*expected, fits, "{name}");
        }
        match &answer {
            Ok(choice) => {
                assert_eq!(expected.error, None, "{name}: {} is chosen", choice.bundle);
                same("catalog", &expected.catalog, &choice.catalog);
                same("bundle", &expected.bundle, &choice.bundle);
                same("version", &expected.version, &choice.version.version().to_string());
                let release = choice.version.release().map(ToString::to_string);
                same("release", &expected.release, &release.unwrap_or_default());
                same("image", &expected.image, &choice.image);
                if let Some(expected) = &expected.deprecated {
                    assert_eq!(*expected, strings(&choice.deprecation.bundles), "{name}");
                }
                assert!(expected.repairs.is_none() && expected.then.is_none(), "{name}");
            }
            Err(failure) => {
                assert_eq!(expected.error.as_ref(), Some(&failure.message), "{name}");
                if let Some(expected) = &expected.repairs {
                    let actual: Vec<String> =
                        failure.repairs.iter().map(ToString::to_string).collect();
                    assert_eq!(*expected, actual, "{name}");
                }
                if let Some(expected) = &expected.then {
                    let contents = self.package_contents();
                    let catalogs = self.catalogs(&contents);
                    let actual = extension::consequence(
                        &self.request(),
                        self.installed().as_ref(),
                        &catalogs,
                        failure,
                    );
                    let actual = match actual {
                        extension::Consequence::Retry(text) => text,
                        extension::Consequence::Keep => "keep".to_owned(),
                    };
                    assert_eq!(*expected, actual, "{name}");
                }
            }
        }
    }
}

fn is_evaluated(considered: &CatalogResult) -> bool {
    !matches!(considered.state, CatalogEvaluation::NotSelected | CatalogEvaluation::Unavailable)
}

fn fits(considered: &CatalogResult) -> Vec<&str> {
    match &considered.state {
        CatalogEvaluation::Evaluated(bundle_matches) => bundle_matches
            .iter()
            .filter(|bundle_match| bundle_match.unmet.is_empty())
            .map(|bundle_match| &*bundle_match.bundle)
            .collect(),
        _ => Vec::new(),
    }
}

fn strings(map: &BTreeMap<Arc<str>, Arc<str>>) -> BTreeMap<String, String> {
    map.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

impl Source {
    /// Whether it cannot be read.
    pub(super) fn is_broken(&self) -> bool {
        self.not_served || self.not_loaded || !self.failed.is_empty()
    }

    fn content<'a>(&self, content: Option<&'a PackageContent>) -> InputCatalogContent<'a> {
        if self.not_served {
            InputCatalogContent::NotServed
        } else if self.not_loaded {
            InputCatalogContent::NotLoaded
        } else if self.failed.is_empty() {
            InputCatalogContent::Package(content)
        } else {
            InputCatalogContent::Failed(self.failed.clone())
        }
    }
}

impl Package {
    fn package_content(&self, package: &str) -> PackageContent {
        let bundle = |bundle: &Entry| {
            let bundle = bundle.fields(package);
            let properties = bundle
                .properties
                .iter()
                .map(|kind| PackageProperty { kind: kind.as_str().into(), json: "{}".into() });
            PackageBundle {
                name: bundle.name.into(),
                version: bundle.version.into(),
                release: bundle.release.map(Into::into),
                image: bundle.image.into(),
                properties: properties.collect(),
            }
        };
        let mut graph = Graph::builder(package);
        for channel in &self.channels {
            for entry in &channel.entries {
                let EntryFields { name, replaces, skips, skip_range, .. } = entry.fields(package);
                let skips: Vec<&str> = skips.iter().map(String::as_str).collect();
                let (replaces, skip_range) = (Some(&*replaces), Some(&*skip_range));
                let edges = EntryEdges { replaces, skips: &skips, skip_range };
                graph = graph.entry(&channel.name, &name, edges);
            }
        }
        if let Some(deprecated) = &self.deprecations {
            if !deprecated.package.is_empty() {
                graph = graph.deprecate_package(&deprecated.package);
            }
            for (name, text) in &deprecated.channels {
                graph = graph.deprecate_channel(name, text);
            }
            for (name, text) in &deprecated.bundles {
                graph = graph.deprecate_bundle(name, text);
            }
        }
        PackageContent::new(graph.finish(), self.bundles.iter().map(bundle))
    }
}
