//! `pods/log`.

use super::{PODS, pod, running, set_container_status};
use crate::harness::Api;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use mainstay_streams::{ContainerLog, InProcessPod, LogLine};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn line(second: i64, text: &str) -> LogLine {
    let start: jiff::Timestamp = "2026-01-02T03:04:00.5Z".parse().unwrap();
    let time = start + jiff::SignedDuration::from_secs(second);
    LogLine { time, text: text.to_owned() }
}

/// Writes four lines at once, and then counts.
#[derive(Default)]
struct CountingPod {
    /// The number of lines that were read.
    lines_read: Arc<AtomicUsize>,
}

impl InProcessPod for CountingPod {
    fn log(&self, container: &str, previous: bool) -> Option<ContainerLog> {
        let lines_read = self.lines_read.clone();
        (container != "mute").then(|| ContainerLog {
            existing: if previous {
                vec![line(-9, "before")]
            } else {
                let texts = ["one", "two", "three", "four"];
                texts.iter().zip(0..).map(|(text, second)| line(second, text)).collect()
            },
            new_lines: stream::iter(5_usize..)
                .map(move |number| {
                    lines_read.store(number, Ordering::Relaxed);
                    line(5, &number.to_string())
                })
                .boxed(),
        })
    }
}

// The clock is paused, however long the test takes.
#[tokio::test(start_paused = true)]
async fn log_options_select_a_part_of_the_log() {
    let api = Api::new().await;
    pod(&api, "p", &["c"], true).await;
    set_container_status(&api, "p", running()).await;
    api.server.add_in_process_pod("default", "p", Arc::new(CountingPod::default()));
    // The clock shows 03:04:05.
    for (query, expected) in [
        ("", "one\ntwo\nthree\nfour\n"),
        ("container=c", "one\ntwo\nthree\nfour\n"),
        ("tailLines=0", ""),
        ("tailLines=2", "three\nfour\n"),
        ("tailLines=9", "one\ntwo\nthree\nfour\n"),
        ("sinceSeconds=3", "three\nfour\n"),
        ("sinceSeconds=9223372036854775807", "one\ntwo\nthree\nfour\n"),
        ("sinceTime=2026-01-02T03:04:03Z", "four\n"),
        ("sinceTime=2026-01-02T03:04:01Z&tailLines=1", "four\n"),
        ("sinceTime=", "one\ntwo\nthree\nfour\n"),
        ("limitBytes=6", "one\ntw"),
        ("tailLines=1&timestamps=true", "2026-01-02T03:04:03.5Z four\n"),
        ("follow=true&tailLines=1&limitBytes=9", "four\n5\n6\n"),
        ("follow=true&tailLines=0&limitBytes=1", "5"),
    ] {
        let response = api.get(&format!("{PODS}/p/log?{query}")).await;
        assert_eq!((response.code, &response.bytes[..]), (200, expected.as_bytes()), "{query}");
        assert_eq!(response.headers["content-type"], "text/plain", "{query}");
    }
    let last = json!({"exitCode": 1, "containerID": "sim://0", "reason": "Error"});
    let again =
        json!({"restartCount": 1, "lastState": {"terminated": last}, "state": {"running": {}}});
    set_container_status(&api, "p", again).await;
    assert_eq!(api.get(&format!("{PODS}/p/log?previous=true")).await.bytes, "before\n");
}

