//! `mainstay uninstall`: removes an operator, after a preview of what goes, what stays and what would
//! hang.
//!
//! ```text
//! cluster ─► OperatorObjects, OperatorParts ── plan_uninstall ─► UninstallPlan ─► preview ── --dry-run ends here ─► deletes, in order
//! ```
//!
//! `extension` does the same for ClusterExtensions of OLM v1.

mod extension;
mod kept_crds;

use crate::extension::object_text;
use clap::Args;
use mainstay_api::names;
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR, OPERATOR_CONDITION, SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterArguments, ClusterHandle, ClusterReadError, ClusterWriter};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::output::OutputSink;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, escape_controls, escape_controls_in_lines};
use mainstay_formats::names::LABEL_MAX;
use mainstay_object::builtin::{self, openshift};
use mainstay_object::{Object, Resource};
use mainstay_removal::{
    DeletionStep, ExtensionCrd, InstalledOperator, OperatorCrd, OperatorObjects, OperatorParts,
    PlanItem, UninstallPlan, UninstallRequest, bundle_config_maps, find_operator, operator_crds,
    plan_uninstall,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// Kinds whose objects have the labels of the CSV that owns them. All are cluster-scoped: in a
/// namespace, any user who may write objects may also write labels.
const LABELLED_KINDS: [Resource; 11] = [
    builtin::CLUSTER_ROLE,
    builtin::CLUSTER_ROLE_BINDING,
    builtin::VALIDATING_WEBHOOK_CONFIGURATION,
    builtin::MUTATING_WEBHOOK_CONFIGURATION,
    builtin::API_SERVICE,
    builtin::PRIORITY_CLASS,
    openshift::CONSOLE_YAML_SAMPLE,
    openshift::CONSOLE_QUICK_START,
    openshift::CONSOLE_CLI_DOWNLOAD,
    openshift::CONSOLE_LINK,
    openshift::CONSOLE_PLUGIN,
];

/// The finalizer of a CustomResourceDefinition whose objects are being deleted.
const CUSTOM_OBJECTS_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The system namespace, in which operators that serve APIs have a RoleBinding.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// Kinds whose objects name the owning CSV in their owner references, and whether they have the label
/// of OLM-managed objects.
const OWNED_KINDS: [(Resource, bool); 13] = [
    // First, because other objects name it as owner.
    (OPERATOR_CONDITION, false),
    (builtin::DEPLOYMENT, false),
    (builtin::SERVICE_ACCOUNT, false),
    (builtin::ROLE, false),
    (builtin::ROLE_BINDING, false),
    (builtin::SERVICE, false),
    (builtin::SECRET, true),
    (builtin::CONFIG_MAP, true),
    (builtin::POD_DISRUPTION_BUDGET, false),
    (builtin::NETWORK_POLICY, false),
    (
        Resource::namespaced("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
        false,
    ),
    (
        Resource::namespaced("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
        false,
    ),
    (
        Resource::namespaced(
            "autoscaling.k8s.io",
            "v1",
            "VerticalPodAutoscaler",
            "verticalpodautoscalers",
        ),
        false,
    ),
];

/// Arguments of `uninstall`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct UninstallArguments {
    /// Name of the operator's Subscription, package or ClusterServiceVersion; or clusterextension/NAME for a
    /// ClusterExtension of OLM v1.
    #[arg(value_name = "NAME")]
    name: String,
    /// Namespace of the operator [default: that of the kubeconfig's context].
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Print the preview, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Also delete the objects of the kinds that the operator provides, before the operator.
    #[arg(long)]
    operands: bool,
    /// Also delete the CustomResourceDefinitions of these kinds, and with them all their objects in all
    /// namespaces.
    #[arg(long)]
    definitions: bool,
    /// Keep the CustomResourceDefinitions of a ClusterExtension, and all objects of their kinds. Those of
    /// other operators stay anyway.
    #[arg(long, conflicts_with = "definitions")]
    keep_crds: bool,
    /// Uninstall a ClusterExtension even if objects of its kinds are lost with it, or others use its kinds.
    #[arg(short, long)]
    yes: bool,
    /// The cluster of the operator.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Timeout in seconds for each deletion.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
    /// Format of the preview.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

impl UninstallArguments {
    /// How long each part may take to go.
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// Runs the command.
pub async fn run<C: ClusterWriter>(
    arguments: &UninstallArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce() -> Result<C, CommandFailure>,
) -> ExitStatus {
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let result = match connect().await {
        Ok(cluster) => match extension::name_in(&arguments.name) {
            Some(name) => {
                Box::pin(extension::uninstall(arguments, name, &cluster, &mut stdout)).await
            }
            None => uninstall(arguments, &cluster, &mut stdout).await,
        },
        Err(failure) => Err(failure),
    };
    // Flushing fails if the reader has closed the pipe.
    let _ = stdout.flush();
    match result {
        Ok(()) => ExitStatus::Done,
        Err(CommandFailure { exit, cause }) => {
            let _ = write!(io.stderr, "error: {}", cause.render());
            exit
        }
    }
}

async fn uninstall(
    arguments: &UninstallArguments,
    cluster: &impl ClusterHandle,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let namespace = arguments.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace()).to_owned();
    let request = UninstallRequest {
        namespace,
        name: arguments.name.clone(),
        operands: arguments.operands,
        definitions: arguments.definitions,
    };
    let (target, plan) = plan_removal(cluster, &request).await?;
    let preview = format_output(arguments.output, &value(&target, &plan), || {
        text(&target, &plan, arguments.dry_run)
    });
    write_preview(&preview, out)?;
    if arguments.dry_run {
        return Ok(());
    }
    delete_all(arguments, cluster, &plan.steps, out).await?;
    Ok(())
}

/// Writes the preview. Nothing is deleted before.
///
/// # Errors
/// It cannot be written.
fn write_preview(preview: &str, out: &mut dyn Write) -> Result<(), CommandFailure> {
    let written = out.write_all(preview.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| {
        Cause::new("the preview cannot be written").because(Cause::new(error.to_string())).into()
    })
}

/// Carries out steps, those of one kind together.
///
/// # Errors
/// The cluster refuses, or objects still exist after the timeout.
async fn delete_all(
    arguments: &UninstallArguments,
    cluster: &impl ClusterHandle,
    steps: &[DeletionStep],
    out: &mut dyn Write,
) -> Result<(), Cause> {
    let reports_progress = arguments.output == Format::Text;
    for steps in steps.chunk_by(|one, next| one.resource == next.resource) {
        delete_steps(cluster, steps, arguments.timeout(), reports_progress.then_some(&mut *out))
            .await?;
    }
    Ok(())
}

async fn plan_removal(
    cluster: &impl ClusterHandle,
    request: &UninstallRequest,
) -> Result<(InstalledOperator, UninstallPlan), CommandFailure> {
    let own = Some(&*request.namespace);
    let not_copied = format!("!{}", names::COPIED_FROM);
    let versions = cluster.list(&CLUSTER_SERVICE_VERSION, None, Some(&not_copied)).await;
    let (versions, unserved) = match versions {
        Err(ClusterReadError::UnknownKind(cause)) => (Vec::new(), Some(cause)),
        listed => (listed?, None),
    };
    let all_csvs = versions.iter().map(|csv| csv.key().to_string()).collect();
    let mut objects = OperatorObjects {
        definitions: Vec::new(),
        subscriptions: list_known(cluster, &SUBSCRIPTION, own, None).await?,
        versions: versions.into_iter().filter(|csv| csv.namespace() == request.namespace).collect(),
        plans: list_known(cluster, &INSTALL_PLAN, own, None).await?,
    };
    if find_operator(&objects, request).is_err() {
        // CRDs are many, so they are only listed when no other object of the operator is left.
        objects.definitions =
            list_known(cluster, &builtin::CUSTOM_RESOURCE_DEFINITION, None, None).await?;
    }
    // If the cluster does not serve ClusterServiceVersions, that is the error, not the name.
    let target = find_operator(&objects, request).map_err(|error| {
        unserved.map_or_else(|| CommandFailure::usage(error), CommandFailure::from)
    })?;
    let mut parts = OperatorParts { versions: all_csvs, ..OperatorParts::default() };
    for version in &target.versions {
        let labels =
            format!("{}={version},{}={}", names::OWNER, names::OWNER_NAMESPACE, request.namespace);
        // A name that is too long for a label value was never written as one.
        if version.len() <= LABEL_MAX {
            for kind in &LABELLED_KINDS {
                let found = list_known(cluster, kind, None, Some(&labels)).await?;
                parts.owned.extend(found.into_iter().map(|object| (kind.clone(), object)));
            }
            let bindings =
                list_known(cluster, &builtin::ROLE_BINDING, Some(SYSTEM_NAMESPACE), Some(&labels))
                    .await?;
            parts
                .owned
                .extend(bindings.into_iter().map(|binding| (builtin::ROLE_BINDING, binding)));
        }
    }
    find_owned(cluster, &objects, &target, &mut parts).await?;
    let copied = format!("{}={}", names::COPIED_FROM, request.namespace);
    let copies = list_known(cluster, &CLUSTER_SERVICE_VERSION, None, Some(&copied)).await?;
    let is_target = |csv: &&Object| target.versions.iter().any(|version| version == csv.name());
    parts.copies = copies.iter().filter(is_target).count();
    if let Some(package) = &target.package {
        let name = names::operator_name(package, &request.namespace);
        parts.operator = cluster.get(&OPERATOR, None, &name).await?;
    }
    for name in operator_crds(&target, parts.operator.as_ref()) {
        let found = cluster.get(&builtin::CUSTOM_RESOURCE_DEFINITION, None, &name).await?;
        let Some(definition) = found else { continue };
        let mut definition = OperatorCrd { definition, objects: Vec::new() };
        if let Some(kind) = definition.resource() {
            definition.objects = list_known(cluster, &kind, None, None).await?;
        }
        parts.definitions.push(definition);
    }
    for map in bundle_config_maps(&objects, &target) {
        parts.unpacked.extend(
            cluster.get(&builtin::CONFIG_MAP, Some(map.namespace.as_ref()), &map.name).await?,
        );
    }
    if !parts.unpacked.is_empty() {
        // InstallPlans of all namespaces, as they may install the same bundle now.
        parts.plans = list_known(cluster, &INSTALL_PLAN, None, None).await?;
    }
    let plan = plan_uninstall(&objects, &parts, &target, request).map_err(CommandFailure::usage)?;
    Ok((target, plan))
}

/// Lists the objects of a kind; a kind that the cluster does not serve has none.
async fn list_known(
    cluster: &impl ClusterHandle,
    kind: &Resource,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<Object>, Cause> {
    match cluster.list(kind, namespace, labels).await {
        Err(ClusterReadError::UnknownKind(_)) => Ok(Vec::new()),
        listed => Ok(listed?),
    }
}

/// Finds the objects whose only owners are the CSVs and objects that these own.
async fn find_owned(
    cluster: &impl ClusterHandle,
    objects: &OperatorObjects,
    target: &InstalledOperator,
    parts: &mut OperatorParts,
) -> Result<(), Cause> {
    let is_target = |csv: &&Object| target.versions.iter().any(|name| name == csv.name());
    let versions = objects.versions.iter().filter(is_target);
    let mut owners: BTreeSet<String> = versions.map(|csv| csv.uid().to_owned()).collect();
    if owners.is_empty() {
        return Ok(());
    }
    let managed = format!("{}={}", names::MANAGED, names::MANAGED_VALUE);
    for (kind, labelled) in &OWNED_KINDS {
        let labels = labelled.then_some(&*managed);
        for object in list_known(cluster, kind, Some(&target.namespace), labels).await? {
            let references = object.owner_references();
            let owned = !references.is_empty()
                && references.iter().all(|owner| owners.contains(&owner.uid));
            let known = parts.owned.iter().any(|(_, owned)| owned.uid() == object.uid());
            if owned && !known {
                if *kind == OPERATOR_CONDITION {
                    owners.insert(object.uid().to_owned());
                }
                parts.owned.push((kind.clone(), object));
            }
        }
    }
    Ok(())
}

/// Deletes objects of one kind, and waits until they are gone.
async fn delete_steps(
    cluster: &impl ClusterHandle,
    steps: &[DeletionStep],
    timeout: Duration,
    mut out: Option<&mut dyn Write>,
) -> Result<(), Cause> {
    for step in steps.iter().filter(|step| !step.is_garbage_collected) {
        cluster.delete(step).await?;
    }
    let mut remaining = Vec::new();
    for step in steps {
        if let Some(object) = cluster.wait_until_gone(step, timeout).await? {
            remaining.push(match held_objects(cluster, &object).await.as_slice() {
                [] => remaining_cause(&step_name(step), &object),
                held => Cause::new(format!("{} waits for the objects of its kind", step_name(step)))
                    .because_all(held.iter().map(|held| remaining_cause(&object_text(held), held)))
                    .remedy("if the operator that removes the finalizers is gone, remove them yourself: kubectl edit"),
            });
        } else if let Some(out) = &mut out {
            // The deletion goes on, whether or not the output can be written.
            let _ = writeln!(out, "deleted  {}", escape_controls(&step_name(step)));
        }
    }
    if remaining.is_empty() {
        return Ok(());
    }
    Err(Cause::new(format!("some objects still exist after {} s, and the uninstallation stops", timeout.as_secs()))
        .because_all(remaining)
        .remedy("check the log of the operator and run the command again, or allow more time with --timeout SECONDS"))
}

fn remaining_cause(what: &str, object: &Object) -> Cause {
    let finalizers: Vec<&str> = object.finalizers().collect();
    Cause::new(match finalizers.as_slice() {
        [] => format!("{what} still exists"),
        all => format!("{what} waits for its finalizers: {}", all.join(", ")),
    })
}

/// The first objects with finalizers that a CustomResourceDefinition which is being deleted waits for.
async fn held_objects(cluster: &impl ClusterHandle, object: &Object) -> Vec<Object> {
    const SHOWN: usize = 5;
    let waits = object.finalizers().any(|finalizer| finalizer == CUSTOM_OBJECTS_FINALIZER);
    let crd = ExtensionCrd { definition: object.clone(), objects: None };
    let Some(kind) = crd.resource().filter(|_| waits) else { return Vec::new() };
    // This only explains: what cannot be listed is left out.
    let all = cluster.list(&kind, None, None).await.unwrap_or_default();
    all.into_iter().filter(|custom| custom.finalizers().next().is_some()).take(SHOWN).collect()
}

fn step_name(step: &DeletionStep) -> String {
    match &step.namespace {
        Some(namespace) => format!("{} {namespace}/{}", step.resource.kind, step.name),
        None => format!("{} {}", step.resource.kind, step.name),
    }
}

fn text(target: &InstalledOperator, plan: &UninstallPlan, dry: bool) -> String {
    let mut text = String::new();
    let package_text = target.package.as_deref().map(|package| format!(" of package {package}"));
    let what = match target.versions.as_slice() {
        [] => "leftover CustomResourceDefinitions".to_owned(),
        some => some.join(", "),
    };
    // Writing into a String does not fail.
    let _ = writeln!(text, "{what}{} in {}", package_text.unwrap_or_default(), target.namespace);
    text.push_str(&plan_text(plan, dry));
    escape_controls_in_lines(&text)
}

/// What goes, what stays, and what would hang.
fn plan_text(plan: &UninstallPlan, dry: bool) -> String {
    let mut text = String::new();
    for (head, items) in [
        (if dry { "would be deleted" } else { "will be deleted" }, &plan.deleted),
        (if dry { "would be kept" } else { "will be kept" }, &plan.retained),
        ("deletion would never finish", &plan.stuck),
    ] {
        text.push_str(&items_text(head, items));
    }
    text
}

/// Items under a head line; empty without items.
fn items_text(head: &str, items: &[PlanItem]) -> String {
    let mut text = String::new();
    if items.is_empty() {
        return text;
    }
    // Writing into a String does not fail.
    let _ = writeln!(text, "{head}:");
    for item in items {
        let reason =
            if item.reason.is_empty() { String::new() } else { format!(": {}", item.reason) };
        let _ = writeln!(text, "  {item}{reason}");
        if let Some(remedy) = &item.remedy {
            let _ = writeln!(text, "    → {remedy}");
        }
    }
    text
}

/// Items as values.
fn items(items: &[PlanItem]) -> Vec<Value> {
    let one = |item: &PlanItem| {
        json!({
            "kind": item.kind, "namespace": item.namespace, "name": item.name,
            "why": item.reason, "remedy": item.remedy,
        })
    };
    items.iter().map(one).collect()
}

fn value(target: &InstalledOperator, plan: &UninstallPlan) -> Value {
    json!({
        "namespace": target.namespace,
        "package": target.package,
        "subscriptions": target.subscriptions,
        "versions": target.versions,
        "goes": items(&plan.deleted),
        "stays": items(&plan.retained),
        "hangs": items(&plan.stuck),
    })
}
