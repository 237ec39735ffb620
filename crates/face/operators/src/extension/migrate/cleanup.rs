//! `mainstay extension migrate cleanup`: removes what OLM classic left.

use super::convert::{finish, system_namespace};
use super::operators::{Operators, bundle_config_maps, install_plans, left_csv, list};
use super::writes::{Look, change, delete, object_text, wait};
use super::{CommonArguments, TimeoutArguments};
use crate::extension::owned::owned_objects;
use crate::extension::say;
use clap::Args;
use mainstay_api::names::{COPIED_FROM, operator_name};
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_EXTENSION, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR,
    OPERATOR_CONDITION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ClusterWriter, find_named};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, count};
use mainstay_migration::{
    MIGRATED_FROM_CSV, SUBSCRIPTION_BACKUP, deletable_plans, is_unfinished, migrated_from,
    resource_of, without_classic_labels,
};
use mainstay_object::builtin::CONFIG_MAP;
use mainstay_object::{Object, Resource};
use serde_json::{Value, json};
use std::time::Duration;

/// How long the controller of Operators may take to see that the components are gone.
const OPERATOR_TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `cleanup`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct Arguments {
    /// Name of the ClusterExtension.
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// All ClusterExtensions that replaced a Subscription.
    #[arg(short, long)]
    all: bool,
    /// With --all, only Subscriptions of this namespace.
    #[arg(short, long, value_name = "NAME", requires = "all")]
    namespace: Option<String>,
    /// Also delete the OperatorGroup of the namespace, unless a Subscription or ClusterServiceVersion
    /// remains there.
    #[arg(long)]
    delete_operatorgroup: bool,
    /// Also delete the CatalogSource, unless a Subscription of any namespace names it.
    #[arg(long)]
    delete_catalogsource: bool,
    /// Print what would be deleted and changed, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Namespace in which the controller of OLM v1 keeps its releases [default: found].
    #[arg(long, value_name = "NAME")]
    system_namespace: Option<String>,
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
    let extensions = if let Some(name) = &arguments.name {
        let list = "mainstay extension list";
        vec![find_named(cluster, &CLUSTER_EXTENSION, name, list).await?]
    } else {
        let operators = Operators::read(cluster).await?;
        operators.migrated(arguments.namespace.as_deref()).cloned().collect()
    };
    let mut done = Vec::new();
    for extension in &extensions {
        done.push(clean_up(arguments, io, cluster, extension).await?);
    }
    if arguments.common.output != Format::Text {
        let value = json!({"operators": done});
        io.print(&format_output(arguments.common.output, &value, String::new));
    } else if done.is_empty() {
        let _ = writeln!(io.stderr, "No resources found");
    }
    Ok(ExitStatus::Done)
}

/// What is removed, and what was.
struct Removal<'a> {
    arguments: &'a Arguments,
    done: Vec<String>,
}

impl Removal<'_> {
    async fn delete(
        &mut self,
        cluster: &impl ClusterWriter,
        io: &mut CommandIo<'_>,
        kind: &Resource,
        object: &Object,
    ) -> Result<(), CommandFailure> {
        let (what, output) = (object_text(object), self.arguments.common.output);
        if self.arguments.dry_run {
            say(io, output, &format!("would delete {what}"));
        } else {
            delete(cluster, io, kind, object).await?;
            say(io, output, &format!("{what} deleted"));
        }
        self.done.push(what);
        Ok(())
    }
}

async fn clean_up(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    extension: &Object,
) -> Result<Value, CommandFailure> {
    let name = extension.name();
    let Some((namespace, subscription)) = migrated_from(extension) else {
        let cause = Cause::new(format!("ClusterExtension {name} replaced no Subscription"));
        let remedy = "list those that did with: mainstay extension migrate check --all";
        return Err(CommandFailure::usage(cause.remedy(remedy)));
    };
    let csv_name = extension.annotation(MIGRATED_FROM_CSV).unwrap_or_default();
    let mut removal = Removal { arguments, done: Vec::new() };
    finish_conversion(&mut removal, io, cluster, extension).await?;
    let is_over = |found: &&Object| found.name() != subscription || found.namespace() != namespace;
    let subscriptions = cluster.list(&SUBSCRIPTION, None, None).await?;
    let subscriptions: Vec<&Object> = subscriptions.iter().filter(is_over).collect();
    let csvs = cluster.list(&CLUSTER_SERVICE_VERSION, Some(namespace), None).await?;
    let csvs: Vec<Object> = csvs.into_iter().filter(|csv| csv.name() != csv_name).collect();

    let plans = install_plans(cluster, namespace).await?;
    let plans = deletable_plans(&plans, csv_name, &csvs);
    for map in bundle_config_maps(cluster, &plans).await? {
        removal.delete(cluster, io, &CONFIG_MAP, &map).await?;
    }
    for plan in plans {
        removal.delete(cluster, io, &INSTALL_PLAN, plan).await?;
    }
    let copies = format!("{COPIED_FROM}={namespace}");
    let copies = list(cluster, &CLUSTER_SERVICE_VERSION, None, Some(&copies)).await?;
    for copy in copies.iter().filter(|copy| copy.name() == csv_name) {
        removal.delete(cluster, io, &CLUSTER_SERVICE_VERSION, copy).await?;
    }
    let condition = cluster.get(&OPERATOR_CONDITION, Some(namespace), csv_name).await?;
    if let Some(condition) = condition {
        removal.delete(cluster, io, &OPERATOR_CONDITION, &condition).await?;
    }
    strip_labels(&mut removal, io, cluster, name).await?;
    let package = extension.str(&["spec", "source", "catalog", "packageName"]).unwrap_or_default();
    let operator = operator_name(package, namespace);
    if let Some(operator) = cluster.get(&OPERATOR, None, &operator).await? {
        if !arguments.dry_run {
            wait_until_empty(cluster, io, &operator, arguments.waiting.timeout).await?;
        }
        removal.delete(cluster, io, &OPERATOR, &operator).await?;
    }
    if arguments.delete_operatorgroup {
        let is_used = subscriptions.iter().any(|found| found.namespace() == namespace)
            || csvs.iter().any(|csv| csv.label(COPIED_FROM).is_none());
        if is_used {
            let line = format!("the OperatorGroup of {namespace} stays: other operators need it");
            say(io, arguments.common.output, &line);
        } else {
            for group in cluster.list(&OPERATOR_GROUP, Some(namespace), None).await? {
                removal.delete(cluster, io, &OPERATOR_GROUP, &group).await?;
            }
        }
    }
    if arguments.delete_catalogsource {
        delete_catalog_source(&mut removal, io, cluster, extension, &subscriptions).await?;
    }
    if removal.done.is_empty() {
        say(io, arguments.common.output, &format!("ClusterExtension {name}: nothing is left"));
    }
    Ok(json!({"extension": name, "removed": removal.done}))
}

