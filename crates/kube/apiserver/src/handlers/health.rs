//! `/healthz`, `/livez` and `/readyz`: what is said of the server's health, to anybody.

use crate::server::ApiServer;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderValue, StatusCode};
use mainstay_auth::Identity;
use mainstay_http::query::Query;
use mainstay_http::response::ApiResponse;

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
