//! Strategy of a kind: defaults, fields that clients may not set, validation, selectable fields.
//!
//! The handlers do what all kinds have in common. A kind without rules of its own has the
//! [`DefaultStrategy`].

use crate::KindRow;
use crate::allocator::Reservations;
use mainstay_auth::Identity;
use mainstay_clock::Clock;
use mainstay_object::{FieldError, Gvk, Object, Objects, Status, names};
use std::borrow::Cow;

/// The strategy of a built-in kind, by the version that is stored.
pub type StrategyOf = fn(&Gvk) -> &'static dyn Strategy;

/// The parts of request and server that a strategy reads besides the object.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// User of the request.
    pub identity: &'a Identity,
    /// The clock.
    pub clock: &'a Clock,
    /// The stored objects, for references.
    pub objects: &'a dyn Objects,
    /// Service IPs and node ports that the request reserves.
    pub reservations: &'a Reservations,
    /// The kind.
    pub row: &'a KindRow,
    /// Subresource written to; empty for the object itself.
    pub subresource: &'a str,
}

/// The target of a write, for rules that depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteTarget<'a> {
    /// Group of the request's row: `events.k8s.io` has stricter rules for events.
    pub group: &'a str,
    /// Subresource written to; empty for the object itself.
    pub subresource: &'a str,
}

/// The checks of metadata that a kind's own validation repeats on an update.
///
/// Upstream checks metadata in common code and again in the validation of most kinds. So one mistake
/// has several causes, whose number and order clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataChecks {
    /// None; on creation the object's other rules come first.
    Common,
    /// Immutable fields.
    Changes,
    /// Immutable fields, then all fields.
    ChangesThenWhole,
    /// All fields, then immutable fields.
    WholeThenChanges,
    /// All fields.
    Whole,
    /// All fields, twice.
    WholeTwice,
}

/// The metadata that a write of the status may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// All that a write of the whole object may change.
    Free,
    /// All but labels.
    NotLabels,
    /// All but owner references.
    NotOwners,
    /// All but labels, annotations, finalizers and owner references.
    Unlisted,
    /// None.
    None,
}

/// Fields that a write does not change and that it makes its sender no manager of: dotted paths
/// (`resetFields` in upstream).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetFields {
    /// For a write of the whole object, if the kind has a status.
    pub update: &'static [&'static str],
    /// For a write of the status.
    pub status: &'static [&'static str],
}

impl ResetFields {
    /// The fields that follow from the metadata that a write of the status may change.
    pub const fn for_status_metadata(metadata: StatusMetadata) -> Self {
        let status: &[&str] = match metadata {
            StatusMetadata::Free => &["spec"],
            StatusMetadata::NotOwners => {
                &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"]
            }
            StatusMetadata::NotLabels => &["spec", "metadata.labels"],
            StatusMetadata::Unlisted | StatusMetadata::None => &["spec", "metadata"],
        };
        Self { update: &["status"], status }
    }
}

/// The default propagation policy: what a deletion does with the object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// The garbage collector deletes them afterwards.
    Collected,
    /// They stay, for compatibility with the time before garbage collection.
    Orphaned,
    /// Nothing, whatever policy the client sets: the kind never waits for the garbage collector.
    Ignored,
}

/// How objects of a kind are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Whether the response is the deleted object and not a success status.
    pub returns_object: bool,
    /// The propagation policy if the client sets none.
    pub dependents: Dependents,
    /// Whether an object is first marked as terminating for a grace period
    /// (`spec.terminationGracePeriodSeconds`).
    pub has_grace_period: bool,
    /// The warning for a client that sets no propagation policy; may be empty.
    pub warning: &'static str,
}

impl Deletion {
    /// The deletion of most kinds.
    pub const ORDINARY: Self = Self {
        returns_object: false,
        dependents: Dependents::Collected,
        has_grace_period: false,
        warning: "",
    };
}

