//! A cluster that no kubeconfig names, for commands that need none.

use mainstay_cause::Cause;
use mainstay_command::cluster::{
    CatalogEndpoint, CatalogReadError, ClusterHandle, ClusterReadError, ConnectionArguments,
    ObjectPage,
};
use mainstay_command::exit::CommandFailure;
use mainstay_object::{Object, Resource};
use mainstay_removal::DeletionStep;
use mainstay_resolver::fixture::CatalogData;
use std::time::Duration;

/// A cluster that cannot exist.
#[derive(Debug)]
pub enum NoCluster {}

/// Fails as a command does without a kubeconfig.
///
/// # Errors
/// Always.
pub async fn no_cluster(_: &ConnectionArguments) -> Result<NoCluster, CommandFailure> {
    Err(CommandFailure::usage(Cause::new("the cluster cannot be read")))
}

impl ClusterHandle for NoCluster {
    async fn list(
        &self,
        _: &Resource,
        _: Option<&str>,
        _: Option<&str>,
    ) -> Result<Vec<Object>, ClusterReadError> {
        match *self {}
    }

    async fn list_page(
        &self,
        _: &Resource,
        _: u32,
        _: &str,
    ) -> Result<ObjectPage, ClusterReadError> {
        match *self {}
    }

    async fn get(
        &self,
        _: &Resource,
        _: Option<&str>,
        _: &str,
    ) -> Result<Option<Object>, ClusterReadError> {
        match *self {}
    }

    async fn delete(&self, _: &DeletionStep) -> Result<(), Cause> {
        match *self {}
    }

    async fn wait_until_gone(
        &self,
        _: &DeletionStep,
        _: Duration,
    ) -> Result<Option<Object>, Cause> {
        match *self {}
    }

    fn default_namespace(&self) -> &str {
        match *self {}
    }

    async fn kube_version(&self) -> Option<String> {
        match *self {}
    }

    async fn namespaces(&self) -> Option<Vec<String>> {
        match *self {}
    }

    async fn read_catalog(&self, _: &str) -> Result<CatalogData, Cause> {
        match *self {}
    }

    async fn read_cluster_catalog(
        &self,
        _: &CatalogEndpoint,
        _: &str,
    ) -> Result<Vec<u8>, CatalogReadError> {
        match *self {}
    }
}
