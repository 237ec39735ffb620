//! The shared context of all controllers: the cluster client, the clock, and one cache for each
//! kind.

use crate::copied_csv::CopiedCsv;
use crate::csv::serving::certificate::CertificateSecret;
use crate::csv::serving::observed::{ApiService, Service, WebhookConfiguration};
use crate::fields;
use crate::image::bundles::Bundles;
use crate::metrics::ClassicMetrics;
use crate::proxy::Proxies;
use crate::start::Timeouts;
use mainstay_api::{OperatorCondition, OperatorGroup, Subscription, names, resources};
use mainstay_catalogsources::{CatalogCaches, CatalogMode, CatalogStore};
use mainstay_client::{Cache, CacheSet, Cluster, Recorder, Selection};
use mainstay_clock::Clock;
use mainstay_object::{NamespacedName, builtin};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The shared context of all controllers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) cluster: Cluster,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    pub(crate) store: CatalogStore,
    /// The bundles that come as images.
    pub(crate) bundles: Bundles,
    /// The namespace whose catalogs every namespace sees.
    pub(crate) global_namespace: Arc<str>,
    pub(crate) caches: Arc<Caches>,
    /// The proxies for operators.
    pub(crate) proxies: Arc<Proxies>,
    pub(crate) timeouts: Timeouts,
    /// Counters since the start of the process.
    pub(crate) metrics: Arc<ClassicMetrics>,
    /// The permissions of CSVs that are missing in target namespaces and that an Event reported.
    pub(crate) missing_permissions: Arc<Mutex<HashMap<NamespacedName, Vec<String>>>>,
}

/// The user agent and field manager of the operator that installs CSVs.
pub(crate) const OPERATOR: &str = "olm";
/// The user agent and field manager of the operator for catalogs, Subscriptions and InstallPlans.
pub(crate) const CATALOG_OPERATOR: &str = "catalog";

impl Context {
    /// The same context with requests of the catalog operator.
    pub(crate) fn as_catalog_operator(&self) -> Arc<Self> {
        let cluster = self.cluster.clone().with_user_agent(CATALOG_OPERATOR);
        Arc::new(Self { cluster, ..self.clone() })
    }
}

/// One cache for each kind that decisions read.
pub(crate) struct Caches {
    /// CatalogSources, and the objects of catalogs that run as pods.
    pub(crate) catalogs: CatalogCaches,
    pub(crate) subscriptions: Cache<Subscription>,
    pub(crate) install_plans: Cache<fields::Plan>,
    /// CSVs, without copied ones.
    pub(crate) csvs: Cache<fields::Csv>,
    /// Copied CSVs, indexed by name.
    pub(crate) copied_csvs: Cache<CopiedCsv>,
    pub(crate) operator_groups: Cache<OperatorGroup>,
    pub(crate) namespaces: Cache<fields::Namespace>,
    pub(crate) crds: Cache<fields::Crd>,
    pub(crate) service_accounts: Cache<fields::ServiceAccount>,
    pub(crate) roles: Cache<fields::Role>,
    pub(crate) role_bindings: Cache<fields::Binding>,
    pub(crate) cluster_roles: Cache<fields::Role>,
    pub(crate) cluster_role_bindings: Cache<fields::Binding>,
    pub(crate) deployments: Cache<fields::Deployment>,
    /// Secrets with serving certificates of CSVs; their Services are in `services`.
    pub(crate) certificates: Cache<CertificateSecret>,
    pub(crate) services: Cache<Service>,
    pub(crate) api_services: Cache<ApiService>,
    /// Webhook configurations of CSVs.
    pub(crate) validating_webhooks: Cache<WebhookConfiguration>,
    pub(crate) mutating_webhooks: Cache<WebhookConfiguration>,
    pub(crate) operator_conditions: Cache<OperatorCondition>,
}

