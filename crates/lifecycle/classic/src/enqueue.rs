//! Helpers for watches that several controllers share: relevant changes and owners of objects.

use crate::fields::Csv;
use mainstay_api::names;
use mainstay_client::Changed;
use mainstay_controller::either_side;
use mainstay_object::NamespacedName;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a CSV waits for further changes around it, which often come together.
pub(crate) const ENQUEUE_DELAY: Duration = Duration::from_millis(30);

/// The key of the namespace of an object.
pub(crate) fn namespace_key(key: &NamespacedName) -> NamespacedName {
    NamespacedName::cluster(Arc::clone(&key.namespace))
}

/// Whether a CSV that is not a copied one was created or deleted, or changed in more fields than
/// only copied CSVs show.
pub(crate) fn csv_changed(change: &Changed<'_, Csv>) -> bool {
    if either_side(change).all(|csv| csv.is_copy()) {
        return false;
    }
    let both = change.before.zip(change.after);
    both.is_none_or(|(before, after)| after.differs_from(before))
}

/// The owner that `olm.owner` labels name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LabelledOwner {
    /// A CSV: the original, even if the labels are those of a copied CSV.
    Csv(NamespacedName),
    /// An OperatorGroup.
    OperatorGroup(NamespacedName),
}

impl LabelledOwner {
    /// The owner that labels name, if they name one.
    pub(crate) fn of(labels: &BTreeMap<String, String>) -> Option<Self> {
        let label = |key: &str| labels.get(key).map(String::as_str);
        let (name, namespace) = (label(names::OWNER)?, label(names::OWNER_NAMESPACE)?);
        let key = NamespacedName::new(label(names::COPIED_FROM).unwrap_or(namespace), name);
        Some(match label(names::OWNER_KIND) {
            Some("OperatorGroup") => Self::OperatorGroup(key),
            _ => Self::Csv(key),
        })
    }
}
