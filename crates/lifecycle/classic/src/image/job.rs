//! Unpack Jobs: unpack bundle images where nodes, and not this process, should pull them.
//!
//! ```text
//! image ─► ConfigMap, ServiceAccount, Role, RoleBinding, Job ─► the Job ends ─► the ConfigMap has the bundle
//! ```
//!
//! All of them have one name, which is derived from the image, and upstream's fields. A
//! failed Job stays for its time to live, and until then the bundle counts as failed; an
//! OperatorGroup may request another Job sooner. On simulated nodes, where a Job ends without
//! running anything, this process unpacks the bundle.

use super::bundles::{Failure, UnpackTimeouts};
use crate::bundle_config_map;
use jiff::Timestamp;
use mainstay_api::names;
use mainstay_catalogsources::CatalogPods;
use mainstay_client::{Cache, Cluster, DeleteOptions, Selection};
use mainstay_clock::Clock;
use mainstay_images::Requester;
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The `backoffLimit` of a Job.
const BACKOFF_LIMIT: u32 = 3;
/// The `ttlSecondsAfterFinished` of a Job.
const TIME_TO_LIVE: u32 = 300;
/// How many Jobs of one bundle are kept.
const MAX_JOBS: usize = 5;
/// The user id of restricted pods.
const USER: i64 = 1001;

/// The fields of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JobFields {
    uid: String,
    /// The name of the bundle's objects.
    bundle: String,
    created: Option<Timestamp>,
    end: Option<JobEnd>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct JobEnd {
    failed: bool,
    reason: String,
    message: String,
    at: Option<Timestamp>,
}

impl JobFields {
    fn of(job: &Object) -> Option<Self> {
        let end = job.array(&["status", "conditions"]).iter().find_map(|condition| {
            let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
            let kind = text("type");
            (condition["status"] == "True" && matches!(&*kind, "Complete" | "Failed")).then(|| {
                JobEnd {
                    failed: kind == "Failed",
                    reason: text("reason"),
                    message: text("message"),
                    at: text("lastTransitionTime").parse().ok(),
                }
            })
        });
        (!job.is_terminating()).then(|| Self {
            uid: job.uid().to_owned(),
            bundle: job.label(names::BUNDLE_UNPACK_REF).unwrap_or_default().to_owned(),
            created: job.creation_timestamp(),
            end,
        })
    }
}

/// The Jobs that unpack bundles. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Jobs {
    cluster: Cluster,
    clock: Clock,
    images: Arc<CatalogPods>,
    cache: Cache<JobFields>,
    changed: Arc<Notify>,
}

/// Why there are no objects.
pub(super) enum NoBundle {
    /// Unpacking failed.
    Failed(Failure),
    /// The Job succeeded, but its ConfigMap is empty.
    Nothing,
}

impl From<mainstay_client::Error> for NoBundle {
    fn from(error: mainstay_client::Error) -> Self {
        let message =
            error.status().map_or_else(|| error.to_string(), |status| status.message.clone());
        Self::Failed(Failure { reason: "JobNotStarted", message })
    }
}

