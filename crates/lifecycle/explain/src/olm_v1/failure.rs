//! Failures of an installation: what the condition `Progressing` of OLM v1 says, taken apart into causes with
//! remedies.
//!
//! The texts are upstream's, so this works on clusters of upstream as well. A text that no pattern matches
//! stays as it is.

use crate::command::Refusal;
use mainstay_cause::Cause;
use mainstay_object::Object;
use mainstay_permissions::InstallerNames;
use serde_json::json;

/// Texts before the failure of a step, which say nothing by themselves.
const WRAPPERS: [&str; 4] = [
    "creating new Revision: ",
    "failed to get release state using server-side dry-run: ",
    "operation cannot proceed due to the following validation error(s): ",
    "Unable to continue with update: ",
];
/// Beginnings of failures to pull the image of a bundle.
const PULL: [&str; 3] =
    ["error creating image source: ", "error copying image: ", "error applying image: "];
/// Beginnings of failures because of an image reference.
const REFERENCE: [&str; 2] = ["error parsing image reference ", "error creating reference: "];
/// Beginnings of failed resolutions.
const RESOLUTION: [&str; 10] = [
    "no bundles found for package ",
    "found bundles for package ",
    "error upgrading from currently installed version ",
    "error walking catalogs: ",
    "desired catalog selector is invalid: ",
    "desired version range ",
    "validating bundle ",
    "error getting resolved bundle version ",
    "failed to resolve bundle",
    "unable to upgrade to version ",
];

/// Whether a message is that of a failed resolution.
pub(super) fn is_resolution(message: &str) -> bool {
    RESOLUTION.iter().any(|text| message.starts_with(text))
}

/// What a failure is about.
#[derive(Clone, Copy)]
pub(super) struct FailedInstallation<'a> {
    /// The ClusterExtension; none for a ClusterObjectSet that has none.
    pub(super) extension: Option<&'a Object>,
    /// The image of the bundle, if known.
    pub(super) image: Option<&'a str>,
    /// The name of another ClusterExtension with the same package, which may own objects that are in the way.
    pub(super) rival: Option<&'a str>,
}

