//! The performance goals of the project.

use crate::figure::Unit;
use Limit::{AtLeast, AtMost};
use Source::{At, Times};
use Unit::{Number, Share, Size, Time, Times as Ratio};

/// A goal.
pub(super) struct Goal {
    pub(super) subject: &'static str,
    pub(super) what: &'static str,
    pub(super) limit: Limit,
    pub(super) deciders: &'static [GoalFigure],
}

/// The limit, in the base unit.
#[derive(Clone, Copy)]
pub(super) enum Limit {
    AtMost(f64, Unit),
    AtLeast(f64, Unit),
}

/// A figure that decides a goal, with a label that distinguishes it from the goal's other figures.
pub(super) struct GoalFigure(pub(super) &'static str, pub(super) Source);

pub(super) enum Source {
    /// The figure at `TABLE/ROW/COLUMN`; the row `*` stands for every row of the table.
    At(&'static str),
    /// The ratio of the first figure to the second.
    Times(&'static str, &'static str),
}

const fn goal(
    subject: &'static str,
    what: &'static str,
    limit: Limit,
    deciders: &'static [GoalFigure],
) -> Goal {
    Goal { subject, what, limit, deciders }
}

/// All goals, in the order of the page.
pub(super) const GOALS: &[Goal] = &[
    goal(
        "cluster",
        "start → `/readyz`, in memory",
        AtMost(0.075, Time),
        &[GoalFigure("", At("times/start-memory/median"))],
    ),
    goal(
        "api",
        "start → `/readyz`: times as fast as the peer",
        AtLeast(30.0, Ratio),
        &[
            GoalFigure("with a data folder", Times("servers/start/real", "servers/start/data")),
            GoalFigure("in memory", Times("servers/start/real", "servers/start/memory")),
        ],
    ),
    goal(
        "go-client",
        "one change to a thousand watches of Go's client, the last: times as fast as the peer",
        AtLeast(2.0, Ratio),
        &[GoalFigure("", At("work/watch-last/times"))],
    ),
    goal(
        "go-client",
        "lists of 10,000 to Go's client: times as fast as the peer",
        AtLeast(3.0, Ratio),
        &[
            GoalFigure("JSON", At("work/list-json/times")),
            GoalFigure("protobuf", At("work/list-protobuf/times")),
        ],
    ),
    goal(
        "go-client",
        "server-side apply/s of Go's client: times the peer's",
        AtLeast(3.0, Ratio),
        &[GoalFigure("", At("work/applies/times"))],
    ),
    goal(
        "cluster",
        "memory when idle with the sample catalog",
        AtMost(60e6, Size),
        &[GoalFigure("", At("times/idle-memory/median"))],
    ),
    goal(
        "api",
        "memory before the first object: times less than the peer",
        AtLeast(6.0, Ratio),
        &[GoalFigure("", Times("servers/memory-before/real", "servers/memory-before/data"))],
    ),
    goal(
        "api",
        "durable creates/s, 1 client: times the peer's",
        AtLeast(1.5, Ratio),
        &[GoalFigure("", Times("servers/creates-1/data", "servers/creates-1/real"))],
    ),
    goal(
        "api",
        "durable creates/s, 32 clients: times the peer's",
        AtLeast(3.0, Ratio),
        &[GoalFigure("", Times("servers/creates-32/data", "servers/creates-32/real"))],
    ),
    goal(
        "api",
        "server's processor time per durable create: times less than the peer's",
        AtLeast(4.0, Ratio),
        &[
            GoalFigure(
                "1 client",
                Times("servers/create-processor-1/real", "servers/create-processor-1/data"),
            ),
            GoalFigure(
                "32 clients",
                Times("servers/create-processor-32/real", "servers/create-processor-32/data"),
            ),
        ],
    ),
    goal(
        "api",
        "list of 10,000: times as fast as the peer",
        AtLeast(3.0, Ratio),
        &[GoalFigure("", Times("servers/list/real", "servers/list/data"))],
    ),
    goal(
        "api",
        "durable server-side apply/s: times the peer's",
        AtLeast(2.0, Ratio),
        &[GoalFigure("", Times("servers/applies/data", "servers/applies/real"))],
    ),
    goal(
        "api",
        "memory with 10,000 objects: times less than the peer",
        AtLeast(5.0, Ratio),
        &[GoalFigure("", Times("servers/memory-filled/real", "servers/memory-filled/data"))],
    ),
    goal(
        "api",
        "durable deletecollection of 10,000: times as fast as the peer",
        AtLeast(10.0, Ratio),
        &[GoalFigure("", Times("servers/deletecollection/real", "servers/deletecollection/data"))],
    ),
    goal(
        "api",
        "one durable change to 1,000 watches: times as fast as the peer",
        AtLeast(3.0, Ratio),
        &[
            GoalFigure(
                "HTTP/2, half of them",
                Times("servers/watches-http2-p50/real", "servers/watches-http2-p50/data"),
            ),
            GoalFigure(
                "HTTP/2, the last",
                Times("servers/watches-http2-last/real", "servers/watches-http2-last/data"),
            ),
            GoalFigure(
                "a connection each, half of them",
                Times("servers/watches-apart-p50/real", "servers/watches-apart-p50/data"),
            ),
            GoalFigure(
                "a connection each, the last",
                Times("servers/watches-apart-last/real", "servers/watches-apart-last/data"),
            ),
        ],
    ),
    goal(
        "operators",
        "Subscription → `Succeeded`, one operator after the other: p50",
        AtMost(0.5, Time),
        &[GoalFigure("", At("work/one-by-one/figure"))],
    ),
    goal(
        "operators",
        "the same, p99",
        AtMost(1.0, Time),
        &[GoalFigure("", At("work/one-by-one/p99"))],
    ),
    goal(
        "operators",
        "20 operators at once in one namespace, all `Succeeded`",
        AtMost(3.0, Time),
        &[GoalFigure("", At("work/at-once/figure"))],
    ),
    goal(
        "operators",
        "writes of one installation",
        AtMost(40.0, Number),
        &[
            GoalFigure("one after the other", At("work/one-by-one/writes")),
            GoalFigure("at once", At("work/at-once/writes")),
        ],
    ),
    goal(
        "operators",
        "the controllers' processor time of one installation",
        AtMost(0.03, Time),
        &[
            GoalFigure("one after the other", At("work/one-by-one/processor")),
            GoalFigure("at once", At("work/at-once/processor")),
        ],
    ),
    goal(
        "operators",
        "requests while an upgrade waits for approval",
        AtMost(0.0, Number),
        &[
            GoalFigure("writes", At("work/waiting/writes")),
            GoalFigure("reads", At("work/waiting/reads")),
        ],
    ),
    goal(
        "operators",
        "processor while an upgrade waits, of a core",
        AtMost(0.01, Share),
        &[GoalFigure("", At("work/waiting/figure"))],
    ),
    goal(
        "operators",
        "restart with all these operators until at rest",
        AtMost(5.0, Time),
        &[GoalFigure("", At("work/restart/figure"))],
    ),
    goal(
        "operators",
        "writes of that restart",
        AtMost(0.0, Number),
        &[GoalFigure("", At("work/restart/writes"))],
    ),
    goal(
        "operators",
        "20,000 bundles resolved for 1,000 namespaces: more memory, the plans in the API included",
        AtMost(200e6, Size),
        &[GoalFigure("", At("work/large/memory"))],
    ),
    goal(
        "fleet",
        "50 operators for all of 400 namespaces: memory of controllers and packages beside an API",
        AtMost(200e6, Size),
        &[GoalFigure("", At("work/copies-memory/apart"))],
    ),
    goal(
        "fleet",
        "the same: memory of all in one",
        AtMost(400e6, Size),
        &[GoalFigure("", At("work/copies-memory/whole"))],
    ),
    goal(
        "fleet",
        "the same: processor when idle, of a core",
        AtMost(0.01, Share),
        &[
            GoalFigure("beside an API", At("work/idle/apart")),
            GoalFigure("all in one", At("work/idle/whole")),
        ],
    ),
    goal(
        "fleet",
        "the same: writes when idle, but of the Lease",
        AtMost(0.0, Number),
        &[
            GoalFigure("beside an API", At("work/idle-writes/apart")),
            GoalFigure("all in one", At("work/idle-writes/whole")),
        ],
    ),
    goal(
        "operators",
        "10 such operators: 300 more namespaces all have copies",
        AtMost(4.0, Time),
        &[GoalFigure("", At("work/more-copies/figure"))],
    ),
    goal(
        "operators",
        "restart with these copies until at rest",
        AtMost(3.0, Time),
        &[GoalFigure("", At("work/restart-copies/figure"))],
    ),
    goal(
        "operators",
        "writes of that restart with copies",
        AtMost(0.0, Number),
        &[GoalFigure("", At("work/restart-copies/writes"))],
    ),
    goal(
        "operators",
        "a change in 405 copies",
        AtMost(1.0, Time),
        &[GoalFigure("", At("work/changed/figure"))],
    ),
    goal(
        "cluster",
        "Subscription created → CSV `Succeeded`",
        AtMost(0.3, Time),
        &[
            GoalFigure("in memory", At("times/install-memory/median")),
            GoalFigure("data folder", At("times/install-data/median")),
        ],
    ),
    goal(
        "cluster",
        "`demo --exit`",
        AtMost(10.0, Time),
        &[GoalFigure("", At("times/demo/median"))],
    ),
    goal(
        "access",
        "an authorization decision with 2,000 roles, p99",
        AtMost(20e-6, Time),
        &[
            GoalFigure("allowed", At("decisions/*/allowed-p99")),
            GoalFigure("refused", At("decisions/*/refused-p99")),
        ],
    ),
    goal(
        "webhook",
        "a create through one webhook: times as fast as the peer",
        AtLeast(1.5, Ratio),
        &[
            GoalFigure("judged, 1 client", At("creates/judge-creates-1/times")),
            GoalFigure("judged, 32 clients", At("creates/judge-creates-32/times")),
            GoalFigure("changed, 1 client", At("creates/change-creates-1/times")),
            GoalFigure("changed, 32 clients", At("creates/change-creates-32/times")),
        ],
    ),
    goal(
        "workloads",
        "500 Deployments of 3 pods until Available: times less processor time than the peer",
        AtLeast(5.0, Ratio),
        &[GoalFigure("", Times("rollout/busy/real", "rollout/busy/data"))],
    ),
    goal(
        "workloads",
        "processor when idle with them, of a core",
        AtMost(0.01, Share),
        &[GoalFigure("", At("rollout/idle/data"))],
    ),
    goal(
        "store",
        "20,000 objects of 1.5 kB opened",
        AtMost(0.1, Time),
        &[GoalFigure("", At("engines/open/journal"))],
    ),
    goal(
        "rules",
        "20 rules of real CRDs over 10,000 objects: times as fast as `kube-cel`",
        AtLeast(5.0, Ratio),
        &[
            GoalFigure("all together", At("summary/all/times")),
            GoalFigure("the nearest rule", At("summary/least/times")),
        ],
    ),
    goal(
        "rules",
        "a CRD with 100 rules accepted",
        AtMost(0.02, Time),
        &[GoalFigure("", At("creation/validated/figure"))],
    ),
    goal(
        "catalogs",
        "certified catalog: times less processor time than opm",
        AtLeast(13.0, Ratio),
        &[GoalFigure("", At("certified/*/less"))],
    ),
    goal(
        "catalogs",
        "community catalog: times less processor time than opm",
        AtLeast(6.0, Ratio),
        &[GoalFigure("", At("community/*/less"))],
    ),
    goal(
        "catalogs",
        "both catalogs: memory as a part of opm's",
        AtMost(0.25, Ratio),
        &[
            GoalFigure("certified", At("certified/*/part")),
            GoalFigure("community", At("community/*/part")),
        ],
    ),
    goal(
        "catalogs",
        "230 MB of JSON in one file: times the processor time of Python's decoder",
        AtMost(2.4, Ratio),
        &[GoalFigure("", At("fourfold/*/multiple"))],
    ),
    goal(
        "catalogs",
        "the same: memory as a part of opm's",
        AtMost(0.25, Ratio),
        &[GoalFigure("", At("fourfold/*/part"))],
    ),
    goal(
        "catalogs",
        "249 bundle folders rendered, a tenth of opm's processor time for each MB",
        AtMost(8.7e-3, Time),
        &[GoalFigure("", At("bundles/render/each"))],
    ),
    goal(
        "catalogs",
        "249 bundle folders, processor time for each MB",
        AtMost(10e-3, Time),
        &[
            GoalFigure("judged", At("bundles/judge/each")),
            GoalFigure("rendered to manifests", At("bundles/manifests/each")),
        ],
    ),
    goal(
        "registry",
        "certified catalog served: start → SERVING",
        AtMost(0.5, Time),
        &[GoalFigure("", At("ours/start/figure"))],
    ),
    goal(
        "registry",
        "the same: memory",
        AtMost(50e6, Size),
        &[
            GoalFigure("when it serves", At("ours/memory/figure")),
            GoalFigure("after the calls", At("ours/memory-after/figure")),
        ],
    ),
    goal(
        "registry",
        "the same: a call",
        AtMost(1e-3, Time),
        &[
            GoalFigure("a bundle", At("ours/bundle/figure")),
            GoalFigure("the providers of an API", At("ours/providers/figure")),
            GoalFigure("its default provider", At("ours/default-provider/figure")),
        ],
    ),
    goal(
        "catalog-http",
        "certified catalog over HTTP: processor time of `metas` for a package",
        AtMost(0.2e-3, Time),
        &[
            GoalFigure("in a file", At("requests/hit/file")),
            GoalFigure("with gzip", At("requests/hit-gzip/file")),
        ],
    ),
    goal(
        "catalog-http",
        "the same: without a hit",
        AtMost(0.05e-3, Time),
        &[
            GoalFigure("in memory", At("requests/miss/memory")),
            GoalFigure("in a file", At("requests/miss/file")),
        ],
    ),
    goal(
        "catalog-http",
        "the same: `all` with gzip",
        AtMost(5e-3, Time),
        &[
            GoalFigure("in memory", At("requests/gzip/memory")),
            GoalFigure("in a file", At("requests/gzip/file")),
        ],
    ),
    goal(
        "cluster-catalog",
        "ClusterCatalog of the certified catalog: create → `Serving`, processor time",
        AtMost(1.0, Time),
        &[GoalFigure("", At("work/create/figure"))],
    ),
    goal(
        "cluster-catalog",
        "the same: memory of controllers and server",
        AtMost(60e6, Size),
        &[
            GoalFigure("served", At("work/memory/figure")),
            GoalFigure("after requests", At("work/memory-served/figure")),
        ],
    ),
    goal(
        "cluster-catalog",
        "the same: killed, started → `all` is answered",
        AtMost(0.2, Time),
        &[GoalFigure("", At("work/restart/figure"))],
    ),
    goal(
        "extensions",
        "ClusterExtension: create → `Installed`, p50",
        AtMost(0.2, Time),
        &[GoalFigure("", At("work/create/figure"))],
    ),
    goal(
        "extensions",
        "the same: processor time of the controllers",
        AtMost(0.04, Time),
        &[GoalFigure("", At("work/create/processor"))],
    ),
    goal(
        "extensions",
        "the same: requests",
        AtMost(25.0, Number),
        &[GoalFigure("", At("work/create/requests"))],
    ),
    goal(
        "extensions",
        "the same: requests that write",
        AtMost(11.0, Number),
        &[GoalFigure("", At("work/create/writes"))],
    ),
    goal(
        "extensions",
        "a catalog changes: requests of extensions of other packages",
        AtMost(0.0, Number),
        &[GoalFigure("", At("work/catalog/figure"))],
    ),
    goal(
        "extensions",
        "installed extensions at rest: requests",
        AtMost(0.0, Number),
        &[
            GoalFigure("releases", At("work/rest/requests")),
            GoalFigure("ClusterObjectSets", At("work/rest-object-sets/requests")),
        ],
    ),
    goal(
        "extensions",
        "a restart with many extensions: requests that write",
        AtMost(0.0, Number),
        &[GoalFigure("", At("work/restart/writes"))],
    ),
    goal(
        "extensions",
        "memory of controllers and catalog server with ten extensions and the certified catalog",
        AtMost(70e6, Size),
        &[GoalFigure("", At("memory/memory/figure"))],
    ),
    goal(
        "resolver",
        "any one package of a published catalog resolved, catalog warm",
        AtMost(0.2e-3, Time),
        &[GoalFigure("", At("published/*/most"))],
    ),
    goal(
        "resolver",
        "all packages of a published catalog in one namespace",
        AtMost(50e-3, Time),
        &[GoalFigure("", At("published/*/together"))],
    ),
    goal(
        "resolver",
        "the slowest failure with its explanation and repairs",
        AtMost(5e-3, Time),
        &[GoalFigure("", At("failing/*/most"))],
    ),
    goal(
        "resolver",
        "recorded worlds: times less than the original, geometric mean (orientation: another machine)",
        AtLeast(20.0, Ratio),
        &[
            GoalFigure("large ones", At("worlds/large/times")),
            GoalFigure("of published catalogs", At("worlds/real/times")),
        ],
    ),
    goal(
        "images",
        "an image on loopback: times as fast as `skopeo copy`",
        AtLeast(1.0, Ratio),
        &[
            GoalFigure("pushed", Times("moves/push/their-wall", "moves/push/wall")),
            GoalFigure("pulled", Times("moves/pull/their-wall", "moves/pull/wall")),
        ],
    ),
    goal(
        "images",
        "the same: times less memory than `skopeo copy`",
        AtLeast(10.0, Ratio),
        &[
            GoalFigure("pushed", Times("moves/push/their-memory", "moves/push/memory")),
            GoalFigure("pulled", Times("moves/pull/their-memory", "moves/pull/memory")),
        ],
    ),
];