impl Jobs {
    /// Starts to watch Jobs. Calls `gone` with the bundle of each deleted Job.
    pub(crate) fn start(
        cluster: &Cluster,
        clock: Clock,
        images: &CatalogPods,
        gone: impl Fn(&str) + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Self {
        let changed = Arc::new(Notify::new());
        let notifier = Arc::clone(&changed);
        let cache = Cache::builder(
            Selection::all(builtin::JOB).labels(names::BUNDLE_UNPACK_REF),
            JobFields::of,
        )
        .subscribe(move |change| {
            notifier.notify_waiters();
            if let (Some(before), None) = (change.before, change.after) {
                gone(&before.bundle);
            }
        })
        .start(cluster, stop);
        let (cluster, images) = (cluster.clone(), Arc::new(images.clone()));
        Self { cluster, clock, images, cache, changed }
    }

    /// The Jobs of a bundle, newest first.
    fn jobs_of(&self, namespace: &str, bundle: &str) -> Vec<(NamespacedName, Arc<JobFields>)> {
        let mut jobs = self.cache.list(Some(namespace));
        jobs.retain(|(_, job)| job.bundle == bundle);
        jobs.sort_by(|(a, x), (b, y)| y.created.cmp(&x.created).then_with(|| a.cmp(b)));
        jobs
    }

    /// Waits until a Job has unpacked a bundle, and returns its objects.
    pub(super) async fn unpack(
        &self,
        image: &str,
        requester: &Requester,
        timeouts: UnpackTimeouts,
    ) -> Result<Vec<Object>, NoBundle> {
        let bundle = bundle_config_map::name_of(image);
        let namespace = &*requester.namespace;
        self.cache.synced().await;
        if let Some(map) = self.cluster.find(&builtin::CONFIG_MAP, Some(namespace), &bundle).await?
            && let Ok(objects) = bundle_config_map::objects(&map)
            && !objects.is_empty()
        {
            return Ok(objects);
        }
        let mut newest = self.jobs_of(namespace, &bundle).into_iter().next();
        if newest.as_ref().is_none_or(|(_, job)| self.may_be_replaced(job, timeouts)) {
            let again = newest.is_some();
            newest = Some(self.create_job(image, &bundle, requester, timeouts, again).await?);
        }
        let Some((key, job)) = newest else { return Err(NoBundle::Nothing) };
        self.wait_for_end(&key, &job.uid).await.map_err(NoBundle::Failed)?;
        let map = self.cluster.get(&builtin::CONFIG_MAP, Some(namespace), &bundle).await?;
        match bundle_config_map::objects(&map) {
            Ok(objects) if objects.is_empty() => Err(NoBundle::Nothing),
            Ok(objects) => Ok(objects),
            Err(error) => Err(NoBundle::Failed(Failure {
                reason: "BackoffLimitExceeded",
                message: format!("{image}: ConfigMap {namespace}/{bundle}: {error}"),
            })),
        }
    }

    /// Whether another Job may replace a failed one.
    fn may_be_replaced(&self, job: &JobFields, timeouts: UnpackTimeouts) -> bool {
        let Some(end) = job.end.as_ref().filter(|end| end.failed) else { return false };
        let (Some(interval), Some(at)) = (timeouts.retry, end.at) else { return false };
        let since = self.clock.now().duration_since(at);
        Duration::try_from(since).is_ok_and(|since| since >= interval)
    }

    /// Waits until a Job has succeeded.
    async fn wait_for_end(&self, key: &NamespacedName, uid: &str) -> Result<(), Failure> {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            match self.cache.get(key).filter(|job| job.uid == uid) {
                None => {
                    return Err(Failure {
                        reason: "JobNotStarted",
                        message: format!("Job {key} was deleted before it had ended"),
                    });
                }
                Some(job) => match &job.end {
                    None => changed.await,
                    Some(end) if end.failed => {
                        return Err(Failure {
                            reason: Failure::reason_of(&end.reason),
                            message: format!("Job {key}: {}", end.message),
                        });
                    }
                    Some(_) => return Ok(()),
                },
            }
        }
    }

    /// Creates the Job of a bundle and the objects that it needs, and deletes the oldest Jobs.
    async fn create_job(
        &self,
        image: &str,
        bundle: &str,
        requester: &Requester,
        timeouts: UnpackTimeouts,
        again: bool,
    ) -> Result<(NamespacedName, Arc<JobFields>), NoBundle> {
        let map = self.cluster.ensure(&builtin::CONFIG_MAP, &config_map(bundle, requester)).await?;
        for (resource, object) in unpack_rbac(bundle, &map) {
            self.cluster.ensure(&resource, &object).await?;
        }
        let job = self.job(image, bundle, &map, requester, timeouts, again);
        let live = match self.cluster.create(&builtin::JOB, &job).await {
            // Created by a request whose response was lost.
            Err(error) if error.is_already_exists() => {
                self.cluster.get(&builtin::JOB, Some(&requester.namespace), bundle).await?
            }
            created => created?,
        };
        self.cache.wait_for_revision(live.resource_version()).await;
        for (key, old) in self.jobs_of(&requester.namespace, bundle).into_iter().skip(MAX_JOBS) {
            let only = DeleteOptions::uid(&*old.uid);
            self.cluster
                .ensure_deleted(&builtin::JOB, Some(&key.namespace), &key.name, &only)
                .await?;
        }
        let key = NamespacedName::new(&*requester.namespace, live.name());
        let fields = JobFields::of(&live).ok_or(NoBundle::Nothing)?;
        Ok((key, Arc::new(fields)))
    }

