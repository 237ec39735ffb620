//! What every cluster has before anybody asks.

use super::meta;
use super::part::Part;
use super::track::Tracker;
use crate::Identity;
use crate::convert;
use crate::server::{ApiServer, StartError};
use crate::strategy::Context;
use mainstay_object::{Object, Status, known};
use mainstay_store::{Change, CommitError, Expect, Key};
use std::sync::Arc;

/// The namespaces of every cluster. Nobody may delete them: what runs the cluster lives there, and
/// they are made at start only. (The original lets `kube-node-lease` go, and makes it again.)
pub(super) const NAMESPACES: [&str; 4] =
    ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates the namespaces that every cluster has, where they are not there yet.
pub(crate) async fn namespaces(server: &Arc<ApiServer>) -> Result<(), StartError> {
    for name in NAMESPACES {
        create(server, name)
            .await
            .map_err(|status| StartError::CreateNamespace { name: name.to_owned(), status })?;
    }
    Ok(())
}

async fn create(server: &Arc<ApiServer>, name: &str) -> Result<(), Status> {
    let key = Key::cluster("namespaces", name);
    if server.store.get(&key).is_some() {
        return Ok(());
    }
    let row = server.registry.find("", "v1", "namespaces").ok_or_else(Status::no_such_path)?;
    let mut object = Object::new(&known::NAMESPACE.gvk(), name);
    meta::stamp(server, &mut object);
    let identity = Identity::admin();
    let claim = server.ledger.claim();
    let context = Context {
        identity: &identity,
        clock: &server.clock,
        objects: &server.store,
        claim: &claim,
        row: &row,
        subresource: "",
    };
    row.strategy.default(&mut object);
    Tracker::own(server, &row, Part::Main).created(&mut object, None);
    row.strategy.prepare_create(&mut object, &context)?;
    convert::complete(&row, &mut object);
    let change = Change::Put { key, object: &object, expect: Expect::Absent, guard: None };
    match server.store.commit(change).await {
        Ok(_) | Err(CommitError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(super::write::commit_status(&row, name, &error)),
    }
}
