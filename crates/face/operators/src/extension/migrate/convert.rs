//! `mainstay extension migrate convert`: Subscriptions become ClusterExtensions.
//!
//! ```text
//! Subscription: approval Manual ─► release Secret ─► Helm's labels on objects ─► ClusterExtension
//!   ─► taken over ─► Subscription deleted ─► ClusterServiceVersion deleted ─► objects checked ─► pin removed
//! ```
//!
//! Each step looks at the cluster first, so the command continues where it was killed. An annotation of the
//! ClusterExtension goes with the last step. The Subscription goes before its ClusterServiceVersion: without that,
//! OLM classic would plan the bundle again.

use super::backup::{self, BackupContent};
use super::check::{SubscriptionArguments, text};
use super::operators::{
    CheckedOperator, KindedObject, Operators, config_maps_of, handed_over, install_plans, left_csv,
    list, object_sets,
};
use super::writes::{Look, change, create, delete, delete_and_wait, object_text, wait};
use super::{AcknowledgementArguments, CommonArguments, TimeoutArguments};
use crate::extension::say;
use crate::extension::state::{self, InstallStage};
use clap::Args;
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_cause::Cause;
use mainstay_clock::Clock;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError, ClusterWriter};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_command::text::format_output;
use mainstay_migration::{
    Acknowledgements, ClassicOperator, ExtensionInput, Handover, MIGRATED_FROM_CSV, MigrationState,
    OperatorReport, RecordedRelease, best_offer, extension, finished, frozen, loses_pin,
    restored_subscription, unfinished_revision, with_release_labels, without_owner_labels,
};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The namespaces in which a controller of OLM v1 may keep its releases, the most usual first.
const SYSTEM_NAMESPACES: [&str; 3] =
    ["olmv1-system", "openshift-operator-controller", "openshift-catalogd"];

/// Arguments of `convert`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    target: SubscriptionArguments,
    /// Print what would be written, let the cluster check the ClusterExtension, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write all that is changed or deleted to files in DIR first; with --all, in a folder for each
    /// Subscription.
    #[arg(long, value_name = "DIR")]
    backup: Option<PathBuf>,
    /// Continue with the next Subscription after a failure.
    #[arg(long, requires = "all")]
    continue_on_error: bool,
    /// ServiceAccount of the ClusterExtension, for versions of OLM v1 up to 1.10, which demand one.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    service_account: String,
    /// Namespace in which the controller of OLM v1 keeps its releases [default: found].
    #[arg(long, value_name = "NAME")]
    system_namespace: Option<String>,
    #[command(flatten)]
    waiting: TimeoutArguments,
    #[command(flatten)]
    acknowledged: AcknowledgementArguments,
    #[command(flatten)]
    pub(super) common: CommonArguments,
}

pub(super) async fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
) -> Result<ExitStatus, CommandFailure> {
    let acknowledged = arguments.acknowledged.all();
    let mut operators = Operators::read(cluster).await?;
    let reports =
        super::check::check(cluster, &mut operators, &arguments.target, &acknowledged).await?;
    let system = system_namespace(cluster, arguments.system_namespace.as_deref()).await?;
    let mut status = ExitStatus::Done;
    let mut results = Vec::new();
    for report in &reports {
        let mut conversion = Conversion {
            cluster,
            arguments,
            acknowledged: &acknowledged,
            operators: &mut operators,
            system: &system,
        };
        let done = match report.state {
            MigrationState::AlreadyMigrated => {
                say(io, arguments.common.output, &headline(report, &report.reason));
                Ok(json!({"status": "alreadyMigrated"}))
            }
            // With --all, others than the eligible ones are reported and left alone.
            MigrationState::Conflict | MigrationState::Ineligible if arguments.target.all => {
                status = ExitStatus::Unresolved;
                skip(arguments, io, report);
                Ok(json!({"status": "skipped", "reason": report.reason}))
            }
            MigrationState::Ineligible => {
                status = ExitStatus::Unresolved;
                if arguments.common.output == Format::Text {
                    io.print(&text(std::slice::from_ref(report)));
                }
                Ok(json!({"status": "ineligible", "checks": report.checks}))
            }
            MigrationState::Conflict | MigrationState::Eligible => {
                conversion.convert(io, report).await
            }
        };
        let mut result = match done {
            Ok(result) => result,
            Err(failure) if arguments.continue_on_error => {
                let _ = writeln!(io.stderr, "{}", failure.cause.render());
                status = ExitStatus::Failed;
                json!({"status": "failed", "reason": failure.cause.what()})
            }
            Err(failure) => return Err(failure),
        };
        result["namespace"] = report.namespace.clone().into();
        result["name"] = report.name.clone().into();
        result["extension"] = report.extension.clone().into();
        results.push(result);
    }
    if arguments.common.output != Format::Text {
        let value = json!({"operators": results});
        io.print(&format_output(arguments.common.output, &value, String::new));
    }
    Ok(status)
}

