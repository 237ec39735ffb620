//! `mainstay extension migrate rollback`: gives operators back to OLM classic.
//!
//! ```text
//! finalizer on the ClusterExtension ─► it owns the objects in place of ClusterObjectSets
//!   ─► deleted ─► its controller stops, the garbage collector waits ─► ClusterObjectSets deleted
//!   ─► certificates of webhooks deleted, then their Services lose their owner
//!   ─► a ClusterServiceVersion that an interrupted conversion left is deleted
//!   ─► Subscription as it was ─► OLM classic installs the version over the same objects
//!   ─► the objects lose their owner at OLM v1 ─► the finalizer goes
//! ```

use super::backup;
use super::operators::{
    Operators, handed_over, has_installed, install_plans, left_csv, list, object_sets,
};
use super::writes::{
    Look, change, create, delete, delete_and_wait, object_text, wait, wait_until_gone,
};
use super::{CommonArguments, TimeoutArguments};
use crate::extension::owned::{owned_objects, owned_resource};
use crate::extension::{say, wait_until_controller_ends};
use clap::Args;
use mainstay_api::resources::{
    CLUSTER_EXTENSION, CLUSTER_OBJECT_SET, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP,
    SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ClusterWriter, find_named};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_command::text::format_output;
use mainstay_migration::{
    ClassicOperator, Handover, MIGRATED_FROM_CSV, ServingObjects, certificate_secret, held,
    is_frozen, is_issued, orphaned, released_service, resource_of, restored_group,
    restored_subscription, returns_to_classic, taken_from_object_sets, thawed, without_hold,
    without_issuer, without_release_labels,
};
use mainstay_object::Object;
use mainstay_object::builtin::{self, addons};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Arguments of `rollback`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the ClusterExtension, or the folder of a backup.
    #[arg(value_name = "NAME|DIR", required_unless_present = "all", conflicts_with = "all")]
    target: Option<String>,
    /// All ClusterExtensions that replaced a Subscription.
    #[arg(short, long)]
    all: bool,
    /// With --all, only Subscriptions of this namespace.
    #[arg(short, long, value_name = "NAME", requires = "all")]
    namespace: Option<String>,
    /// Also give back an extension that is installed and works.
    #[arg(long)]
    acknowledge_installed: bool,
    #[command(flatten)]
    waiting: TimeoutArguments,
    #[command(flatten)]
    pub(super) common: CommonArguments,
}

pub(super) async fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
) -> Result<ExitStatus, CommandFailure> {
    let mut done = Vec::new();
    match &arguments.target {
        Some(folder) if backup::is_folder(&io.folder, folder) => {
            let saved = backup::read(&io.folder.join(folder))?;
            match cluster.get(&CLUSTER_EXTENSION, None, &saved.extension).await? {
                Some(extension) => done.push(roll_back(arguments, io, cluster, &extension).await?),
                None => done.push(restore(arguments, io, cluster, &saved).await?),
            }
        }
        Some(name) => {
            if let Some(undone) = undo_beginning(arguments, io, cluster, name).await? {
                done.push(undone);
            } else {
                let list = "mainstay extension list";
                let extension = find_named(cluster, &CLUSTER_EXTENSION, name, list).await?;
                done.push(roll_back(arguments, io, cluster, &extension).await?);
            }
        }
        None => {
            let operators = Operators::read(cluster).await?;
            for extension in operators.migrated(arguments.namespace.as_deref()) {
                done.push(roll_back(arguments, io, cluster, extension).await?);
            }
        }
    }
    if arguments.common.output != Format::Text {
        let value = json!({"operators": done});
        io.print(&format_output(arguments.common.output, &value, String::new));
    } else if done.is_empty() {
        let _ = writeln!(io.stderr, "No resources found");
    }
    Ok(ExitStatus::Done)
}

