//! Judging bundles: the validators of upstream's validation library.
//!
//! [`load`] reads a folder as that library does, each [`Validator`] looks at what came of it and
//! answers with [`ManifestResult`] in upstream's words. A finding knows its place besides
//! ([`LoadedBundle::place`]), and a remedy, for who speaks to people.
//!
//! ```text
//! tree ─► load ─► Subject ─► Validator::run ─► Findings (one for each object that was looked at)
//!                    └─ problems: what could not be read, with file and line
//! ```
//!
//! [`format()`] and [`content`] are what `opm` itself asks of a bundle's folders and manifests.
//!
//! Nothing here asks a network: the one validator that looks at images is given where their
//! manifests come from ([`ImageInspector`]).
//!
//! Where upstream crashes (an empty list of icons) there is a finding; where it goes through a map,
//! what it says in random order is sorted here.

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
pub use format::format;
pub use load::{LoadResult, LoadedBundle, load, load_as};
pub use multiarch::ImageInspector;
pub use operator_sdk::{
    annotations as read_sdk_annotations, format_go_value, objects as validate_sdk_objects,
    to_older_messages,
};
pub use registry::{MediaTypeError, content, media_type};
pub(crate) use removed_apis::is_removed;
pub use settings::{CategoriesError, LibraryVersion, ValidatorSettings};

/// A validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validator {
    /// The ClusterServiceVersion.
    Csv,
    /// Custom resource definitions.
    Crd,
    /// Whether the parts fit together.
    Bundle,
    /// What the hub asks for, as it was: with capabilities and categories.
    OperatorHub,
    /// What the hub asks for.
    OperatorHubV2,
    /// The capability level is one of the standard ones.
    Capabilities,
    /// Categories are standard ones.
    Categories,
    /// Objects that can harm a cluster.
    Object,
    /// Bundles that keep to old versions of a platform.
    Community,
    /// APIs that Kubernetes has removed.
    RemovedApis,
    /// Good practices.
    GoodPractices,
    /// Architectures of images.
    MultiArch,
}

impl Validator {
    /// All of them.
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

    /// Those that every bundle has to please.
    pub const DEFAULT: [Self; 3] = [Self::Csv, Self::Crd, Self::Bundle];

    /// Its name.
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

    /// What it says of a bundle, object by object, also of objects of which it has nothing to say.
    /// Without images [`Validator::MultiArch`] looks at nothing.
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
            Self::OperatorHub => operator_hub::first(Some(subject), settings),
            Self::OperatorHubV2 => vec![operator_hub::second(subject, settings)],
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

/// A place in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FindingLocation {
    /// The file, below the tree's root.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
}

impl LoadedBundle {
    /// Where a finding stands; none for what is about the bundle as a whole.
    pub fn place(&self, finding: &ValidationFinding) -> Option<FindingLocation> {
        self.locate_all(&[finding]).pop().flatten()
    }

    /// As [`LoadedBundle::place`], for many findings: each file is gone through once.
    pub fn locate_all(&self, findings: &[&ValidationFinding]) -> Vec<Option<FindingLocation>> {
        let mut found = vec![None; findings.len()];
        for (at, manifest) in self.manifests.iter().enumerate() {
            let here = |number: &usize| findings[*number].place.manifest == Some(at);
            let numbers: Vec<usize> = (0..findings.len()).filter(here).collect();
            let paths = numbers.iter().map(|number| findings[*number].place.path.as_slice());
            for (number, line) in numbers.iter().zip(manifest.lines_of(paths)) {
                found[*number] = Some(FindingLocation { file: manifest.file().to_owned(), line });
            }
        }
        found
    }
}
