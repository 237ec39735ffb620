//! `/healthz`, `/livez` and `/readyz`: what is said of the server's health, to anybody.

use crate::server::ApiServer;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderValue, StatusCode};
use mainstay_auth::Identity;
use mainstay_http::query::Query;
use mainstay_http::response::ApiResponse;
use mainstay_store::{EngineError, Store};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long the file system may take to say whether it is there.
const STORAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// A question to the storage that has no answer yet. Whoever asks meanwhile waits for the same answer:
/// a file system that hangs takes one thread, however many ask.
#[derive(Debug, Default)]
pub(crate) struct StorageCheck(Mutex<Option<JoinHandle<Result<(), EngineError>>>>);

impl StorageCheck {
    /// Why changes are not saved; none if they are.
    async fn unsaved(&self, store: &Store) -> Option<String> {
        let asked = async {
            let mut question = self.0.lock().await;
            let store = store.clone();
            let answer =
                question.get_or_insert_with(|| tokio::spawn(async move { store.health().await }));
            let answer = answer.await;
            *question = None;
            match answer {
                Ok(health) => health.err().map(|error| error.to_string()),
                Err(error) => Some(error.to_string()),
            }
        };
        let silent = || Some("the data folder does not answer".to_owned());
        timeout(STORAGE_TIMEOUT, asked).await.unwrap_or_else(|_| silent())
    }
}

/// Answers a health path. Where the data is kept is not told to those who do not say who they are.
pub(crate) async fn answer(
    server: &ApiServer,
    identity: &Identity,
    path: &str,
    query: &Query,
) -> ApiResponse {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut unsaved = None;
    if path.starts_with("/readyz") {
        unsaved = server.storage_check.unsaved(&server.store).await;
    }
    if identity.is_anonymous() {
        unsaved = unsaved.map(|_| "changes are not saved; the server's log says why".to_owned());
    }
    let verbose = query.flag("verbose");
    let report = server.readiness.report(path, verbose, &excluded, unsaved.as_deref());
    let Some(report) = report else {
        return ApiResponse::page_not_found();
    };
    let code = StatusCode::from_u16(report.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let nosniff = HeaderValue::from_static("nosniff");
    ApiResponse::text(code, report.text).header(X_CONTENT_TYPE_OPTIONS, nosniff)
}