#[tokio::test]
async fn invalid_log_options_and_containers_are_refused_with_the_texts_of_kube_apiserver() {
    let api = Api::new().await;
    pod(&api, "p", &["c"], false).await;
    pod(&api, "two", &["a", "b"], false).await;
    let invalid = |what: &str| (422, format!("PodLogOptions \"p\" is invalid: {what}"));
    for (path, expected) in [
        ("p/log?tailLines=-1&limitBytes=0", invalid("[tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater than 0]")),
        ("p/log?sinceSeconds=0", invalid("sinceSeconds: Invalid value: 0: must be greater than 0")),
        ("p/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", invalid("[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified")),
        ("p/log?stream=Stdout", invalid("stream: Forbidden: may not be specified")),
        ("p/log?tailLines=x", (400, "strconv.ParseInt: parsing \"x\": invalid syntax".to_owned())),
        ("p/log?sinceTime=x", (400, "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"".to_owned())),
        ("none/log", (404, "pods \"none\" not found".to_owned())),
        ("p/log?container=x", (400, "container x is not valid for pod p".to_owned())),
        ("two/log", (400, "a container name must be specified for pod two, choose one of: [a b]".to_owned())),
    ] {
        assert_eq!(api.get(&format!("{PODS}/{path}")).await.refused(), expected, "{path}");
    }
    // A pod without a node has written nothing.
    let response = api.get(&format!("{PODS}/two/log?container=b")).await;
    assert_eq!((response.code, response.bytes.len()), (204, 0));
}

#[tokio::test]
async fn the_log_of_a_waiting_container_is_refused_with_its_reason() {
    let api = Api::new().await;
    pod(&api, "p", &["mute"], true).await;
    let which = "container \"mute\" in pod \"p\"";
    let waiting = |reason: &str| json!({"state": {"waiting": {"reason": reason}}});
    let log = format!("{PODS}/p/log");
    assert_eq!(api.get(&log).await.refused(), (400, format!("{which} is not available")));
    for (status, expected) in [
        (waiting("ContainerCreating"), format!("{which} is waiting to start: ContainerCreating")),
        (waiting("ErrImagePull"), format!("{which} is waiting to start: image can't be pulled")),
        (
            waiting("ImagePullBackOff"),
            format!("{which} is waiting to start: trying and failing to pull image"),
        ),
        (json!({"state": {"terminated": {"exitCode": 0}}}), format!("{which} is terminated")),
    ] {
        set_container_status(&api, "p", status).await;
        assert_eq!(api.get(&log).await.refused(), (400, expected));
    }
    set_container_status(&api, "p", running()).await;
    let previous = api.get(&format!("{log}?previous=true")).await.refused();
    assert_eq!(previous, (400, format!("previous terminated {which} not found")));
    // The container runs, but no process is behind it.
    let (code, message) = api.get(&log).await.refused();
    assert_eq!(
        (
            code,
            message.contains(
                "simulated and run no processes; the annotation mainstay.dev/log of a pod sets"
            )
        ),
        (405, true)
    );
    api.server.add_in_process_pods(|pod| {
        (pod.name() == "p").then(|| Arc::new(CountingPod::default()) as Arc<dyn InProcessPod>)
    });
    assert_eq!(api.get(&log).await.refused(), (400, format!("{which} has no log")));
}

#[tokio::test]
async fn a_log_is_produced_at_the_speed_of_its_reader() {
    let api = Api::new().await;
    pod(&api, "p", &["c"], true).await;
    set_container_status(&api, "p", running()).await;
    let handler = CountingPod::default();
    let lines_read = handler.lines_read.clone();
    api.server.add_in_process_pod("default", "p", Arc::new(handler));
    let request = Request::get(format!("{PODS}/p/log?follow=true&tailLines=0"));
    let mut body = api.send(request.body(Full::new(Bytes::new())).unwrap()).await.into_body();
    assert_eq!(lines_read.load(Ordering::Relaxed), 0);
    for _ in 0..3 {
        body.frame().await.unwrap().unwrap();
    }
    assert_eq!(lines_read.load(Ordering::Relaxed), 7);
    drop(body);
    assert_eq!(Arc::strong_count(&lines_read), 2, "the log is dropped with its reader");
}

#[tokio::test]
async fn the_log_of_a_simulated_pod_is_that_of_its_annotation() {
    let api = Api::new().await;
    pod(&api, "p", &["c", "d"], true).await;
    set_container_status(&api, "p", running()).await;
    let text = json!({"metadata": {"annotations": {"mainstay.dev/log": "one\ntwo\n"}}});
    api.patch(&format!("{PODS}/p"), "merge", &text).await.ok();
    let log = format!("{PODS}/p/log?container=c");
    assert_eq!(api.get(&log).await.bytes, "one\ntwo\n");
    let timed = "2026-01-02T03:04:05Z one\n2026-01-02T03:04:05Z two\n";
    assert_eq!(api.get(&format!("{log}&timestamps=true")).await.bytes, timed);
    assert_eq!(api.get(&format!("{log}&follow=true&limitBytes=5")).await.bytes, "one\nt");
    // A container that does not run has no log, whatever the annotation says.
    let (code, message) = api.get(&format!("{PODS}/p/log?container=d")).await.refused();
    assert_eq!((code, message.as_str()), (400, "container \"d\" in pod \"p\" is not available"));
    // A crashed container has written its log, even while it waits for a restart.
    let ended =
        json!({"exitCode": 1, "startedAt": "2026-01-02T03:04:06Z", "containerID": "sim://1"});
    let waits = json!({
        "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended},
    });
    set_container_status(&api, "p", waits).await;
    for which in ["", "&previous=true"] {
        let timed = api.get(&format!("{log}&timestamps=true{which}")).await.bytes;
        assert_eq!(timed, "2026-01-02T03:04:06Z one\n2026-01-02T03:04:06Z two\n", "{which}");
    }
}

#[tokio::test(start_paused = true)]
async fn following_the_log_of_a_simulated_pod_lasts_until_its_end() {
    let api = Api::new().await;
    pod(&api, "p", &["c"], true).await;
    set_container_status(&api, "p", running()).await;
    let text = json!({"metadata": {"annotations": {"mainstay.dev/log": "one"}}});
    api.patch(&format!("{PODS}/p"), "merge", &text).await.ok();
    let request = Request::get(format!("{PODS}/p/log?follow=true"));
    let body = api.send(request.body(Full::new(Bytes::new())).unwrap()).await.into_body();
    let (followed, ()) = tokio::join!(body.collect(), async {
        tokio::time::sleep(std::time::Duration::from_mins(10)).await;
        let ended = json!({"exitCode": 0, "containerID": "sim://1"});
        set_container_status(&api, "p", json!({"state": {"terminated": ended}})).await;
    });
    assert_eq!(followed.unwrap().to_bytes(), "one\n");
}
