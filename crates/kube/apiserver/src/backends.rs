//! Backends in this process: handlers behind Services and pods, and what endpoints may lead to.

use crate::server::ApiServer;
use mainstay_object::Object;
use mainstay_outbound::NativeBackend;
use mainstay_streams::NativePod;
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
    pub fn put_native_pod(&self, namespace: &str, name: &str, handler: Arc<dyn NativePod>) {
        self.native_pods.put(namespace, name, handler);
    }

    /// Puts handlers behind all pods for which `find` has one, where none has been put by name.
    pub fn put_native_pods(
        &self,
        find: impl Fn(&Object) -> Option<Arc<dyn NativePod>> + Send + Sync + 'static,
    ) {
        self.native_pods.put_finder(find);
    }

    /// Has simulated pods answer nobody from now on, as if nothing listened in them.
    pub fn silence_pods(&self) {
        self.outbound.silence();
    }
}