fn headline(report: &OperatorReport, what: &str) -> String {
    format!("{}/{}: {what}", report.namespace, report.name)
}

fn skip(arguments: &Arguments, io: &mut CommandIo<'_>, report: &OperatorReport) {
    let state = report.state.as_str();
    let what = format!("skipped: {state}: {}", report.reason);
    say(io, arguments.common.output, &headline(report, &what));
}

/// The namespace of releases: the named one, that of existing releases, or the first that exists.
pub(super) async fn system_namespace(
    cluster: &impl ClusterHandle,
    named: Option<&str>,
) -> Result<String, CommandFailure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let mut found = Vec::new();
    for namespace in SYSTEM_NAMESPACES {
        if cluster.get(&builtin::NAMESPACE, None, namespace).await?.is_some() {
            let selector = mainstay_releases::index_selector(None);
            let releases =
                list(cluster, &builtin::SECRET, Some(namespace), Some(&selector)).await?;
            found.push((releases.is_empty(), namespace));
        }
    }
    found.sort_by_key(|(is_empty, _)| *is_empty);
    found.first().map(|(_, namespace)| (*namespace).to_owned()).ok_or_else(|| {
        let cause = Cause::new("the cluster has no namespace of a controller of OLM v1");
        let cause = cause.remedy("start the controllers with: mainstay run");
        CommandFailure::from(cause.remedy("or name the namespace with --system-namespace NAME"))
    })
}

/// The conversion of Subscriptions.
pub(super) struct Conversion<'a, C> {
    cluster: &'a C,
    arguments: &'a Arguments,
    acknowledged: &'a Acknowledgements,
    operators: &'a mut Operators,
    system: &'a str,
}