impl FailedInstallation<'_> {
    /// The cause of a failure, from its message.
    pub(super) fn cause(&self, message: &str) -> Cause {
        if let Some((bundle, version, step)) = resolved_bundle(message) {
            let what = format!("bundle {bundle} (version {version}) cannot be installed");
            return Cause::new(what).because_all(self.step_causes(step));
        }
        match <[Cause; 1]>::try_from(self.step_causes(message)) {
            Ok([only]) => only,
            Err(causes) => Cause::new("the objects cannot be written").because_all(causes),
        }
    }

    /// The causes of a failed step.
    fn step_causes(&self, step: &str) -> Vec<Cause> {
        let mut step = step.trim_end();
        while let Some(rest) = WRAPPERS.iter().find_map(|wrapper| step.strip_prefix(wrapper)) {
            step = rest;
        }
        if let Some(lines) = step.strip_prefix("pre-authorization failed: ") {
            return vec![self.permission_cause(lines)];
        }
        if step.starts_with(CRD_SAFETY) {
            return self.crd_causes(step);
        }
        if let Some(reports) = step.strip_prefix("revision object collisions in phase ") {
            return collision_reports(reports, self.rival);
        }
        // Helm reports all objects of an installation together, and all of an upgrade.
        if let Some((_, list)) = step.split_once(" occurred:\n\t* ") {
            return list.split("\n\t* ").map(|error| self.step_cause(error.trim_end())).collect();
        }
        if step.starts_with("cannot patch ") {
            return step.split(" && ").map(|error| self.step_cause(error)).collect();
        }
        vec![self.step_cause(step)]
    }

    fn step_cause(&self, step: &str) -> Cause {
        let leaf = || Cause::new(step);
        if PULL.iter().any(|text| step.starts_with(text)) {
            return self.pull_cause(step);
        }
        if REFERENCE.iter().any(|text| step.starts_with(text)) {
            let cause = Cause::new("the catalog has an image reference that cannot be used");
            return cause
                .because(leaf())
                .remedy("have the author of the catalog correct it")
                .remedy(self.update("--version RANGE", "or select another version"));
        }
        if step.starts_with("invalid ClusterExtension configuration") {
            return Cause::new("the bundle refuses the configuration in spec.config")
                .because(leaf())
                .remedy(self.update("--config FILE", "change it"))
                .remedy("see what a bundle accepts: mainstay bundle render DIR --schema");
        }
        if step.starts_with("unsupported bundle") {
            return Cause::new("OLM v1 cannot install this kind of bundle").because(leaf()).remedy(
                self.update("--version RANGE", "select a version that OLM v1 can install"),
            );
        }
        if let Some(collision) = Collision::of(step) {
            return collision.cause(self.rival);
        }
        if let Some((account, namespace)) = missing_account(step) {
            return Cause::new(format!("ServiceAccount {namespace}/{account} does not exist"))
                .remedy(format!(
                    "create it: kubectl -n {namespace} create serviceaccount {account}"
                ))
                .remedy(self.extension.map_or_else(String::new, |found| role_remedy(found, step)));
        }
        if let Some(namespace) = missing_namespace(step) {
            return Cause::new(format!(
                "namespace {namespace} does not exist, and nothing creates it"
            ))
            .because(leaf())
            .remedy(format!("create it: kubectl create namespace {namespace}"));
        }
        if let Some(refusal) = Refusal::of(step) {
            let approving =
                self.extension.filter(|extension| is_of_kept_account(&refusal, extension));
            return leaf().remedy(match approving {
                Some(extension) => approval_remedy(extension.name()),
                None => refusal.grant_commands(),
            });
        }
        if step.contains("no matches for kind ") && step.contains("\"cert-manager.io/") {
            return leaf().remedy("install cert-manager").remedy(
                "or let the controller issue the certificates: mainstay run --extension-certificates own",
            );
        }
        if step.contains("no matches for kind ") {
            return leaf().remedy(
                "install what provides this kind, such as its CustomResourceDefinition; the controller then tries again",
            );
        }
        if step.starts_with("release name is invalid") {
            return leaf()
                .remedy("use a ClusterExtension with a shorter name, of at most 40 characters");
        }
        leaf()
    }

    fn pull_cause(&self, step: &str) -> Cause {
        let cause = Cause::new("its image cannot be pulled").because(Cause::new(step));
        let cause = match self.image {
            Some(image) if !image.is_empty() => {
                cause.remedy(format!("check that the image exists: mainstay image inspect {image}"))
            }
            _ => cause,
        };
        cause.remedy(
            "if its registry requires credentials, put them into the Secret pull-secret of the namespace of OLM v1 (olmv1-system)",
        )
    }

    fn permission_cause(&self, text: &str) -> Cause {
        if is_unapproved(text) {
            let lines = text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
            let what = "the bundle needs permissions that nobody has approved";
            let cause = Cause::new(what).because_all(lines.map(Cause::new));
            let name = self.extension.map_or("NAME", Object::name);
            return cause.remedy(approval_remedy(name));
        }
        let (lacking, errors): (Vec<&str>, Vec<&str>) =
            text.lines().skip(1).map(str::trim).partition(|line| line.starts_with("Namespace:"));
        // A report without rules is a single line.
        let errors = if lacking.is_empty() { vec![text] } else { errors };
        let account = self.extension.and_then(|extension| {
            let name = extension.str(&["spec", "serviceAccount", "name"])?;
            Some(format!("{}/{name}", extension.str(&["spec", "namespace"])?))
        });
        let account = account.map_or_else(
            || "the ServiceAccount".to_owned(),
            |account| format!("ServiceAccount {account}"),
        );
        let what = format!("{account} lacks permissions that the bundle needs");
        let lines = lacking.into_iter().chain(errors).filter(|line| !line.is_empty());
        let cause = Cause::new(what).because_all(lines.map(Cause::new));
        match self.extension {
            Some(extension) => cause.remedy(role_remedy(extension, text)),
            None => cause,
        }
    }

    /// A cause for each CustomResourceDefinition that the check refuses, with all findings.
    fn crd_causes(&self, text: &str) -> Vec<Cause> {
        let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in text.lines() {
            let found = line.strip_prefix(CRD_SAFETY).and_then(|rest| {
                let (name, rest) = quoted_prefix(rest)?;
                Some((name, rest.strip_prefix(": ")?))
            });
            match (found, causes.last_mut()) {
                (Some((name, finding)), _) => causes.push((name, vec![finding])),
                (None, Some((_, findings))) => findings.push(line),
                (None, None) => causes.push(("", vec![line])),
            }
        }
        let last = causes.len().saturating_sub(1);
        let cause = |(at, (name, findings)): (usize, (&str, Vec<&str>))| {
            let what = format!(
                "the new CustomResourceDefinition {name} may break stored objects, and the check refuses it"
            );
            let cause = Cause::new(what).because_all(findings.into_iter().map(Cause::new));
            // The remedies are the same for all.
            if at < last { cause } else { self.with_crd_remedies(cause) }
        };
        causes.into_iter().enumerate().map(cause).collect()
    }

    fn with_crd_remedies(&self, cause: Cause) -> Cause {
        let patch = json!({"spec": {"install": {"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}}}});
        let name = self.extension.map_or("NAME", Object::name);
        cause
            .remedy("count the stored objects that the change concerns: mainstay crd check --cluster BUNDLE-DIR")
            .remedy(self.update("--version RANGE", "stay at versions without the change"))
            .remedy(format!(
                "if no stored object is concerned, switch the check off: kubectl patch clusterextension {name} --type merge -p '{patch}'"
            ))
    }

    /// The remedy that changes a field of the ClusterExtension.
    fn update(&self, flags: &str, why: &str) -> String {
        let name = self.extension.map_or("NAME", Object::name);
        format!("{why}: mainstay extension update {name} {flags}")
    }
}

/// Whether a report is about permissions that nobody has approved, not about a ServiceAccount that lacks them.
fn is_unapproved(message: &str) -> bool {
    message.contains("the bundle needs permissions that are not approved")
}

/// Whether the ServiceAccount that a controller keeps for an extension was refused: it has what is approved, and nothing
/// else may be granted to it. In other modes the spec names the account.
fn is_of_kept_account(refusal: &Refusal<'_>, extension: &Object) -> bool {
    let field = |path: &[&str]| extension.str(path).unwrap_or_default();
    let names = InstallerNames::new(extension.name(), field(&["spec", "namespace"]));
    let account = names.service_account();
    field(&["spec", "serviceAccount", "name"]) != account
        && refusal.is_of_account(&names.namespace, &account)
}

fn approval_remedy(extension: &str) -> String {
    format!("look at them and approve them: mainstay extension approve {extension}")
}

/// The remedy for a report about permissions that are missing: nobody has approved them, or the ServiceAccount of
/// the ClusterExtension lacks them.
pub fn permission_remedy(extension: &Object, message: &str) -> String {
    if is_unapproved(message) {
        approval_remedy(extension.name())
    } else {
        role_remedy(extension, message)
    }
}

/// The remedy for missing permissions of the ServiceAccount of a ClusterExtension, from the report about them.
fn role_remedy(extension: &Object, message: &str) -> String {
    let field = |path: &[&str]| extension.str(path).unwrap_or_default();
    let (name, namespace) = (extension.name(), field(&["spec", "namespace"]));
    let account = match field(&["spec", "serviceAccount", "name"]) {
        "" => String::new(),
        account => format!(" --service-account {account}"),
    };
    let installed = field(&["status", "install", "bundle", "name"]);
    let what = if installed.is_empty() {
        format!("the bundle with: mainstay extension rbac {name} --bundle DIR|IMAGE")
    } else {
        // The account removes the objects of the old bundle, too.
        format!("both bundles with: mainstay extension rbac {name} --bundle NEW --also OLD")
    };
    // Each way of applying objects needs permissions of its own.
    let has_sets = !extension.array(&["status", "activeRevisions"]).is_empty()
        || message.contains("[clusterobjectsets/finalizers]");
    let applier = if has_sets { " --applier object-sets" } else { "" };
    format!("print the roles for {what} --namespace {namespace}{account}{applier}")
}

/// The beginning of the findings about a CustomResourceDefinition.
const CRD_SAFETY: &str = "validating upgrade for CRD ";

/// The bundle that a failure is about: name, version, and the failure of the step.
pub(super) fn resolved_bundle(message: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = quoted_prefix(message.strip_prefix("error for resolved bundle ")?)?;
    let (version, rest) = quoted_prefix(rest.strip_prefix(" with version ")?)?;
    Some((name, version, rest.strip_prefix(": ")?))
}

/// The text in quotes at the beginning, and the rest. Names and versions have no escapes.
fn quoted_prefix(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

/// An object that belongs to something else.
struct Collision<'m> {
    kind: &'m str,
    namespace: &'m str,
    name: &'m str,
    message: &'m str,
}

impl<'m> Collision<'m> {
    /// Parses Helm's messages about an installation and about an upgrade.
    fn of(message: &'m str) -> Option<Self> {
        Self::of_installation(message).or_else(|| Self::of_upgrade(message))
    }

    fn of_installation(message: &'m str) -> Option<Self> {
        let (object, rest) = message.split_once(" already exists in namespace '")?;
        let (namespace, rest) = rest.split_once('\'')?;
        let (kind, name) = object.split_once(" '")?;
        let name = name.strip_suffix('\'')?;
        rest.contains("cannot be managed").then_some(Self { kind, namespace, name, message })
    }

    fn of_upgrade(message: &'m str) -> Option<Self> {
        let (object, _) =
            message.split_once(" exists and cannot be imported into the current release")?;
        let (kind, rest) = object.split_once(" \"")?;
        let (name, rest) = rest.split_once("\" in namespace \"")?;
        Some(Self { kind, namespace: rest.strip_suffix('"')?, name, message })
    }

    fn cause(&self, rival: Option<&str>) -> Cause {
        let Self { kind, namespace, name, message } = self;
        let (place, flag) = match *namespace {
            "" => ((*name).to_owned(), String::new()),
            namespace => (format!("{namespace}/{name}"), format!(" -n {namespace}")),
        };
        let kind_word = kind.to_lowercase();
        let cause = Cause::new(format!(
            "{kind} {place} exists already and does not belong to this extension"
        ))
        .because(Cause::new(*message))
        .remedy(format!(
            "see whose it is: kubectl get {kind_word} {name}{flag} -o yaml --show-managed-fields"
        ));
        if let Some(rival) = rival {
            return cause.because(rival_cause(rival));
        }
        let cause = if *kind == "CustomResourceDefinition" {
            cause.remedy(
                "if an uninstallation kept it, install the extension with the name and namespace of its annotations meta.helm.sh/release-name and meta.helm.sh/release-namespace",
            )
        } else {
            cause
        };
        cause.remedy(format!(
            "{}; the installation then goes on: kubectl delete {kind_word} {name}{flag}",
            delete_condition(kind)
        ))
    }
}

/// The objects of a ClusterObjectSet that belong to something else, from the reports about them.
fn collision_reports(reports: &str, rival: Option<&str>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let objects = reports.split("\nObject ").skip(1);
    for report in objects.filter(|report| report.contains("Action: \"Collision\"")) {
        let title = report.lines().next().unwrap_or_default();
        let Some((kind, namespace, name)) = titled_object(title) else { continue };
        let owner = report.lines().find_map(|line| line.strip_prefix("Conflicting Owner: "));
        let field = |name: &str| {
            let (_, rest) = owner?.split_once(&format!("{name}:"))?;
            rest.split_once(',').map(|(value, _)| value)
        };
        let controller = field("Kind").zip(field("Name"));
        let why = match controller {
            Some((kind, name)) => format!("{kind} {name} controls it"),
            None => "it exists, and no object controls it".to_owned(),
        };
        let (place, flag) = match namespace {
            "" => (name.to_owned(), String::new()),
            namespace => (format!("{namespace}/{name}"), format!(" -n {namespace}")),
        };
        let word = kind.to_lowercase();
        let cause = Cause::new(format!("{kind} {place} does not belong to this revision"))
            .because(Cause::new(why))
            .remedy(format!(
                "see whose it is: kubectl get {word} {name}{flag} -o yaml --show-managed-fields"
            ));
        if let Some(rival) = rival {
            causes.push(cause.because(rival_cause(rival)));
            continue;
        }
        let may_be_kept = controller.is_none() && kind == "CustomResourceDefinition";
        let cause = if may_be_kept {
            cause.remedy("if an uninstallation kept it, install the extension with the name in its label olm.operatorframework.io/owner-name")
        } else {
            cause
        };
        causes.push(cause.remedy(format!(
            "{}; the rollout then goes on: kubectl delete {word} {name}{flag}",
            delete_condition(kind)
        )));
    }
    if causes.is_empty() {
        causes.push(Cause::new(format!("objects belong to something else: {reports}")));
    }
    causes
}

/// The cause of collisions with the objects of another ClusterExtension. Nothing of them may be deleted by hand: the
/// other one would write it again.
fn rival_cause(rival: &str) -> Cause {
    Cause::new(format!("ClusterExtension {rival} is for the same package"))
        .remedy(format!("keep one of them; see: mainstay why clusterextension/{rival}"))
}

/// When an object of a kind may be deleted: a CustomResourceDefinition takes the objects of its kind along.
fn delete_condition(kind: &str) -> &'static str {
    if kind == "CustomResourceDefinition" {
        "if nothing needs it, and all objects of its kind may be lost, delete it"
    } else {
        "if nothing needs it, delete it"
    }
}

/// Kind, namespace and name in a title such as `Deployment.apps/v1 NAMESPACE/NAME`.
pub(super) fn titled_object(title: &str) -> Option<(&str, &str, &str)> {
    let (kind, place) = title.split_once(' ')?;
    let (namespace, name) = place.split_once('/')?;
    Some((kind.split('.').next()?, namespace, name))
}

/// Name and namespace of a ServiceAccount that does not exist.
fn missing_account(message: &str) -> Option<(&str, &str)> {
    let (name, rest) = quoted_prefix(message.strip_prefix("service account ")?)?;
    let (namespace, _) = quoted_prefix(rest.strip_prefix(" not found in namespace ")?)?;
    Some((name, namespace))
}

/// A namespace that does not exist, in a message of the API server or of OLM v1.
fn missing_namespace(message: &str) -> Option<&str> {
    let (at, rest) = ["namespaces \"", "namespace \""].iter().find_map(|text| {
        let at = message.find(text)?;
        Some((at, &message[at + text.len() - 1..]))
    })?;
    let is_word = at == 0 || !message[..at].ends_with(|sign: char| sign.is_alphanumeric());
    let (namespace, rest) = quoted_prefix(rest)?;
    (is_word && rest.starts_with(" not found")).then_some(namespace)
}
