//! `/metrics`: the page in the Prometheus text format.

use super::{BUCKETS, Series};
use crate::server::ApiServer;
use http::StatusCode;
use mainstay_exposition::Page;
use mainstay_http::response::ApiResponse;
use std::sync::atomic::Ordering;

/// The response of `/metrics`.
pub(crate) fn answer(server: &ApiServer) -> ApiResponse {
    let mut response = ApiResponse::text(StatusCode::OK, text(server));
    response.content_type = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
    response
}

impl Series {
    /// Labels sorted by name, as in kube-apiserver.
    fn labels<'a>(&'a self, component: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            ("component", component),
            ("dry_run", if self.dry_run { "All" } else { "" }),
            ("group", &self.group),
            ("resource", &self.resource),
            ("scope", self.scope),
            ("subresource", &self.subresource),
            ("verb", self.verb),
            ("version", &self.version),
        ]
    }

    fn component(&self) -> &'static str {
        if self.resource.is_empty() { "" } else { "apiserver" }
    }
}

/// The text of the page.
fn text(server: &ApiServer) -> String {
    let mut page = Page::default();
    requests(&mut page, server);
    server.metrics.watches.write(&mut page);
    server.admission.metrics().write(&mut page);
    flow(&mut page, server);
    server.metrics.flow.write(&mut page);
    aggregator(&mut page, server);
    objects(&mut page, server);
    program(&mut page, server);
    server.metrics.external.write(&mut page);
    page.text()
}

fn requests(page: &mut Page, server: &ApiServer) {
    let counts = &server.metrics.requests;
    let load = |gauge: &std::sync::atomic::AtomicI64| gauge.load(Ordering::Relaxed);
    let name = "apiserver_current_inflight_requests";
    page.head(name, "gauge", "[STABLE] Requests that are being served, by kind.");
    page.line(name, &[("request_kind", "mutating")], load(&counts.mutating));
    page.line(name, &[("request_kind", "readOnly")], load(&counts.read_only));
    let unauthenticated = counts.unauthenticated.load(Ordering::Relaxed);
    let name = "authentication_attempts";
    page.head(
        name,
        "counter",
        "[ALPHA] Requests by whether their sender could prove who they are.",
    );
    page.line(name, &[("result", "error")], unauthenticated);
    let all = counts.requests.lock();
    let responded: u64 = all.values().flat_map(|tally| tally.codes.values()).sum();
    page.line(name, &[("result", "success")], responded.saturating_sub(unauthenticated));
    let name = "apiserver_request_total";
    page.head(name, "counter", "[STABLE] Requests, by what they ask and how they were answered.");
    for (series, tally) in all.iter() {
        for (code, count) in &tally.codes {
            let code = code.to_string();
            let mut labels = vec![("code", code.as_str())];
            labels.extend(series.labels(series.component()));
            page.line(name, &labels, count);
        }
    }
    let name = "apiserver_request_terminations_total";
    page.head(name, "counter", "[ALPHA] Requests that were cut: no place, or no time.");
    for (series, tally) in all.iter() {
        for (code, count) in tally.codes.iter().filter(|(code, _)| matches!(code, 429 | 504)) {
            let code = code.to_string();
            let mut labels = vec![("code", code.as_str())];
            labels.extend(series.labels(series.component()));
            labels.retain(|(name, _)| *name != "dry_run");
            page.line(name, &labels, count);
        }
    }
    let name = "apiserver_request_duration_seconds";
    page.head(name, "histogram", "[STABLE] Seconds until requests were answered.");
    for (series, tally) in all.iter().filter(|(series, _)| series.verb != "WATCH") {
        let labels = series.labels(series.component());
        let mut sum = 0;
        for (bound, count) in BUCKETS.iter().zip(tally.buckets) {
            sum += count;
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
            let mut labels = labels.clone();
            let at = labels.partition_point(|(name, _)| *name < "le");
            labels.insert(at, ("le", &bound));
            page.line("apiserver_request_duration_seconds_bucket", &labels, sum);
        }
        page.line("apiserver_request_duration_seconds_sum", &labels, tally.seconds);
        page.line("apiserver_request_duration_seconds_count", &labels, sum);
    }
    let name = "apiserver_longrunning_requests";
    page.head(name, "gauge", "[STABLE] Watches and streams that are open.");
    for (series, tally) in all.iter().filter(|(_, tally)| tally.long_running > 0) {
        let mut labels = series.labels("apiserver");
        labels.retain(|(name, _)| *name != "dry_run");
        page.line(name, &labels, tally.long_running);
    }
}

