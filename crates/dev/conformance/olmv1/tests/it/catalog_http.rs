//! Replay of the recorded requests to catalogd's HTTP API.

use mainstay_conformance_olmv1::catalog_http::{differences::ListedDifferences, replay};

/// Every answer is as recorded, or `catalog-http-differences.txt` lists the difference.
#[tokio::test(flavor = "multi_thread")]
async fn replayed_requests_have_the_recorded_answers() {
    let what = "recorded catalog HTTP requests";
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", what) else { return };
    let outcomes = replay(&data.path().join("olm-v1/catalog-http")).await.unwrap();
    let listed = ListedDifferences::read().unwrap();
    let problems = listed.problems(&outcomes);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let agree = outcomes
        .iter()
        .filter(|outcome| outcome.differences.is_empty() && !outcome.is_graphql)
        .count();
    let all = outcomes.len();
    mainstay_testdata::ran(&format!(
        "{agree} of {all} catalog HTTP requests agree, {} listed",
        all - agree
    ));
    let graphql = outcomes.iter().filter(|outcome| outcome.is_graphql).count();
    mainstay_testdata::ran(&format!(
        "{graphql} of the listed catalog HTTP requests go to GraphQL, which is not served"
    ));
}
