//! Bundle validation: the validators of the library operator-framework/api.
//!
//! [`load`] reads a folder as that library does. Each [`Validator`] returns a [`ManifestResult`]
//! for each object, with upstream's messages. A finding also has a location
//! ([`LoadedBundle::locate`]) and a remedy.
//!
//! ```text
//! tree ─► load ─┬─► LoadedBundle ─► Validator::run ─► ManifestResult (one for each object)
//!               └─► problems: unreadable files, with file and line
//! ```
//!
//! [`check_format`] and [`check_manifests`] are the checks of `opm` itself.
//!
//! This module does not use the network: the validator of images gets their manifests from an
//! [`ImageInspector`].
//!
//! Where upstream crashes (an empty list of icons), this module returns a finding. Where upstream
//! iterates over a map in random order, this module sorts the keys.

mod annotations;
mod bundle;
mod community;
mod compressed_size;
mod convert;
mod crd;
mod csv;
mod csv_fields;
pub(crate) mod decode;
mod email_address;
mod finding;
mod format;
mod good_practices;
mod load;
mod metadata;
mod multiarch;
mod object;
mod operator_hub;
mod operator_sdk;
mod registry;
mod removed_apis;
mod settings;
mod text_coercion;

pub use annotations::{validate_operator_group, validate_package_manifest};
pub use community::{IndexContent, IndexFile};
pub use finding::{BadValue, FindingLevel, ManifestResult, ValidationFinding};
pub use format::check_format;
pub use load::{LoadResult, LoadedBundle, load, load_as};
pub use multiarch::ImageInspector;
pub use operator_sdk::{
    annotations as read_sdk_annotations, format_go_value, objects as validate_sdk_objects,
    to_older_messages,
};
pub use registry::{MediaTypeError, check_manifests, media_type};
pub(crate) use removed_apis::is_removed;
pub use settings::{CategoriesError, LibraryVersion, ValidatorSettings};

/// A validator of bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validator {
    /// The ClusterServiceVersion.
    Csv,
    /// Custom resource definitions.
    Crd,
    /// The bundle as a whole: consistency and size.
    Bundle,
    /// OperatorHub's requirements, version 1: with capabilities and categories.
    OperatorHub,
    /// OperatorHub's requirements.
    OperatorHubV2,
    /// The capability level is a standard one.
    Capabilities,
    /// The categories are standard ones.
    Categories,
    /// Objects that can harm a cluster.
    Object,
    /// Community operators: bundles limited to older versions of OpenShift.
    Community,
    /// APIs that Kubernetes has removed.
    RemovedApis,
    /// Good practices.
    GoodPractices,
    /// The architectures of images.
    MultiArch,
}

impl Validator {
    /// All validators.
    pub const ALL: [Self; 12] = [
        Self::Csv,
        Self::Crd,
        Self::Bundle,
        Self::OperatorHubV2,
        Self::Categories,
        Self::Capabilities,
        Self::Object,
        Self::Community,
        Self::RemovedApis,
        Self::GoodPractices,
        Self::MultiArch,
        Self::OperatorHub,
    ];

    /// The validators that every bundle must pass.
    pub const DEFAULT: [Self; 3] = [Self::Csv, Self::Crd, Self::Bundle];

    /// The name in operator-sdk's selectors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Crd => "crd",
            Self::Bundle => "bundle",
            Self::OperatorHub => "operatorhub",
            Self::OperatorHubV2 => "operatorhub/v2",
            Self::Capabilities => "standardcapabilities",
            Self::Categories => "standardcategories",
            Self::Object => "object",
            Self::Community => "community",
            Self::RemovedApis => "alpha-deprecated-apis",
            Self::GoodPractices => "good-practices",
            Self::MultiArch => "multiarch",
        }
    }

    /// The results for a bundle, object by object; also empty results. Without an inspector,
    /// [`Validator::MultiArch`] returns nothing.
    pub fn run(
        self,
        subject: &LoadedBundle,
        settings: &ValidatorSettings,
        images: Option<&mut dyn ImageInspector>,
    ) -> Vec<ManifestResult> {
        match self {
            Self::Csv => vec![csv::validate(subject)],
            Self::Crd => crd::validate(subject),
            Self::Bundle => vec![bundle::validate(subject, settings.library)],
            Self::OperatorHub => operator_hub::validate_v1(Some(subject), settings),
            Self::OperatorHubV2 => vec![operator_hub::validate_v2(subject, settings)],
            Self::Capabilities => vec![operator_hub::capabilities(subject)],
            Self::Categories => vec![operator_hub::categories(subject, settings)],
            Self::Object => object::validate(subject),
            Self::Community => vec![community::validate(subject, settings)],
            Self::RemovedApis => {
                let mut found = ManifestResult::new(subject.name.clone());
                found.extend(removed_apis::findings(subject, settings));
                vec![found]
            }
            Self::GoodPractices => vec![good_practices::validate(subject)],
            Self::MultiArch => images
                .map(|images| multiarch::validate(subject, settings, images))
                .into_iter()
                .collect(),
        }
    }
}

/// The location of a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FindingLocation {
    /// The file, below the tree's root.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
}

impl LoadedBundle {
    /// The location of a finding; none if it concerns the bundle as a whole.
    pub fn locate(&self, finding: &ValidationFinding) -> Option<FindingLocation> {
        self.locate_all(&[finding]).pop().flatten()
    }

    /// As [`LoadedBundle::locate`] for many findings, in one pass over each file.
    pub fn locate_all(&self, findings: &[&ValidationFinding]) -> Vec<Option<FindingLocation>> {
        let mut found = vec![None; findings.len()];
        for (at, manifest) in self.manifests.iter().enumerate() {
            let here = |number: &usize| findings[*number].object_path.manifest == Some(at);
            let numbers: Vec<usize> = (0..findings.len()).filter(here).collect();
            let paths = numbers.iter().map(|number| findings[*number].object_path.path.as_slice());
            for (number, line) in numbers.iter().zip(manifest.lines_of(paths)) {
                found[*number] = Some(FindingLocation { file: manifest.file().to_owned(), line });
            }
        }
        found
    }
}
