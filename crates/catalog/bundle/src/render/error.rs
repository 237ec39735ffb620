//! Why a bundle is not rendered, in upstream's words.

use crate::mismatch::{ConvertError, DocumentError, ObjectError, TypeError};
use mainstay_gocompat::quote;
use mainstay_schema::strict::{self, JsonError};

/// Where rendering stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The bundle cannot be read.
    Read,
    /// The bundle needs something that is not supported, or not switched on.
    Support,
    /// The configuration does not fit the bundle.
    Configuration,
    /// The bundle contradicts itself.
    Bundle,
    /// The bundle cannot watch the namespaces that are asked for.
    Settings,
}

/// Why a bundle is not rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bundle needs something that is not supported, or not switched on.
    #[error("unsupported bundle: {0}")]
    Unsupported(SupportError),
    /// The configuration does not fit the bundle.
    #[error("terminal error: {0}")]
    Configure(ConfigurationError),
    /// The bundle contradicts itself: everything that is wrong with it.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
    /// A webhook cannot convert the objects of a custom resource definition that preserves unknown
    /// fields.
    #[error(
        "custom resource definition '{definition}' must have .spec.preserveUnknownFields set to \
         false to let API Server call webhook to do the conversion"
    )]
    PreserveUnknownFields {
        /// The name of the definition.
        definition: String,
    },
    /// The bundle cannot watch the namespaces that are asked for.
    #[error(transparent)]
    Watch(#[from] TargetError),
}

impl RenderError {
    /// Where it stopped.
    pub const fn stage(&self) -> Stage {
        match self {
            Self::Read(_) => Stage::Read,
            Self::Unsupported(_) => Stage::Support,
            Self::Configure(_) => Stage::Configuration,
            Self::Invalid(_) | Self::PreserveUnknownFields { .. } => Stage::Bundle,
            Self::Watch(_) => Stage::Settings,
        }
    }

    /// What is wrong; several lines if several things are.
    pub fn message(&self) -> String {
        match self {
            Self::Configure(error) => error.to_string(),
            error => error.to_string(),
        }
    }

    /// Whether trying again is of no use before somebody changes the configuration.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Configure(_))
    }
}

/// Why a bundle cannot be read. Paths are below the root of the bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The folder of manifests cannot be listed.
    #[error("stat {folder}: {reason}")]
    ListFolder {
        /// The folder.
        folder: &'static str,
        /// What the system said.
        reason: String,
    },
    /// The folder of manifests has more files than are read.
    #[error("the folder has more than {limit} files")]
    TooManyFiles {
        /// How many are read.
        limit: usize,
    },
    /// There is a folder among the manifests.
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
        /// What the system said.
        reason: String,
    },
    /// A file is longer than is read.
    #[error("{path}: the file has more than {limit} bytes")]
    FileTooLong {
        /// The file.
        path: String,
        /// How many bytes are read.
        limit: u64,
    },
    /// The file of annotations has something else in it.
    #[error(transparent)]
    DecodeAnnotations(DocumentError),
    /// A file of manifests has something else than objects in it.
    #[error("error parsing objects in \"{path}\": {error}")]
    ParseObjects {
        /// The file.
        path: String,
        /// What is wrong with the objects.
        error: Box<ManifestError>,
    },
    /// No manifest is a ClusterServiceVersion.
    #[error("no ClusterServiceVersion found in \"{folder}\"")]
    NoClusterServiceVersion {
        /// The folder of manifests.
        folder: &'static str,
    },
    /// The annotation of properties is no JSON.
    #[error("failed to unmarshal csv.metadata.annotations['olm.properties']: {0}")]
    ParsePropertiesAnnotation(JsonError),
    /// The annotation of properties lists something else.
    #[error("failed to unmarshal csv.metadata.annotations['olm.properties']: {0}")]
    DecodePropertiesAnnotation(TypeError),
    /// The file of properties has something else in it.
    #[error("failed to unmarshal {path}: {error}")]
    DecodeProperties {
        /// The file.
        path: &'static str,
        /// What is wrong with it.
        error: DocumentError,
    },
}

/// Why the objects of a file of manifests cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// A document is no YAML.
    #[error("error parsing {path}: error converting YAML to JSON: yaml: {reason}")]
    ParseYaml {
        /// The file.
        path: String,
        /// The words of upstream's parser.
        reason: String,
    },
    /// A document is no object.
    #[error("unable to decode \"{path}\": {error}")]
    DecodeObject {
        /// The file.
        path: String,
        /// Why it is none.
        error: ObjectError,
    },
    /// Objects of one document do not have their types.
    #[error("{}", aggregate(.0))]
    ConvertObjects(Vec<ConvertError>),
}

/// One error as it is, several in brackets.
fn aggregate(errors: &[ConvertError]) -> String {
    let texts: Vec<String> = errors.iter().map(ConvertError::to_string).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// What a bundle needs that extensions do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SupportError {
    /// The bundle owns aggregated APIs.
    #[error("apiServiceDefintions are not supported")]
    ApiServices,
    /// The bundle has webhooks, and these are not switched on.
    #[error("webhookDefinitions are not supported")]
    Webhooks,
    /// The bundle has webhooks, and nobody provides certificates.
    #[error("webhookDefinitions are not supported: certificate provider is nil")]
    Certificates,
    /// The bundle watches single namespaces only, and that is not switched on.
    #[error("bundle does not support AllNamespaces install mode")]
    AllNamespaces,
    /// The bundle has none of the install modes that extensions have.
    #[error(
        "bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install \
         modes"
    )]
    InstallModes,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The configuration is no YAML; the end of what upstream's parser says.
    #[error("invalid ClusterExtension configuration: invalid configuration: {0}")]
    ParseYaml(String),
    /// The configuration does not have the schema of the bundle: what is wrong with it, one by one.
    #[error("invalid ClusterExtension configuration: invalid configuration: {}", listed(findings))]
    Schema {
        /// What is wrong.
        findings: Vec<String>,
    },
    /// The configuration of deployments has values of other types.
    #[error("invalid deploymentConfig: failed to unmarshal deploymentConfig: {0}")]
    DecodeDeployments(DeploymentConfigError),
}

fn listed(findings: &[String]) -> String {
    match findings {
        [one] => one.clone(),
        several => format!("multiple errors found:\n  - {}", several.join("\n  - ")),
    }
}

/// Why a configuration of deployments cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeploymentConfigError {
    /// A value is of another kind than its field takes.
    #[error(transparent)]
    WrongKind(#[from] TypeError),
    /// A value does not have the type of Kubernetes that its field takes.
    #[error("{source}")]
    DecodeField {
        /// The field.
        field: &'static str,
        /// Why it does not.
        source: strict::UnmarshalError,
    },
}

/// Why a bundle cannot watch namespaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid option(s): invalid target namespaces {}: {reason}", bracketed(targets))]
pub struct TargetError {
    /// The namespaces; an empty one means all.
    pub targets: Vec<String>,
    /// What is wrong with them.
    pub reason: TargetReason,
}

/// What is wrong with the namespaces that a bundle is to watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetReason {
    /// There are none, and the bundle takes several.
    #[error("at least one target namespace must be specified")]
    NoTarget,
    /// There are none, and the bundle takes one.
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

/// Texts as Go prints a list of them.
fn bracketed(texts: &[String]) -> String {
    format!("[{}]", texts.join(" "))
}
