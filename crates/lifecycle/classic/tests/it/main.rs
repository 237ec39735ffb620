//! Operators on the embedded cluster, from a folder with a catalog to running Pods.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

mod api_leftovers;
mod apiservices;
mod arrivals;
mod by_hand;
mod catalogs;
mod chaos;
mod copies;
mod dependencies;
mod group_lives;
mod groups;
mod hub;
mod images;
mod installs;
mod jobs;
mod large;
mod metrics;
mod needs;
mod network;
mod operators;
mod permissions;
mod plans;
mod prompt;
mod registry;
mod replaced;
mod rows;
mod rows_catalogs;
mod rows_definitions;
mod rows_groups;
mod rows_leaving;
mod rows_plans;
mod rows_subscriptions;
mod rows_upgrades;
mod rows_versions;
mod simulated;
mod suite_catalogs;
mod suite_groups;
mod suite_subscriptions;
mod tenants;
mod webhook_cases;
mod webhooks;
mod world;