impl Caches {
    /// Starts to list and watch. `mode` says whether catalogs may run as pods.
    pub(crate) fn start(set: &mut CacheSet, mode: CatalogMode) -> Self {
        let all = Selection::all;
        let managed =
            |kind| all(kind).labels(format!("{}={}", names::MANAGED, names::MANAGED_VALUE));
        Self {
            catalogs: CatalogCaches::start(set, mode),
            subscriptions: set.start(Cache::builder(all(resources::SUBSCRIPTION), |object| {
                Subscription::from_object(object).ok()
            })),
            install_plans: set.start(
                Cache::builder(all(resources::INSTALL_PLAN), |object| {
                    Some(fields::Plan::of(object))
                })
                .index(|plan| plan.awaited_crds.clone()),
            ),
            csvs: set.start(
                Cache::builder(
                    all(resources::CLUSTER_SERVICE_VERSION)
                        .labels(format!("!{}", names::COPIED_FROM)),
                    |object| Some(fields::Csv::of(object)),
                )
                .index(|csv| csv.all_crds.iter().chain(&csv.api_services).cloned().collect()),
            ),
            copied_csvs: set.start(
                Cache::builder(
                    all(resources::CLUSTER_SERVICE_VERSION).labels(names::COPIED_FROM),
                    |object| Some(CopiedCsv::of(object)),
                )
                .index(|copy| vec![Arc::clone(&copy.name)]),
            ),
            operator_groups: set.start(Cache::builder(all(resources::OPERATOR_GROUP), |object| {
                OperatorGroup::from_object(object).ok()
            })),
            namespaces: set.start(Cache::builder(all(builtin::NAMESPACE), |object| {
                Some(fields::Namespace::of(object))
            })),
            crds: set.start(Cache::builder(all(builtin::CUSTOM_RESOURCE_DEFINITION), |object| {
                Some(fields::Crd::of(object))
            })),
            service_accounts: set.start(Cache::builder(all(builtin::SERVICE_ACCOUNT), |object| {
                Some(fields::ServiceAccount::of(object))
            })),
            roles: set
                .start(Cache::builder(all(builtin::ROLE), |object| Some(fields::Role::of(object)))),
            role_bindings: set.start(
                Cache::builder(all(builtin::ROLE_BINDING), |object| {
                    Some(fields::Binding::of(object))
                })
                .index(|binding| binding.subject_names.clone()),
            ),
            cluster_roles: set.start(Cache::builder(all(builtin::CLUSTER_ROLE), |object| {
                Some(fields::Role::of(object))
            })),
            cluster_role_bindings: set.start(
                Cache::builder(all(builtin::CLUSTER_ROLE_BINDING), |object| {
                    Some(fields::Binding::of(object))
                })
                .index(|binding| binding.subject_names.clone()),
            ),
            operator_conditions: set
                .start(Cache::builder(all(resources::OPERATOR_CONDITION), |object| {
                    OperatorCondition::from_object(object).ok()
                })),
            deployments: set.start(Cache::builder(managed(builtin::DEPLOYMENT), |object| {
                Some(fields::Deployment::of(object))
            })),
            certificates: set
                .start(Cache::builder(managed(builtin::SECRET), CertificateSecret::of)),
            services: set.start(Cache::builder(managed(builtin::SERVICE), Service::of)),
            api_services: set.start(Cache::builder(all(builtin::API_SERVICE), |object| {
                Some(ApiService::of(object))
            })),
            validating_webhooks: set.start(Cache::builder(
                all(builtin::VALIDATING_WEBHOOK_CONFIGURATION).labels(names::WEBHOOK_HASH),
                WebhookConfiguration::of,
            )),
            mutating_webhooks: set.start(Cache::builder(
                all(builtin::MUTATING_WEBHOOK_CONFIGURATION).labels(names::WEBHOOK_HASH),
                WebhookConfiguration::of,
            )),
        }
    }

    /// The OperatorGroups of a namespace by name, without terminating ones.
    pub(crate) fn groups_in(&self, namespace: &str) -> Vec<Arc<OperatorGroup>> {
        self.operator_groups
            .list(Some(namespace))
            .into_iter()
            .map(|(_, group)| group)
            .filter(|group| group.metadata.deletion_timestamp.is_none())
            .collect()
    }
}
