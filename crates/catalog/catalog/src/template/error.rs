//! Errors of templates: reading, rendering, and conversion. The texts are upstream's.

use super::TemplateKind;
use crate::{
    content::BlobError,
    decode::{BundleVersionError, ShapeError},
    document_error::CatalogDocumentError,
    problem::LoadError,
    write::WriteError,
};
use mainstay_gocompat::quote;
use mainstay_version::{ParseReleaseError, ParseVersionError, VersionReleaseError};
use mainstay_yaml::{RepeatedKey, YamlError};

/// Why the first document of a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateDecodeError {
    /// The text is neither JSON nor YAML.
    #[error("{upstream}")]
    Syntax {
        /// The error of upstream's decoder.
        upstream: String,
        /// The fault and its place.
        source: YamlError,
    },
    /// The text has no document.
    #[error("EOF")]
    Empty,
}

/// A document does not have the Go type that upstream decodes it into.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateUnmarshalError {
    /// The document is empty.
    #[error("unexpected end of JSON input")]
    Nothing,
    /// The document is not an object.
    #[error("json: cannot unmarshal {found} into Go value of type {expected}")]
    NoObject {
        /// The type of the document.
        found: &'static str,
        /// The Go type.
        expected: &'static str,
    },
    /// The entries are not a list.
    #[error(
        "json: cannot unmarshal {found} into Go struct field {shape}.entries of type []*declcfg.Meta"
    )]
    NoList {
        /// The type of the entries.
        found: &'static str,
        /// The Go struct.
        shape: &'static str,
    },
    /// An entry is not a document of a catalog.
    #[error(transparent)]
    Entry(#[from] CatalogDocumentError),
    /// A field has another type.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Why the kind of a template is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateKindError {
    /// The first document cannot be read.
    #[error("decoding template input: {0}")]
    Decode(#[from] TemplateDecodeError),
    /// The first document is not an object with a schema.
    #[error("unmarshalling template schema: {0}")]
    Unmarshal(#[from] TemplateUnmarshalError),
    /// The schema is missing.
    #[error("template input missing required 'schema' field")]
    NoSchema,
    /// The schema belongs to no kind.
    #[error("unknown template schema: {schema}")]
    UnknownSchema {
        /// The schema.
        schema: String,
    },
}

/// Why a text is no template with documents of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateReadError {
    /// The first document cannot be read.
    #[error("decoding template schema: {0}")]
    Decode(#[from] TemplateDecodeError),
    /// The document does not have the type of the template.
    #[error("unmarshalling template: {0}")]
    Unmarshal(#[from] TemplateUnmarshalError),
    /// The template is of another kind, or of none.
    #[error("template has unknown schema ({}), should be {}", quote(found), quote(wanted.schema()))]
    Schema {
        /// The schema of the template.
        found: String,
        /// The requested kind.
        wanted: TemplateKind,
    },
}

/// Why the entries of a template are not documents of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// An entry does not have the shape of its schema.
    #[error("{}", .0.upstream())]
    Load(#[from] LoadError),
    /// An entry is `null`.
    #[error("entry {number} of the template is null")]
    Null {
        /// The number of the entry, from 1.
        number: usize,
    },
}

/// Why a text is no semver template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SemverError {
    /// The text cannot be read.
    #[error(transparent)]
    Decode(#[from] TemplateDecodeError),
    /// A mapping has repeated keys.
    #[error("error converting YAML to JSON: yaml: unmarshal errors:{}", repeated(.0))]
    RepeatedKeys(Vec<RepeatedKey>),
    /// The document does not have the type of the template.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Unmarshal(#[from] TemplateUnmarshalError),
    /// The template has another schema.
    #[error("readFile: input file has unknown schema, should be {}", quote(TemplateKind::Semver.schema()))]
    Schema,
    /// The template prefers channels that it does not generate.
    #[error(
        "schema attribute mismatch: DefaultChannelTypePreference set to '{preference}' doesn't \
         make sense if not generating {preference}-version channels"
    )]
    NotGenerated {
        /// The preference.
        preference: String,
    },
    /// The preferred type of channels is unknown.
    #[error(
        "unknown DefaultChannelTypePreference: {}\nValid values are 'major' or 'minor'",
        quote(preference)
    )]
    UnknownPreference {
        /// The preference.
        preference: String,
    },
}

