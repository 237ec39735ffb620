//! `/healthz`, `/livez` and `/readyz`.

use crate::server::ApiServer;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderValue, StatusCode};
use mainstay_auth::Identity;
use mainstay_http::query::Query;
use mainstay_http::response::ApiResponse;

/// Answers a health path. An anonymous client does not learn where the data is stored.
pub(crate) async fn answer(
    server: &ApiServer,
    identity: &Identity,
    path: &str,
    query: &Query,
) -> ApiResponse {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut storage_error = None;
    if path.starts_with("/readyz") {
        storage_error = server.storage_check.storage_error(&server.store).await;
    }
    if identity.is_anonymous() {
        storage_error =
            storage_error.map(|_| "changes are not saved; the server's log says why".to_owned());
    }
    let verbose = query.flag("verbose");
    let report = server.readiness.report(path, verbose, &excluded, storage_error.as_deref());
    let Some(report) = report else {
        return ApiResponse::page_not_found();
    };
    let code = StatusCode::from_u16(report.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let nosniff = HeaderValue::from_static("nosniff");
    ApiResponse::text(code, report.text).header(X_CONTENT_TYPE_OPTIONS, nosniff)
}
