//! JSON format of worlds and outcomes: for bug reports, recorded tests and other programs.
//!
//! ```text
//! text ─ parse ─► Universe (plain data) ─ world ─► World ─ resolve ─► Outcome ─ to_json, report ─► JSON
//!                     ▲                             │
//!                     └─────────── of ──────────────┘
//! ```
//!
//! A [`Universe`] is the resolution input of one namespace. A catalog has its content in plain
//! data, or the name of a published catalog, whose content the caller passes along.
//!
//! ```
//! use mainstay_resolver::{resolve, universe};
//!
//! let universe = universe::parse(
//!     r#"{"namespace": "operators", "globalNamespace": "olm",
//!         "operatorGroups": [{"name": "group"}],
//!         "catalogs": [{"name": "shop", "namespace": "olm",
//!             "packages": [{"name": "tea", "defaultChannel": "stable",
//!                           "channels": [{"name": "stable", "entries": [{"name": "tea.v1"}]}]}],
//!             "bundles": [{"name": "tea.v1", "package": "tea", "version": "1.0.0"}]}],
//!         "subscriptions": [{"name": "sub", "package": "tea",
//!                            "source": "shop", "sourceNamespace": "olm"}]}"#,
//! )?;
//! let snapshots = universe.snapshots();
//! let outcome = resolve(&universe.world(&snapshots, &Default::default())?);
//! assert_eq!(universe::to_json(&outcome)["install"][0], "tea.v1");
//! # Ok::<(), universe::UniverseError>(())
//! ```

mod data;
mod outcome;
mod read;
mod world;

pub use data::{
    ApiData, BundleData, CatalogData, ChannelData, CsvData, DemandData, EntryData, GroupData,
    PackageData, ProhibitionData, PropertyData, SubscriptionData, Universe,
};
pub use outcome::{cause_json, failure_json, report, to_json};
pub use read::{UniverseError, locate, parse};
pub use world::RealCatalog;
