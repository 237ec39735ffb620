//! `mainstay extension migrate catalogs`: CatalogSources become ClusterCatalogs.

use super::writes::{Look, change, create, delete, wait};
use super::{CommonArguments, TimeoutArguments};
use clap::Args;
use mainstay_api::resources::{CATALOG_SOURCE, CLUSTER_CATALOG, SUBSCRIPTION};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ClusterWriter};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, escape_controls_in_lines};
use mainstay_migration::{
    CatalogAction, CatalogPlan, CatalogSourceOutcome, annotated_catalog, plan_catalogs,
};
use mainstay_object::Object;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;

/// Arguments of `catalogs`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Print what would be created, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Delete each CatalogSource that has a ClusterCatalog afterwards, unless a Subscription names it.
    #[arg(long)]
    delete_catalogsource: bool,
    /// Cap priorities of more than 32 bits, instead of skipping their CatalogSources.
    #[arg(long)]
    acknowledge_priority_overflow: bool,
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
    let sources = cluster.list(&CATALOG_SOURCE, None, None).await?;
    let catalogs = cluster.list(&CLUSTER_CATALOG, None, None).await?;
    let subscriptions = cluster.list(&SUBSCRIPTION, None, None).await?;
    let caps = arguments.acknowledge_priority_overflow;
    let plans = plan_catalogs(&sources, &catalogs, &subscriptions, caps);
    let mut outcomes = Vec::new();
    for plan in plans {
        let is_source = |source: &&Object| {
            source.namespace() == plan.outcome.namespace && source.name() == plan.outcome.name
        };
        let Some(source) = sources.iter().find(is_source) else { continue };
        let outcome = carry_out(arguments, io, cluster, plan, source).await?;
        if arguments.common.output == Format::Text {
            io.print(&text(&outcome, arguments.dry_run));
            let _ = io.stdout.flush();
        }
        outcomes.push(outcome);
    }
    if arguments.common.output != Format::Text {
        let value = json!({"catalogSources": outcomes, "dryRun": arguments.dry_run});
        io.print(&format_output(arguments.common.output, &value, String::new));
    } else if outcomes.is_empty() {
        let _ = writeln!(io.stderr, "No resources found");
    }
    let is_obstructed =
        outcomes.iter().any(|outcome| matches!(outcome.status, "error" | "skipped"));
    Ok(if is_obstructed { ExitStatus::Unresolved } else { ExitStatus::Done })
}

async fn carry_out(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    plan: CatalogPlan,
    source: &Object,
) -> Result<CatalogSourceOutcome, CommandFailure> {
    let CatalogPlan { mut outcome, action, is_used } = plan;
    let timeout = arguments.waiting.timeout;
    match &action {
        CatalogAction::Skip | CatalogAction::Refuse => return Ok(outcome),
        CatalogAction::Create(catalog) => {
            create(cluster, io, &CLUSTER_CATALOG, catalog, arguments.dry_run).await?;
            if !arguments.dry_run {
                wait_until_serving(cluster, catalog.name(), timeout).await?;
            }
        }
        CatalogAction::Adopt(catalog) if !arguments.dry_run => {
            let annotate = |found: &Object| annotated_catalog(found, &outcome);
            change(cluster, io, &CLUSTER_CATALOG, catalog, annotate).await?;
            // That of an earlier run, which was interrupted, may not be served yet.
            wait_until_serving(cluster, catalog.name(), timeout).await?;
        }
        CatalogAction::Share | CatalogAction::Adopt(_) => {}
    }
    if arguments.delete_catalogsource {
        if is_used {
            outcome.notes.push("the CatalogSource stays: a Subscription names it".to_owned());
        } else {
            if !arguments.dry_run {
                delete(cluster, io, &CATALOG_SOURCE, source).await?;
            }
            outcome.deleted = true;
        }
    }
    Ok(outcome)
}

async fn wait_until_serving(
    cluster: &impl ClusterHandle,
    name: &str,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let look = async || {
        let Some(found) = cluster.get(&CLUSTER_CATALOG, None, name).await? else {
            return Ok(Look::Hopeless(Cause::new("it was deleted meanwhile")));
        };
        if found.condition("Serving") == Some("True") {
            return Ok(Look::Reached(()));
        }
        if found.str(&["spec", "availabilityMode"]) == Some("Unavailable") {
            return Ok(Look::Hopeless(Cause::new("its availabilityMode is Unavailable")));
        }
        let conditions = found.array(&["status", "conditions"]).iter();
        let mut progressing = conditions.filter(|condition| condition["type"] == "Progressing");
        let message = progressing.next().and_then(|condition| condition["message"].as_str());
        let what = message.unwrap_or("its controller has not reported yet");
        Ok(Look::Waiting(Cause::new(mainstay_command::text::escape_controls(what))))
    };
    let waited = wait(timeout, look).await?;
    waited.map_err(|why| {
        Cause::new(format!("ClusterCatalog {name} is not served"))
            .because(why)
            .remedy(format!("see more with: kubectl describe clustercatalog {name}"))
            .remedy("repair the cause, and repeat the command")
            .into()
    })
}

/// The outcome, for people.
fn text(outcome: &CatalogSourceOutcome, dry_run: bool) -> String {
    let CatalogSourceOutcome { namespace, name, cluster_catalog, status, reason, .. } = outcome;
    let mut text = format!("{namespace}/{name}: {status}");
    if !cluster_catalog.is_empty() && *status != "error" {
        // Writing to a String does not fail.
        let _ = write!(text, ": ClusterCatalog {cluster_catalog}");
    }
    let dry_run = if dry_run && *status != "skipped" { " (dry run)" } else { "" };
    let _ = writeln!(text, ": {reason}{dry_run}");
    for note in &outcome.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    if !outcome.remedy.is_empty() {
        let _ = writeln!(text, "  remedy: {}", outcome.remedy);
    }
    if outcome.deleted {
        let _ = writeln!(text, "  CatalogSource deleted");
    }
    escape_controls_in_lines(&text)
}
