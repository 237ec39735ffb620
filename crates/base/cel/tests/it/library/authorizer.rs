//! Authorizer checks of policies.

use mainstay_cel::library::kubernetes::authorizer::{
    AUTHORIZER_TYPE, AuthorizationDecision, AuthorizationRequest, Authorizer, RESOURCE_CHECK_TYPE,
    ResourceAttributes, authorizer, request_resource,
};
use mainstay_cel::types::Type;
use mainstay_cel::{CostBudget, Env, Program};
use std::sync::{Arc, Mutex};

/// An authorizer that allows requests for pods and records all requests.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl Authorizer for Recorder {
    fn authorize(&self, request: &AuthorizationRequest<'_>) -> AuthorizationDecision {
        let asked = format!("{request:?}");
        let allowed = asked.contains("pods");
        self.0.lock().unwrap().push(asked);
        AuthorizationDecision {
            allowed,
            reason: "because".to_owned(),
            error: (!allowed).then(|| "broken".to_owned()),
        }
    }
}

/// The value or error of an expression, and the recorded requests.
fn evaluate_recorded(text: &str) -> (String, Vec<String>) {
    let env = Env::new_expressions()
        .with_variable("authorizer", Type::object(AUTHORIZER_TYPE))
        .with_variable("requestResource", Type::object(RESOURCE_CHECK_TYPE));
    let recorder = Arc::new(Recorder::default());
    let of_request =
        ResourceAttributes { resource: "pods".to_owned(), ..ResourceAttributes::default() };
    let variables = [
        ("authorizer", authorizer(recorder.clone())),
        ("requestResource", request_resource(recorder.clone(), of_request)),
    ];
    let checked = env.compile(text).unwrap();
    let program = Program::new(&checked).unwrap();
    let answer = match program.eval(&variables, &mut CostBudget::unlimited()) {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    };
    let asked = recorder.0.lock().unwrap().clone();
    (answer, asked)
}

#[test]
fn checks_collect_their_attributes() {
    for (text, answer, asked) in [
        (
            "authorizer.group('').resource('pods').subresource('log').namespace('a').name('b')
                .fieldSelector('x=1').labelSelector('y').check('get').allowed()",
            "true",
            r#"AuthorizationRequest { user: Requester, verb: "get", target: Resource(ResourceAttributes { group: "", resource: "pods", subresource: "log", namespace: "a", name: "b", field_selector: "x=1", label_selector: "y" }) }"#,
        ),
        (
            "authorizer.path('/healthz').check('get').allowed()",
            "false",
            r#"AuthorizationRequest { user: Requester, verb: "get", target: Path("/healthz") }"#,
        ),
        (
            "authorizer.serviceAccount('ns', 'me').path('/pods').check('get').reason()",
            "because",
            r#"AuthorizationRequest { user: ServiceAccount { namespace: "ns", name: "me" }, verb: "get", target: Path("/pods") }"#,
        ),
        (
            "requestResource.name('x').check('update').errored()",
            "false",
            r#"AuthorizationRequest { user: Requester, verb: "update", target: Resource(ResourceAttributes { group: "", resource: "pods", subresource: "", namespace: "", name: "x", field_selector: "", label_selector: "" }) }"#,
        ),
        (
            "authorizer.group('apps').resource('nodes').check('get').error()",
            "broken",
            r#"AuthorizationRequest { user: Requester, verb: "get", target: Resource(ResourceAttributes { group: "apps", resource: "nodes", subresource: "", namespace: "", name: "", field_selector: "", label_selector: "" }) }"#,
        ),
    ] {
        assert_eq!(evaluate_recorded(text), (answer.to_owned(), vec![asked.to_owned()]), "{text}");
    }
}

#[test]
fn invalid_checks_are_errors_without_a_request() {
    for (text, error) in [
        ("authorizer.path(' ').check('get').allowed()", "error: path must not be empty"),
        (
            "authorizer.group('').resource('').check('get').allowed()",
            "error: resource must not be empty",
        ),
        (
            "authorizer.serviceAccount('ns', 'A').path('/').check('get').allowed()",
            "error: Invalid service account name",
        ),
        (
            "authorizer.serviceAccount('a.b', 'c').path('/').check('get').allowed()",
            "error: Invalid service account namespace",
        ),
        ("authorizer == authorizer", "error: no such overload"),
    ] {
        assert_eq!(evaluate_recorded(text), (error.to_owned(), Vec::new()), "{text}");
    }
}