fn repeated(keys: &[RepeatedKey]) -> String {
    let line =
        |key: &RepeatedKey| format!("\n  line {}: key {} already set in map", key.line, key.key);
    keys.iter().map(line).collect()
}

/// Why the bundles of a semver template cannot be ordered.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// The document of a bundle is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The document of a bundle does not have its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A bundle does not have a single version.
    #[error(transparent)]
    Version(#[from] BundleVersionError),
    /// A bundle belongs to another package than the bundles before it.
    #[error("bundle {} does not belong to this package: {}", quote(found), quote(package))]
    OtherPackage {
        /// The package of the bundle.
        found: String,
        /// The package of the other bundles.
        package: String,
    },
    /// Two bundles have the same name.
    #[error("duplicate bundle name {}", quote(bundle))]
    DuplicateName {
        /// The name.
        bundle: String,
    },
    /// Versions that differ only by build metadata, each with its text without build metadata.
    #[error(
        "encountered bundle versions which differ only by build metadata, which cannot be ordered: \
         {}",
        incomparable(.0)
    )]
    BuildMetadata(Vec<(String, String)>),
}

fn incomparable(versions: &[(String, String)]) -> String {
    let one = |(version, plain): &(String, String)| {
        format!("bundle version \"{version}\" cannot be compared to \"{plain}\"")
    };
    match versions {
        [version] => one(version),
        all => format!("[{}]", all.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

/// Why a bundle has no version and release to compare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleReleaseError {
    /// The document of the bundle does not have its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The bundle has no package property.
    #[error("no \"olm.package\" property found for bundle {}", quote(bundle))]
    NoPackage {
        /// The bundle.
        bundle: String,
    },
    /// The bundle has several package properties.
    #[error("must be exactly one property of type \"olm.package\"")]
    SeveralPackages,
    /// The version is invalid.
    #[error(
        "invalid semver version {} in \"olm.package\" property for bundle {}: {source}",
        quote(version),
        quote(bundle)
    )]
    Version {
        /// The version.
        version: String,
        /// The bundle.
        bundle: String,
        /// Why the version is invalid.
        source: ParseVersionError,
    },
    /// The release is invalid.
    #[error(
        "invalid release {} in \"olm.package\" property for bundle {}: {source}",
        quote(release),
        quote(bundle)
    )]
    Release {
        /// The release.
        release: String,
        /// The bundle.
        bundle: String,
        /// Why the release is invalid.
        source: ParseReleaseError,
    },
    /// The version's build metadata, which stands for the release, is invalid.
    #[error("unable to convert build metadata to release for bundle {}: {source}", quote(bundle))]
    BuildMetadata {
        /// The bundle.
        bundle: String,
        /// Why the release is invalid.
        source: ParseReleaseError,
    },
    /// Version and release cannot be combined.
    #[error(transparent)]
    Explicit(#[from] VersionReleaseError),
    /// The version with a release in its build metadata is invalid.
    #[error(transparent)]
    Legacy(#[from] ParseVersionError),
}

/// The role of a bundle in a substitution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubstitutionRole {
    /// The bundle that replaces the base.
    Substitute,
    /// The bundle that is replaced.
    Base,
}

impl SubstitutionRole {
    const fn name(self) -> &'static str {
        match self {
            Self::Substitute => "substitute",
            Self::Base => "base",
        }
    }
}

