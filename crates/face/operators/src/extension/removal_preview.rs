//! Preview of a deletion: the objects that go with a ClusterExtension, and the objects of its kinds.

use super::owned::{account_objects, hidden_note, object_text, owned_objects};
use super::state;
use mainstay_api::names::olm_v1::is_kept;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError};
use mainstay_command::exit::CommandFailure;
use mainstay_command::text::{count, escape_controls};
use mainstay_object::Object;
use mainstay_removal::OperatorCrd;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The number of objects in a page of a list.
const PAGE: u32 = 500;

/// What goes with a ClusterExtension.
pub(super) struct RemovalPreview<'e> {
    extension: &'e Object,
    crds: Vec<RemovedCrd>,
    /// The other objects.
    objects: Vec<String>,
    /// The objects that stay, because of the annotation `helm.sh/resource-policy`.
    kept: Vec<String>,
    /// The kinds that the account may not list.
    hidden: Vec<String>,
    hides_crds: bool,
}

/// A CustomResourceDefinition that goes, with the objects of its kind.
struct RemovedCrd {
    name: String,
    kind: String,
    counted: ObjectCount,
}

/// The number of objects of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ObjectCount {
    /// All objects; none if the account may not list them.
    all: Option<usize>,
    /// Those with finalizers, which only the operator removes.
    with_finalizers: usize,
}

impl<'e> RemovalPreview<'e> {
    /// Reads what goes with a ClusterExtension.
    ///
    /// # Errors
    /// The cluster does not respond.
    pub(super) async fn read(
        cluster: &impl ClusterHandle,
        extension: &'e Object,
    ) -> Result<Self, CommandFailure> {
        let owned = owned_objects(cluster, extension.name()).await?;
        let hides_crds = owned.hides_crds();
        let mut preview = Self {
            extension,
            crds: Vec::new(),
            objects: Vec::new(),
            kept: Vec::new(),
            hidden: owned.hidden,
            hides_crds,
        };
        for object in owned.objects {
            if is_kept(&object) {
                preview.kept.push(object_text(&object));
                continue;
            }
            if object.kind() != "CustomResourceDefinition" {
                preview.objects.push(object_text(&object));
                continue;
            }
            let crd = OperatorCrd { definition: object, objects: Vec::new() };
            let definition = &crd.definition;
            preview.crds.push(RemovedCrd {
                counted: count_objects(cluster, &crd).await?,
                name: definition.name().to_owned(),
                kind: definition.str(&["spec", "names", "kind"]).unwrap_or_default().to_owned(),
            });
        }
        let account = account_objects(cluster, extension.name()).await?;
        preview.objects.extend(account.iter().map(object_text));
        Ok(preview)
    }

    /// The preview as text.
    pub(super) fn text(&self, dry_run: bool) -> String {
        let name = self.extension.name();
        let mut out = format!("extension {name:?}");
        if let Some(bundle) = state::installed_bundle(self.extension) {
            // Writing to a String does not fail.
            let _ = write!(out, " ({} version {})", bundle.name, bundle.version_text());
        }
        let verb = if dry_run { "would" } else { "will" };
        let _ = writeln!(out, "\n{verb} be deleted:");
        let _ = writeln!(out, "  ClusterExtension {}", escape_controls(name));
        for crd in &self.crds {
            let _ = writeln!(out, "  {}", crd.text());
        }
        if self.hides_crds {
            out.push_str("  its CustomResourceDefinitions, with all their objects\n");
        }
        for object in &self.objects {
            let _ = writeln!(out, "  {}", escape_controls(object));
        }
        if !self.kept.is_empty() {
            let _ =
                writeln!(out, "{verb} be kept, because of the annotation helm.sh/resource-policy:");
        }
        for object in &self.kept {
            let _ = writeln!(out, "  {}", escape_controls(object));
        }
        let stuck: Vec<&RemovedCrd> =
            self.crds.iter().filter(|crd| crd.counted.with_finalizers > 0).collect();
        if !stuck.is_empty() {
            out.push_str("deletion may never finish:\n");
        }
        for RemovedCrd { name, kind, counted } in stuck {
            let number = counted.with_finalizers;
            let verb = if number == 1 { "has" } else { "have" };
            let _ = writeln!(
                out,
                "  {} {verb} finalizers, which only the running operator removes",
                count(number, &format!("{kind} object"))
            );
            let _ = writeln!(out, "    → delete them first: kubectl delete {name} --all -A");
        }
        out.push_str(&hidden_note(&self.hidden));
        out
    }

    /// The preview as a value.
    pub(super) fn value(&self) -> Value {
        let crds = self.crds.iter().map(|crd| {
            json!({
                "name": crd.name,
                "kind": crd.kind,
                "objects": crd.counted.all,
                "objectsWithFinalizers": crd.counted.with_finalizers,
            })
        });
        json!({
            "name": self.extension.name(),
            "customResourceDefinitions": crds.collect::<Vec<_>>(),
            "objects": self.objects,
            "kept": self.kept,
            "hidden": self.hidden,
        })
    }
}

impl RemovedCrd {
    fn text(&self) -> String {
        let objects = match self.counted.all {
            None => "with all its objects, which this account may not list".to_owned(),
            Some(0) => "which has no objects".to_owned(),
            Some(number) => format!("with its {}", count(number, "object")),
        };
        let kind = &self.kind;
        escape_controls(&format!("CustomResourceDefinition {} ({kind}), {objects}", self.name))
    }
}

/// Counts the objects of a CustomResourceDefinition, page by page.
async fn count_objects(
    cluster: &impl ClusterHandle,
    crd: &OperatorCrd,
) -> Result<ObjectCount, CommandFailure> {
    let Some(kind) = crd.resource() else { return Ok(ObjectCount::default()) };
    let (mut all, mut with_finalizers) = (0, 0);
    let mut continue_token = String::new();
    loop {
        let page = match cluster.list_page(&kind, PAGE, &continue_token).await {
            Ok(page) => page,
            Err(ClusterReadError::UnknownKind(_)) => break,
            Err(ClusterReadError::Forbidden(_)) => return Ok(ObjectCount::default()),
            Err(error) => return Err(error.into()),
        };
        all += page.objects.len();
        with_finalizers +=
            page.objects.iter().filter(|object| object.finalizers().next().is_some()).count();
        continue_token = page.continue_token;
        if continue_token.is_empty() {
            break;
        }
    }
    Ok(ObjectCount { all: Some(all), with_finalizers })
}