/// Finishes a conversion that was interrupted.
async fn finish_conversion(
    removal: &mut Removal<'_>,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    extension: &Object,
) -> Result<(), CommandFailure> {
    let Some(replaced) = migrated_from(extension) else { return Ok(()) };
    let (namespace, subscription) = replaced;
    let csv = extension.annotation(MIGRATED_FROM_CSV).unwrap_or_default();
    let csv = left_csv(cluster, replaced, csv).await?;
    let subscription = cluster.get(&SUBSCRIPTION, Some(namespace), subscription).await?;
    let left: Vec<String> = subscription.iter().chain(&csv).map(object_text).collect();
    if left.is_empty() && !is_unfinished(extension) {
        return Ok(());
    }
    let arguments = removal.arguments;
    if !arguments.dry_run {
        let named = arguments.system_namespace.as_deref();
        let system = system_namespace(cluster, named).await?;
        finish(cluster, io, extension, &system, arguments.waiting.timeout).await?;
    }
    if left.is_empty() {
        let what = format!("conversion to {}", object_text(extension));
        let line = if arguments.dry_run {
            format!("would finish the {what}")
        } else {
            format!("{what} finished")
        };
        say(io, arguments.common.output, &line);
        removal.done.push(what);
    }
    for what in left {
        let line = if arguments.dry_run {
            format!("would delete {what}")
        } else {
            format!("{what} deleted")
        };
        say(io, arguments.common.output, &line);
        removal.done.push(what);
    }
    Ok(())
}

/// Removes the labels of OLM classic from the objects of an extension.
async fn strip_labels(
    removal: &mut Removal<'_>,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    extension: &str,
) -> Result<(), CommandFailure> {
    let arguments = removal.arguments;
    let owned = owned_objects(cluster, extension).await?;
    for object in &owned.objects {
        let Some(kind) = resource_of(object) else { continue };
        if without_classic_labels(object).is_none() {
            continue;
        }
        let what = object_text(object);
        if arguments.dry_run {
            say(io, arguments.common.output, &format!("would remove labels of {what}"));
        } else {
            change(cluster, io, kind, object, without_classic_labels).await?;
            say(io, arguments.common.output, &format!("labels of {what} removed"));
        }
        removal.done.push(format!("labels of {what}"));
    }
    Ok(())
}

/// Waits until OLM classic has removed all components from an Operator: it would create an Operator with
/// components again. If no controller does that, the wait ends after [`OPERATOR_TIMEOUT`].
async fn wait_until_empty(
    cluster: &impl ClusterHandle,
    io: &mut CommandIo<'_>,
    operator: &Object,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let look = async || {
        let found = cluster.get(&OPERATOR, None, operator.name()).await?;
        let refs = found.iter().flat_map(|found| found.array(&["status", "components", "refs"]));
        Ok(match refs.count() {
            0 => Look::Reached(()),
            many => Look::Waiting(Cause::new(format!(
                "Operator {} still has {}",
                operator.name(),
                count(many, "component")
            ))),
        })
    };
    if let Err(why) = wait(timeout.min(OPERATOR_TIMEOUT), look).await? {
        let _ = writeln!(
            io.stderr,
            "note: {}, so OLM classic may create it again; repeat the command later",
            why.what()
        );
    }
    Ok(())
}

async fn delete_catalog_source(
    removal: &mut Removal<'_>,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    extension: &Object,
    subscriptions: &[&Object],
) -> Result<(), CommandFailure> {
    let backup = extension.annotation(SUBSCRIPTION_BACKUP).unwrap_or_default();
    let backup: Value = serde_json::from_str(backup).unwrap_or_default();
    let field = |name: &str| backup[name].as_str().unwrap_or_default();
    let (namespace, name) = (field("sourceNamespace"), field("source"));
    let names = |found: &&&Object| {
        found.str(&["spec", "sourceNamespace"]) == Some(namespace)
            && found.str(&["spec", "source"]) == Some(name)
    };
    if let Some(user) = subscriptions.iter().find(names) {
        let user = object_text(user);
        let line = format!("CatalogSource {namespace}/{name} stays: {user} names it");
        say(io, removal.arguments.common.output, &line);
        return Ok(());
    }
    if let Some(source) = cluster.get(&CATALOG_SOURCE, Some(namespace), name).await? {
        removal.delete(cluster, io, &CATALOG_SOURCE, &source).await?;
    }
    Ok(())
}
