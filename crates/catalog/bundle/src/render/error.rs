//! Errors of rendering, in upstream's words.

use crate::decode_error::{FirstDocumentError, FromUnstructuredError, ObjectError, TypeError};
use mainstay_gocompat::quote;
use mainstay_schema::strict::{self, JsonError};

/// The stage at which rendering failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderStage {
    /// The bundle cannot be read.
    Read,
    /// The bundle needs a feature that is not supported, or not enabled.
    Support,
    /// The configuration is not valid for the bundle.
    Configuration,
    /// The bundle is inconsistent.
    Bundle,
    /// The bundle cannot watch the given namespaces.
    Settings,
}

/// Why a bundle is not rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Read(#[from] ReadBundleError),
    /// The bundle needs a feature that is not supported, or not enabled.
    #[error("unsupported bundle: {0}")]
    Unsupported(SupportError),
    /// The configuration is not valid for the bundle.
    #[error("terminal error: {0}")]
    Configure(ConfigurationError),
    /// The bundle is inconsistent: all its faults.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
    /// A webhook cannot convert the objects of a CustomResourceDefinition that preserves unknown
    /// fields.
    #[error(
        "custom resource definition '{definition}' must have .spec.preserveUnknownFields set to \
         false to let API Server call webhook to do the conversion"
    )]
    PreserveUnknownFields {
        /// The name of the CustomResourceDefinition.
        definition: String,
    },
    /// The bundle cannot watch the given namespaces.
    #[error(transparent)]
    Watch(#[from] TargetNamespaceError),
}

impl RenderError {
    /// The stage of the error.
    pub const fn stage(&self) -> RenderStage {
        match self {
            Self::Read(_) => RenderStage::Read,
            Self::Unsupported(_) => RenderStage::Support,
            Self::Configure(_) => RenderStage::Configuration,
            Self::Invalid(_) | Self::PreserveUnknownFields { .. } => RenderStage::Bundle,
            Self::Watch(_) => RenderStage::Settings,
        }
    }

    /// The message; one line for each fault.
    pub fn message(&self) -> String {
        match self {
            Self::Configure(error) => error.to_string(),
            error => error.to_string(),
        }
    }

    /// Whether a retry fails until a user changes the configuration.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Configure(_))
    }
}

/// Why a bundle cannot be read. Paths are below the root of the bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadBundleError {
    /// The folder of manifests cannot be listed.
    #[error("stat {folder}: {reason}")]
    ListFolder {
        /// The folder.
        folder: &'static str,
        /// The message of the operating system.
        reason: String,
    },
    /// The folder of manifests has too many files.
    #[error("the folder has more than {limit} files")]
    TooManyFiles {
        /// The highest number of files.
        limit: usize,
    },
    /// The folder of manifests contains a folder.
    #[error(
        "subdirectories are not allowed within the \"{folder}\" directory of the bundle image \
         filesystem: found {}",
        quote(path)
    )]
    Subdirectory {
        /// The folder of manifests.
        folder: &'static str,
        /// The folder in it.
        path: String,
    },
    /// A symbolic link cannot be followed.
    #[error("{path}: the symbolic link leaves the bundle, or leads nowhere")]
    LinkOutside {
        /// The link.
        path: String,
    },
    /// An entry is neither a file nor a folder.
    #[error("{path}: not a file")]
    NotAFile {
        /// The entry.
        path: String,
    },
    /// A file cannot be opened.
    #[error("open {path}: {reason}")]
    OpenFile {
        /// The file.
        path: String,
        /// The message of the operating system.
        reason: String,
    },
    /// A file is too long.
    #[error("{path}: the file has more than {limit} bytes")]
    FileTooLong {
        /// The file.
        path: String,
        /// The highest number of bytes.
        limit: u64,
    },
    /// The annotations file does not have its type.
    #[error(transparent)]
    DecodeAnnotations(FirstDocumentError),
    /// A manifest file does not hold objects.
    #[error("error parsing objects in \"{path}\": {error}")]
    ParseObjects {
        /// The file.
        path: String,
        /// The fault of the objects.
        error: Box<ManifestFileError>,
    },
    /// No manifest is a ClusterServiceVersion.
    #[error("no ClusterServiceVersion found in \"{folder}\"")]
    NoClusterServiceVersion {
        /// The folder of manifests.
        folder: &'static str,
    },
    /// The annotation `olm.properties` is not JSON.
    #[error("failed to unmarshal csv.metadata.annotations['olm.properties']: {0}")]
    ParsePropertiesAnnotation(JsonError),
    /// The annotation `olm.properties` does not have its type.
    #[error("failed to unmarshal csv.metadata.annotations['olm.properties']: {0}")]
    DecodePropertiesAnnotation(TypeError),
    /// The properties file does not have its type.
    #[error("failed to unmarshal {path}: {error}")]
    DecodeProperties {
        /// The file.
        path: &'static str,
        /// The fault of the file.
        error: FirstDocumentError,
    },
}