/// Gives an operator back.
async fn roll_back(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    extension: &Object,
) -> Result<Value, CommandFailure> {
    let (name, timeout) = (extension.name(), arguments.waiting.timeout);
    let wanted = restored_subscription(extension).map_err(|error| {
        let cause = Cause::new(format!("ClusterExtension {name} cannot be rolled back"));
        let cause = cause.because(Cause::new(error.to_string()));
        CommandFailure::usage(
            cause.remedy("name the folder of its backup, or create the Subscription yourself"),
        )
    })?;
    let is_held = held(extension).is_none();
    let is_installed = extension.condition("Installed") == Some("True");
    if is_installed && !is_held && !arguments.acknowledge_installed {
        let cause = Cause::new(format!("ClusterExtension {name} is installed"));
        let remedy = "give it back nevertheless with --acknowledge-installed";
        return Err(CommandFailure::usage(cause.remedy(remedy)));
    }
    visible_objects(cluster, name).await?;
    let namespace = wanted.namespace();
    if cluster.list(&OPERATOR_GROUP, Some(namespace), None).await?.is_empty()
        && let Some(group) = restored_group(extension)
    {
        create(cluster, io, &OPERATOR_GROUP, &group, false).await?;
    }
    change(cluster, io, &CLUSTER_EXTENSION, extension, |found| {
        (!found.is_terminating()).then(|| held(found)).flatten()
    })
    .await?;
    take_from_object_sets(cluster, io, extension).await?;
    delete(cluster, io, &CLUSTER_EXTENSION, extension).await?;
    wait_until_controller_stops(cluster, extension, timeout).await?;
    delete_object_sets(cluster, io, extension, timeout).await?;
    release_servers(cluster, io, extension, timeout).await?;
    let installed = wanted.str(&["spec", "startingCSV"]);
    let version = installed.or_else(|| extension.annotation(MIGRATED_FROM_CSV));
    let version = version.unwrap_or_default().to_owned();
    delete_left_csvs(cluster, io, extension, &wanted, &version, timeout).await?;
    let csv = restore_subscription(cluster, io, &wanted, &version, timeout).await?;
    let operator = ClassicOperator { subscription: &wanted, csv: &csv };
    release_objects(cluster, io, extension, operator).await?;
    change(cluster, io, &CLUSTER_EXTENSION, extension, without_hold).await?;
    wait_until_gone(cluster, &CLUSTER_EXTENSION, extension, timeout).await?;
    delete_releases(cluster, io, name).await?;
    let line = format!("{} restored, ClusterExtension {name} deleted", object_text(&wanted));
    say(io, arguments.common.output, &line);
    Ok(json!({
        "namespace": namespace, "name": wanted.name(), "extension": name, "status": "rolledBack",
    }))
}

/// Undoes a conversion that was killed before its ClusterExtension existed. None if there is none.
async fn undo_beginning(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    name: &str,
) -> Result<Option<Value>, CommandFailure> {
    if cluster.get(&CLUSTER_EXTENSION, None, name).await?.is_some() {
        return Ok(None);
    }
    let subscriptions = list(cluster, &SUBSCRIPTION, None, None).await?;
    let mut frozen = subscriptions.iter().filter(|found| found.name() == name && is_frozen(found));
    let Some(subscription) = frozen.next() else { return Ok(None) };
    let namespace = subscription.namespace();
    let csv = subscription.str(&["status", "installedCSV"]).unwrap_or_default();
    if let Some(csv) = cluster.get(&CLUSTER_SERVICE_VERSION, Some(namespace), csv).await? {
        let plans = install_plans(cluster, namespace).await?;
        let operator = ClassicOperator { subscription, csv: &csv };
        let (_, objects) = handed_over(cluster, operator, &plans).await?;
        for (kind, object) in &objects {
            change(cluster, io, kind, object, |found| without_release_labels(found, name)).await?;
        }
    }
    delete_releases(cluster, io, name).await?;
    change(cluster, io, &SUBSCRIPTION, subscription, thawed).await?;
    say(io, arguments.common.output, &format!("{} restored", object_text(subscription)));
    Ok(Some(json!({
        "namespace": namespace, "name": name, "extension": name, "status": "restored",
    })))
}

