//! Backends in this process: handlers behind Services and pods, and what endpoints may lead to; and how
//! servers of aggregated groups know this one.

use crate::aggregation::NativeGroup;
use crate::handlers::bootstrap;
use crate::server::ApiServer;
use mainstay_auth::pki::FrontProxy;
use mainstay_object::{Object, Status};
use mainstay_outbound::NativeBackend;
use mainstay_streams::InProcessPod;
use std::sync::Arc;

impl ApiServer {
    /// Has endpoints of Services lead to this machine's own addresses from now on, which they do not unless
    /// the process itself says so: whoever may write endpoints reaches its loopback ports then.
    pub fn let_endpoints_lead_here(&self) {
        self.outbound.allow_local_endpoints();
    }

    /// Puts a handler of this process behind a Service: webhooks and conversions whose
    /// `clientConfig` names it are asked of the handler, without a socket.
    pub fn put_native_backend(
        &self,
        namespace: &str,
        service: &str,
        backend: Arc<dyn NativeBackend>,
    ) {
        self.outbound.put_native(namespace, service, backend);
    }

    /// Puts a handler behind a pod: its log and its streams are asked of the handler.
    pub fn add_in_process_pod(&self, namespace: &str, name: &str, handler: Arc<dyn InProcessPod>) {
        self.in_process_pods.insert(namespace, name, handler);
    }

    /// Puts handlers behind all pods for which `find` has one, where none has been put by name.
    pub fn add_in_process_pods(
        &self,
        find: impl Fn(&Object) -> Option<Arc<dyn InProcessPod>> + Send + Sync + 'static,
    ) {
        self.in_process_pods.add_finder(find);
    }

    /// Has simulated pods answer nobody from now on, as if nothing listened in them.
    pub fn silence_pods(&self) {
        self.outbound.silence();
    }

    /// Puts a handler of this process behind a Service: group-versions whose `APIService` names that
    /// Service are asked of the handler, without a socket, and are available without endpoints.
    pub fn put_native_group(&self, namespace: &str, service: &str, group: Arc<dyn NativeGroup>) {
        self.aggregation.put_native(namespace, service, group);
    }

    /// Tells servers of aggregated groups, in the ConfigMap where they look for it, whose certificates
    /// prove who a client is, and by which headers this server says for whom it asks.
    pub async fn publish_authority(self: &Arc<Self>, authority_pem: &str) -> Result<(), Status> {
        let data = serde_json::json!({
            "client-ca-file": authority_pem, "requestheader-client-ca-file": authority_pem,
            "requestheader-allowed-names": "[\"front-proxy\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
        });
        bootstrap::authentication(self, data).await
    }

    /// Gives the server the certificate by which servers of aggregated groups know it. Only the
    /// first one counts.
    pub fn show_to_backends(&self, front: FrontProxy) {
        self.aggregation.show(front);
    }
}
