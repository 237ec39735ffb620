//! Which cluster is meant, as all commands ask for it, and what is read of it.

use clap::Args;
use mainstay_cause::Cause;
use mainstay_explain::Hidden;
use mainstay_object::{Object, Resource};
use mainstay_resolver::universe::CatalogData;
use mainstay_whatif::catalogs_of;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Which cluster is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArguments {
    /// The kubeconfig [default: as kubectl finds it; inside of a cluster, the account of the pod; else
    /// that of `mainstay up`].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArguments {
    /// Whether one was named.
    pub const fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }
}

/// A cluster that is asked, and for how long its answers are waited for.
#[derive(Args, Clone, Debug)]
pub struct AskedArguments {
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// How many seconds the cluster, or a registry, may take to answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

impl AskedArguments {
    /// How long a cluster or a registry may take to answer.
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// Why objects of a kind were not listed.
#[derive(Clone, Debug)]
pub enum Unread {
    /// The account may not list them there.
    Forbidden(Cause),
    /// The cluster does not serve the kind.
    Unserved(Cause),
    /// The cluster did not answer, or refused for another reason.
    Failed(Cause),
}

impl From<Unread> for Cause {
    fn from(unread: Unread) -> Self {
        let (Unread::Forbidden(cause) | Unread::Unserved(cause) | Unread::Failed(cause)) = unread;
        cause
    }
}

/// A cluster whose objects can be listed, and the registries that it names.
pub trait Remote {
    /// The objects of a kind, of one namespace or of all, with such labels if a selector is given.
    ///
    /// # Errors
    /// If they are not to be had, and why.
    fn of_kind(
        &mut self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, Unread>;

    /// The object of a name; none if it is not there. Without a better way the namespace is listed.
    ///
    /// # Errors
    /// If that is not to be had, and why.
    fn named(
        &mut self,
        kind: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>, Unread> {
        let all = self.of_kind(kind, Some(namespace), None)?;
        Ok(all.into_iter().find(|object| object.name() == name))
    }

    /// The namespace that counts where none is named.
    fn namespace(&self) -> String;

    /// The version of its Kubernetes, such as `v1.35.0`; none if it does not tell.
    fn kube_version(&mut self) -> Option<String>;

    /// The names of its namespaces; none if it does not tell.
    fn namespaces(&mut self) -> Option<Vec<String>>;

    /// All that a registry holds.
    ///
    /// # Errors
    /// If it cannot be reached or stops in the middle.
    fn catalog(&mut self, address: &str) -> Result<CatalogData, Cause>;
}

/// What was listed of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) objects: Vec<Object>,
    /// Kinds that the account may not list everywhere.
    pub(crate) hidden: Vec<Hidden>,
}

impl Listing {
    /// Adds the objects of a kind in every namespace; where the account may not list them everywhere,
    /// those in the namespaces that are named, as far as it may.
    ///
    /// # Errors
    /// If the cluster does not answer, or does not serve the kind.
    pub(crate) fn add_everywhere(
        &mut self,
        remote: &mut dyn Remote,
        kind: &Resource,
        labels: Option<&str>,
        namespaces: &BTreeSet<String>,
    ) -> Result<(), Cause> {
        match remote.of_kind(kind, None, labels) {
            Ok(objects) => {
                self.objects.extend(objects);
                Ok(())
            }
            Err(Unread::Forbidden(_)) => self.add(remote, kind, labels, namespaces),
            Err(unread) => Err(unread.into()),
        }
    }

    /// Adds the objects of a kind in some namespaces, as far as the account may list them.
    ///
    /// # Errors
    /// If the cluster does not answer, or does not serve the kind.
    pub(crate) fn add_within(
        &mut self,
        remote: &mut dyn Remote,
        kind: &Resource,
        labels: Option<&str>,
        namespace: &str,
    ) -> Result<(), Cause> {
        match remote.of_kind(kind, Some(namespace), labels) {
            Ok(objects) => self.objects.extend(objects),
            Err(Unread::Forbidden(_)) => {
                self.hidden.push(Hidden { kind: kind.kind.to_string(), seen_in: Vec::new() });
            }
            Err(unread) => return Err(unread.into()),
        }
        Ok(())
    }

    fn add(
        &mut self,
        remote: &mut dyn Remote,
        kind: &Resource,
        labels: Option<&str>,
        namespaces: &BTreeSet<String>,
    ) -> Result<(), Cause> {
        let mut seen_in = Vec::new();
        for namespace in namespaces {
            match remote.of_kind(kind, Some(namespace), labels) {
                Ok(objects) => {
                    self.objects.extend(objects);
                    seen_in.push(namespace.clone());
                }
                Err(Unread::Forbidden(_)) => {}
                Err(unread) => return Err(unread.into()),
            }
        }
        self.hidden.push(Hidden { kind: kind.kind.to_string(), seen_in });
        Ok(())
    }

    /// Whether objects of a kind in a namespace may be there that were not listed.
    pub(crate) fn hides(&self, kind: &Resource, namespace: &str) -> bool {
        self.hidden
            .iter()
            .any(|it| it.kind == kind.kind && !it.seen_in.iter().any(|seen| seen == namespace))
    }
}

/// The namespaces of the catalogs that the Subscriptions of a namespace name or see, and the namespace
/// itself.
pub(crate) fn namespaces_of_catalogs(objects: &[Object], namespace: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([namespace.to_owned()]);
    let subscriptions =
        objects.iter().filter(|it| it.kind() == "Subscription" && it.namespace() == namespace);
    for subscription in subscriptions {
        all.extend(catalogs_of(subscription).into_iter().map(|(namespace, _)| namespace));
    }
    all
}
