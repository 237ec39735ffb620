//! Operators on the embedded cluster, from a folder with a catalog to running Pods.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

mod apiservices;
mod catalogs;
mod chaos;
mod copies;
mod dependencies;
mod groups;
mod hub;
mod images;
mod installs;
mod jobs;
mod large;
mod metrics;
mod network;
mod permissions;
mod plans;
mod prompt;
mod registry;
mod rows;
mod rows_catalogs;
mod rows_definitions;
mod rows_groups;
mod rows_leaving;
mod rows_plans;
mod rows_subscriptions;
mod rows_upgrades;
mod rows_versions;
mod webhooks;
mod world;
