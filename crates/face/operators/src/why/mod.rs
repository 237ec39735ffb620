//! `mainstay why`: explains why an object is not in the state that its user wants.
//!
//! ```text
//! cluster, --state ─► objects ─┬─────────────────────► ClusterObjects ── explain ─► Explanation ─┬─► text
//!                              └─► resolution ─► reasons ─────────┘                              └─► JSON
//! ```

mod olm_v1;

pub(crate) use olm_v1::resolve as resolve_extension;

use clap::Args;
use mainstay_api::names;
use mainstay_api::resources::{CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::cluster::{
    ClusterHandle, ClusterReadError, ConnectionArguments, Listing, namespaces_of_catalogs,
};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::io::read_text;
use mainstay_command::output::OutputSink;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, escape_controls};
use mainstay_content::resolve::{self, resolution};
use mainstay_explain::{
    CLUSTER_WIDE_KINDS, ClusterObjects, ExplainedKind, ExplainedObject, Explanation,
    ExtensionResolution, HiddenKind, NAMESPACE_KINDS, explain, namespaces_of_events,
};
use mainstay_object::{Object, Resource, builtin};
use mainstay_resolver::fixture::cause_json;
use mainstay_yaml::{Options, documents};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;

/// The command that saves a state.
const SAVE_COMMAND: &str =
    "kubectl get og,catalogsource,sub,installplan,csv,operatorcondition,deployment,pod -A -o yaml";

/// Help of `--state`. The command stands on one line, so that it can be copied.
const STATE: &str = "Saved state to read instead of a cluster; `-` reads standard input (repeatable). Save one with\n\
kubectl get og,catalogsource,sub,installplan,csv,operatorcondition,deployment,pod -A -o yaml\n\
For OLM v1: kubectl get clusterextension,clustercatalog,deployment,pod -A -o yaml";

