//! Why a pod, or a class that pods name, is refused; in the original's words.

use mainstay_gocompat::quote;

/// A pod, or a class that pods name, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PodError {
    /// The pod names no ServiceAccount.
    #[error("no service account specified for pod {namespace}/{pod}")]
    NoAccount {
        /// The namespace of the pod.
        namespace: String,
        /// Its name.
        pod: String,
    },
    /// There is no such ServiceAccount.
    #[error(
        "error looking up service account {namespace}/{name}: serviceaccount {} not found",
        quote(name)
    )]
    UnknownAccount {
        /// The namespace of the pod.
        namespace: String,
        /// The name of the ServiceAccount.
        name: String,
    },
    /// A mirror pod takes something of the API.
    #[error("a mirror pod may not {0}")]
    Mirror(MirrorUse),
    /// A pod names a Secret that its ServiceAccount does not refer to.
    #[error(
        "{by} is not allowed because service account {account} does not reference that {}",
        by.kind()
    )]
    Secret {
        /// What names it.
        by: SecretUse,
        /// The ServiceAccount.
        account: String,
    },
    /// There is another default `PriorityClass`.
    #[error("PriorityClass {present} is already marked as default. Only one default can exist")]
    SecondDefault {
        /// The default that there is.
        present: String,
    },
    /// There is no such `PriorityClass`.
    #[error("no PriorityClass with name {name} was found")]
    UnknownPriorityClass {
        /// The name.
        name: String,
    },
    /// The pod has another priority than its class.
    #[error(
        "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
    )]
    OtherPriority {
        /// What the pod has.
        given: i64,
        /// What its class has.
        computed: i64,
    },
    /// The pod has another preemption policy than its class.
    #[error(
        "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
    )]
    OtherPreemptionPolicy {
        /// What the pod has.
        given: String,
        /// What its class has.
        computed: String,
    },
    /// There is no such `RuntimeClass`.
    #[error("pod rejected: RuntimeClass {} not found", quote(name))]
    UnknownRuntimeClass {
        /// The name.
        name: String,
    },
    /// The pod has overhead, and its `RuntimeClass` none.
    #[error("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")]
    UndefinedOverhead,
    /// The pod has other overhead than its `RuntimeClass`.
    #[error("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")]
    OtherOverhead,
    /// The pod selects other nodes than its `RuntimeClass`.
    #[error(
        "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
    )]
    OtherNodes {
        /// The label.
        key: String,
        /// Its value in the class.
        wanted: String,
        /// That in the pod.
        given: String,
    },
}

/// What a mirror pod may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MirrorUse {
    /// Have a ServiceAccount.
    #[error("reference service accounts")]
    Account,
    /// Name Secrets.
    #[error("reference secrets")]
    Secrets,
    /// Have a token.
    #[error("use ServiceAccountToken volume projections")]
    Token,
}

/// What names a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretUse {
    /// A volume.
    #[error("volume with secret.secretName=\"{secret}\"")]
    Volume {
        /// The Secret.
        secret: String,
    },
    /// A Secret for pulling images.
    #[error("imagePullSecrets[{at}].name=\"{secret}\"")]
    Pull {
        /// Its place in the list.
        at: usize,
        /// The Secret.
        secret: String,
    },
    /// A variable of a container.
    #[error("{list} {container} with envVar {variable} referencing secret.secretName=\"{secret}\"")]
    Variable {
        /// What the containers of the list are called.
        list: &'static str,
        /// The container.
        container: String,
        /// The variable.
        variable: String,
        /// The Secret.
        secret: String,
    },
    /// Variables of a container.
    #[error("{list} {container} with envFrom referencing secret.secretName=\"{secret}\"")]
    Environment {
        /// What the containers of the list are called.
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
            Self::Pull { .. } => "imagePullSecret",
            _ => "secret",
        }
    }
}
