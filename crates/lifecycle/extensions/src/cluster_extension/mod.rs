//! ClusterExtensions: resolved, rendered, applied, repaired, reported.
//!
//! ```text
//! ClusterExtension ─┐                             ┌─► nothing new: objects are repaired
//! catalogs ─────────┼─► resolve ─► pull, render ──┼─► install ─┐
//! releases ─────────┘                             └─► upgrade ─┴─► objects, release, status
//! ```
//!
//! A bundle with dependencies is refused, unless an annotation accepts it ([`dependencies`]).
//!
//! With the feature `object_sets`, what is installed is written in ClusterObjectSets ([`object_sets`]), whose
//! controller writes the objects. Otherwise what is installed is written in Secrets in the form of Helm releases ([`mainstay_releases`]), where
//! OpenShift's tools and upstream's controller read it. A killed process resumes from them and from the
//! objects. A reconciliation whose input did not change sends no request.
//!
//! With the trust mode `approved`, the controller also keeps the account that writes the objects
//! ([`approved`]).

mod account;
mod apply;
mod approved;
mod attempt;
mod bundle;
mod controller;
mod dependencies;
mod failure;
mod finalizers;
mod managed;
mod memory;
mod object_sets;
mod preflight;
mod readiness;
mod releases;
mod renewals;
mod resolve;
mod retained_objects;
mod status;
mod turns;
mod webhook_certificates;
mod writes;

pub(crate) use apply::ObjectKey;
pub(crate) use approved::{ApprovedAccounts, find_account};
pub(crate) use controller::register;
pub(crate) use dependencies::EstablishedCrds;
pub(crate) use managed::ManagedObjects;
pub(crate) use readiness::DeploymentState;
pub(crate) use releases::ReleaseHead;
pub(crate) use retained_objects::{release_objects, release_patch};
pub(crate) use turns::Turns;

/// The kind of the owner of objects.
const OWNER_KIND: &str = "ClusterExtension";
