//! Errors of the pod plugins, in the words of Kubernetes.

use mainstay_gocompat::quote;

/// A pod or a `PriorityClass` is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PodError {
    /// The pod names no ServiceAccount.
    #[error("no service account specified for pod {namespace}/{pod}")]
    NoServiceAccount {
        /// The namespace of the pod.
        namespace: String,
        /// The name of the pod.
        pod: String,
    },
    /// The ServiceAccount does not exist.
    #[error(
        "error looking up service account {namespace}/{name}: serviceaccount {} not found",
        quote(name)
    )]
    UnknownServiceAccount {
        /// The namespace of the pod.
        namespace: String,
        /// The name of the ServiceAccount.
        name: String,
    },
    /// A mirror pod refers to objects of the API.
    #[error("a mirror pod may not {0}")]
    Mirror(MirrorUse),
    /// A pod uses a Secret that its ServiceAccount does not list.
    #[error(
        "{by} is not allowed because service account {account} does not reference that {}",
        by.kind()
    )]
    Secret {
        /// The reference to the Secret.
        by: SecretUse,
        /// The ServiceAccount.
        account: String,
    },
    /// There is another default `PriorityClass`.
    #[error("PriorityClass {present} is already marked as default. Only one default can exist")]
    SecondDefaultClass {
        /// The existing default `PriorityClass`.
        present: String,
    },
    /// The `PriorityClass` does not exist.
    #[error("no PriorityClass with name {name} was found")]
    UnknownPriorityClass {
        /// The name.
        name: String,
    },
    /// The priority of the pod differs from that of its `PriorityClass`.
    #[error(
        "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
    )]
    PriorityMismatch {
        /// The priority of the pod.
        given: i64,
        /// The priority of its `PriorityClass`.
        computed: i64,
    },
    /// The preemption policy of the pod differs from that of its `PriorityClass`.
    #[error(
        "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
    )]
    PreemptionPolicyMismatch {
        /// The policy of the pod.
        given: String,
        /// The policy of its `PriorityClass`.
        computed: String,
    },
    /// The `RuntimeClass` does not exist.
    #[error("pod rejected: RuntimeClass {} not found", quote(name))]
    UnknownRuntimeClass {
        /// The name.
        name: String,
    },
    /// The pod has overhead, but its `RuntimeClass` has none.
    #[error("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")]
    UndefinedOverhead,
    /// The overhead of the pod differs from that of its `RuntimeClass`.
    #[error("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")]
    OverheadMismatch,
    /// The node selectors of the pod and of its `RuntimeClass` conflict.
    #[error(
        "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
    )]
    NodeSelectorConflict {
        /// The label key.
        key: String,
        /// The value in the `RuntimeClass`.
        wanted: String,
        /// The value in the pod.
        given: String,
    },
}

/// A use of the API that a mirror pod may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MirrorUse {
    /// A ServiceAccount.
    #[error("reference service accounts")]
    Account,
    /// References to Secrets.
    #[error("reference secrets")]
    Secrets,
    /// A ServiceAccount token.
    #[error("use ServiceAccountToken volume projections")]
    Token,
}

/// A reference of a pod to a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretUse {
    /// A volume.
    #[error("volume with secret.secretName=\"{secret}\"")]
    Volume {
        /// The Secret.
        secret: String,
    },
    /// An image pull secret.
    #[error("imagePullSecrets[{at}].name=\"{secret}\"")]
    ImagePull {
        /// The index in the list.
        at: usize,
        /// The Secret.
        secret: String,
    },
    /// A variable in the `env` of a container.
    #[error("{list} {container} with envVar {variable} referencing secret.secretName=\"{secret}\"")]
    Env {
        /// The word for the containers of the list.
        list: &'static str,
        /// The container.
        container: String,
        /// The variable.
        variable: String,
        /// The Secret.
        secret: String,
    },
    /// An `envFrom` of a container.
    #[error("{list} {container} with envFrom referencing secret.secretName=\"{secret}\"")]
    EnvFrom {
        /// The word for the containers of the list.
        list: &'static str,
        /// The container.
        container: String,
        /// The Secret.
        secret: String,
    },
}

impl SecretUse {
    const fn kind(&self) -> &'static str {
        match self {
            Self::ImagePull { .. } => "imagePullSecret",
            _ => "secret",
        }
    }
}
