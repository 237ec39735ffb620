//! Tests of the command line: arguments in, text and exit code out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod baselines;
mod builds;
mod bundle_render;
mod bundle_validate;
mod catalog_graph;
mod catalog_queries;
mod catalog_show;
mod catalog_validate;
mod catalog_validate_bundles;
mod cluster_catalogs;
mod crd;
mod crd_upgrades;
mod extension_approve;
mod extension_commands;
mod extension_dependencies;
mod extension_history;
mod extension_rbac;
mod extensions;
mod full_disk;
mod help;
mod images;
mod live_cluster;
mod migrate;
mod recorded_cluster;
mod resolve;
mod states;
mod uninstall;
mod uninstall_olm_v1;
mod universes;
mod upgrade_paths;
mod why;
mod why_olm_v1;