impl<C: ClusterWriter> Conversion<'_, C> {
    /// Converts a Subscription, or continues its conversion.
    async fn convert(
        &mut self,
        io: &mut CommandIo<'_>,
        report: &OperatorReport,
    ) -> Result<Value, CommandFailure> {
        let OperatorReport { namespace, name, .. } = report;
        let existing = self.operators.extension_of(namespace, name).cloned();
        if let Some(existing) = existing {
            self.check_flags_of_begun(io, report, &existing)?;
            if self.arguments.dry_run {
                let line = format!("would finish the conversion to {}", object_text(&existing));
                say(io, self.arguments.common.output, &headline(report, &line));
                return Ok(json!({"status": "dryRun"}));
            }
            let timeout = self.arguments.waiting.timeout;
            finish(self.cluster, io, &existing, self.system, timeout).await?;
            self.say_converted(io, report, existing.name());
            return Ok(json!({"status": "converted"}));
        }
        let subscription = self.operators.find(namespace, name)?.clone();
        let extension_name = self.arguments.target.ce_name.as_deref().unwrap_or(name).to_owned();
        let (cluster, acknowledged) = (self.cluster, self.acknowledged);
        // Again, as another name may be taken.
        let checked =
            self.operators.check(cluster, &subscription, &extension_name, acknowledged).await?;
        let CheckedOperator { report, csv: Some(csv), group } = checked else {
            return Err(
                Cause::new(format!("Subscription {namespace}/{name} has no operator")).into()
            );
        };
        if report.state != MigrationState::Eligible {
            let cause = Cause::new(headline(&report, &report.reason)).remedy(format!(
                "see more with: mainstay extension migrate check {name} -n {namespace}"
            ));
            return Err(CommandFailure { exit: ExitStatus::Unresolved, cause });
        }
        let plans = install_plans(cluster, namespace).await?;
        let operator = ClassicOperator { subscription: &subscription, csv: &csv };
        let (_, objects) = handed_over(cluster, operator, &plans).await?;
        let channel = subscription.str(&["spec", "channel"]).unwrap_or_default();
        let offers = self.operators.offers(operator.package());
        let Some(offer) = best_offer(offers, csv.name(), channel) else {
            return Err(Cause::new(format!("no catalog has {} any more", csv.name())).into());
        };
        let wanted = extension(&ExtensionInput {
            operator,
            group: group.as_ref(),
            offer,
            name: &extension_name,
            service_account: &self.arguments.service_account,
            acknowledged,
        });
        let release = RecordedRelease {
            extension: &extension_name,
            namespace,
            package: operator.package(),
            csv: &csv,
            version: &offer.2.version,
            image: &offer.2.image,
            objects: &objects.iter().map(|(_, object)| object.clone()).collect::<Vec<_>>(),
        };
        if self.arguments.dry_run {
            create(cluster, io, &CLUSTER_EXTENSION, &wanted, true).await?;
            let config_maps = config_maps_of(cluster, &subscription, &plans).await?;
            let steps = self.steps(operator, &objects, &wanted, &config_maps);
            for (verb, what) in &steps {
                say(io, self.arguments.common.output, &format!("would {verb} {what}"));
            }
            let steps: Vec<Value> =
                steps.iter().map(|(verb, what)| json!({"action": verb, "object": what})).collect();
            let wanted = wanted.to_value();
            return Ok(json!({"status": "dryRun", "steps": steps, "clusterExtension": wanted}));
        }
        if let Some(folder) = self.backup_folder(io, &report) {
            let content = BackupContent {
                extension: &extension_name,
                subscription: &subscription,
                csv: &csv,
                group: group.as_ref(),
                plans: &plans,
                objects: objects.iter().map(|(_, object)| object).collect(),
            };
            content.write(&folder)?;
            let line = format!("backup written to {}", folder.display());
            say(io, self.arguments.common.output, &headline(&report, &line));
        }
        change(cluster, io, &SUBSCRIPTION, &subscription, frozen).await?;
        self.store(io, &release).await?;
        label_objects(cluster, io, &objects, &extension_name, namespace).await?;
        let Some(created) = create(cluster, io, &CLUSTER_EXTENSION, &wanted, false).await? else {
            let cause = Cause::new(format!("ClusterExtension {extension_name} exists meanwhile"));
            return Err(cause.remedy("choose another name with --ce-name NAME").into());
        };
        let line = format!("{} created", object_text(&created));
        say(io, self.arguments.common.output, &headline(&report, &line));
        finish(cluster, io, &created, self.system, self.arguments.waiting.timeout).await?;
        self.say_converted(io, &report, &extension_name);
        Ok(json!({"status": "converted"}))
    }

    /// Checks the flags of a conversion that has begun: it goes on under its name, and what its first attempt
    /// changed is in no new backup.
    ///
    /// # Errors
    /// `--ce-name` names another ClusterExtension, or `--backup` a folder without the backup of the first attempt.
    fn check_flags_of_begun(
        &self,
        io: &CommandIo<'_>,
        report: &OperatorReport,
        existing: &Object,
    ) -> Result<(), CommandFailure> {
        let OperatorReport { namespace, name, .. } = report;
        let has_begun = format!("the conversion to ClusterExtension {} has begun", existing.name());
        let undo = format!(
            "or undo it with: mainstay extension migrate rollback {} --acknowledge-installed",
            existing.name()
        );
        let refuse = |why: String, remedy: &str| {
            let cause = Cause::new(headline(report, &why)).because(Cause::new(has_begun.clone()));
            Err(CommandFailure::usage(cause.remedy(remedy).remedy(undo.clone())))
        };
        if self.arguments.target.ce_name.as_deref().is_some_and(|named| named != existing.name()) {
            return refuse(
                "another name cannot be chosen any more".to_owned(),
                "finish it without --ce-name",
            );
        }
        let Some(folder) = self.backup_folder(io, report) else { return Ok(()) };
        if backup::is_of(&folder, namespace, name) {
            return Ok(());
        }
        refuse(
            format!("{} cannot become its backup any more", folder.display()),
            "finish it without --backup; a rollback needs none",
        )
    }

    fn say_converted(&self, io: &mut CommandIo<'_>, report: &OperatorReport, name: &str) {
        let line = headline(report, &format!("converted to ClusterExtension {name}"));
        say(io, self.arguments.common.output, &line);
        let line = format!("  next: mainstay extension migrate cleanup {name}");
        say(io, self.arguments.common.output, &line);
    }

    /// What would be written, in order.
    fn steps(
        &self,
        operator: ClassicOperator<'_>,
        objects: &[KindedObject],
        wanted: &Object,
        config_maps: &[Object],
    ) -> Vec<(&'static str, String)> {
        let (name, namespace) = (wanted.name(), operator.namespace());
        let mut steps = Vec::new();
        if frozen(operator.subscription).is_some() {
            steps.push(("hold upgrades of", object_text(operator.subscription)));
        }
        let secret = RecordedRelease::secret_name(name);
        steps.push(("create", format!("Secret {}/{secret}", self.system)));
        let unlabelled = objects
            .iter()
            .filter(|(_, object)| with_release_labels(object, name, namespace).is_some());
        steps.extend(unlabelled.map(|(_, object)| ("label", object_text(object))));
        steps.push(("create", object_text(wanted)));
        steps.extend(config_maps.iter().map(|config_map| ("delete", object_text(config_map))));
        steps.push(("delete", object_text(operator.subscription)));
        steps.push(("delete", object_text(operator.csv)));
        if loses_pin(wanted) {
            steps.push(("remove the pin of", object_text(wanted)));
        }
        steps
    }

    fn backup_folder(&self, io: &CommandIo<'_>, report: &OperatorReport) -> Option<PathBuf> {
        let folder = io.folder.join(self.arguments.backup.as_ref()?);
        let name = format!("{}.{}", report.namespace, report.name);
        Some(if self.arguments.target.all { folder.join(name) } else { folder })
    }

    /// Writes the Secrets of the release. There is no ClusterExtension yet, so what is there of its name is
    /// left from another one, or from an attempt that was interrupted.
    async fn store(
        &self,
        io: &mut CommandIo<'_>,
        release: &RecordedRelease<'_>,
    ) -> Result<(), CommandFailure> {
        let (cluster, namespace) = (self.cluster, self.system);
        let selector = mainstay_releases::index_selector(Some(release.extension));
        let stale = list(cluster, &builtin::SECRET, Some(namespace), Some(&selector)).await?;
        let timeout = self.arguments.waiting.timeout;
        for secret in &stale {
            delete_and_wait(cluster, io, &builtin::SECRET, secret, timeout).await?;
        }
        let now = Clock::system().now();
        let encoded = release.encode(now).map_err(|error| Cause::new(error.to_string()))?;
        let index = object(RecordedRelease::index(&encoded, namespace, now))?;
        let Some(index) = create(cluster, io, &builtin::SECRET, &index, false).await? else {
            let what = format!("Secret {namespace}/{} appeared meanwhile", index.name());
            return Err(Cause::new(what).remedy("repeat the command").into());
        };
        for chunk in RecordedRelease::chunks(&encoded, namespace, index.uid(), now) {
            create(cluster, io, &builtin::SECRET, &object(chunk)?, false).await?;
        }
        Ok(())
    }
}

