//! `mainstay extension install --with-dependencies`: an extension with all extensions that it needs.
//!
//! ```text
//! cluster, catalogs ─► ExtensionPlan ─► preview ─► checked by the cluster ─► created, dependencies first ─► waited for
//! ```
//!
//! The extensions get the annotation that makes their controller accept bundles with dependencies. In a cycle
//! none of them could be the first: one ignores its dependencies until all are installed.

use super::install::{
    Arguments, clean_up, install_failure, report_installed, report_write, require_namespace,
};
use super::providing_objects::ProvidingObjects;
use super::spec::{CHANNELS, DEPENDENCIES, SELECTOR, SERVICE_ACCOUNT, VERSION};
use super::state::{self, InstallStage};
use super::update::{Change, replace};
use super::{report_warnings, say, watch};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterWriter, ObjectWrite};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, count, escape_controls};
use mainstay_content::catalog;
use mainstay_object::Object;
use mainstay_resolver::extension::{
    CATALOG_NAME_LABEL, DependencyPolicy, ExtensionPlan, ExtensionRequest, PlanInput, PlanStep,
    plan_installation,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Installs an extension with all that it needs.
///
/// # Errors
/// No set of extensions satisfies all dependencies, the cluster refuses one of them, or one is not installed
/// in time.
pub(super) async fn install(
    arguments: &Arguments,
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    root: &Object,
) -> Result<(), CommandFailure> {
    let providing = ProvidingObjects::read(cluster).await?;
    if providing.crds.is_none() {
        let _ = writeln!(
            io.stderr,
            "warning: your account may not list CustomResourceDefinitions, so APIs of the cluster count as missing"
        );
    }
    let plan = plan(arguments, cluster, &providing, root).await?;
    for package in &arguments.preferred {
        if !plan.steps.iter().any(|step| step.package == *package) {
            let _ = writeln!(
                io.stderr,
                "note: --dependency {} is not needed",
                escape_controls(package)
            );
        }
    }
    let extensions = manifests(arguments, &providing, &plan, root)?;
    if let Some(namespace) = arguments.dependency_namespace.as_deref()
        && extensions.len() > 1
    {
        require_namespace(cluster, namespace, "--dependency-namespace").await?;
    }
    if arguments.output == Format::Text {
        io.print(&preview(&plan, &extensions));
        let _ = io.stdout.flush();
    }
    // Nothing is created unless the cluster accepts all of them.
    let mut accepted = Vec::with_capacity(extensions.len());
    for extension in &extensions {
        let write = ObjectWrite::Create(extension);
        let checked = cluster.write(&CLUSTER_EXTENSION, write, true).await;
        let checked = checked.map_err(|error| install_failure(extension.name(), error))?;
        let checked = if arguments.dry_run { report_warnings(io, checked) } else { checked.object };
        accepted.push(checked);
    }
    if arguments.dry_run {
        for extension in &accepted {
            report_write(io, arguments.output, extension, "created", true);
        }
        print_list(io, arguments.output, &accepted);
        return Ok(());
    }
    let mut created = Vec::with_capacity(extensions.len());
    let done = create_and_wait(arguments, cluster, io, &extensions, &mut created).await;
    let failure = match done {
        Ok(installed) => {
            finish_cycle(arguments, cluster, io, &plan, &created).await?;
            print_list(io, arguments.output, &installed);
            return Ok(());
        }
        Err(failure) => failure,
    };
    if !arguments.cleanup {
        return Err(failure);
    }
    let mut failure = failure;
    for extension in created.iter().rev() {
        if let Err(cleanup) = clean_up(cluster, io, arguments, extension).await {
            failure.cause = failure.cause.because(cleanup.cause);
        }
    }
    Err(failure)
}

async fn plan(
    arguments: &Arguments,
    cluster: &impl ClusterWriter,
    providing: &ProvidingObjects,
    root: &Object,
) -> Result<ExtensionPlan, CommandFailure> {
    let catalogs = catalog::read_catalogs(cluster).await?;
    let input = PlanInput {
        request: &ExtensionRequest::of(root),
        catalogs: &catalogs,
        extensions: &providing.existing(),
        providers: &providing.providers(),
        preferred: &arguments.preferred,
    };
    plan_installation(&input).map_err(|cause| {
        let what = format!("failed to plan the installation of extension {:?}", root.name());
        Cause::new(what).because(*cause).into()
    })
}

/// The ClusterExtensions of a plan.
///
/// # Errors
/// The name of one is taken.
fn manifests(
    arguments: &Arguments,
    providing: &ProvidingObjects,
    plan: &ExtensionPlan,
    root: &Object,
) -> Result<Vec<Object>, CommandFailure> {
    let requested = root.str(&["spec", "source", "catalog", "packageName"]);
    let mut extensions = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let package = step.package.as_str();
        if requested == Some(package) {
            let mut root = root.clone();
            if arguments.spec.dependencies().is_none() {
                annotate(&mut root, step);
            }
            extensions.push(root);
            continue;
        }
        let same = providing.extensions.iter().find(|extension| extension.name() == package);
        if same.is_some_and(Object::is_terminating) {
            let cause = Cause::new(format!("ClusterExtension {package} is being deleted"));
            return Err(CommandFailure::usage(cause.remedy(format!(
                "wait until it is gone: mainstay extension wait {package} --for deleted"
            ))));
        }
        if package == root.name() || same.is_some() {
            let cause = Cause::new(format!(
                "the dependency on package {package} needs a ClusterExtension of that name, which is taken"
            ));
            return Err(CommandFailure::usage(cause.remedy(format!(
                "install it first under another name: mainstay extension install OTHER-NAME --package {package}"
            ))));
        }
        extensions.push(dependency(arguments, step, root));
    }
    Ok(extensions)
}