/// Why the objects of a manifest file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFileError {
    /// A document is not YAML.
    #[error("error parsing {path}: error converting YAML to JSON: yaml: {reason}")]
    ParseYaml {
        /// The file.
        path: String,
        /// The message of upstream's parser.
        reason: String,
    },
    /// A document is not an object.
    #[error("unable to decode \"{path}\": {error}")]
    DecodeObject {
        /// The file.
        path: String,
        /// The reason.
        error: ObjectError,
    },
    /// Objects of one document do not have their types.
    #[error("{}", aggregate(.0))]
    ConvertObjects(Vec<FromUnstructuredError>),
}

/// A single error as it is, several errors in brackets.
fn aggregate(errors: &[FromUnstructuredError]) -> String {
    let texts: Vec<String> = errors.iter().map(FromUnstructuredError::to_string).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// A feature that a bundle needs and a ClusterExtension does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SupportError {
    /// The bundle owns aggregated APIs.
    #[error("apiServiceDefintions are not supported")]
    ApiServices,
    /// The bundle has webhooks, and their feature is not enabled.
    #[error("webhookDefinitions are not supported")]
    Webhooks,
    /// The bundle has webhooks, and no certificate provider is set.
    #[error("webhookDefinitions are not supported: certificate provider is nil")]
    Certificates,
    /// The bundle supports single namespaces only, and that feature is not enabled.
    #[error("bundle does not support AllNamespaces install mode")]
    AllNamespaces,
    /// The bundle has none of the install modes of a ClusterExtension.
    #[error(
        "bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install \
         modes"
    )]
    InstallModes,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The configuration is not YAML; the end of the message of upstream's parser.
    #[error("invalid ClusterExtension configuration: invalid configuration: {0}")]
    ParseYaml(String),
    /// The configuration violates the schema of the bundle.
    #[error(
        "invalid ClusterExtension configuration: invalid configuration: {}",
        join_findings(findings)
    )]
    Schema {
        /// The violations.
        findings: Vec<String>,
    },
    /// `deploymentConfig` has values of wrong types.
    #[error("invalid deploymentConfig: failed to unmarshal deploymentConfig: {0}")]
    DecodeDeployments(DeploymentConfigError),
}

fn join_findings(findings: &[String]) -> String {
    match findings {
        [one] => one.clone(),
        several => format!("multiple errors found:\n  - {}", several.join("\n  - ")),
    }
}

/// Why a `deploymentConfig` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeploymentConfigError {
    /// A value is not of the kind of its field.
    #[error(transparent)]
    WrongKind(#[from] TypeError),
    /// A value does not have the Kubernetes type of its field.
    #[error("{source}")]
    DecodeField {
        /// The field.
        field: &'static str,
        /// The reason.
        source: strict::UnmarshalError,
    },
}

/// Why a bundle cannot watch the given namespaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid option(s): invalid target namespaces {}: {reason}", bracketed(targets))]
pub struct TargetNamespaceError {
    /// The namespaces; an empty name means all.
    pub targets: Vec<String>,
    /// The reason.
    pub reason: TargetNamespaceReason,
}

/// Why namespaces do not match the install modes of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetNamespaceReason {
    /// No namespaces are given, and the bundle takes several.
    #[error("at least one target namespace must be specified")]
    NoTarget,
    /// No namespaces are given, and the bundle takes one.
    #[error("exactly one target namespace must be specified")]
    NotOneTarget,
    /// The bundle cannot watch all namespaces.
    #[error("supported install modes {} do not support targeting all namespaces", bracketed(modes))]
    AllNamespaces {
        /// The install modes of the bundle.
        modes: Vec<String>,
    },
    /// The bundle cannot watch the namespace that it runs in.
    #[error("supported install modes {} do not support targeting own namespace", bracketed(modes))]
    OwnNamespace {
        /// The install modes of the bundle.
        modes: Vec<String>,
    },
    /// The bundle cannot watch other namespaces, or not several.
    #[error(
        "supported install modes {} do not support target namespaces {}",
        bracketed(modes),
        bracketed(targets)
    )]
    Namespaces {
        /// The install modes of the bundle.
        modes: Vec<String>,
        /// The namespaces.
        targets: Vec<String>,
    },
}

/// A list of texts as Go prints it.
fn bracketed(texts: &[String]) -> String {
    format!("[{}]", texts.join(" "))
}