/// Why a substitution fails.
#[derive(Debug, thiserror::Error)]
pub enum SubstitutionError<E> {
    /// The template does not name the substitute.
    #[error("substitution name cannot be empty")]
    NoName,
    /// The template does not name the base.
    #[error("substitution base cannot be empty")]
    NoBase,
    /// Substitute and base are the same.
    #[error("substitution name and base cannot be the same")]
    Same,
    /// The bundle image cannot be rendered.
    #[error("failed to render bundle image reference {}: {error}", quote(image))]
    Image {
        /// The image reference.
        image: String,
        /// Why it cannot be rendered.
        error: E,
    },
    /// The document of a bundle is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A bundle has no version to compare.
    #[error(
        "failed to get VersionRelease for {} bundle {}: {source}",
        role.name(),
        quote(bundle)
    )]
    Version {
        /// The role of the bundle.
        role: SubstitutionRole,
        /// The name of the bundle in the template.
        bundle: String,
        /// Why it has no version.
        source: Box<BundleReleaseError>,
    },
    /// The catalog does not have the base.
    #[error("base bundle {} does not exist in catalog", quote(base))]
    UnknownBase {
        /// The bundle.
        base: String,
    },
    /// The version of the base is not less than that of the substitute.
    #[error("base bundle {} is not less than substitute bundle {}", quote(base), quote(name))]
    NotLess {
        /// The base.
        base: String,
        /// The substitute.
        name: String,
    },
    /// A resulting document does not have the shape of its schema.
    #[error("{}", .0.upstream())]
    Declare(LoadError),
    /// The result is not a sound catalog.
    #[error("resulting config is not valid FBC: {}", .0.upstream())]
    Invalid(LoadError),
}

/// Why a substitutes template cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum SubstitutesError<E> {
    /// The text is no substitutes template.
    #[error("unable to parse template: {0}")]
    Read(#[from] TemplateReadError),
    /// The entries are not documents of a catalog.
    #[error("unable to create declarative config from entries: {0}")]
    Declare(#[from] DeclareError),
    /// A document cannot be read back.
    #[error(transparent)]
    Content(#[from] BlobError),
    /// The entries are not a sound catalog.
    #[error("entries are not valid FBC: {}", .0.upstream())]
    Invalid(LoadError),
    /// Two substitutions have the same base.
    #[error("cannot reuse the same substitution base {}", quote(base))]
    ReusedBase {
        /// The base.
        base: String,
    },
    /// A bundle is the substitute of two bases.
    #[error(
        "cannot reuse the same substitution {} for different bases ({} and {})",
        quote(name),
        quote(first),
        quote(second)
    )]
    ReusedName {
        /// The substitute.
        name: String,
        /// The first base.
        first: String,
        /// The second base.
        second: String,
    },
    /// A substitution fails.
    #[error("error processing substitution {} -> {}: {error}", quote(base), quote(name))]
    Substitution {
        /// The base.
        base: String,
        /// The substitute.
        name: String,
        /// Why it fails.
        error: SubstitutionError<E>,
    },
    /// A resulting document does not have the shape of its schema.
    #[error("{}", .0.upstream())]
    Finish(LoadError),
}

/// Why a template cannot be rendered. `E` is the error of the caller for an image.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError<E> {
    /// The text is no basic template.
    #[error(transparent)]
    Read(#[from] TemplateReadError),
    /// The entries of a basic template are not documents of a catalog.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// A document cannot be read back.
    #[error(transparent)]
    Content(#[from] BlobError),
    /// A bundle of a basic template has other fields than its image.
    #[error("unexpected fields present in basic template bundle")]
    UnexpectedFields,
    /// The bundle of an image is not available.
    #[error("{0}")]
    Image(E),
    /// The text is no semver template.
    #[error("render: unable to read file: {0}")]
    Semver(#[from] SemverError),
    /// A semver template names no bundles.
    #[error("render: no bundles specified or no bundles could be rendered")]
    NoBundles,
    /// The bundles of a semver template cannot be ordered.
    #[error("render: unable to post-process bundle info: {0}")]
    Versions(#[from] VersionsError),
    /// A document of a semver template's result does not have the shape of its schema.
    #[error("{}", .0.upstream())]
    Made(LoadError),
    /// A substitutes template cannot be rendered.
    #[error("render: {0}")]
    Substitutes(Box<SubstitutesError<E>>),
}

/// Why a catalog cannot be converted to a template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateConvertError {
    /// The text cannot be read.
    #[error(transparent)]
    Decode(#[from] TemplateDecodeError),
    /// A YAML document is empty.
    #[error("{upstream}")]
    Nothing {
        /// The error of upstream's encoder for it, or of its decoder for the text around it.
        upstream: String,
    },
    /// A YAML document is no document of a catalog.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Yaml(CatalogDocumentError),
    /// A JSON document is no document of a catalog.
    #[error(transparent)]
    Json(CatalogDocumentError),
    /// A bundle does not have its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A document cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