/// The ClusterExtension of a dependency: with the namespace and the ServiceAccount of its dependent.
fn dependency(arguments: &Arguments, step: &PlanStep, root: &Object) -> Object {
    let mut extension = Object::new(&CLUSTER_EXTENSION.gvk(), &step.package);
    let namespace = arguments.dependency_namespace.as_deref();
    let namespace = namespace.or_else(|| root.str(&["spec", "namespace"])).unwrap_or_default();
    extension.set(&["spec", "namespace"], namespace.into());
    extension.set(&["spec", "source", "sourceType"], "Catalog".into());
    let package = step.package.as_str();
    extension.set(&["spec", "source", "catalog", "packageName"], package.into());
    if !step.version.is_empty() {
        extension.set(&VERSION, step.version.as_str().into());
    }
    if let Some(catalog) = &step.catalog {
        extension.set(&SELECTOR, json!({"matchLabels": {CATALOG_NAME_LABEL: catalog}}));
    }
    if let Some(account) = root.get(&SERVICE_ACCOUNT) {
        extension.set(&SERVICE_ACCOUNT, account.clone());
    }
    annotate(&mut extension, step);
    extension
}

/// Makes the controller accept the bundle of a step.
fn annotate(extension: &mut Object, step: &PlanStep) {
    let policy =
        if step.needs_later { DependencyPolicy::Ignore } else { DependencyPolicy::Require };
    if let Some(value) = policy.value() {
        extension.set(&DEPENDENCIES, value.into());
    }
}

/// The plan as text.
fn preview(plan: &ExtensionPlan, extensions: &[Object]) -> String {
    let mut out = format!("plan: {}, in this order\n", count(plan.steps.len(), "extension"));
    for (step, extension) in plan.steps.iter().zip(extensions) {
        let field = |path: &[&str]| extension.str(path).unwrap_or_default();
        let line = format!(
            "{:?}: {} (version {}) from ClusterCatalog {}, in namespace {}",
            extension.name(),
            step.choice.bundle,
            step.choice.version,
            step.choice.catalog,
            field(&["spec", "namespace"])
        );
        // Writing to a String does not fail.
        let _ = writeln!(out, "  {}", escape_controls(&line));
        let version = field(&VERSION);
        if !version.is_empty() {
            let _ = writeln!(out, "    allowed versions: {}", escape_controls(version));
        }
        let channels = extension.array(&CHANNELS);
        if !channels.is_empty() {
            let channels: Vec<&str> = channels.iter().filter_map(Value::as_str).collect();
            let _ = writeln!(out, "    channels: {}", escape_controls(&channels.join(", ")));
        }
        for needed in &step.needed_by {
            let line = format!("needed by {}: {}", needed.bundle, needed.dependency);
            let _ = writeln!(out, "    {}", escape_controls(&line));
        }
        if step.needs_later {
            out.push_str(
                "    ignores its dependencies until all are installed: they form a cycle\n",
            );
        }
    }
    if !plan.present.is_empty() {
        out.push_str("present:\n");
    }
    for present in &plan.present {
        let pending = if present.is_pending { ", which has nothing installed yet" } else { "" };
        let line = format!(
            "{}{pending}: needed by {}: {}",
            present.source, present.required.bundle, present.required.dependency
        );
        let _ = writeln!(out, "  {}", escape_controls(&line));
    }
    out
}