/// Deletes the releases of an extension that is gone. Most are gone with it.
async fn delete_releases(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extension: &str,
) -> Result<(), CommandFailure> {
    let selector = mainstay_releases::index_selector(Some(extension));
    for secret in list(cluster, &builtin::SECRET, None, Some(&selector)).await? {
        delete(cluster, io, &builtin::SECRET, &secret).await?;
    }
    Ok(())
}

/// Restores what a backup has, when the ClusterExtension is gone.
async fn restore(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    saved: &backup::Backup,
) -> Result<Value, CommandFailure> {
    let mut wanted = saved.subscription.clone();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        wanted.remove(&["metadata", field]);
    }
    wanted.remove(&["status"]);
    let mut wanted = thawed(&wanted).unwrap_or(wanted);
    wanted.set(&["spec", "startingCSV"], saved.csv.as_str().into());
    let namespace = wanted.namespace();
    let existing = cluster.get(&SUBSCRIPTION, Some(namespace), wanted.name()).await?;
    let installed = existing.as_ref().and_then(|found| found.str(&["status", "installedCSV"]));
    if let Some(installed) = installed.filter(|installed| **installed != *saved.csv) {
        let what = format!("{} exists already, with {installed}", object_text(&wanted));
        let cause = Cause::new(what)
            .because(Cause::new(format!("the backup has {}", saved.csv)))
            .remedy("to keep this version, there is nothing to restore")
            .remedy("to go back, delete the Subscription and its ClusterServiceVersion, and repeat the command");
        return Err(CommandFailure::usage(cause));
    }
    if let Some(group) = &saved.group
        && cluster.list(&OPERATOR_GROUP, Some(namespace), None).await?.is_empty()
    {
        let mut restored = Object::new(&OPERATOR_GROUP.gvk(), group.name());
        restored.set(&["metadata", "namespace"], namespace.into());
        restored.set(&["spec"], group.get(&["spec"]).cloned().unwrap_or_else(|| json!({})));
        create(cluster, io, &OPERATOR_GROUP, &restored, false).await?;
    }
    let timeout = arguments.waiting.timeout;
    restore_subscription(cluster, io, &wanted, &saved.csv, timeout).await?;
    say(io, arguments.common.output, &format!("{} restored", object_text(&wanted)));
    Ok(json!({
        "namespace": wanted.namespace(), "name": wanted.name(), "extension": saved.extension,
        "status": "restored",
    }))
}

/// Makes an extension the owner of the objects of its ClusterObjectSets, which then neither restore nor delete
/// them. Ends when a list shows no object of theirs.
async fn take_from_object_sets(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extension: &Object,
) -> Result<(), CommandFailure> {
    // More than one attempt is needed only while a rollout creates objects.
    const ATTEMPTS: usize = 20;
    for _ in 0..ATTEMPTS {
        let sets = object_sets(cluster, extension).await?;
        if sets.is_empty() {
            return Ok(());
        }
        let mut is_clean = true;
        let take = |found: &Object| taken_from_object_sets(found, extension, &sets);
        for object in &visible_objects(cluster, extension.name()).await? {
            if let (Some(kind), Some(_)) = (owned_resource(object), take(object)) {
                is_clean = false;
                change(cluster, io, kind, object, take).await?;
            }
        }
        if is_clean {
            return Ok(());
        }
    }
    let what = "its ClusterObjectSets create objects again and again";
    Err(Cause::new(format!("ClusterExtension {} cannot be rolled back", extension.name()))
        .because(Cause::new(what))
        .remedy("wait until its rollout has ended, and repeat the command")
        .into())
}

