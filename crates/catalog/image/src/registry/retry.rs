//! Retries: which responses are retried, the wait before a retry, and the listener.

use super::{Inner, ListedError, RegistryError, send::display_url};
use http::{HeaderMap, Response, StatusCode, header};
use std::{fmt, sync::Arc, time::Duration};

/// Receives the error of each attempt that is retried. The error of the last attempt is the result
/// of the call, and does not come here.
#[derive(Clone, Default)]
pub struct RetryListener(Option<Arc<Report>>);

type Report = dyn Fn(&RegistryError) + Send + Sync;

impl RetryListener {
    /// Calls `report` with each error. It must not block.
    pub fn new(report: impl Fn(&RegistryError) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    fn report(&self, error: &RegistryError) {
        if let Some(report) = &self.0 {
            report(error);
        }
    }
}

impl fmt::Debug for RetryListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RetryListener").field(&self.0.is_some()).finish()
    }
}

/// Whether a status is temporary.
pub(super) fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

impl Inner {
    /// Reports the error of an attempt, and waits before the next one.
    pub(super) async fn wait(&self, tries: u32, error: &RegistryError, asked: Option<Duration>) {
        let settings = &self.settings;
        settings.on_retry.report(error);
        let doubled = settings.backoff.saturating_mul(1 << tries.saturating_sub(1).min(16));
        // A jitter of up to a quarter spreads the retries of many clients.
        let mut random = [0];
        let _ = getrandom::fill(&mut random);
        let jitter = doubled / 4 * u32::from(random[0]) / 255;
        let own = doubled.saturating_add(jitter);
        tokio::time::sleep(asked.unwrap_or(own).min(settings.longest_wait)).await;
    }

    /// Waits after a temporary error status, for as long as the registry requests.
    pub(super) async fn wait_as_requested<B>(&self, tries: u32, url: &str, answer: &Response<B>) {
        let (url, status) = (display_url(url), answer.status());
        let error = RegistryError::Status {
            url,
            status,
            detail: String::new(),
            first: ListedError::default(),
        };
        self.wait(tries, &error, self.requested_wait(answer.headers())).await;
    }

    /// The wait in `Retry-After`: seconds, or a time.
    fn requested_wait(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = text.parse::<u64>() {
            return Some(Duration::from_secs(seconds));
        }
        let at = jiff::Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()?;
        let wait = at.duration_since(self.settings.clock.now());
        Some(Duration::try_from(wait).unwrap_or_default())
    }
}
