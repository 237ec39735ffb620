//! Strategy of a kind: defaults, what clients may not set, validation, fields to select by.
//!
//! Everything that all kinds have in common is in the handlers; a kind without anything special has
//! [`Plain`].

use crate::KindRow;
use crate::allocator::Reservations;
use mainstay_auth::Identity;
use mainstay_clock::Clock;
use mainstay_object::{FieldError, Gvk, Object, Objects, Status, names};
use std::borrow::Cow;

/// The strategy of a built-in kind, by the version that is stored.
pub type StrategyOf = fn(&Gvk) -> &'static dyn Strategy;

/// Request and server, as far as a strategy depends on them besides the object.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// User of the request.
    pub identity: &'a Identity,
    /// The time.
    pub clock: &'a Clock,
    /// What the store holds: referred-to objects.
    pub objects: &'a dyn Objects,
    /// Service IPs and node ports that the request reserves.
    pub reservations: &'a Reservations,
    /// The kind.
    pub row: &'a KindRow,
    /// Subresource written to; empty for the object itself.
    pub subresource: &'a str,
}

/// Target of a write, for rules that depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target<'a> {
    /// Group of the request's row: events are checked more strictly in theirs.
    pub group: &'a str,
    /// Subresource written to; empty for the object itself.
    pub subresource: &'a str,
}

/// What a kind's own rules say of metadata on an update, besides what holds for every kind.
///
/// The original checks metadata once in common code and again in most kinds' own, so that one
/// mistake has several causes; how many, and in which order, clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// Nothing more; on creation the object's other rules come first.
    Common,
    /// What may change.
    Changes,
    /// What may change, then everything.
    ChangesThenWhole,
    /// Everything, then what may change.
    WholeThenChanges,
    /// Everything.
    Whole,
    /// Everything, and once more.
    WholeTwice,
}

/// What a write of the status may do to metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// Whatever a write of the whole object may do.
    Free,
    /// Everything but labels.
    NotLabels,
    /// Everything but owners.
    NotOwners,
    /// Nothing to labels, annotations, finalizers and owners.
    Kept,
    /// Nothing at all.
    Untouched,
}

/// Fields of which a write makes its sender no manager, with dots between their names: those that it
/// leaves as they are (`resetFields` of the original).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetFields {
    /// Of a write of the whole object, if the kind has a status.
    pub update: &'static [&'static str],
    /// Of a write of the status.
    pub status: &'static [&'static str],
}

impl ResetFields {
    /// What follows from what a write of the status may do to metadata.
    pub const fn usual(metadata: StatusMetadata) -> Self {
        let status: &[&str] = match metadata {
            StatusMetadata::Free => &["spec"],
            StatusMetadata::NotOwners => {
                &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"]
            }
            StatusMetadata::NotLabels => &["spec", "metadata.labels"],
            StatusMetadata::Kept | StatusMetadata::Untouched => &["spec", "metadata"],
        };
        Self { update: &["status"], status }
    }
}

/// What becomes of an object's dependents when it is deleted and the client does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// The garbage collector deletes them afterwards.
    Collected,
    /// They stay: a promise from before garbage collection.
    Orphaned,
    /// Nothing, whatever the client says: the kind never waits for the garbage collector.
    Ignored,
}

/// How objects of a kind are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Whether the answer is the object as it was, and not a success.
    pub answers_object: bool,
    /// What becomes of dependents if the client does not say.
    pub dependents: Dependents,
    /// Whether an object gets time to end (`spec.terminationGracePeriodSeconds`), with which it is
    /// seen before it goes.
    pub has_grace_period: bool,
    /// What to warn a client of that does not say what becomes of dependents; empty for nothing.
    pub warning: &'static str,
}

impl Deletion {
    /// How objects of an ordinary kind are deleted.
    pub const ORDINARY: Self = Self {
        answers_object: false,
        dependents: Dependents::Collected,
        has_grace_period: false,
        warning: "",
    };
}