/// Arguments of `why`.
#[derive(Args, Debug)]
pub struct WhyArguments {
    /// Object to explain: a subscription, installplan, clusterserviceversion (csv) or catalogsource; of OLM
    /// v1 a clusterextension, clustercatalog or clusterobjectset.
    #[arg(value_name = "KIND/NAME", value_parser = target)]
    target: (ExplainedKind, Option<String>),
    /// The name, for those who write it apart as `kubectl` takes it.
    #[arg(value_name = "NAME", hide = true)]
    name: Option<String>,
    /// Namespace of the object [default: that of the kubeconfig's context]. Objects of OLM v1 have none.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[arg(long = "state", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"], help = STATE)]
    states: Vec<String>,
    /// The cluster to read.
    #[command(flatten)]
    pub connection: ConnectionArguments,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

/// How a target is written.
const TARGET_FORM: &str = "write it as KIND/NAME, such as subscription/my-operator";

/// A text is no target.
#[derive(Debug, thiserror::Error)]
enum ParseTargetError {
    /// The text is not `KIND/NAME`.
    #[error("{TARGET_FORM}")]
    SplitTarget,
    /// There is no such kind.
    #[error(transparent)]
    ParseKind(#[from] Cause),
}

/// Reads `KIND/NAME`, or `KIND` where the name comes next.
fn target(text: &str) -> Result<(ExplainedKind, Option<String>), ParseTargetError> {
    let (kind, name) = match text.split_once('/') {
        Some((_, name)) if name.is_empty() || name.contains('/') => {
            return Err(ParseTargetError::SplitTarget);
        }
        Some((kind, name)) => (kind, Some(name.to_owned())),
        None => (text, None),
    };
    match kind.parse() {
        Ok(kind) => Ok((kind, name)),
        Err(_) if name.is_none() => Err(ParseTargetError::SplitTarget),
        Err(cause) => Err(cause.into()),
    }
}

/// Runs the command.
pub async fn run<C: ClusterHandle>(
    arguments: &WhyArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce() -> Result<C, CommandFailure>,
) -> ExitStatus {
    let answer = match answer(arguments, io, connect).await {
        Ok(answer) => answer,
        Err(CommandFailure { exit, cause }) => {
            let _ = write!(io.stderr, "error: {}", cause.render());
            return exit;
        }
    };
    let text = format_output(arguments.output, &value(&answer), || text(&answer));
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let (Err(error), Some(_)) = (written, stdout.error()) {
        let _ = writeln!(io.stderr, "error: the output cannot be written: {error}");
        return ExitStatus::Failed;
    }
    if answer.is_healthy() { ExitStatus::Done } else { ExitStatus::Unresolved }
}

async fn answer<C: ClusterHandle>(
    arguments: &WhyArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce() -> Result<C, CommandFailure>,
) -> Result<Explanation, CommandFailure> {
    let (kind, name_in_target) = arguments.target.clone();
    let name = match (name_in_target, arguments.name.clone()) {
        (Some(name), None) | (None, Some(name)) => name,
        (None, None) => {
            return Err(CommandFailure::usage(Cause::new("a name is missing").remedy(TARGET_FORM)));
        }
        (Some(_), Some(_)) => {
            return Err(CommandFailure::usage(
                Cause::new("two names are given").remedy(TARGET_FORM),
            ));
        }
    };
    let mut cluster_objects = ClusterObjects::default();
    if kind.is_cluster_scoped() {
        let target = ExplainedObject { kind, namespace: String::new(), name };
        if arguments.states.is_empty() {
            cluster_objects = olm_v1::read(&connect().await?, &target).await?;
        } else {
            for file in &arguments.states {
                read_state(io, file, &mut cluster_objects.objects)?;
            }
        }
        return explain(&cluster_objects, &target).map_err(CommandFailure::usage);
    }
    let namespace;
    if arguments.states.is_empty() {
        let cluster = connect().await?;
        let given = arguments.namespace.as_deref();
        namespace = given.unwrap_or_else(|| cluster.default_namespace()).to_owned();
        let listing = list_objects(&cluster, &namespace).await?;
        let target = ExplainedObject { kind, namespace: namespace.clone(), name: name.clone() };
        let copied_csvs = copied_csvs(&cluster, &target, &listing.objects).await;
        let sees_catalogs = !listing.hidden.iter().any(|kind| kind.kind == CATALOG_SOURCE.kind);
        cluster_objects.objects = listing.objects;
        cluster_objects.hidden = listing.hidden;
        // Without all catalogs, the candidates of a Subscription are unknown.
        if kind == ExplainedKind::Subscription && sees_catalogs {
            let objects = cluster_objects.objects.clone();
            let found = resolve::unresolved_subscriptions(objects, &namespace, &cluster).await;
            cluster_objects.resolved = found.is_some();
            cluster_objects.unresolved = found.unwrap_or_default();
        }
        cluster_objects.objects.extend(copied_csvs);
    } else {
        namespace = arguments.namespace.clone().unwrap_or_else(|| "default".to_owned());
        for file in &arguments.states {
            read_state(io, file, &mut cluster_objects.objects)?;
        }
    }
    let target = ExplainedObject { kind, namespace, name };
    explain(&cluster_objects, &target).map_err(CommandFailure::usage)
}

/// Copied CSVs with a name that the target needs: such a copy prevents an original CSV of the same
/// name. Unreadable ones are left out.
async fn copied_csvs(
    cluster: &impl ClusterHandle,
    target: &ExplainedObject,
    objects: &[Object],
) -> Vec<Object> {
    let find = |kind: &Resource, name: &str| {
        let matches = |object: &&Object| {
            object.kind() == &*kind.kind
                && object.namespace() == target.namespace
                && object.name() == name
        };
        objects.iter().find(matches)
    };
    let mut names: BTreeSet<&str> = match target.kind {
        ExplainedKind::ClusterServiceVersion => BTreeSet::from([&*target.name]),
        ExplainedKind::Subscription => {
            let subscription = find(&SUBSCRIPTION, &target.name);
            let fields = ["currentCSV", "installedCSV"].into_iter();
            fields.filter_map(|field| subscription?.str(&["status", field])).collect()
        }
        _ => BTreeSet::new(),
    };
    names.retain(|name| !name.is_empty() && find(&CLUSTER_SERVICE_VERSION, name).is_none());
    let mut copied_csvs = Vec::new();
    for name in names {
        let csv = cluster.get(&CLUSTER_SERVICE_VERSION, Some(&target.namespace), name).await;
        copied_csvs.extend(csv.ok().flatten());
    }
    copied_csvs
}

/// Lists the objects for an explanation, as far as the account may.
async fn list_objects(cluster: &impl ClusterHandle, namespace: &str) -> Result<Listing, Cause> {
    let mut listing = Listing::default();
    for kind in &NAMESPACE_KINDS {
        // Copied CSVs are many, large, and do not matter here.
        let not_copied = format!("!{}", names::COPIED_FROM);
        let labels = (*kind == CLUSTER_SERVICE_VERSION).then_some(&*not_copied);
        listing.add_in_namespace(cluster, kind, labels, namespace).await?;
    }
    for kind in &CLUSTER_WIDE_KINDS {
        let namespaces = if *kind == CATALOG_SOURCE {
            namespaces_of_catalogs(&listing.objects, namespace)
        } else {
            BTreeSet::from([namespace.to_owned()])
        };
        listing.add_in_all_namespaces(cluster, kind, None, &namespaces).await?;
    }
    let namespaces = namespaces_of_events(&listing.objects).into_iter().map(str::to_owned);
    for namespace in namespaces.collect::<Vec<_>>() {
        match cluster.list(&builtin::EVENT, Some(&namespace), None).await {
            Ok(events) => listing.objects.extend(events),
            // The status has the failure; only its cause in the events stays unknown.
            Err(ClusterReadError::Forbidden(_) | ClusterReadError::UnknownKind(_)) => {}
            Err(ClusterReadError::Failed(cause)) => return Err(cause),
        }
    }
    Ok(listing)
}

/// Reads a saved state.
fn read_state(
    io: &mut CommandIo<'_>,
    file: &str,
    objects: &mut Vec<Object>,
) -> Result<(), CommandFailure> {
    let text = read_text(io, file)?;
    let place = |line| FileLocation {
        line,
        ..FileLocation::file(if file == "-" { "<stdin>" } else { file })
    };
    let refuse = |line, why: &str| {
        CommandFailure::usage(
            Cause::new(escape_controls(why))
                .at(place(line))
                .remedy(format!("use the output of: {SAVE_COMMAND}")),
        )
    };
    for document in documents(text.as_bytes(), &Options::default()) {
        let document = document.map_err(|error| refuse(error.line, &error.fault.to_string()))?;
        let items = match document.value {
            Value::Null => continue,
            Value::Object(mut fields) if fields.contains_key("items") => {
                match fields.remove("items") {
                    Some(Value::Array(items)) => items,
                    _ => return Err(refuse(document.line, "`items` is not a list")),
                }
            }
            other => vec![other],
        };
        for item in items {
            let object = Object::from_value(item)
                .map_err(|_| refuse(document.line, "this is not a Kubernetes object"))?;
            objects.push(object);
        }
    }
    Ok(())
}

fn text(answer: &Explanation) -> String {
    let mut text = match &answer.cause {
        Some(why) => why.render(),
        None => format!("{} {}\n", answer.target, answer.state),
    };
    for line in answer.resolution.iter().flat_map(ExtensionResolution::lines) {
        text.push_str(&line);
        text.push('\n');
    }
    for note in &answer.notes {
        text.push_str("note: ");
        text.push_str(note);
        text.push('\n');
    }
    text.lines().map(|line| escape_controls(line) + "\n").collect()
}

fn value(answer: &Explanation) -> Value {
    let target = &answer.target;
    let mut value = json!({
        "kind": target.kind.name(),
        "namespace": target.namespace,
        "name": target.name,
        "healthy": answer.is_healthy(),
        "standing": answer.state,
        "notes": answer.notes,
        "hidden": answer.hidden.iter().map(hidden).collect::<Vec<_>>(),
    });
    if let Some(resolution) = &answer.resolution {
        value["resolution"] = resolution::value(resolution);
    }
    if let Some(why) = &answer.cause {
        value["because"] = cause_json(why)["because"].clone();
    }
    value
}

/// A kind that the account may not list everywhere.
fn hidden(kind: &HiddenKind) -> Value {
    json!({"kind": kind.kind, "seenIn": kind.readable_namespaces})
}
