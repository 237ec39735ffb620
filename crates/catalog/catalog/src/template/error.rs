//! Why a text is no template, and why nothing comes of one.

use super::Kind;
use crate::{
    content::ContentError,
    decode::{BundleVersionError, ShapeError},
    odd::DocumentError,
    problem::LoadError,
    write::WriteError,
};
use mainstay_gocompat::quote;
use mainstay_version::{ParseReleaseError, ParseVersionError, VersionReleaseError};
use mainstay_yaml::{Repeated, YamlError};

/// The first document of a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The text is neither JSON nor YAML.
    #[error("{upstream}")]
    Syntax {
        /// What upstream's decoder says to it.
        upstream: String,
        /// What is wrong, and where.
        source: YamlError,
    },
    /// There is no document.
    #[error("EOF")]
    Empty,
}

/// A document is not of the Go type that upstream reads it into.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnmarshalError {
    /// It has no content.
    #[error("unexpected end of JSON input")]
    Nothing,
    /// It is no object.
    #[error("json: cannot unmarshal {found} into Go value of type {expected}")]
    NoObject {
        /// What it is.
        found: &'static str,
        /// The Go type.
        expected: &'static str,
    },
    /// Its entries are no list.
    #[error(
        "json: cannot unmarshal {found} into Go struct field {shape}.entries of type []*declcfg.Meta"
    )]
    NoList {
        /// What they are.
        found: &'static str,
        /// The Go struct.
        shape: &'static str,
    },
    /// One of its entries is no document of a catalog.
    #[error(transparent)]
    Entry(#[from] DocumentError),
    /// A field is of another type.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// The kind of a template cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// Its first document cannot be read.
    #[error("decoding template input: {0}")]
    Decode(#[from] DecodeError),
    /// It is no object with a schema.
    #[error("unmarshalling template schema: {0}")]
    Unmarshal(#[from] UnmarshalError),
    /// It says no schema.
    #[error("template input missing required 'schema' field")]
    NoSchema,
    /// Its schema is of no kind.
    #[error("unknown template schema: {schema}")]
    UnknownSchema {
        /// The schema.
        schema: String,
    },
}

/// A text is no template that holds documents of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Its first document cannot be read.
    #[error("decoding template schema: {0}")]
    Decode(#[from] DecodeError),
    /// It is not of the type of the template.
    #[error("unmarshalling template: {0}")]
    Unmarshal(#[from] UnmarshalError),
    /// It is a template of another kind, or none.
    #[error("template has unknown schema ({}), should be {}", quote(found), quote(wanted.schema()))]
    Schema {
        /// Its schema.
        found: String,
        /// The kind that was asked for.
        wanted: Kind,
    },
}

/// The entries of a template are no documents of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// One is not of the shape that its schema asks for.
    #[error("{}", .0.upstream())]
    Load(#[from] LoadError),
    /// One is `null`.
    #[error("entry {number} of the template is null")]
    Null {
        /// Which one, from 1.
        number: usize,
    },
}

/// A text is no semver template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SemverError {
    /// It cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Keys stand in a mapping twice.
    #[error("error converting YAML to JSON: yaml: unmarshal errors:{}", repeated(.0))]
    RepeatedKeys(Vec<Repeated>),
    /// It is not of the type of the template.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Unmarshal(#[from] UnmarshalError),
    /// It has another schema.
    #[error("readFile: input file has unknown schema, should be {}", quote(Kind::Semver.schema()))]
    Schema,
    /// The channels that it prefers are not to be made.
    #[error(
        "schema attribute mismatch: DefaultChannelTypePreference set to '{preference}' doesn't \
         make sense if not generating {preference}-version channels"
    )]
    NotGenerated {
        /// The preference.
        preference: String,
    },
    /// It prefers channels that there are none of.
    #[error(
        "unknown DefaultChannelTypePreference: {}\nValid values are 'major' or 'minor'",
        quote(preference)
    )]
    UnknownPreference {
        /// The preference.
        preference: String,
    },
}

fn repeated(keys: &[Repeated]) -> String {
    let line =
        |key: &Repeated| format!("\n  line {}: key {} already set in map", key.line, key.key);
    keys.iter().map(line).collect()
}

/// The bundles of a semver template cannot be put in an order.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// What a catalog says of a bundle is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// What a catalog says of a bundle is not of its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A bundle does not have one version.
    #[error(transparent)]
    Version(#[from] BundleVersionError),
    /// A bundle is of another package than those before it.
    #[error("bundle {} does not belong to this package: {}", quote(found), quote(package))]
    OtherPackage {
        /// The package of the bundle.
        found: String,
        /// That of the others.
        package: String,
    },
    /// Two bundles have one name.
    #[error("duplicate bundle name {}", quote(bundle))]
    DuplicateName {
        /// The name.
        bundle: String,
    },
    /// Versions that differ only by build metadata, each with itself without that.
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

/// A bundle has no version and release to compare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleReleaseError {
    /// What a catalog says of it is not of its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// It names no package.
    #[error("no \"olm.package\" property found for bundle {}", quote(bundle))]
    NoPackage {
        /// The bundle.
        bundle: String,
    },
    /// It names several.
    #[error("must be exactly one property of type \"olm.package\"")]
    SeveralPackages,
    /// Its version is none.
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
        /// Why it is none.
        source: ParseVersionError,
    },
    /// Its release is none.
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
        /// Why it is none.
        source: ParseReleaseError,
    },
    /// The build metadata of its version, which is its release, is none.
    #[error("unable to convert build metadata to release for bundle {}: {source}", quote(bundle))]
    BuildMetadata {
        /// The bundle.
        bundle: String,
        /// Why it is none.
        source: ParseReleaseError,
    },
    /// Version and release do not go together.
    #[error(transparent)]
    Explicit(#[from] VersionReleaseError),
    /// The version with the release in it is none.
    #[error(transparent)]
    Legacy(#[from] ParseVersionError),
}

/// Which of the two bundles of a substitution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that takes the place of the other.
    Substitute,
    /// The other.
    Base,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Substitute => "substitute",
            Self::Base => "base",
        }
    }
}

