//! Phases, reasons and other texts of a ClusterServiceVersion.

text_enum! {
    /// The phase of a ClusterServiceVersion.
    pub enum CsvPhase {
        /// The controller has not reconciled it yet.
        None = "",
        /// Its requirements are not met yet.
        Pending = "Pending",
        /// Its requirements are met.
        InstallReady = "InstallReady",
        /// Its Deployments are not available yet.
        Installing = "Installing",
        /// Its Deployments are available.
        Succeeded = "Succeeded",
        /// Its installation failed.
        Failed = "Failed",
        /// Its state is unknown.
        Unknown = "Unknown",
        /// A newer ClusterServiceVersion replaces it.
        Replacing = "Replacing",
        /// It is being deleted.
        Deleting = "Deleting",
    }

    /// The reason for a phase.
    pub enum CsvReason {
        /// Requirements are not checked yet.
        RequirementsUnknown = "RequirementsUnknown",
        /// A requirement is not met.
        RequirementsNotMet = "RequirementsNotMet",
        /// All requirements are met.
        AllRequirementsMet = "AllRequirementsMet",
        /// Another ClusterServiceVersion owns the same CustomResourceDefinition.
        OwnerConflict = "OwnerConflict",
        /// A component could not be created.
        ComponentFailed = "InstallComponentFailed",
        /// A component could not be created, and a retry would not help.
        ComponentFailedNoRetry = "InstallComponentFailedNoRetry",
        /// The install strategy is unknown.
        InvalidStrategy = "InvalidInstallStrategy",
        /// Deployments are not available yet.
        Waiting = "InstallWaiting",
        /// All components are created, or available.
        InstallSuccessful = "InstallSucceeded",
        /// Deployments were not available before the timeout.
        InstallCheckFailed = "InstallCheckFailed",
        /// A component is not healthy any more.
        ComponentUnhealthy = "ComponentUnhealthy",
        /// A newer ClusterServiceVersion is replacing it.
        BeingReplaced = "BeingReplaced",
        /// A newer ClusterServiceVersion has replaced it.
        Replaced = "Replaced",
        /// A component has to be created again.
        NeedsReinstall = "NeedsReinstall",
        /// Certificates have to be renewed.
        NeedsCertRotation = "NeedsCertRotation",
        /// Certificates or Services of an API are invalid.
        ApiServiceResourceIssue = "APIServiceResourceIssue",
        /// Certificates or Services of an API have to be created again.
        ApiServiceResourcesNeedReinstall = "APIServiceResourcesNeedReinstall",
        /// An API is not available.
        ApiServiceInstallFailed = "APIServiceInstallFailed",
        /// The ClusterServiceVersion is a copied CSV.
        Copied = "Copied",
        /// The install modes contradict each other.
        InvalidInstallModes = "InvalidInstallModes",
        /// The annotation of target namespaces is missing.
        NoTargetNamespaces = "NoTargetNamespaces",
        /// The install modes do not allow the target namespaces.
        UnsupportedOperatorGroup = "UnsupportedOperatorGroup",
        /// There is no OperatorGroup.
        NoOperatorGroup = "NoOperatorGroup",
        /// There are several `OperatorGroup`s.
        TooManyOperatorGroups = "TooManyOperatorGroups",
        /// Another OperatorGroup provides the same APIs in the same namespaces.
        InterOperatorGroupOwnerConflict = "InterOperatorGroupOwnerConflict",
        /// The OperatorGroup has static provided APIs.
        CannotModifyStaticOperatorGroupProvidedApis = "CannotModifyStaticOperatorGroupProvidedAPIs",
        /// Permissions have changed, so the installation is tried again.
        DetectedClusterChange = "DetectedClusterChange",
        /// A webhook description is not allowed.
        InvalidWebhookDescription = "InvalidWebhookDescription",
        /// The ClusterServiceVersion to be replaced is not upgradeable.
        OperatorConditionNotUpgradeable = "OperatorConditionNotUpgradeable",
        /// Its operands are being deleted.
        WaitingOnCleanup = "WaitingOnCleanup",
    }

    /// Which namespaces an operator can watch.
    pub enum InstallModeType {
        /// Its own namespace.
        OwnNamespace = "OwnNamespace",
        /// One other namespace.
        SingleNamespace = "SingleNamespace",
        /// Several namespaces.
        MultiNamespace = "MultiNamespace",
        /// All namespaces.
        AllNamespaces = "AllNamespaces",
    }

    /// Whether a requirement is met.
    pub enum RequirementState {
        /// The object exists.
        Present = "Present",
        /// The object does not exist.
        NotPresent = "NotPresent",
        /// The object exists, but does not meet the requirement.
        PresentNotSatisfied = "PresentNotSatisfied",
        /// The object exists, but its server is not available.
        PresentNotAvailable = "PresentNotAvailable",
        /// A dependent that is met.
        Satisfied = "Satisfied",
        /// A dependent that is not met.
        NotSatisfied = "NotSatisfied",
        /// The Deployment of an owned API exists.
        DeploymentFound = "DeploymentFound",
    }

    /// The kind of a webhook.
    pub enum WebhookKind {
        /// Admits or denies requests.
        Validating = "ValidatingAdmissionWebhook",
        /// Changes objects in requests.
        Mutating = "MutatingAdmissionWebhook",
        /// Converts objects between versions.
        Conversion = "ConversionWebhook",
    }
}
