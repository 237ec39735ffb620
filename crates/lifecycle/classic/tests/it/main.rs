//! End-to-end tests of OLM classic on the embedded cluster: from a catalog folder to running Pods.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

mod api_service_leftovers;
mod api_services;
mod catalogs;
mod chaos;
mod copied_csvs;
mod csv_replacement;
mod dependencies;
mod images;
mod install_plans;
mod installs;
mod large_bundles;
mod metrics;
mod network;
mod olm_cluster;
mod operator_group_lifecycle;
mod operator_groups;
mod operator_hub;
mod operators;
mod permissions;
mod registry;
mod requirements;
mod simulated_nodes;
mod spec_catalogs;
mod spec_crds;
mod spec_csvs;
mod spec_install_plans;
mod spec_operator_groups;
mod spec_removal;
mod spec_rows;
mod spec_subscriptions;
mod spec_upgrades;
mod subscription_order;
mod tenants;
mod unpack_jobs;
mod upstream_catalogs;
mod upstream_operator_groups;
mod upstream_subscriptions;
mod user_csv_webhooks;
mod user_csvs;
mod webhooks;
mod without_retries;
