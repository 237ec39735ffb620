//! `mainstay uninstall`: the way out.
//!
//! ```text
//! cluster ─► World, Parts ── removal ─► Removal ─► preview ── --dry-run ends here ─► deletes, in order
//! ```

use crate::catalog::{Format, plain};
use crate::cluster::{ClusterArguments, ClusterHandle, ClusterReadError};
use crate::exit::{Exit, Failure};
use crate::output::OutputSink;
use crate::resolve::{Io, written};
use clap::Args;
use mainstay_api::names;
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR, OPERATOR_CONDITION, SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_object::{Object, Resource, known};
use mainstay_removal::{
    Definition, Item, Parts, Removal, Step, Target, Wish, World, definitions, maps, removal, target,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// Kinds of objects that carry the labels of the version that they belong to. None is of a namespace:
/// whoever may write there may write labels, too.
const LABELLED: [Resource; 11] = [
    known::CLUSTER_ROLE,
    known::CLUSTER_ROLE_BINDING,
    known::VALIDATING_WEBHOOK_CONFIGURATION,
    known::MUTATING_WEBHOOK_CONFIGURATION,
    known::API_SERVICE,
    known::PRIORITY_CLASS,
    Resource::cluster("console.openshift.io", "v1", "ConsoleYAMLSample", "consoleyamlsamples"),
    Resource::cluster("console.openshift.io", "v1", "ConsoleQuickStart", "consolequickstarts"),
    Resource::cluster("console.openshift.io", "v1", "ConsoleCLIDownload", "consoleclidownloads"),
    Resource::cluster("console.openshift.io", "v1", "ConsoleLink", "consolelinks"),
    Resource::cluster("console.openshift.io", "v1", "ConsolePlugin", "consoleplugins"),
];

/// The namespace of the system, where operators that serve APIs have a `RoleBinding`.
const SYSTEM: &str = "kube-system";

/// Kinds of objects that name the version that they belong to as their owner, and whether they carry the
/// label of everything that is made for operators.
const REFERRING: [(Resource, bool); 13] = [
    // First: others refer to it.
    (OPERATOR_CONDITION, false),
    (known::DEPLOYMENT, false),
    (known::SERVICE_ACCOUNT, false),
    (known::ROLE, false),
    (known::ROLE_BINDING, false),
    (known::SERVICE, false),
    (known::SECRET, true),
    (known::CONFIG_MAP, true),
    (known::POD_DISRUPTION_BUDGET, false),
    (known::NETWORK_POLICY, false),
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
pub struct UninstallArguments {
    /// Its Subscription, its package or its version.
    #[arg(value_name = "NAME")]
    name: String,
    /// Its namespace [default: that of the kubeconfig's context].
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Remove objects of the kinds that it provides, too, before the operator.
    #[arg(long)]
    operands: bool,
    /// Remove the definitions of these kinds, too, and with them all objects of them, everywhere.
    #[arg(long)]
    definitions: bool,
    /// The cluster that it runs on.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// How many seconds each part may take to go.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
    /// How the preview is written.
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
pub async fn run<C: ClusterHandle>(
    arguments: &UninstallArguments,
    io: &mut Io<'_>,
    connect: impl AsyncFnOnce() -> Result<C, Failure>,
) -> Exit {
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let done = match connect().await {
        Ok(cluster) => uninstall(arguments, &cluster, &mut stdout).await,
        Err(failure) => Err(failure),
    };
    // Whoever does not listen any more has nothing to be told.
    let _ = stdout.flush();
    match done {
        Ok(()) => Exit::Done,
        Err(Failure { exit, cause }) => {
            let _ = write!(io.stderr, "error: {}", cause.render());
            exit
        }
    }
}

async fn uninstall(
    arguments: &UninstallArguments,
    cluster: &impl ClusterHandle,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let namespace = arguments.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace()).to_owned();
    let wish = Wish {
        namespace,
        name: arguments.name.clone(),
        operands: arguments.operands,
        definitions: arguments.definitions,
    };
    let (target, removal) = plan(cluster, &wish).await?;
    let preview = written(arguments.output, &value(&target, &removal), || {
        text(&target, &removal, arguments.dry_run)
    });
    // Nothing goes that nobody could read of.
    out.write_all(preview.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        Cause::new("the preview cannot be written").because(Cause::new(error.to_string()))
    })?;
    if arguments.dry_run {
        return Ok(());
    }
    let says = arguments.output == Format::Text;
    for steps in removal.steps.chunk_by(|one, next| one.resource == next.resource) {
        carry_out(cluster, steps, arguments.timeout(), says.then_some(&mut *out)).await?;
    }
    Ok(())
}

async fn plan(cluster: &impl ClusterHandle, wish: &Wish) -> Result<(Target, Removal), Failure> {
    let own = Some(&*wish.namespace);
    let originals = format!("!{}", names::COPIED_FROM);
    let versions = cluster.list(&CLUSTER_SERVICE_VERSION, None, Some(&originals)).await;
    let (versions, unserved) = match versions {
        Err(ClusterReadError::UnknownKind(cause)) => (Vec::new(), Some(cause)),
        listed => (listed?, None),
    };
    let everywhere = versions.iter().map(|csv| csv.key().to_string()).collect();
    let mut world = World {
        definitions: Vec::new(),
        subscriptions: list_known(cluster, &SUBSCRIPTION, own, None).await?,
        versions: versions.into_iter().filter(|csv| csv.namespace() == wish.namespace).collect(),
        plans: list_known(cluster, &INSTALL_PLAN, own, None).await?,
    };
    if target(&world, wish).is_err() {
        // They are many, so they are only read where nothing else is left of it.
        world.definitions =
            list_known(cluster, &known::CUSTOM_RESOURCE_DEFINITION, None, None).await?;
    }
    // Without the kinds of operators, the name is not what is wrong.
    let target = target(&world, wish)
        .map_err(|error| unserved.map_or_else(|| Failure::usage(error), Failure::from))?;
    let mut parts = Parts { versions: everywhere, ..Parts::default() };
    for version in &target.versions {
        let labels =
            format!("{}={version},{}={}", names::OWNER, names::OWNER_NAMESPACE, wish.namespace);
        // A name that is no value of a label was never written as one.
        if version.len() <= 63 {
            for kind in &LABELLED {
                let found = list_known(cluster, kind, None, Some(&labels)).await?;
                parts.owned.extend(found.into_iter().map(|object| (kind.clone(), object)));
            }
            let bound =
                list_known(cluster, &known::ROLE_BINDING, Some(SYSTEM), Some(&labels)).await?;
            parts.owned.extend(bound.into_iter().map(|binding| (known::ROLE_BINDING, binding)));
        }
    }
    refer(cluster, &world, &target, &mut parts).await?;
    let copied = format!("{}={}", names::COPIED_FROM, wish.namespace);
    let copies = list_known(cluster, &CLUSTER_SERVICE_VERSION, None, Some(&copied)).await?;
    let of_target = |csv: &&Object| target.versions.iter().any(|version| version == csv.name());
    parts.copies = copies.iter().filter(of_target).count();
    if let Some(package) = &target.package {
        let name = names::operator_name(package, &wish.namespace);
        parts.operator = cluster.get(&OPERATOR, None, &name).await?;
    }
    for name in definitions(&target, parts.operator.as_ref()) {
        let found = cluster.get(&known::CUSTOM_RESOURCE_DEFINITION, None, &name).await?;
        let Some(definition) = found else { continue };
        let mut definition = Definition { definition, objects: Vec::new() };
        if let Some(kind) = definition.resource() {
            definition.objects = list_known(cluster, &kind, None, None).await?;
        }
        parts.definitions.push(definition);
    }
    for map in maps(&world, &target) {
        parts.unpacked.extend(
            cluster.get(&known::CONFIG_MAP, Some(map.namespace.as_ref()), &map.name).await?,
        );
    }
    if !parts.unpacked.is_empty() {
        // Of other namespaces, too: they may install the same at this moment.
        parts.plans = list_known(cluster, &INSTALL_PLAN, None, None).await?;
    }
    let removal = removal(&world, &parts, &target, wish).map_err(Failure::usage)?;
    Ok((target, removal))
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

/// Finds what has no other owners than the versions and what they own.
async fn refer(
    cluster: &impl ClusterHandle,
    world: &World,
    target: &Target,
    parts: &mut Parts,
) -> Result<(), Cause> {
    let of_target = |csv: &&Object| target.versions.iter().any(|name| name == csv.name());
    let versions = world.versions.iter().filter(of_target);
    let mut owners: BTreeSet<String> = versions.map(|csv| csv.uid().to_owned()).collect();
    if owners.is_empty() {
        return Ok(());
    }
    let managed = format!("{}={}", names::MANAGED, names::MANAGED_VALUE);
    for (kind, labelled) in &REFERRING {
        let labels = labelled.then_some(&*managed);
        for object in list_known(cluster, kind, Some(&target.namespace), labels).await? {
            let of = object.owner_references();
            let owned = !of.is_empty() && of.iter().all(|owner| owners.contains(&owner.uid));
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
async fn carry_out(
    cluster: &impl ClusterHandle,
    steps: &[Step],
    patience: Duration,
    mut out: Option<&mut dyn Write>,
) -> Result<(), Cause> {
    for step in steps.iter().filter(|step| !step.follows) {
        cluster.delete(step).await?;
    }
    let mut left = Vec::new();
    for step in steps {
        if let Some(object) = cluster.wait_until_gone(step, patience).await? {
            let finalizers: Vec<&str> = object.finalizers().collect();
            let shown = shown(step);
            left.push(match finalizers.as_slice() {
                [] => Cause::new(format!("{shown} is still there")),
                all => Cause::new(format!("{shown} waits for its finalizers: {}", all.join(", "))),
            });
        } else if let Some(out) = &mut out {
            // What was begun goes on, whether or not somebody listens.
            let _ = writeln!(out, "deleted  {}", plain(&shown(step)));
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    Err(Cause::new(format!("after {} s it is not all gone; the rest is left as it is", patience.as_secs()))
        .because_all(left)
        .remedy("see what the operator says of it, and run the same again, or give it longer with --timeout SECONDS"))
}

fn shown(step: &Step) -> String {
    match &step.namespace {
        Some(namespace) => format!("{} {namespace}/{}", step.resource.kind, step.name),
        None => format!("{} {}", step.resource.kind, step.name),
    }
}

fn text(target: &Target, removal: &Removal, dry: bool) -> String {
    let mut text = String::new();
    let of = target.package.as_deref().map(|package| format!(" of the package {package}"));
    let what = match target.versions.as_slice() {
        [] => "definitions that are left".to_owned(),
        some => some.join(", "),
    };
    // Writing into a String does not fail.
    let _ = writeln!(text, "{what}{} in {}", of.unwrap_or_default(), target.namespace);
    let parts = [
        (if dry { "would go" } else { "goes" }, &removal.goes),
        (if dry { "would stay" } else { "stays" }, &removal.stays),
        ("would hang", &removal.hangs),
    ];
    for (head, items) in parts {
        if items.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{head}:");
        for item in items {
            let why = if item.why.is_empty() { String::new() } else { format!(": {}", item.why) };
            let _ = writeln!(text, "  {item}{why}");
            if let Some(remedy) = &item.remedy {
                let _ = writeln!(text, "    → {remedy}");
            }
        }
    }
    text.lines().map(|line| plain(line) + "\n").collect()
}

fn value(target: &Target, removal: &Removal) -> Value {
    let items = |items: &[Item]| -> Vec<Value> {
        let one = |leftover: &Item| {
            json!({
                "kind": leftover.kind, "namespace": leftover.namespace, "name": leftover.name,
                "why": leftover.why, "remedy": leftover.remedy,
            })
        };
        items.iter().map(one).collect()
    };
    json!({
        "namespace": target.namespace,
        "package": target.package,
        "subscriptions": target.subscriptions,
        "versions": target.versions,
        "goes": items(&removal.goes),
        "stays": items(&removal.stays),
        "hangs": items(&removal.hangs),
    })
}
