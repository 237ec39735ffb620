//! Phases, reasons and other texts of a ClusterServiceVersion.

text_enum! {
    /// Where a version stands.
    pub enum CsvPhase {
        /// Nothing happened yet.
        None = "",
        /// Requirements are waited for.
        Pending = "Pending",
        /// Requirements are there.
        InstallReady = "InstallReady",
        /// Deployments are waited for.
        Installing = "Installing",
        /// It runs.
        Succeeded = "Succeeded",
        /// It does not run.
        Failed = "Failed",
        /// Nobody knows.
        Unknown = "Unknown",
        /// A newer version takes over.
        Replacing = "Replacing",
        /// It is being removed.
        Deleting = "Deleting",
    }

    /// Why a version stands where it stands.
    pub enum CsvReason {
        /// Not looked at yet.
        RequirementsUnknown = "RequirementsUnknown",
        /// Something is missing.
        RequirementsNotMet = "RequirementsNotMet",
        /// Everything is there.
        AllRequirementsMet = "AllRequirementsMet",
        /// Another version owns the same definition.
        OwnerConflict = "OwnerConflict",
        /// Something could not be made.
        ComponentFailed = "InstallComponentFailed",
        /// Something could not be made, and trying again does not help.
        ComponentFailedNoRetry = "InstallComponentFailedNoRetry",
        /// The strategy is not understood.
        InvalidStrategy = "InvalidInstallStrategy",
        /// Deployments are not ready yet.
        Waiting = "InstallWaiting",
        /// Everything is made, or ready.
        InstallSuccessful = "InstallSucceeded",
        /// Deployments did not get ready in time.
        InstallCheckFailed = "InstallCheckFailed",
        /// Something is not ready any more.
        ComponentUnhealthy = "ComponentUnhealthy",
        /// A newer version takes over.
        BeingReplaced = "BeingReplaced",
        /// A newer version has taken over.
        Replaced = "Replaced",
        /// Something must be made again.
        NeedsReinstall = "NeedsReinstall",
        /// Certificates must be made again.
        NeedsCertRotation = "NeedsCertRotation",
        /// Certificates or Services of an API are wrong.
        ApiServiceResourceIssue = "APIServiceResourceIssue",
        /// Certificates or Services of an API must be made again.
        ApiServiceResourcesNeedReinstall = "APIServiceResourcesNeedReinstall",
        /// An API is not available.
        ApiServiceInstallFailed = "APIServiceInstallFailed",
        /// A copy of a version in another namespace.
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
        /// The OperatorGroup does not let its APIs be changed.
        CannotModifyStaticOperatorGroupProvidedApis = "CannotModifyStaticOperatorGroupProvidedAPIs",
        /// Rights have changed, so it is tried again.
        DetectedClusterChange = "DetectedClusterChange",
        /// A webhook description is not allowed.
        InvalidWebhookDescription = "InvalidWebhookDescription",
        /// The old version does not want to be replaced now.
        OperatorConditionNotUpgradeable = "OperatorConditionNotUpgradeable",
        /// Objects of its kinds are being removed.
        WaitingOnCleanup = "WaitingOnCleanup",
    }

    /// Which namespaces an operator may watch.
    pub enum InstallModeType {
        /// Its own.
        OwnNamespace = "OwnNamespace",
        /// One other.
        SingleNamespace = "SingleNamespace",
        /// Several.
        MultiNamespace = "MultiNamespace",
        /// All.
        AllNamespaces = "AllNamespaces",
    }

    /// Whether something that is needed is there.
    pub enum RequirementState {
        /// It is there.
        Present = "Present",
        /// It is not there.
        NotPresent = "NotPresent",
        /// It is there but not in the way that is needed.
        PresentNotSatisfied = "PresentNotSatisfied",
        /// It is there but does not answer.
        PresentNotAvailable = "PresentNotAvailable",
        /// A dependent that holds.
        Satisfied = "Satisfied",
        /// A dependent that does not hold.
        NotSatisfied = "NotSatisfied",
        /// A deployment of an owned API that was found.
        DeploymentFound = "DeploymentFound",
    }

    /// What kind of webhook it is.
    pub enum WebhookKind {
        /// Refuses or admits.
        Validating = "ValidatingAdmissionWebhook",
        /// Changes what is written.
        Mutating = "MutatingAdmissionWebhook",
        /// Converts between versions.
        Conversion = "ConversionWebhook",
    }
}
