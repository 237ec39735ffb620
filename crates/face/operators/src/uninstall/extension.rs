//! `mainstay uninstall clusterextension/NAME`: removes a ClusterExtension, after a preview of the data that
//! would be lost.
//!
//! ```text
//! cluster ─► ExtensionParts ── plan_extension_removal ─► ExtensionRemovalPlan ─► preview ─┬─► harm without --yes: refused
//!                                                                                         └─► keeps CRDs, deletes, waits
//! ```

use super::{
    UninstallArguments, delete_all, items, items_text, kept_crds, list_known, plan_text,
    write_preview,
};
use crate::extension::{account_objects, dependents, hidden_note, owned_objects, owned_resource};
use mainstay_api::names;
use mainstay_api::names::olm_v1::{KEEP_CRDS_FINALIZER, OWNER_KIND_LABEL};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_SERVICE_VERSION};
use mainstay_cause::Cause;
use mainstay_command::cluster::EXTENSION_KINDS;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError, ClusterWriter};
use mainstay_command::exit::CommandFailure;
use mainstay_command::text::escape_controls_in_lines;
use mainstay_command::text::format_output;
use mainstay_object::{Object, builtin};
use mainstay_removal::{
    ExtensionCrd, ExtensionParts, ExtensionRemovalPlan, ExtensionRemovalRequest, LostObjects,
    plan_extension_removal,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

/// What a preview says of an uninstallation that is going to be refused.
const UNCONFIRMED_NOTE: &str =
    "note: the uninstallation is refused without --keep-crds, or --yes to confirm the loss\n";

/// Most names of lost objects of one namespace in the text.
const MAX_NAMES: usize = 20;

/// The name of the ClusterExtension in an argument such as `clusterextension/NAME`.
pub(super) fn name_in(argument: &str) -> Option<&str> {
    let (kind, name) = argument.split_once('/')?;
    EXTENSION_KINDS.contains(&&*kind.to_lowercase()).then_some(name)
}

/// Uninstalls a ClusterExtension.
///
/// # Errors
/// The extension does not exist, data would be lost without a confirmation, the cluster refuses, or objects
/// still exist after the timeout.
pub(super) async fn uninstall(
    arguments: &UninstallArguments,
    name: &str,
    cluster: &impl ClusterWriter,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    if arguments.namespace.is_some() {
        let cause = Cause::new("a ClusterExtension belongs to no namespace");
        return Err(CommandFailure::usage(cause.remedy("omit --namespace")));
    }
    let request = ExtensionRemovalRequest {
        name: name.to_owned(),
        operands: arguments.operands,
        keep_crds: arguments.keep_crds,
        definitions: arguments.definitions,
    };
    let (parts, hidden) = read_parts(cluster, name).await?;
    let removal = plan_extension_removal(&parts, &request).map_err(CommandFailure::usage)?;
    let dependents = dependents(cluster, name, arguments.keep_crds).await?;
    let is_confirmed = arguments.yes || arguments.definitions || arguments.operands;
    let lacks_confirmation = (removal.is_harmful() || parts.hides_crds) && !is_confirmed;
    let mut value = value(name, &parts, &removal, &hidden);
    dependents.add_to(&mut value);
    value["lacksConfirmation"] = lacks_confirmation.into();
    let preview = format_output(arguments.output, &value, || {
        let text = text(name, &parts, &removal, &hidden, arguments.dry_run);
        let note = if arguments.dry_run && lacks_confirmation { UNCONFIRMED_NOTE } else { "" };
        text + &dependents.text() + note
    });
    write_preview(&preview, out)?;
    if arguments.dry_run {
        return Ok(());
    }
    if lacks_confirmation {
        let cause = Cause::new(format!(
            "the uninstallation of ClusterExtension {name} would do harm, and is not confirmed"
        ));
        return Err(CommandFailure::usage(
            cause.remedy("keep the data with --keep-crds").remedy("or confirm its loss with --yes"),
        ));
    }
    // Objects of its kinds go while the operator runs.
    let mut steps = removal.plan.steps.clone();
    let first = steps.iter().position(|step| step.resource == CLUSTER_EXTENSION);
    let mut rest = steps.split_off(first.unwrap_or_default());
    delete_all(arguments, cluster, &steps, out).await?;
    if let Some(extension) = &parts.extension {
        if removal.kept_crds.is_empty() {
            release_hold(cluster, extension).await?;
        } else {
            let timeout = arguments.timeout();
            kept_crds::delete_and_keep(cluster, extension, &parts, &removal.kept_crds, timeout)
                .await?;
            // Its deletion is requested; the other steps wait for it.
            for step in rest.iter_mut().take(1) {
                step.is_garbage_collected = true;
            }
        }
    }
    delete_all(arguments, cluster, &rest, out).await?;
    Ok(())
}

/// Ends the hold of an uninstallation that was to keep CustomResourceDefinitions, and was interrupted: this
/// one lets them go.
async fn release_hold(
    cluster: &impl ClusterWriter,
    extension: &Object,
) -> Result<(), CommandFailure> {
    if extension.finalizers().any(|finalizer| finalizer == KEEP_CRDS_FINALIZER) {
        kept_crds::remove_hold(cluster, extension).await?;
    }
    Ok(())
}

/// Reads the objects of a ClusterExtension, and the kinds that the account may not list.
async fn read_parts(
    cluster: &impl ClusterHandle,
    name: &str,
) -> Result<(ExtensionParts, Vec<String>), CommandFailure> {
    let extension = match cluster.get(&CLUSTER_EXTENSION, None, name).await? {
        Some(extension) => Some(extension),
        // Reading one by name does not tell a missing object from a missing kind.
        None => match cluster.list_page(&CLUSTER_EXTENSION, 1, "").await {
            Ok(_) | Err(ClusterReadError::Forbidden(_)) => None,
            Err(error) => return Err(error.into()),
        },
    };
    let owned = owned_objects(cluster, name).await?;
    let mut parts =
        ExtensionParts { extension, hides_crds: owned.hides_crds(), ..ExtensionParts::default() };
    let mut hidden = owned.hidden;
    let account = account_objects(cluster, name).await?;
    for object in owned.objects.into_iter().chain(account) {
        if object.kind() != builtin::CUSTOM_RESOURCE_DEFINITION.kind {
            let resource = owned_resource(&object).cloned();
            parts.owned.extend(resource.map(|resource| (resource, object)));
            continue;
        }
        let mut crd = ExtensionCrd { definition: object, objects: Some(Vec::new()) };
        if let Some(kind) = crd.resource() {
            crd.objects = match cluster.list(&kind, None, None).await {
                Ok(objects) => Some(objects),
                Err(ClusterReadError::UnknownKind(_)) => Some(Vec::new()),
                Err(ClusterReadError::Forbidden(_)) => None,
                Err(error) => return Err(error.into()),
            };
        }
        parts.crds.push(crd);
    }
    if !parts.crds.is_empty() {
        let of_extensions = format!("{OWNER_KIND_LABEL}=ClusterExtension");
        let not_copied = format!("!{}", names::COPIED_FROM);
        for (kind, labels) in [
            (&builtin::CLUSTER_ROLE, of_extensions.as_str()),
            (&CLUSTER_SERVICE_VERSION, not_copied.as_str()),
        ] {
            match list_known(cluster, kind, None, Some(labels)).await {
                Ok(objects) => parts.users.extend(objects),
                Err(_) if hidden.iter().any(|hidden| *hidden == kind.kind) => {}
                Err(_) => hidden.push(kind.kind.to_string()),
            }
        }
    }
    Ok((parts, hidden))
}

/// The installed bundle, as `NAME version VERSION`.
fn installed(parts: &ExtensionParts) -> Option<String> {
    let field = |name| parts.extension.as_ref()?.str(&["status", "install", "bundle", name]);
    Some(format!("{} version {}", field("name")?, field("version").unwrap_or_default()))
}

fn text(
    name: &str,
    parts: &ExtensionParts,
    removal: &ExtensionRemovalPlan,
    hidden: &[String],
    dry: bool,
) -> String {
    let mut text = match (&parts.extension, installed(parts)) {
        (Some(_), Some(installed)) => format!("ClusterExtension {name} ({installed})\n"),
        (Some(_), None) => format!("ClusterExtension {name}\n"),
        (None, _) => format!("leftover objects of ClusterExtension {name}\n"),
    };
    text.push_str(&plan_text(&removal.plan, dry));
    if !removal.losses.is_empty() {
        text.push_str("data that would be lost:\n");
        for loss in &removal.losses {
            text.push_str(&loss_text(loss));
        }
        if removal.kept_crds.is_empty() {
            text.push_str("    → keep it, with the CustomResourceDefinitions: --keep-crds\n");
        }
    }
    text.push_str(&items_text("others that use what would be deleted", &removal.users));
    text.push_str(&hidden_note(hidden));
    escape_controls_in_lines(&text)
}

/// The objects of a kind that would be lost, by namespace.
fn loss_text(loss: &LostObjects) -> String {
    let LostObjects { crd, kind, objects } = loss;
    let Some(objects) = objects else {
        return format!("  all objects of {crd}, which your account may not list\n");
    };
    let noun = if objects.len() == 1 { "object" } else { "objects" };
    let mut text = format!("  {} {kind} {noun} of {crd}\n", objects.len());
    let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (namespace, name) in objects {
        by_namespace.entry(namespace).or_default().push(name);
    }
    for (namespace, names) in by_namespace {
        let place = match namespace {
            "" => "cluster-scoped".to_owned(),
            namespace => format!("namespace {namespace}"),
        };
        let more = match names.len().saturating_sub(MAX_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named: Vec<&str> = names.into_iter().take(MAX_NAMES).collect();
        // Writing into a String does not fail.
        let _ = writeln!(text, "    {place}: {}{more}", named.join(", "));
    }
    text
}

fn value(
    name: &str,
    parts: &ExtensionParts,
    removal: &ExtensionRemovalPlan,
    hidden: &[String],
) -> Value {
    let losses = removal.losses.iter().map(|loss| {
        let objects = loss.objects.as_ref().map(|objects| {
            let object = |(namespace, name): &(String, String)| {
                json!({"namespace": namespace, "name": name})
            };
            objects.iter().map(object).collect::<Vec<Value>>()
        });
        json!({
            "customResourceDefinition": loss.crd,
            "kind": loss.kind,
            "count": loss.objects.as_ref().map(Vec::len),
            "objects": objects,
        })
    });
    json!({
        "kind": "ClusterExtension",
        "name": name,
        "exists": parts.extension.is_some(),
        "goes": items(&removal.plan.deleted),
        "stays": items(&removal.plan.retained),
        "hangs": items(&removal.plan.stuck),
        "loses": losses.collect::<Vec<_>>(),
        "usedBy": items(&removal.users),
        "hidden": hidden,
    })
}