/// Deletes the ClusterObjectSets of an extension whose controller has stopped.
async fn delete_object_sets(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extension: &Object,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    for set in object_sets(cluster, extension).await? {
        delete_and_wait(cluster, io, &CLUSTER_OBJECT_SET, &set, timeout).await?;
    }
    Ok(())
}

/// Deletes the ClusterServiceVersions that an interrupted conversion left without their Subscription: none takes them
/// over again, and OLM classic resolves nothing beside them.
async fn delete_left_csvs(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extension: &Object,
    wanted: &Object,
    version: &str,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let replaced = (wanted.namespace(), wanted.name());
    let subscription = cluster.get(&SUBSCRIPTION, Some(replaced.0), replaced.1).await?;
    let migrated = extension.annotation(MIGRATED_FROM_CSV).unwrap_or_default();
    for name in BTreeSet::from([version, migrated]) {
        if subscription.iter().any(|subscription| has_installed(subscription, name)) {
            continue;
        }
        if let Some(csv) = left_csv(cluster, replaced, name).await? {
            delete_and_wait(cluster, io, &CLUSTER_SERVICE_VERSION, &csv, timeout).await?;
        }
    }
    Ok(())
}

/// Creates the Subscription again, and waits until OLM classic has installed the version.
async fn restore_subscription(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    wanted: &Object,
    version: &str,
    timeout: Duration,
) -> Result<Object, CommandFailure> {
    let (namespace, name) = (wanted.namespace(), wanted.name());
    let existing = cluster.get(&SUBSCRIPTION, Some(namespace), name).await?;
    let csv = cluster.get(&CLUSTER_SERVICE_VERSION, Some(namespace), version).await?;
    match &existing {
        // OLM classic never let go, or has it again.
        Some(existing) if csv.is_some() => {
            change(cluster, io, &SUBSCRIPTION, existing, thawed).await?;
        }
        // A Subscription that lost its ClusterServiceVersion does not install it again.
        Some(existing) if existing.str(&["status", "installedCSV"]) == Some(version) => {
            delete_and_wait(cluster, io, &SUBSCRIPTION, existing, timeout).await?;
            create(cluster, io, &SUBSCRIPTION, wanted, false).await?;
        }
        Some(_) => {}
        None => drop(create(cluster, io, &SUBSCRIPTION, wanted, false).await?),
    }
    let is_manual = wanted.str(&["spec", "installPlanApproval"]) == Some("Manual");
    loop {
        if is_manual {
            approve(cluster, io, namespace, version).await?;
        }
        let look = async || {
            let csv = cluster.get(&CLUSTER_SERVICE_VERSION, Some(namespace), version).await?;
            let Some(csv) = csv else {
                let plans = cluster.list(&INSTALL_PLAN, Some(namespace), None).await?;
                if is_manual && plans.iter().any(|plan| waits_for_approval(plan, version)) {
                    return Ok(Look::Reached(None));
                }
                let what =
                    format!("ClusterServiceVersion {namespace}/{version} does not exist yet");
                return Ok(Look::Waiting(Cause::new(what)));
            };
            Ok(match csv.str(&["status", "phase"]) {
                Some("Succeeded") => Look::Reached(Some(csv)),
                phase => Look::Waiting(Cause::new(format!(
                    "ClusterServiceVersion {namespace}/{version} is in phase {:?}",
                    phase.unwrap_or_default()
                ))),
            })
        };
        match wait(timeout, look).await? {
            Ok(Some(csv)) => return Ok(csv),
            Ok(None) => {}
            Err(why) => {
                return Err(Cause::new("OLM classic did not install the version again")
                    .because(why)
                    .remedy(format!(
                        "see why with: mainstay why subscription/{name} -n {namespace}"
                    ))
                    .remedy("the objects of the operator are untouched; repeat the command")
                    .into());
            }
        }
    }
}

