//! Judging bundles: the validators of upstream's validation library.
//!
//! [`load`] reads a folder as that library does, each [`Validator`] looks at what came of it and
//! answers with [`Findings`] in upstream's words. A finding knows its place besides
//! ([`Subject::place`]), and a remedy, for who speaks to people.
//!
//! ```text
//! tree ─► load ─► Subject ─► Validator::run ─► Findings (one for each object that was looked at)
//!                    └─ problems: what could not be read, with file and line
//! ```
//!
//! [`format()`] and [`content`] are what `opm` itself asks of a bundle's folders and manifests.
//!
//! Nothing here asks a network: the one validator that looks at images is given where their
//! manifests come from ([`Images`]).
//!
//! Where upstream crashes (an empty list of icons) there is a finding; where it goes through a map,
//! what it says in random order is sorted here.

mod annotations;
mod bundle;
mod community;
mod convert;
mod crd;
mod csv;
pub(crate) mod decode;
mod finding;
mod format;
mod good;
mod hub;
mod load;
mod mail;
mod metadata;
mod multiarch;
mod object;
mod registry;
mod removed;
mod sdk;
mod settings;
mod soft;
mod view;
mod weight;

pub use annotations::{operator_group, package_manifest};
pub use community::{IndexContent, IndexFile};
pub use finding::{Bad, Finding, Findings, Level};
pub use format::format;
pub use load::{Loaded, Subject, load, load_as};
pub use multiarch::Images;
pub use registry::{MediaTypeError, content, media_type};
pub(crate) use removed::is_removed;
pub use sdk::{annotations as sdk_annotations, objects as sdk_objects, older_words, printed};
pub use settings::{CategoriesError, Library, Settings};

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
        subject: &Subject,
        settings: &Settings,
        images: Option<&mut dyn Images>,
    ) -> Vec<Findings> {
        match self {
            Self::Csv => vec![csv::validate(subject)],
            Self::Crd => crd::validate(subject),
            Self::Bundle => vec![bundle::validate(subject, settings.library)],
            Self::OperatorHub => hub::first(Some(subject), settings),
            Self::OperatorHubV2 => vec![hub::second(subject, settings)],
            Self::Capabilities => vec![hub::capabilities(subject)],
            Self::Categories => vec![hub::categories(subject, settings)],
            Self::Object => object::validate(subject),
            Self::Community => vec![community::validate(subject, settings)],
            Self::RemovedApis => {
                let mut found = Findings::new(subject.name.clone());
                found.extend(removed::findings(subject, settings));
                vec![found]
            }
            Self::GoodPractices => vec![good::validate(subject)],
            Self::MultiArch => images
                .map(|images| multiarch::validate(subject, settings, images))
                .into_iter()
                .collect(),
        }
    }
}

/// A place in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, below the tree's root.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
}

impl Subject {
    /// Where a finding stands; none for what is about the bundle as a whole.
    pub fn place(&self, finding: &Finding) -> Option<Place> {
        self.places(&[finding]).pop().flatten()
    }

    /// As [`Subject::place`], for many findings: each file is gone through once.
    pub fn places(&self, findings: &[&Finding]) -> Vec<Option<Place>> {
        let mut found = vec![None; findings.len()];
        for (at, manifest) in self.manifests.iter().enumerate() {
            let here = |number: &usize| findings[*number].place.manifest == Some(at);
            let numbers: Vec<usize> = (0..findings.len()).filter(here).collect();
            let paths = numbers.iter().map(|number| findings[*number].place.path.as_slice());
            for (number, line) in numbers.iter().zip(manifest.lines_of(paths)) {
                found[*number] = Some(Place { file: manifest.file().to_owned(), line });
            }
        }
        found
    }
}
