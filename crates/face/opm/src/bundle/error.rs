//! Errors of the bundle commands, with the texts of upstream.

use super::super::error::PathError;
use super::super::go;
use super::super::pull::{PullError, UnpackError};
use super::super::reference::FlagConflict;
use super::super::tool::ToolError;
use mainstay_bundle::validate::MediaTypeError;
use mainstay_yaml::YamlError;
use std::io;

/// A bundle is invalid: all its validation errors.
#[derive(Debug, thiserror::Error)]
#[error("Bundle validation errors: {}", .0.join(","))]
pub(in super::super) struct InvalidBundle(pub(super) Vec<String>);

/// The content of an image cannot be fetched into a folder.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum FetchError {
    /// The container tool failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The image cannot be pulled.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// The image cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
}

/// A bundle cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnpackBundleError {
    /// The output path is not a folder.
    #[error("out {out} is not a directory")]
    NoFolder {
        /// The path.
        out: String,
    },
    /// An operation on a folder or a file failed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Registry flags are mutually exclusive.
    #[error(transparent)]
    Flags(#[from] FlagConflict),
    /// A file has no certificates.
    #[error("failed to fetch root CA from {file}")]
    NoCertificates {
        /// The file.
        file: String,
    },
    /// The image cannot be pulled.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// A temporary folder cannot be created.
    #[error("{}", mainstay_gocompat::io_error_text(.0))]
    TempDir(io::Error),
    /// The image cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// The format of the bundle is invalid.
    #[error("bundle format validation failed: {0}")]
    Format(InvalidBundle),
    /// The content of the bundle is invalid.
    #[error("bundle content validation failed: {0}")]
    Content(InvalidBundle),
    /// The content cannot be copied to the output folder.
    #[error("failed to copy unpacked content to output directory: {0}")]
    Copy(PathError),
}

/// The metadata of a bundle cannot be generated.
#[derive(Debug, thiserror::Error)]
pub(super) enum GenerateError {
    /// An operation on a folder or a file failed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The media type of the manifests is unknown.
    #[error(transparent)]
    MediaType(#[from] MediaTypeError),
    /// Package and channels are not given, and cannot be inferred.
    #[error(
        "please manually input channels and packageName, error interpreting bundle from directory \
         {folder}, {source}"
    )]
    Infer {
        /// The folder of the bundle.
        folder: String,
        /// The error of the inference.
        source: InferError,
    },
    /// No channel leads to the bundle.
    #[error("error interpreting channels, please manually input channels instead")]
    NoChannels,
    /// The existing annotations are not valid YAML.
    #[error("yaml: line {}: {}", .0.line, .0.fault)]
    Annotations(YamlError),
    /// The existing annotations have other values.
    #[error("{}", join_errors(.0))]
    OtherAnnotations(Vec<AnnotationError>),
}

/// An existing annotation is wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnnotationError {
    /// The annotation is missing.
    #[error("Missing field: {key}")]
    Missing {
        /// The key.
        key: String,
    },
    /// The annotation has another value.
    #[error(
        "Expect field {} to have value {} instead of {}",
        go::quote(key),
        go::quote(expected),
        go::quote(found)
    )]
    OtherValue {
        /// The key.
        key: String,
        /// The expected value.
        expected: String,
        /// The existing value.
        found: String,
    },
}

/// The metadata of a bundle cannot be inferred from its package folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum InferError {
    /// The bundle has no ClusterServiceVersion.
    #[error("error loading CSV from bundle directory, {0}")]
    Csv(CsvError),
    /// Another bundle of the package has no ClusterServiceVersion.
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
        /// The error.
        source: PathError,
    },
    /// The package has no package manifest.
    #[error("error parsing package.yaml file in the package root directory, {0}")]
    Manifest(ManifestError),
}

/// A folder does not have exactly one ClusterServiceVersion.
#[derive(Debug, thiserror::Error)]
pub(super) enum CsvError {
    /// The folder cannot be read.
    #[error("error reading bundle directory {folder}, {source}")]
    Read {
        /// The folder.
        folder: String,
        /// The error.
        source: PathError,
    },
    /// The folder has several.
    #[error("more than one ClusterServiceVersion is found in bundle")]
    Several,
    /// The folder has none.
    #[error("no ClusterServiceVersion object found in {folder}")]
    NotFound {
        /// The folder.
        folder: String,
    },
}

/// A folder has no package manifest.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestError {
    /// The folder cannot be read.
    #[error("error reading bundle parent directory, {0}")]
    Read(PathError),
    /// No file is a package manifest.
    #[error("valid PackageManifest YAML file not found in {folder}, {}", join_errors(files))]
    NotFound {
        /// The folder.
        folder: String,
        /// The error of each file.
        files: Vec<NotPackageManifest>,
    },
}

/// A file is not a package manifest.
#[derive(Debug, thiserror::Error)]
#[error("error parsing {path} as package.yaml file, {}", reason(*is_object))]
pub(super) struct NotPackageManifest {
    /// The file.
    pub(super) path: String,
    /// Whether the file has an object, which then has no package name.
    pub(super) is_object: bool,
}

const fn reason(is_object: bool) -> &'static str {
    if is_object {
        "name of package (packageName) is missing"
    } else {
        "could not decode contents into package manifest - it is no object"
    }
}

/// Several errors as upstream writes them: a single one as it is, more in brackets.
fn join_errors(errors: &[impl ToString]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}