fn object(value: Value) -> Result<Object, CommandFailure> {
    Object::from_value(value).map_err(|error| Cause::new(error.to_string()).into())
}

async fn label_objects(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    objects: &[KindedObject],
    extension: &str,
    namespace: &str,
) -> Result<(), CommandFailure> {
    for (kind, object) in objects {
        change(cluster, io, kind, object, |found| with_release_labels(found, extension, namespace))
            .await?;
    }
    Ok(())
}

/// Continues a conversion whose ClusterExtension exists, to its end.
///
/// # Errors
/// The cluster refuses or does not respond, or a controller does not do its part in time.
pub(super) async fn finish(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extension: &Object,
    system: &str,
    timeout: std::time::Duration,
) -> Result<(), CommandFailure> {
    let name = extension.name();
    let Some(replaced) = mainstay_migration::migrated_from(extension) else {
        let cause = Cause::new(format!("ClusterExtension {name} replaced no Subscription"));
        return Err(CommandFailure::usage(cause));
    };
    let (namespace, subscription) = replaced;
    let index = RecordedRelease::secret_name(name);
    if let Some(index) = cluster.get(&builtin::SECRET, Some(system), &index).await? {
        let adopt = |found: &Object| RecordedRelease::adopted(found, extension);
        change(cluster, io, &builtin::SECRET, &index, adopt).await?;
    }
    let subscription = cluster.get(&SUBSCRIPTION, Some(namespace), subscription).await?;
    let csv_name = extension.annotation(MIGRATED_FROM_CSV).unwrap_or_default();
    let csv = left_csv(cluster, replaced, csv_name).await?;
    if let Some(subscription) = &subscription {
        change(cluster, io, &SUBSCRIPTION, subscription, frozen).await?;
    }
    let mut objects = Vec::new();
    if let Some(csv) = &csv {
        let plans = install_plans(cluster, namespace).await?;
        let saved = restored_subscription(extension).map_err(|error| {
            let cause =
                Cause::new(format!("the conversion to ClusterExtension {name} cannot go on"));
            cause.because(Cause::new(error.to_string()).remedy("restore the annotation"))
        })?;
        let operator = ClassicOperator { subscription: &saved, csv };
        let (rules, classic_objects) = handed_over(cluster, operator, &plans).await?;
        label_objects(cluster, io, &classic_objects, name, namespace).await?;
        wait_until_taken_over(cluster, extension, &rules, timeout).await?;
        for (kind, object) in
            classic_objects.iter().filter(|(_, object)| object.namespace().is_empty())
        {
            change(cluster, io, kind, object, without_owner_labels).await?;
        }
        // What a bundle does not have is gone by now.
        (_, objects) = handed_over(cluster, operator, &plans).await?;
    }
    if let Some(subscription) = &subscription {
        delete_subscription(cluster, io, subscription, timeout).await?;
    }
    if let Some(csv) = &csv {
        delete_and_wait(cluster, io, &CLUSTER_SERVICE_VERSION, csv, timeout).await?;
        wait_until_all_exist(cluster, &objects, timeout).await?;
    }
    change(cluster, io, &CLUSTER_EXTENSION, extension, finished).await?;
    Ok(())
}

