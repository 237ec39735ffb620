//! In-process backends: handlers behind Services and pods, and the credentials that aggregated API
//! servers trust.

use crate::aggregation::NativeGroup;
use crate::handlers::bootstrap;
use crate::server::ApiServer;
use mainstay_auth::pki::FrontProxy;
use mainstay_object::{Object, Status};
use mainstay_outbound::InProcessBackend;
use mainstay_streams::InProcessPod;
use std::sync::Arc;

impl ApiServer {
    /// Allows endpoints of Services to have addresses of this machine. The default refuses them,
    /// because whoever may write endpoints could then reach the loopback ports of this machine.
    pub fn allow_local_endpoints(&self) {
        self.outbound.allow_local_endpoints();
    }

    /// Puts an in-process handler behind a Service. Webhooks and conversions whose `clientConfig`
    /// names the Service call the handler, without a socket.
    pub fn put_native_backend(
        &self,
        namespace: &str,
        service: &str,
        backend: Arc<dyn InProcessBackend>,
    ) {
        self.outbound.put_backend(namespace, service, backend);
    }

    /// Puts a handler behind a pod: it serves the log and the streams of the pod.
    pub fn add_in_process_pod(&self, namespace: &str, name: &str, handler: Arc<dyn InProcessPod>) {
        self.in_process_pods.insert(namespace, name, handler);
    }

    /// Puts handlers behind all pods for which `find` returns one and for which no handler was put
    /// by name.
    pub fn add_in_process_pods(
        &self,
        find: impl Fn(&Object) -> Option<Arc<dyn InProcessPod>> + Send + Sync + 'static,
    ) {
        self.in_process_pods.add_finder(find);
    }

    /// Lets simulated pods refuse all connections, as if no process listened in them.
    pub fn silence_pods(&self) {
        self.outbound.silence_simulated_pods();
    }

    /// Puts an in-process handler behind a Service. It serves the group-versions whose `APIService`
    /// names that Service, without a socket; they are available without endpoints.
    pub fn put_native_group(&self, namespace: &str, service: &str, group: Arc<dyn NativeGroup>) {
        self.aggregation.put_native(namespace, service, group);
    }

    /// Publishes the CA and the request headers of this server in the ConfigMap
    /// `extension-apiserver-ensure_authentication_config`, from which aggregated API servers read whom to trust.
    pub async fn publish_client_ca(self: &Arc<Self>, authority_pem: &str) -> Result<(), Status> {
        let data = serde_json::json!({
            "client-ca-file": authority_pem, "requestheader-client-ca-file": authority_pem,
            "requestheader-allowed-names": "[\"front-proxy\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
        });
        bootstrap::ensure_authentication_config(self, data).await
    }

    /// Sets the client certificate by which aggregated API servers recognize this server. Only the
    /// first call has an effect.
    pub fn set_front_proxy(&self, front: FrontProxy) {
        self.aggregation.set_front_proxy(front);
    }
}
