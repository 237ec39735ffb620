//! Why a bundle is not sound, not made or not unpacked.

use super::super::error::PathError;
use super::super::go;
use super::super::pull::{PullError, UnpackError};
use super::super::reference::FlagConflict;
use super::super::tool::ToolError;
use mainstay_bundle::validate::MediaTypeError;
use mainstay_yaml::YamlError;
use std::io;

/// A bundle is not sound: everything that is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("Bundle validation errors: {}", .0.join(","))]
pub(in super::super) struct Unsound(pub(super) Vec<String>);

/// The content of an image is not in a folder.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum FetchError {
    /// The container tool did not bring it.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// There is no image.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// It cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
}

/// A bundle is not unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnpackBundleError {
    /// Something that is no folder is where it should go.
    #[error("out {out} is not a directory")]
    NoFolder {
        /// The path.
        out: String,
    },
    /// A folder or a file is refused.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Flags about registries exclude each other.
    #[error(transparent)]
    Flags(#[from] FlagConflict),
    /// A file holds no certificates.
    #[error("failed to fetch root CA from {file}")]
    NoCertificates {
        /// The file.
        file: String,
    },
    /// There is no image.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// There is no folder to unpack it into.
    #[error("{}", go::reason(.0))]
    TempDir(io::Error),
    /// It cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// The format of the bundle is not sound.
    #[error("bundle format validation failed: {0}")]
    Format(Unsound),
    /// The content of the bundle is not sound.
    #[error("bundle content validation failed: {0}")]
    Content(Unsound),
    /// The content does not get where it should go.
    #[error("failed to copy unpacked content to output directory: {0}")]
    Copy(PathError),
}

/// The metadata of a bundle is not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum GenerateError {
    /// A folder or a file is refused.
    #[error(transparent)]
    Path(#[from] PathError),
    /// What the manifests are cannot be told.
    #[error(transparent)]
    MediaType(#[from] MediaTypeError),
    /// Package and channels are not given, and cannot be told.
    #[error(
        "please manually input channels and packageName, error interpreting bundle from directory \
         {folder}, {source}"
    )]
    Infer {
        /// The folder of the bundle.
        folder: String,
        /// Why they cannot.
        source: InferError,
    },
    /// No channel leads to the bundle.
    #[error("error interpreting channels, please manually input channels instead")]
    NoChannels,
    /// The annotations that are there cannot be read.
    #[error("yaml: line {}: {}", .0.line, .0.fault)]
    Annotations(YamlError),
    /// The annotations that are there say something else.
    #[error("{}", together(.0))]
    OtherAnnotations(Vec<AnnotationFault>),
}

/// What is wrong with an annotation that is there.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnnotationFault {
    /// It is not there.
    #[error("Missing field: {key}")]
    Missing {
        /// Its key.
        key: String,
    },
    /// It has another value.
    #[error(
        "Expect field {} to have value {} instead of {}",
        go::quote(key),
        go::quote(expected),
        go::quote(found)
    )]
    OtherValue {
        /// Its key.
        key: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
}

/// What the folder above a bundle says of it cannot be told, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum InferError {
    /// The bundle has no ClusterServiceVersion.
    #[error("error loading CSV from bundle directory, {0}")]
    Csv(CsvError),
    /// Another bundle of the package has none.
    #[error("error getting CSVs from bundles in the package directory, {0}")]
    Csvs(CsvError),
    /// The folder of the package cannot be read.
    #[error(
        "error getting CSVs from bundles in the package directory, error reading from {folder} \
         directory, {source}"
    )]
    Package {
        /// The folder.
        folder: String,
        /// Why it cannot.
        source: PathError,
    },
    /// The package has no manifest.
    #[error("error parsing package.yaml file in the package root directory, {0}")]
    Manifest(ManifestError),
}

/// There is no ClusterServiceVersion in a folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum CsvError {
    /// The folder cannot be read.
    #[error("error reading bundle directory {folder}, {source}")]
    Read {
        /// The folder.
        folder: String,
        /// Why it cannot.
        source: PathError,
    },
    /// There are several.
    #[error("more than one ClusterServiceVersion is found in bundle")]
    Several,
    /// There is none.
    #[error("no ClusterServiceVersion object found in {folder}")]
    NotFound {
        /// The folder.
        folder: String,
    },
}

/// There is no manifest of a package in a folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestError {
    /// The folder cannot be read.
    #[error("error reading bundle parent directory, {0}")]
    Read(PathError),
    /// No file is one.
    #[error("valid PackageManifest YAML file not found in {folder}, {}", together(files))]
    NotFound {
        /// The folder.
        folder: String,
        /// What is wrong with its files.
        files: Vec<FileFault>,
    },
}

/// A file is no manifest of a package.
#[derive(Debug, thiserror::Error)]
#[error("error parsing {path} as package.yaml file, {}", reason(*is_object))]
pub(super) struct FileFault {
    /// The file.
    pub(super) path: String,
    /// Whether there is an object in it, which then does not name a package.
    pub(super) is_object: bool,
}

const fn reason(is_object: bool) -> &'static str {
    if is_object {
        "name of package (packageName) is missing"
    } else {
        "could not decode contents into package manifest - it is no object"
    }
}

/// Several faults as upstream writes them: one as it is, more in brackets.
fn together(faults: &[impl ToString]) -> String {
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}
