//! RBAC authorization with many roles and bindings: the time of a decision.
//!
//! Roles and bindings are put into a store directly, and the authorizer is called as the API server
//! calls it. There are three cases: bindings for many users; all bindings for one user, the worst
//! case, in which each binding is evaluated; and the first case with a role changed before every
//! decision.

use crate::figure::Figure;
use crate::table::{Cell, Report, Table, percentile};
use anyhow::Result;
use mainstay_auth::Identity;
use mainstay_auth::authz::{Attributes, Authorizer};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::{Change, Key, Options, Precondition, Store};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Duration;

/// Options of `access`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The number of roles, and of bindings.
    #[arg(long, default_value_t = 2_000)]
    roles: usize,
    /// The number of users with bindings.
    #[arg(long, default_value_t = 200)]
    users: usize,
    /// The number of decisions per round.
    #[arg(long, default_value_t = 20_000)]
    decisions: usize,
    /// The number of rounds; figures cover the decisions of all.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

const GROUP: &str = "rbac.authorization.k8s.io";

/// The divisor of a round's decisions where a role changes before each.
const CHURN_DIVISOR: usize = 20;

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let columns = [
        ("allowed-p50", "allowed, p50"),
        ("allowed-p99", "p99"),
        ("refused-p50", "refused, p50"),
        ("refused-p99", "p99"),
    ];
    let mut table = Table::new("decisions", "roles and bindings", &columns);
    let many = arguments.users;
    for (key, title, users, churn) in [
        ("many", format!("bindings of {many} users"), many, false),
        ("one", "all bindings of one user".to_owned(), 1, false),
        ("churn", format!("{many} users, a role changed before each decision"), many, true),
    ] {
        let fixture = RbacFixture::new(arguments.roles, users.max(1)).await?;
        let mut cells = Vec::new();
        for verb in ["get", "delete"] {
            let mut figures = Vec::new();
            for _ in 0..arguments.rounds.max(1) {
                fixture.round(arguments, verb, churn, &mut figures).await?;
            }
            figures.sort_unstable();
            let percentiles = [50, 99].map(|percent| percentile(&figures, percent));
            cells.extend(percentiles.map(|time| Cell::from(Figure::time(time))));
        }
        table.row(key, title, cells);
    }
    let mut report = Report::default();
    let decisions = arguments.decisions * arguments.rounds.max(1);
    report.fact("decisions", Figure::number(decisions));
    report.fact("churned", Figure::number(decisions / CHURN_DIVISOR));
    report.table(table)?;
    Ok(report)
}

struct RbacFixture {
    clock: Clock,
    store: Store,
    authorizer: Authorizer,
    identities: Vec<Identity>,
}

impl RbacFixture {
    async fn new(roles: usize, users: usize) -> Result<Self> {
        let clock = Clock::system();
        let store = Store::in_memory(Options::new(clock));
        for at in 0..roles {
            put_role(&store, at, "get").await?;
            let binding = json!({
                "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": format!("r{at}")},
                "subjects": [{"kind": "User", "apiGroup": GROUP, "name": format!("u{}", at % users)}],
            });
            put(&store, "clusterrolebindings", &format!("b{at}"), binding).await?;
        }
        let groups = || ["developers".to_owned(), "everyone".to_owned()];
        let identities = (0..users).map(|at| Identity::new(format!("u{at}"), groups())).collect();
        let authorizer = Authorizer::new(store.clone());
        Ok(Self { clock, store, authorizer, identities })
    }

    /// Adds the time of each decision. With `churn` the time of the role change is excluded.
    async fn round(
        &self,
        arguments: &Arguments,
        verb: &str,
        churn: bool,
        figures: &mut Vec<Duration>,
    ) -> Result<()> {
        let names: Vec<String> = (0..arguments.roles).map(|at| format!("things{at}")).collect();
        let decisions =
            if churn { arguments.decisions / CHURN_DIVISOR } else { arguments.decisions };
        for at in 0..decisions.max(1) {
            let role = at.wrapping_mul(7919) % arguments.roles;
            if churn {
                put_role(&self.store, role, if at % 2 == 0 { "get" } else { "list" }).await?;
                put_role(&self.store, role, "get").await?;
            }
            let identity = &self.identities[role % self.identities.len()];
            let asked = Attributes::resource(identity, verb, "example.com", &names[role])
                .in_namespace("default");
            let start = self.clock.elapsed();
            black_box(self.authorizer.decide(black_box(&asked)));
            figures.push(self.clock.elapsed().saturating_sub(start));
        }
        Ok(())
    }
}

async fn put_role(store: &Store, at: usize, verb: &str) -> Result<()> {
    let things = format!("things{at}");
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list", "watch"]},
        {"apiGroups": ["example.com"], "resources": [things], "verbs": [verb, "watch"]},
        {"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"],
         "resourceNames": ["one"], "verbs": ["get", "update", "patch"]},
    ]);
    put(store, "clusterroles", &format!("r{at}"), json!({"rules": rules})).await
}

async fn put(store: &Store, plural: &str, name: &str, value: Value) -> Result<()> {
    let mut object = Object::from_value(value)?;
    object.set(&["metadata", "name"], name.into());
    let key = Key::new(format!("{GROUP}/{plural}"), "", name);
    store
        .commit(Change::Put { key, object: &object, expect: Precondition::Any, guard: None })
        .await?;
    Ok(())
}
