//! Which objects of a collection a list or watch is about.

use crate::convert;
use crate::http::query::Query;
use crate::registry::{KindRow, Source};
use mainstay_object::selector::{FieldSelector, FieldTerm, LabelSelector};
use mainstay_object::{Object, Status};
use mainstay_store::Stored;
use std::borrow::Cow;
use std::sync::Arc;

/// A namespace, a name, labels and fields. Everything but fields is decided without decoding.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    row: Arc<KindRow>,
    /// Namespace of the path, or that the field selector demands; none for all.
    pub(crate) namespace: Option<String>,
    /// Name that the field selector demands.
    pub(crate) name: Option<String>,
    labels: LabelSelector,
    fields: Vec<FieldTerm>,
}

impl Filter {
    /// Reads `labelSelector` and `fieldSelector`; refuses fields that the kind cannot select by.
    pub(crate) fn read(row: &Arc<KindRow>, namespace: &str, query: &Query) -> Result<Self, Status> {
        let bad = |error: mainstay_object::selector::SelectorError| Status::bad_request(error.0);
        let labels =
            LabelSelector::parse(query.text("labelSelector").unwrap_or_default()).map_err(bad)?;
        let fields =
            FieldSelector::parse(query.text("fieldSelector").unwrap_or_default()).map_err(bad)?;
        let mut filter = Self {
            row: row.clone(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: None,
            labels,
            fields: Vec::new(),
        };
        for term in fields.terms() {
            filter.add(term)?;
        }
        Ok(filter)
    }

    fn add(&mut self, term: &FieldTerm) -> Result<(), Status> {
        match term.path.as_str() {
            "metadata.name" if !term.negated && self.name.is_none() => {
                self.name = Some(term.value.clone());
            }
            "metadata.namespace"
                if !term.negated && self.namespace.is_none() && self.row.is_namespaced() =>
            {
                self.namespace = Some(term.value.clone());
            }
            "metadata.name" | "metadata.namespace" => self.fields.push(term.clone()),
            path => {
                let path = self.supported(path).ok_or_else(|| self.unsupported(path))?;
                self.fields.push(FieldTerm { path, ..term.clone() });
            }
        }
        Ok(())
    }

    fn unsupported(&self, path: &str) -> Status {
        let plain = matches!(self.row.source, Source::BuiltIn(_))
            && self.row.strategy.selectable_fields().is_empty();
        Status::bad_request(if plain {
            format!(
                "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )
        } else {
            format!("field label not supported: {path}")
        })
    }

    /// The path as the stored form has it, if the kind can select by it.
    fn supported(&self, path: &str) -> Option<String> {
        match &self.row.source {
            Source::BuiltIn(_) => {
                let renamed = if &*self.row.storage == "events" && !convert::is_identity(&self.row)
                {
                    convert::event_field(path)
                } else {
                    None
                };
                let path = renamed.unwrap_or_else(|| path.to_owned());
                self.row.strategy.selectable_fields().contains(&path.as_str()).then_some(path)
            }
            Source::Custom(custom) => custom
                .version()
                .selectable_fields
                .iter()
                .any(|field| field.strip_prefix('.').unwrap_or(field) == path)
                .then(|| path.to_owned()),
        }
    }

    /// Whether only labels or fields narrow the collection: then what remains cannot be counted.
    pub(crate) fn has_selectors(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_empty() || self.name.is_some()
    }

    /// Whether it selects every object of its namespace.
    pub(crate) fn selects_all(&self) -> bool {
        !self.has_selectors()
    }

    /// Whether an object belongs.
    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| *namespace == *stored.key.namespace)
            && self.name.as_deref().is_none_or(|name| *name == *stored.key.name)
            && stored.matches(&self.labels)
            && self.matches_fields(stored)
    }

    fn matches_fields(&self, stored: &Stored) -> bool {
        let mut decoded: Option<Object> = None;
        self.fields.iter().all(|term| {
            let value = match term.path.as_str() {
                "metadata.name" => Cow::Borrowed(&*stored.key.name),
                "metadata.namespace" => Cow::Borrowed(&*stored.key.namespace),
                path => {
                    let object =
                        decoded.get_or_insert_with(|| convert::stored_form(&self.row, stored));
                    Cow::Owned(self.row.strategy.field(object, path).into_owned())
                }
            };
            (*value == *term.value) != term.negated
        })
    }
}