/// A bundle cannot take the place of another.
#[derive(Debug, thiserror::Error)]
pub enum SubstitutionError<E> {
    /// The template does not name the bundle.
    #[error("substitution name cannot be empty")]
    NoName,
    /// The template does not name the other one.
    #[error("substitution base cannot be empty")]
    NoBase,
    /// Both are the same.
    #[error("substitution name and base cannot be the same")]
    Same,
    /// There is no bundle of the image.
    #[error("failed to render bundle image reference {}: {error}", quote(image))]
    Image {
        /// The reference of the image.
        image: String,
        /// Why there is none.
        error: E,
    },
    /// What a catalog says of a bundle is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// One of the bundles has no version to compare.
    #[error(
        "failed to get VersionRelease for {} bundle {}: {source}",
        role.name(),
        quote(bundle)
    )]
    Version {
        /// Which one.
        role: Role,
        /// What the template calls it.
        bundle: String,
        /// Why it has none.
        source: Box<BundleReleaseError>,
    },
    /// The catalog does not have the bundle whose place is taken.
    #[error("base bundle {} does not exist in catalog", quote(base))]
    UnknownBase {
        /// The bundle.
        base: String,
    },
    /// The bundle whose place is taken is as new.
    #[error("base bundle {} is not less than substitute bundle {}", quote(base), quote(name))]
    NotLess {
        /// The bundle whose place is taken.
        base: String,
        /// The one that takes it.
        name: String,
    },
    /// What comes of it is not of the shape of documents of a catalog.
    #[error("{}", .0.upstream())]
    Declare(LoadError),
    /// What comes of it is no catalog.
    #[error("resulting config is not valid FBC: {}", .0.upstream())]
    Invalid(LoadError),
}

/// Nothing comes of a substitutes template.
#[derive(Debug, thiserror::Error)]
pub enum SubstitutesError<E> {
    /// The text is no such template.
    #[error("unable to parse template: {0}")]
    Read(#[from] ReadError),
    /// Its entries are no documents of a catalog.
    #[error("unable to create declarative config from entries: {0}")]
    Declare(#[from] DeclareError),
    /// A document cannot be read back.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// Its entries are no catalog.
    #[error("entries are not valid FBC: {}", .0.upstream())]
    Invalid(LoadError),
    /// Two substitutions are of one bundle.
    #[error("cannot reuse the same substitution base {}", quote(base))]
    ReusedBase {
        /// The bundle.
        base: String,
    },
    /// One bundle is to take the place of two.
    #[error(
        "cannot reuse the same substitution {} for different bases ({} and {})",
        quote(name),
        quote(first),
        quote(second)
    )]
    ReusedName {
        /// The bundle.
        name: String,
        /// The first of the two.
        first: String,
        /// The other one.
        second: String,
    },
    /// A substitution cannot be made.
    #[error("error processing substitution {} -> {}: {error}", quote(base), quote(name))]
    Substitution {
        /// The bundle whose place is taken.
        base: String,
        /// The one that takes it.
        name: String,
        /// Why it cannot be made.
        error: SubstitutionError<E>,
    },
    /// What came of the substitutions is not of the shape of documents of a catalog.
    #[error("{}", .0.upstream())]
    Finish(LoadError),
}

/// Nothing comes of a template. `E` is why there is no bundle of an image.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError<E> {
    /// The text is no basic template.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The entries of a basic template are no documents of a catalog.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// A document cannot be read back.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A bundle of a basic template says more than its image.
    #[error("unexpected fields present in basic template bundle")]
    UnexpectedFields,
    /// There is no bundle of an image.
    #[error("{0}")]
    Image(E),
    /// The text is no semver template.
    #[error("render: unable to read file: {0}")]
    Semver(#[from] SemverError),
    /// A semver template names no bundles.
    #[error("render: no bundles specified or no bundles could be rendered")]
    NoBundles,
    /// The bundles of a semver template have no order.
    #[error("render: unable to post-process bundle info: {0}")]
    Versions(#[from] VersionsError),
    /// What was made of a semver template is not of the shape of documents of a catalog.
    #[error("{}", .0.upstream())]
    Made(LoadError),
    /// Nothing comes of a substitutes template.
    #[error("render: {0}")]
    Substitutes(Box<SubstitutesError<E>>),
}

/// Why a catalog could not be made into a template.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The text cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A document of YAML holds nothing.
    #[error("{upstream}")]
    Nothing {
        /// What upstream's encoder says to it, or its decoder to the text around it.
        upstream: String,
    },
    /// A document in YAML is none of a catalog.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Yaml(DocumentError),
    /// A document in JSON is none of a catalog.
    #[error(transparent)]
    Json(DocumentError),
    /// A bundle is not of its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// What was read cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
