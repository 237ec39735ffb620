//! What both APIs read: a sound catalog and the tables that make questions cheap.

use mainstay_catalog::Catalog;
use std::{sync::Arc, time::SystemTime};

/// The content of a served catalog. Immutable; shared by all readers.
#[derive(Debug)]
pub struct Index {
    catalog: Arc<Catalog>,
    modified: SystemTime,
}

impl Index {
    /// The index of a catalog whose content is from `modified`.
    pub fn new(catalog: Arc<Catalog>, modified: SystemTime) -> Self {
        Self { catalog, modified }
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// When the content became what it is.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }
}