/// What is special about a kind. Every method has the answer of an ordinary kind.
///
/// Order on create: `default`, `prepare_create`, `validate`. On update: `default`,
/// `prepare_update`, `validate`. The handlers have already done what is the same for all kinds:
/// metadata, status kept or dropped, finalizers.
pub trait Strategy: Send + Sync + 'static {
    /// The rules that a name breaks; empty when it is good.
    fn name_problems(&self, name: &str) -> Vec<String> {
        names::dns1123_subdomain(name)
    }

    /// Whether `metadata.generation` counts changes of what is wanted.
    fn counts_generations(&self) -> bool {
        true
    }

    /// Whether the status of a new object is what the client sent, although status has its own
    /// subresource: nodes register with theirs.
    fn keeps_status_on_create(&self) -> bool {
        false
    }

    /// Whether a PUT of an object that is not there creates it.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT without `resourceVersion` is allowed.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Sets what the client left out. Also runs on stored objects that are read back, so it must be
    /// idempotent and depend on nothing else.
    fn default(&self, object: &mut Object) {
        let _ = object;
    }

    /// Sets and drops what clients do not decide on creation: allocated addresses, initial status.
    fn prepare_create(&self, object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
        let _ = (object, context);
        Ok(())
    }

    /// The same for an update; `object` is what will be stored, `old` what is.
    fn prepare_update(
        &self,
        object: &mut Object,
        old: &Object,
        context: &Context<'_>,
    ) -> Result<(), Status> {
        let _ = (object, old, context);
        Ok(())
    }

    /// Which rules of metadata the kind repeats on an update.
    fn metadata(&self) -> Metadata {
        Metadata::Changes
    }

    /// The rules that the object breaks, below metadata; `old` on update.
    fn validate(
        &self,
        object: &Object,
        old: Option<&Object>,
        target: Target<'_>,
    ) -> Vec<FieldError> {
        let _ = (object, old, target);
        Vec::new()
    }

    /// What to warn the client of; `old` on update.
    fn warnings(&self, object: &Object, old: Option<&Object>, target: Target<'_>) -> Vec<String> {
        let _ = (object, old, target);
        Vec::new()
    }

    /// Fields to select by, besides `metadata.name` and `metadata.namespace`.
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

    /// What a field is called now that clients may select by under an older name.
    fn field_of_alias<'a>(&self, path: &'a str) -> &'a str {
        path
    }

    /// What is said of a field that objects cannot be selected by; none for the usual words.
    fn unknown_field(&self, row: &KindRow, path: &str) -> Option<String> {
        let _ = (row, path);
        None
    }

    /// What a write of the status may do to metadata.
    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::Free
    }

    /// Fields of which a write makes its sender no manager; none for kinds without such a rule.
    fn reset_fields(&self) -> Option<ResetFields> {
        Some(ResetFields::usual(self.status_metadata()))
    }

    /// Fields that an update of the whole object leaves as they are, besides the status: they are
    /// changed through a subresource, or never.
    fn kept_on_update(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Whether an update counts as a change of what is wanted although nothing differs.
    fn counts_as_change(&self, sent: &Object) -> bool {
        let _ = sent;
        false
    }

    /// Whether defaults are filled in once more after validation, for what creation has made.
    fn defaults_after_validation(&self) -> bool {
        false
    }

    /// How objects are deleted.
    fn deletion(&self) -> Deletion {
        Deletion::ORDINARY
    }

    /// What marks an object that is being deleted in the kind's own way, without grace period and
    /// without a new generation; none for kinds that are deleted as others are.
    fn deletion_mark(&self) -> Option<fn(&mut Object)> {
        None
    }

    /// Whether something besides `metadata.finalizers` holds an object that is being deleted.
    fn holds_deletion(&self, object: &Object) -> bool {
        let _ = object;
        false
    }

    /// Below what the original stores objects in etcd, where that is not the plural.
    fn storage_prefix(&self) -> Option<&'static str> {
        None
    }

    /// Puts the rows of a table in order; they come in order of names.
    fn sort_table(&self, objects: &mut [Object]) {
        let _ = objects;
    }
}

/// An ordinary kind.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Strategy for Plain {}
