//! ClusterCatalogs and ClusterExtensions on a cluster in this process.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod approved_accounts;
mod approved_authors;
mod bundles;
mod certificate_renewals;
mod chaos;
mod cluster_catalogs;
mod cluster_extensions;
mod dependencies;
mod extension_kills;
mod extensions;
mod hostile;
mod kept_definitions;
mod kills;
mod object_sets;
mod olm_cluster;
mod policies;
mod recovery;
mod registry;
mod replicas;
mod revisions;
mod scenarios;
mod spec_fields;
mod spec_lifecycle;
mod webhook_certificates;
mod webhooks;