/// The rules of one kind. The default of each method is right for most kinds.
///
/// Order on create: `default`, `prepare_create`, `validate`. On update: `default`,
/// `prepare_update`, `validate`. Before that, the handlers do what all kinds have in common:
/// metadata, status, finalizers.
pub trait Strategy: Send + Sync + 'static {
    /// The rules that a name breaks; empty for a valid name.
    fn name_problems(&self, name: &str) -> Vec<String> {
        names::dns1123_subdomain(name)
    }

    /// Whether `metadata.generation` counts changes of the desired state.
    fn counts_generations(&self) -> bool {
        true
    }

    /// Whether a new object keeps the status that the client sent, although the kind has a status
    /// subresource: nodes register with a status.
    fn keeps_status_on_create(&self) -> bool {
        false
    }

    /// Whether a PUT of a missing object creates it.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT without `resourceVersion` is allowed.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Sets defaults. It also runs on stored objects, so it must be idempotent and depend on the
    /// object alone.
    fn default(&self, object: &mut Object) {
        let _ = object;
    }

    /// Sets and drops fields that clients do not control on creation: allocated addresses, initial
    /// status.
    fn prepare_create(&self, object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
        let _ = (object, context);
        Ok(())
    }

    /// As `prepare_create`, for an update: `object` replaces the stored `old`.
    fn prepare_update(
        &self,
        object: &mut Object,
        old: &Object,
        context: &Context<'_>,
    ) -> Result<(), Status> {
        let _ = (object, old, context);
        Ok(())
    }

    /// The checks of metadata that the kind repeats on an update.
    fn metadata(&self) -> MetadataChecks {
        MetadataChecks::Changes
    }

    /// The errors of the object outside of its metadata; `old` on update.
    fn validate(
        &self,
        object: &Object,
        old: Option<&Object>,
        target: WriteTarget<'_>,
    ) -> Vec<FieldError> {
        let _ = (object, old, target);
        Vec::new()
    }

    /// Warnings for the client; `old` on update.
    fn warnings(
        &self,
        object: &Object,
        old: Option<&Object>,
        target: WriteTarget<'_>,
    ) -> Vec<String> {
        let _ = (object, old, target);
        Vec::new()
    }

    /// Selectable fields besides `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The value of one of [`Strategy::selectable_fields`]; the empty string if absent.
    fn field<'a>(&self, object: &'a Object, path: &str) -> Cow<'a, str> {
        let segments: Vec<&str> = path.split('.').collect();
        match object.get(&segments) {
            Some(serde_json::Value::String(text)) => Cow::Borrowed(text),
            Some(serde_json::Value::Null) | None => Cow::Borrowed(""),
            Some(other) => Cow::Owned(other.to_string()),
        }
    }

    /// The present name of a selectable field that also has an older name.
    fn field_of_alias<'a>(&self, path: &'a str) -> &'a str {
        path
    }

    /// The message for a field that is not selectable; none for the usual message.
    fn unknown_field(&self, row: &KindRow, path: &str) -> Option<String> {
        let _ = (row, path);
        None
    }

    /// The metadata that a write of the status may change.
    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::Free
    }

    /// Fields that a write makes its sender no manager of; none for kinds without such a rule.
    fn reset_fields(&self) -> Option<ResetFields> {
        Some(ResetFields::for_status_metadata(self.status_metadata()))
    }

    /// Fields besides the status that an update of the whole object does not change: only a
    /// subresource changes them, or nothing.
    fn kept_on_update(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Whether an update increments the generation although the spec is equal.
    fn counts_as_change(&self, sent: &Object) -> bool {
        let _ = sent;
        false
    }

    /// Whether defaults are set again after validation, for fields that creation added.
    fn defaults_after_validation(&self) -> bool {
        false
    }

    /// How objects are deleted.
    fn deletion(&self) -> Deletion {
        Deletion::ORDINARY
    }

    /// The kind's own mark of a terminating object, without grace period and new generation; none for
    /// most kinds.
    fn deletion_mark(&self) -> Option<fn(&mut Object)> {
        None
    }

    /// Whether something besides `metadata.finalizers` delays the deletion of an object.
    fn holds_deletion(&self, object: &Object) -> bool {
        let _ = object;
        false
    }

    /// The prefix of the kind's keys in upstream's etcd, if it is not the plural.
    fn storage_prefix(&self) -> Option<&'static str> {
        None
    }

    /// Sorts the rows of a table, which come in order of names.
    fn sort_table(&self, objects: &mut [Object]) {
        let _ = objects;
    }
}

/// The strategy of a kind without rules of its own.
#[derive(Clone, Copy, Debug)]
pub struct DefaultStrategy;

impl Strategy for DefaultStrategy {}
