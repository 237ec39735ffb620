//! Remedies as options of the command line, in place of the resolver's.

use super::failure::content_option;
use mainstay_cause::Cause;
use mainstay_resolver::SuggestedFix;
use mainstay_whatif::{CatalogSnapshots, SnapshotContent};
use serde_json::Value;
use std::collections::HashMap;

/// The options that give content to catalogs, by the resolver's remedy.
#[derive(Clone, Default)]
pub(super) struct Remedies(HashMap<String, String>);

impl Remedies {
    /// The remedies for the catalogs without content.
    pub(super) fn of(catalogs: &CatalogSnapshots) -> Self {
        let mut remedies = Self::default();
        for (key, snapshot) in &catalogs.catalogs {
            let option = match &*snapshot.content {
                SnapshotContent::Ready(..) => continue,
                SnapshotContent::Missing(_) => content_option(key),
                SnapshotContent::Unusable { folder, .. } => format!("correct the folder {folder}"),
            };
            let repair = SuggestedFix::RestoreCatalog { catalog: key.clone() };
            remedies.0.insert(repair.to_string(), option);
        }
        remedies
    }

    /// A cause with these remedies in place of the resolver's.
    pub(super) fn cause(&self, cause: &Cause) -> Cause {
        if self.0.is_empty() {
            return cause.clone();
        }
        let mut copy = Cause::new(cause.what());
        if let Some(place) = cause.location() {
            copy = copy.at(place.clone());
        }
        for remedy in cause.remedies() {
            copy = copy.remedy(self.0.get(remedy).unwrap_or(remedy));
        }
        copy.because_all(cause.children().iter().map(|child| self.cause(child)))
    }

    /// Replaces the remedies in a JSON value.
    pub(super) fn replace_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(option) = self.0.get(text) {
                    text.clone_from(option);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_in(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.replace_in(field)),
            _ => {}
        }
    }
}