/// Creates the extensions, and waits for each of them. `created` has those that were created, also if this
/// fails.
async fn create_and_wait(
    arguments: &Arguments,
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extensions: &[Object],
    created: &mut Vec<Object>,
) -> Result<Vec<Object>, CommandFailure> {
    let output = arguments.output;
    for extension in extensions {
        let write = ObjectWrite::Create(extension);
        let accepted = cluster.write(&CLUSTER_EXTENSION, write, false).await;
        let accepted = accepted.map_err(|error| {
            let mut failure = install_failure(extension.name(), error);
            if !created.is_empty() && !arguments.cleanup {
                let remedy = "the extensions created so far stay; remove each with: mainstay extension delete NAME";
                failure.cause = failure.cause.remedy(remedy);
            }
            failure
        })?;
        let accepted = report_warnings(io, accepted);
        report_write(io, output, &accepted, "created", false);
        created.push(accepted);
    }
    if !arguments.waiting.waits() {
        return Ok(created.clone());
    }
    let timeout = arguments.waiting.timeout;
    let mut installed = Vec::with_capacity(created.len());
    for extension in created.iter() {
        let name = extension.name();
        let target = (name, extension.uid());
        let end = watch::wait(cluster, io, target, timeout, |found| {
            state::install_stage(found) == InstallStage::Installed
        })
        .await;
        let cause = match end {
            Ok(Ok(found)) => {
                if output == Format::Text {
                    report_installed(io, output, &found);
                }
                installed.push(found);
                continue;
            }
            Ok(Err(unfinished)) => unfinished.cause(name, "installing", timeout),
            Err(failure) => failure.cause,
        };
        let failure = Cause::new(format!("failed to install extension {name:?}")).because(cause);
        if arguments.cleanup {
            return Err(failure.into());
        }
        return Err(failure
            .remedy(format!(
                "all extensions stay; see more with: mainstay why clusterextension/{name}"
            ))
            .remedy("or remove them with: mainstay extension delete NAME")
            .into());
    }
    Ok(installed)
}

/// Makes the extensions of a cycle require their dependencies from now on.
async fn finish_cycle(
    arguments: &Arguments,
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    plan: &ExtensionPlan,
    created: &[Object],
) -> Result<(), CommandFailure> {
    for (_, extension) in plan.steps.iter().zip(created).filter(|(step, _)| step.needs_later) {
        let name = extension.name();
        if !arguments.waiting.waits() {
            let _ = writeln!(
                io.stderr,
                "note: extension {name:?} ignores its dependencies; once all are installed: mainstay extension update {name} --dependencies Require"
            );
            continue;
        }
        let change = Change {
            name,
            doing: ("update", "updating", "updated"),
            waiting: &arguments.waiting,
            dry_run: false,
            output: arguments.output,
        };
        let require = |extension: &mut Object| {
            let value = DependencyPolicy::Require.value().unwrap_or_default();
            extension.set(&DEPENDENCIES, value.into());
        };
        replace(cluster, io, &change, require).await?;
        say(
            io,
            arguments.output,
            &format!("extension {name:?} requires its dependencies from now on"),
        );
    }
    Ok(())
}

/// Prints objects as a list, unless the format is text.
fn print_list(io: &mut CommandIo<'_>, format: Format, objects: &[Object]) {
    if format != Format::Text {
        let items: Vec<Value> = objects.iter().map(Object::to_value).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        io.print(&format_output(format, &list, String::new));
    }
}