/// Deletes a Subscription, and the ConfigMaps of its InstallPlans, which go with it.
async fn delete_subscription(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    subscription: &Object,
    timeout: std::time::Duration,
) -> Result<(), CommandFailure> {
    let plans = install_plans(cluster, subscription.namespace()).await?;
    for map in config_maps_of(cluster, subscription, &plans).await? {
        delete(cluster, io, &builtin::CONFIG_MAP, &map).await?;
    }
    delete_and_wait(cluster, io, &SUBSCRIPTION, subscription, timeout).await
}

/// Waits until the extension is installed and owns the Deployments of the operator.
async fn wait_until_taken_over(
    cluster: &impl ClusterHandle,
    extension: &Object,
    rules: &Handover,
    timeout: std::time::Duration,
) -> Result<(), CommandFailure> {
    let (name, uid) = (extension.name(), extension.uid());
    let namespace = extension.str(&["spec", "namespace"]).unwrap_or_default();
    let look = async || {
        let found = cluster.get(&CLUSTER_EXTENSION, None, name).await?;
        let Some(found) = found.filter(|found| found.uid() == uid) else {
            return Ok(Look::Hopeless(Cause::new("it was deleted meanwhile")));
        };
        let causes = state::obstacles(&found);
        match state::install_stage(&found) {
            InstallStage::Installed => {}
            InstallStage::Pending => return Ok(Look::Waiting(first(causes))),
            InstallStage::Stopped => return Ok(Look::Hopeless(first(causes))),
        }
        for deployment in rules.deployments() {
            let kind = &builtin::DEPLOYMENT;
            let deployed = cluster.get(kind, Some(namespace), deployment).await?;
            let owner = deployed.as_ref().and_then(Object::controller_owner);
            let is_taken =
                owner.is_some_and(|owner| owner.uid == uid || owner.kind == "ClusterObjectSet");
            if !is_taken {
                let what = format!("it does not own Deployment {namespace}/{deployment} yet");
                let image = state::installed_image(&found).unwrap_or("of the bundle");
                return Ok(Look::Waiting(Cause::new(what).remedy(format!(
                    "check that its controller can pull the image {image}: until it can, nothing is taken over"
                ))));
            }
        }
        if !found.array(&["status", "activeRevisions"]).is_empty()
            && let Some(set) = unfinished_revision(&object_sets(cluster, &found).await?)
        {
            let what = format!("its ClusterObjectSet {} still has objects", set.name());
            return Ok(Look::Waiting(Cause::new(what)));
        }
        Ok(Look::Reached(()))
    };
    let waited = wait(timeout, look).await?;
    waited.map_err(|why| {
        Cause::new(format!("ClusterExtension {name} did not take the objects over"))
            .because(why)
            .remedy("repair the cause, and repeat the command")
            .remedy(format!("or go back with: mainstay extension migrate rollback {name} --acknowledge-installed"))
            .into()
    })
}

fn first(causes: Vec<Cause>) -> Cause {
    causes.into_iter().next().unwrap_or_else(|| Cause::new("its controller has not reported yet"))
}

/// Waits until objects exist that OLM classic may have deleted together with its ClusterServiceVersion, and
/// that OLM v1 then creates again.
async fn wait_until_all_exist(
    cluster: &impl ClusterHandle,
    objects: &[KindedObject],
    timeout: std::time::Duration,
) -> Result<(), CommandFailure> {
    let look = async || {
        for (kind, object) in objects {
            let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
            match cluster.get(kind, namespace, object.name()).await {
                Ok(Some(found)) if !found.is_terminating() => {}
                Ok(_) => {
                    let what = format!("{} does not exist", object_text(object));
                    return Ok(Look::Waiting(Cause::new(what)));
                }
                // Who may change an object need not be allowed to read others again.
                Err(ClusterReadError::Forbidden(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Look::Reached(()))
    };
    let waited = wait(timeout, look).await?;
    waited.map_err(|why| {
        let cause = Cause::new("an object of the operator is missing").because(why);
        cause.remedy("check that the controller of OLM v1 runs, and repeat the command").into()
    })
}