fn flow(page: &mut Page, server: &ApiServer) {
    let usage = server.flow.usage();
    let mut each =
        |name: &str, kind: &str, help: &str, value: &dyn Fn(&crate::flow::LevelUsage) -> u64| {
            page.head(name, kind, help);
            for level in &usage {
                page.line(name, &[("priority_level", &level.level)], value(level));
            }
        };
    each(
        "apiserver_flowcontrol_nominal_limit_seats",
        "gauge",
        "[BETA] Requests that a priority level may serve at a time, before it borrows.",
        &|level| level.nominal,
    );
    each(
        "apiserver_flowcontrol_current_executing_seats",
        "gauge",
        "[BETA] Requests that a priority level serves.",
        &|level| level.used,
    );
}

/// Whether aggregated API servers are available.
fn aggregator(page: &mut Page, server: &ApiServer) {
    let name = "aggregator_unavailable_apiservice";
    page.head(name, "gauge", "[ALPHA] Whether an APIService is not available.");
    for (service, available) in server.aggregation.availability(&server.store) {
        page.line(name, &[("name", &service)], u8::from(!available));
    }
}

fn objects(page: &mut Page, server: &ApiServer) {
    let kinds = server.registry.kinds();
    let stored = server.store.resources();
    let mut resources: Vec<(String, &str, &str, usize)> = Vec::new();
    for row in
        kinds.rows().filter(|row| row.is_stored() && *row.api_version == *row.storage_api_version)
    {
        let found = stored.iter().find(|(name, _)| *name == row.storage);
        let count = found.map_or(0, |(_, count)| *count);
        resources.push((row.group_resource(), &row.group, &row.plural, count));
    }
    resources.sort();
    let name = "apiserver_storage_objects";
    page.head(name, "gauge", "[STABLE] Stored objects by kind.");
    for (resource, _, _, count) in &resources {
        page.line(name, &[("resource", resource)], count);
    }
    let name = "apiserver_resource_objects";
    page.head(name, "gauge", "[ALPHA] Stored objects by kind.");
    for (_, group, plural, count) in &resources {
        page.line(name, &[("group", group), ("resource", plural)], count);
    }
}

fn program(page: &mut Page, server: &ApiServer) {
    let version = &server.version;
    let name = "kubernetes_build_info";
    page.head(name, "gauge", "[ALPHA] The version, as a label; the value is always 1.");
    let labels = [
        ("build_date", version.build_date.as_str()),
        ("compiler", "rustc"),
        ("git_commit", &version.git_commit),
        ("git_version", &version.git_version),
        ("major", &version.major),
        ("minor", &version.minor),
    ];
    page.line(name, &labels, 1);
    if let Some(log) = server.audit.get() {
        let (written, lost) = log.counts();
        let name = "apiserver_audit_event_total";
        page.one(name, "counter", "[ALPHA] Records written to the audit log.", written);
        let name = "apiserver_audit_error_total";
        page.one(name, "counter", "[ALPHA] Records that the audit log had no room for.", lost);
    }
    let started = server.started.as_millisecond();
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^52")]
    let started = started as f64 / 1000.0;
    let name = "process_start_time_seconds";
    page.one(name, "gauge", "Start time of the process since unix epoch in seconds.", started);
    let cpu = mainstay_clock::processor_time();
    let name = "process_cpu_seconds_total";
    let help = "Total user and system CPU time spent in seconds.";
    page.one(name, "counter", help, cpu.as_secs_f64());
    let memory = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = memory.split(' ').filter_map(|field| field.parse().ok()).collect();
    if let [virtual_pages, resident, ..] = pages[..] {
        let name = "process_resident_memory_bytes";
        page.one(name, "gauge", "Resident memory size in bytes.", resident * 4096);
        let name = "process_virtual_memory_bytes";
        page.one(name, "gauge", "Virtual memory size in bytes.", virtual_pages * 4096);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        let name = "process_open_fds";
        page.one(name, "gauge", "Number of open file descriptors.", open.count());
    }
}