    fn job(
        &self,
        image: &str,
        bundle: &str,
        map: &Object,
        requester: &Requester,
        timeouts: UnpackTimeouts,
        again: bool,
    ) -> Object {
        let labels = json!({
            names::MANAGED: names::MANAGED_VALUE, names::BUNDLE_UNPACK_REF: bundle,
        });
        let mut metadata = metadata(bundle, map);
        metadata["labels"] = labels.clone();
        if again {
            metadata["generateName"] = metadata["name"].take();
        }
        let container = |name: &str, image: &str, command: &[&str], mounts: &[(&str, &str)]| {
            let mounts: Vec<Value> = mounts
                .iter()
                .map(|(name, path)| json!({"name": name, "mountPath": path}))
                .collect();
            let pull = if image.contains('@') { "IfNotPresent" } else { "Always" };
            json!({
                "name": name, "image": image, "imagePullPolicy": pull, "command": command,
                "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": mounts,
            })
        };
        let namespace = &*requester.namespace;
        let extract = [
            "opm", "alpha", "bundle", "extract", "-m", "/bundle/", "-n", namespace, "-c", bundle,
            "-z",
        ];
        let mut main =
            container("extract", &self.images.opm_image, &extract, &[("bundle", "/bundle")]);
        main["env"] = json!([{"name": "CONTAINER_IMAGE", "value": image}]);
        let util = container(
            "util",
            &self.images.util_image,
            &["/bin/cp", "-Rv", "/bin/cpb", "/util/cpb"],
            &[("util", "/util")],
        );
        let pull = container(
            "pull",
            image,
            &["/util/cpb", "/bundle"],
            &[("bundle", "/bundle"), ("util", "/util")],
        );
        let on =
            |arch: &str| json!({"key": "kubernetes.io/arch", "value": arch, "operator": "Equal"});
        let away = |what: &str| {
            json!({
                "key": format!("node.kubernetes.io/{what}"), "operator": "Exists",
                "effect": "NoExecute", "tolerationSeconds": 120,
            })
        };
        let secrets: Vec<Value> =
            requester.secrets.iter().map(|secret| json!({"name": secret})).collect();
        let mut security =
            json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
        if !self.images.any_user {
            security["runAsUser"] = USER.into();
        }
        let mut pod = json!({
            "restartPolicy": "Never",
            "serviceAccountName": bundle,
            "initContainers": [util, pull],
            "containers": [main],
            "volumes": [{"name": "bundle", "emptyDir": {}}, {"name": "util", "emptyDir": {}}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "securityContext": security,
            "tolerations": [
                on("amd64"), on("arm64"), on("ppc64le"), on("s390x"),
                {"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"},
                away("unreachable"), away("not-ready"),
            ],
        });
        if !secrets.is_empty() {
            pod["imagePullSecrets"] = secrets.into();
        }
        let mut spec = json!({
            "backoffLimit": BACKOFF_LIMIT,
            "ttlSecondsAfterFinished": TIME_TO_LIVE,
            "template": {"metadata": {"name": bundle, "labels": labels}, "spec": pod},
        });
        if let Some(timeout) = timeouts.timeout {
            // The field is in whole seconds, and must be positive.
            spec["activeDeadlineSeconds"] = timeout.as_secs().max(1).into();
        }
        object(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec,
        }))
    }

    /// Stores in the ConfigMap what this process unpacked instead of a Job.
    pub(super) async fn store_bundle(
        &self,
        image: &str,
        requester: &Requester,
        objects: &[Object],
    ) -> Result<(), StoreError> {
        let bundle = bundle_config_map::name_of(image);
        let mut map = config_map(&bundle, requester);
        bundle_config_map::fill(&mut map, image, objects)?;
        self.cluster.ensure(&builtin::CONFIG_MAP, &map).await?;
        Ok(())
    }
}

/// The objects of a bundle cannot be stored in its ConfigMap.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// Compression failed.
    #[error(transparent)]
    Compress(#[from] std::io::Error),
    /// The API refuses the ConfigMap.
    #[error(transparent)]
    Api(#[from] mainstay_client::Error),
}

fn object(value: Value) -> Object {
    // Every value here is an object.
    Object::from_value(value).unwrap_or_default()
}

/// The ConfigMap that a bundle is unpacked into. The CatalogSource owns it.
fn config_map(bundle: &str, requester: &Requester) -> Object {
    let mut metadata = json!({
        "name": bundle, "namespace": requester.namespace,
        "labels": {names::MANAGED: names::MANAGED_VALUE},
    });
    if !requester.uid.is_empty() {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "name": requester.name, "uid": requester.uid,
            "controller": false, "blockOwnerDeletion": false,
        }]);
    }
    object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
}

/// The metadata of objects that the ConfigMap owns.
fn metadata(bundle: &str, map: &Object) -> Value {
    json!({
        "name": bundle, "namespace": map.namespace(),
        "labels": {names::MANAGED: names::MANAGED_VALUE},
        "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": bundle, "uid": map.uid(),
            "controller": false, "blockOwnerDeletion": false,
        }],
    })
}

/// The ServiceAccount of a Job, and its permission to write the ConfigMap.
fn unpack_rbac(bundle: &str, map: &Object) -> [(Resource, Object); 3] {
    let rbac = "rbac.authorization.k8s.io";
    let group = format!("{rbac}/v1");
    let metadata = || metadata(bundle, map);
    [
        (
            builtin::ROLE,
            object(json!({
                "apiVersion": group, "kind": "Role", "metadata": metadata(),
                "rules": [{
                    "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [bundle],
                    "verbs": ["create", "get", "update"],
                }],
            })),
        ),
        (
            builtin::ROLE_BINDING,
            object(json!({
                "apiVersion": group, "kind": "RoleBinding", "metadata": metadata(),
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": bundle},
                "subjects": [
                    {"kind": "ServiceAccount", "name": bundle, "namespace": map.namespace()},
                ],
            })),
        ),
        (
            builtin::SERVICE_ACCOUNT,
            object(json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(),
            })),
        ),
    ]
}