fn waits_for_approval(plan: &Object, version: &str) -> bool {
    let named = plan.array(&["spec", "clusterServiceVersionNames"]);
    plan.bool(&["spec", "approved"]) != Some(true) && named.iter().any(|name| name == version)
}

/// Approves the InstallPlan of a version that was installed before.
async fn approve(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    namespace: &str,
    version: &str,
) -> Result<(), CommandFailure> {
    for plan in install_plans(cluster, namespace).await? {
        change(cluster, io, &INSTALL_PLAN, &plan, |found| {
            waits_for_approval(found, version).then(|| {
                let mut plan = found.clone();
                plan.set(&["spec", "approved"], true.into());
                plan
            })
        })
        .await?;
    }
    Ok(())
}

/// The objects of an extension. One that the account cannot see would be deleted with the extension.
async fn visible_objects(
    cluster: &impl ClusterHandle,
    extension: &str,
) -> Result<Vec<Object>, CommandFailure> {
    let owned = owned_objects(cluster, extension).await?;
    if owned.hidden.is_empty() {
        return Ok(owned.objects);
    }
    let cause = Cause::new(format!("this account may not list {}", owned.hidden.join(", ")))
        .remedy(
            "use an account that may list them: what stays must be seen before the extension goes",
        );
    Err(CommandFailure::from(cause))
}

/// Waits until the controller of a deleted extension has stopped: one that still worked would restore what is
/// taken from it.
async fn wait_until_controller_stops(
    cluster: &impl ClusterHandle,
    extension: &Object,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let ended = wait_until_controller_ends(cluster, extension, timeout).await?;
    ended.map(drop).map_err(|found| {
        let finalizers: Vec<&str> = found.finalizers().collect();
        Cause::new(format!(
            "the controller of ClusterExtension {} has not ended its work after {} s",
            found.name(),
            timeout.as_secs()
        ))
        .because(Cause::new(format!("its finalizers remain: {}", finalizers.join(", "))))
        .remedy("check that the controller of OLM v1 runs, and repeat the command")
        .into()
    })
}

/// Makes way for the servers of webhooks of OLM classic, which have Services and Secrets of the same names.
async fn release_servers(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extension: &Object,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let objects = visible_objects(cluster, extension.name()).await?;
    let serving = ServingObjects::of(&objects, extension);
    for issuer in &serving.issuers {
        delete_and_wait(cluster, io, &addons::ISSUER, issuer, timeout).await?;
    }
    for service in &serving.services {
        change(cluster, io, &builtin::SERVICE, service, without_issuer).await?;
        let (namespace, name) = (Some(service.namespace()), certificate_secret(service));
        let secret = cluster.get(&builtin::SECRET, namespace, &name).await?;
        if let Some(secret) = secret.filter(|secret| is_issued(secret, service, extension)) {
            delete_and_wait(cluster, io, &builtin::SECRET, &secret, timeout).await?;
        }
    }
    for certificate in &serving.certificates {
        delete_and_wait(cluster, io, &addons::CERTIFICATE, certificate, timeout).await?;
    }
    for service in &serving.services {
        let release = |found: &Object| released_service(found, extension);
        change(cluster, io, &builtin::SERVICE, service, release).await?;
    }
    Ok(())
}

/// Takes the owner at OLM v1 from the objects that OLM classic has again, until none has it.
async fn release_objects(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extension: &Object,
    operator: ClassicOperator<'_>,
) -> Result<(), CommandFailure> {
    let plans = install_plans(cluster, operator.namespace()).await?;
    let rules = Handover::of(operator, &plans);
    let csv = operator.csv;
    loop {
        let mut is_clean = true;
        for object in &visible_objects(cluster, extension.name()).await? {
            let Some(kind) = resource_of(object) else { continue };
            if !returns_to_classic(object, csv, &rules) {
                continue;
            }
            is_clean = false;
            change(cluster, io, kind, object, |found| orphaned(found, extension, csv)).await?;
        }
        if is_clean {
            return Ok(());
        }
    }
}
