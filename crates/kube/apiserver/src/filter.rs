//! Which objects of a collection a list or watch is about.

use mainstay_conversion::forms;
use mainstay_kinds::{KindRow, KindSource};
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
    /// Whether a selector was given at all: then what remains of a list is not counted.
    selects: bool,
    labels: LabelSelector,
    fields: Vec<FieldTerm>,
}

impl Filter {
    /// Narrows a collection by selectors; refuses fields that the kind cannot select by.
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
            selects: !labels.is_everything() || !fields.is_everything(),
            labels,
            fields: Vec::new(),
        };
        for term in fields.terms() {
            filter.add(term)?;
        }
        Ok(filter)
    }

    fn add(&mut self, term: &FieldTerm) -> Result<(), Status> {
        let path = self.row.strategy.field_of_alias(&term.path);
        match path {
            "metadata.name" if !term.negated && self.name.is_none() => {
                self.name = Some(term.value.clone());
            }
            "metadata.namespace" if !self.knows_namespace() => return Err(self.unsupported(path)),
            "metadata.namespace"
                if !term.negated && self.namespace.is_none() && self.row.is_namespaced() =>
            {
                self.namespace = Some(term.value.clone());
            }
            "metadata.name" | "metadata.namespace" => {
                self.fields.push(FieldTerm { path: path.to_owned(), ..term.clone() });
            }
            path => {
                let path = self.supported(path).ok_or_else(|| self.unsupported(path))?;
                self.fields.push(FieldTerm { path, ..term.clone() });
            }
        }
        Ok(())
    }

    /// Whether the kind can be selected by namespace. The usual list of fields has it even for kinds
    /// that have none; a list of a kind's own does not.
    fn knows_namespace(&self) -> bool {
        self.row.is_namespaced()
            || (self.row.custom().is_none() && self.row.strategy.selectable_fields().is_empty())
    }

    fn unsupported(&self, path: &str) -> Status {
        let plain = matches!(self.row.source, KindSource::BuiltIn(_))
            && self.row.strategy.selectable_fields().is_empty();
        let usual = || {
            if plain {
                return format!(
                    "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                );
            }
            format!("field label not supported: {path}")
        };
        Status::bad_request(self.row.strategy.unknown_field(&self.row, path).unwrap_or_else(usual))
    }

    /// The path as the stored form has it, if the kind can select by it.
    fn supported(&self, path: &str) -> Option<String> {
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

    /// Whether it selects every object of its namespace.
    pub(crate) fn selects_all(&self) -> bool {
        !self.selects && self.name.is_none()
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
                        decoded.get_or_insert_with(|| forms::stored_form(&self.row, stored));
                    Cow::Owned(self.row.strategy.field(object, path).into_owned())
                }
            };
            (*value == *term.value) != term.negated
        })
    }
}
