//! `mainstay extension migrate check`: which operators can be converted, and what is in the way.

use super::operators::Operators;
use super::{AcknowledgementArguments, CommonArguments};
use crate::extension::settings::ExtensionCertificates;
use clap::Args;
use mainstay_command::cluster::ClusterHandle;
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::format_output;
use mainstay_command::text::{count, escape_controls_in_lines};
use mainstay_migration::{Acknowledgements, Check, CheckOutcome, MigrationState, OperatorReport};
use serde_json::json;
use std::fmt::Write as _;

/// Arguments of `check`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    target: SubscriptionArguments,
    #[command(flatten)]
    acknowledged: AcknowledgementArguments,
    #[command(flatten)]
    pub(super) common: CommonArguments,
}

/// Which Subscriptions are meant.
#[derive(Args, Debug)]
pub(super) struct SubscriptionArguments {
    /// Name of the Subscription.
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub(super) name: Option<String>,
    /// All Subscriptions, of all namespaces unless one is named.
    #[arg(short, long)]
    pub(super) all: bool,
    /// Namespace of the Subscription [default: that of the kubeconfig's context].
    #[arg(short, long, value_name = "NAME")]
    pub(super) namespace: Option<String>,
    /// Name of the ClusterExtension [default: that of the Subscription].
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(super) ce_name: Option<String>,
    /// What issues the certificates of webhooks: as `--extension-certificates` of the controller.
    #[arg(long, value_enum, value_name = "ISSUER", default_value_t = ExtensionCertificates::CertManager)]
    pub(super) certificates: ExtensionCertificates,
}

pub(super) async fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterHandle,
) -> Result<ExitStatus, CommandFailure> {
    let mut operators = Operators::read(cluster).await?;
    let acknowledged = arguments.acknowledged.all();
    let reports = check(cluster, &mut operators, &arguments.target, &acknowledged).await?;
    let value = json!({"operators": reports});
    let text = format_output(arguments.common.output, &value, || text(&reports));
    io.print(&text);
    let is_obstructed = |report: &OperatorReport| {
        matches!(report.state, MigrationState::Ineligible | MigrationState::Conflict)
    };
    let is_obstructed = reports.iter().any(is_obstructed);
    Ok(if is_obstructed { ExitStatus::Unresolved } else { ExitStatus::Done })
}

/// The reports about the operators that are meant, in the order of their states.
///
/// # Errors
/// There is no such Subscription, or the cluster does not respond.
pub(super) async fn check(
    cluster: &impl ClusterHandle,
    operators: &mut Operators,
    target: &SubscriptionArguments,
    acknowledged: &Acknowledgements,
) -> Result<Vec<OperatorReport>, CommandFailure> {
    operators.read_issuer(cluster, target.certificates).await?;
    let subscriptions = if let Some(name) = &target.name {
        let namespace = target.namespace.as_deref();
        let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
        let migrated = operators.migrated_reports(Some(namespace)).into_iter();
        let migrated: Vec<_> = migrated.filter(|report| report.name == *name).collect();
        if !migrated.is_empty() {
            return Ok(migrated);
        }
        vec![operators.find(namespace, name)?.clone()]
    } else {
        let is_meant = |found: &&mainstay_object::Object| {
            target.namespace.as_deref().is_none_or(|namespace| namespace == found.namespace())
        };
        operators.subscriptions.iter().filter(is_meant).cloned().collect()
    };
    let mut reports = Vec::new();
    for subscription in &subscriptions {
        let name = target.ce_name.as_deref().unwrap_or_else(|| subscription.name());
        let checked = operators.check(cluster, subscription, name, acknowledged).await?;
        reports.push(checked.report);
    }
    if target.all {
        reports.extend(operators.migrated_reports(target.namespace.as_deref()));
    }
    reports.sort_by(|a, b| (a.state, &a.namespace, &a.name).cmp(&(b.state, &b.namespace, &b.name)));
    Ok(reports)
}

/// The reports, for people.
pub(super) fn text(reports: &[OperatorReport]) -> String {
    if reports.is_empty() {
        return "No Subscriptions found\n".to_owned();
    }
    let mut text = String::new();
    for report in reports {
        let OperatorReport { namespace, name, state, reason, .. } = report;
        // Writing to a String does not fail.
        let _ = writeln!(text, "{namespace}/{name}: {}: {reason}", state.as_str());
        for check in &report.checks {
            text.push_str(&line(check));
        }
        for warning in &report.warnings {
            let _ = writeln!(text, "  warning: {warning}");
        }
        if let Some(next) = next_step(report) {
            let _ = writeln!(text, "  next: {next}");
        }
    }
    if reports.len() > 1 {
        let _ = writeln!(text, "{}", summary(reports));
    }
    escape_controls_in_lines(&text)
}

fn line(check: &Check) -> String {
    let Check { id, name, outcome, reason, remedy } = check;
    let mark = match outcome {
        CheckOutcome::Passed => "ok",
        CheckOutcome::Acknowledged => "acknowledged",
        CheckOutcome::Failed => "failed",
    };
    let id = if id.is_empty() { String::new() } else { format!("{id} ") };
    let remedy =
        if remedy.is_empty() { String::new() } else { format!("\n      remedy: {remedy}") };
    format!("  {mark}: {id}{name}: {reason}{remedy}\n")
}

fn next_step(report: &OperatorReport) -> Option<String> {
    let OperatorReport { namespace, name, extension, .. } = report;
    match report.state {
        MigrationState::Conflict => Some(format!(
            "finish it with: mainstay extension migrate convert {name} -n {namespace}, or undo it with: mainstay extension migrate rollback {extension} --acknowledge-installed"
        )),
        MigrationState::Eligible => {
            Some(format!("mainstay extension migrate convert {name} -n {namespace} --dry-run"))
        }
        MigrationState::Ineligible | MigrationState::AlreadyMigrated => None,
    }
}

fn summary(reports: &[OperatorReport]) -> String {
    let states = [
        MigrationState::Conflict,
        MigrationState::Ineligible,
        MigrationState::AlreadyMigrated,
        MigrationState::Eligible,
    ];
    let counts = states.iter().filter_map(|state| {
        let number = reports.iter().filter(|report| report.state == *state).count();
        (number > 0).then(|| format!("{number} {}", state.as_str()))
    });
    let counts: Vec<String> = counts.collect();
    format!("{}: {}", count(reports.len(), "operator"), counts.join(", "))
}
