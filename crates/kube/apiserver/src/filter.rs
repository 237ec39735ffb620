//! Filters of lists and watches.

use mainstay_conversion::forms;
use mainstay_kinds::{KindRow, KindSource};
use mainstay_object::selector::{FieldSelector, FieldTerm, LabelSelector};
use mainstay_object::{Object, Status};
use mainstay_store::Stored;
use std::borrow::Cow;
use std::sync::Arc;

/// Filter by namespace, name, labels and fields. Only fields require decoding the object.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    row: Arc<KindRow>,
    /// Namespace of the path or of the field selector; none for all.
    pub(crate) namespace: Option<String>,
    /// Name in the field selector.
    pub(crate) name: Option<String>,
    /// Whether the request has a selector; such a list reports no `remainingItemCount`.
    has_selector: bool,
    labels: LabelSelector,
    fields: Vec<FieldTerm>,
}

impl Filter {
    /// Builds the filter of a list or watch; refuses fields that the kind cannot select by.
    pub(crate) fn new(
        row: &Arc<KindRow>,
        namespace: &str,
        labels: LabelSelector,
        fields: &FieldSelector,
    ) -> Result<Self, Status> {
        let mut filter = Self {
            row: row.clone(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: None,
            has_selector: !labels.is_everything() || !fields.is_everything(),
            labels,
            fields: Vec::new(),
        };
        for term in fields.terms() {
            filter.add_term(term)?;
        }
        Ok(filter)
    }

    fn add_term(&mut self, term: &FieldTerm) -> Result<(), Status> {
        let path = self.row.strategy.field_of_alias(&term.path);
        match path {
            "metadata.name" if !term.negated && self.name.is_none() => {
                self.name = Some(term.value.clone());
            }
            "metadata.namespace" if !self.can_select_namespace() => {
                return Err(self.unsupported_field(path));
            }
            "metadata.namespace"
                if !term.negated && self.namespace.is_none() && self.row.is_namespaced() =>
            {
                self.namespace = Some(term.value.clone());
            }
            "metadata.name" | "metadata.namespace" => {
                self.fields.push(FieldTerm { path: path.to_owned(), ..term.clone() });
            }
            path => {
                let path =
                    self.selectable_path(path).ok_or_else(|| self.unsupported_field(path))?;
                self.fields.push(FieldTerm { path, ..term.clone() });
            }
        }
        Ok(())
    }

    /// Whether the kind supports `metadata.namespace`. The default fields include it even for
    /// cluster-scoped kinds; a kind's own list of fields does not.
    fn can_select_namespace(&self) -> bool {
        self.row.is_namespaced()
            || (self.row.custom().is_none() && self.row.strategy.selectable_fields().is_empty())
    }

    fn unsupported_field(&self, path: &str) -> Status {
        let has_default_fields = matches!(self.row.source, KindSource::BuiltIn(_))
            && self.row.strategy.selectable_fields().is_empty();
        let default_message = || {
            if has_default_fields {
                return format!(
                    "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                );
            }
            format!("field label not supported: {path}")
        };
        Status::bad_request(
            self.row.strategy.unknown_field(&self.row, path).unwrap_or_else(default_message),
        )
    }

    /// The path in the stored form, if the kind can select by it.
    fn selectable_path(&self, path: &str) -> Option<String> {
        match &self.row.source {
            KindSource::BuiltIn(_) => {
                let path = if &*self.row.storage == "events" && !forms::is_identity(&self.row) {
                    forms::event_field(path)?
                } else {
                    path.to_owned()
                };
                self.row.strategy.selectable_fields().contains(&path.as_str()).then_some(path)
            }
            KindSource::Custom(custom) => custom
                .version()
                .selectable_fields
                .iter()
                .any(|field| field.strip_prefix('.').unwrap_or(field) == path)
                .then(|| path.to_owned()),
        }
    }

    /// Whether the filter selects every object of its namespace.
    pub(crate) fn selects_all(&self) -> bool {
        !self.has_selector && self.name.is_none()
    }

    /// Whether the filter selects an object.
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
                        decoded.get_or_insert_with(|| forms::stored_form(&self.row, stored));
                    Cow::Owned(self.row.strategy.field(object, path).into_owned())
                }
            };
            (*value == *term.value) != term.negated
        })
    }
}
