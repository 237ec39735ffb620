//! Examples of every command in its `--help`. One test parses each line, another one requires an
//! example for each command.

pub(crate) const DEMO: &str = "Examples:
  mainstay demo                                    # serves until Ctrl-C
  mainstay demo --exit                             # exits at the end
  mainstay demo --catalog ./my-catalog --package teapot-operator --exit";

pub(crate) const UP: &str = "Examples:
  mainstay up                                      # keeps its data, serves 127.0.0.1:6443
  mainstay up --in-memory --listen 127.0.0.1:0     # data in memory, a free port
  mainstay up --catalog mine=./my-catalog
  mainstay up --image localhost/kiwi:v1=./kiwi";

pub(crate) const RUN: &str = "Examples:
  mainstay run                                   # the cluster of kubectl
  mainstay run --kubeconfig ./kubeconfig --catalog fruit=./catalog
  mainstay run --listen 0.0.0.0:8080             # in a pod, with its ServiceAccount and probes

Several processes may run: one leads, the others wait. Operator Lifecycle Manager must not run on the same
cluster. All flags of its programs are accepted. This help omits the flags without effect;
docs/command-line.md lists them.";

pub(crate) const MANIFESTS: &str = "Examples:
  mainstay manifests | kubectl apply -f -
  mainstay manifests --controllers classic --profile openshift";

pub(crate) const CATALOG: &str = "Examples:
  mainstay catalog validate ./catalog
  mainstay catalog show ./catalog kiwi";

pub(crate) const CATALOG_VALIDATE: &str = "Examples:
  mainstay catalog validate ./catalog
  mainstay catalog validate clustercatalog/operatorhubio   # the one that the cluster serves
  mainstay catalog validate --strict ./catalog ./kiwi
  mainstay catalog validate ./catalog -o sarif > catalog.sarif";

pub(crate) const CATALOG_LIST: &str = "Examples:
  mainstay catalog list packages ./catalog
  mainstay catalog list bundles ./catalog kiwi -o json
  mainstay catalog list bundles ./catalog kiwi --channel stable
  mainstay catalog list packages ./catalog --install-mode AllNamespaces --without-webhooks
  mainstay catalog list packages clustercatalog/operatorhubio   # the one that the cluster serves";

pub(crate) const CATALOG_SEARCH: &str = "Examples:
  mainstay catalog search kafka                        # in all served ClusterCatalogs of the cluster
  mainstay catalog search 'message broker' -o json     # packages with both words
  mainstay catalog search kafka ./catalog clustercatalog/operatorhubio
  mainstay catalog search --kubeconfig ./kubeconfig    # all packages";

pub(crate) const CATALOG_SHOW: &str = "Examples:
  mainstay catalog show ./catalog kiwi
  mainstay catalog show ./catalog kiwi 1.0.0     # the updates from this version
  mainstay catalog show ./catalog kiwi -o yaml
  mainstay catalog show clustercatalog/operatorhubio kiwi";

pub(crate) const CATALOG_GRAPH: &str = "Examples:
  mainstay catalog graph ./catalog kiwi --from 1.0.0
  mainstay catalog graph ./catalog kiwi -o svg > kiwi.svg
  mainstay catalog graph ./catalog kiwi -o json
  mainstay catalog graph clustercatalog/operatorhubio kiwi --channel stable";

pub(crate) const CATALOG_RENDER: &str = "Examples:
  mainstay catalog render ./catalog --schema olm.channel --package kiwi
  mainstay catalog render ./catalog -o name      # names and places only
  mainstay catalog render clustercatalog/operatorhubio --package kiwi";

pub(crate) const CATALOG_BUILD: &str = "Examples:
  mainstay catalog build ./catalog oci:catalog-v1:v1
  mainstay catalog build ./catalog registry.example/org/catalog:v1 --authfile auth.json
  mainstay catalog build ./catalog oci-archive:catalog.tar:v1 --platform linux/amd64";

pub(crate) const BUNDLE: &str = "Examples:
  mainstay bundle validate ./kiwi
  mainstay bundle render ./kiwi";

pub(crate) const BUNDLE_VALIDATE: &str = "Examples:
  mainstay bundle validate ./kiwi
  mainstay bundle validate ./kiwi --also operatorhub/v2 --strict
  mainstay bundle validate ./kiwi --kubernetes 1.35 -o json";

pub(crate) const BUNDLE_RENDER: &str = "Examples:
  mainstay bundle render ./kiwi | kubectl apply -f -
  mainstay bundle render ./kiwi -n fruit --watch fruit --certificates none
  mainstay bundle render ./kiwi --schema";

pub(crate) const BUNDLE_BUILD: &str = "Examples:
  mainstay bundle build ./kiwi oci:kiwi-v1:v1.0.0
  mainstay bundle build ./kiwi registry.example/kiwi-bundle:v1.0.0 --authfile auth.json
  mainstay bundle build ./kiwi store:registry.example/kiwi-bundle:v1.0.0";

pub(crate) const IMAGE: &str = "Examples:
  mainstay image inspect oci:catalog-v1:v1
  mainstay image copy oci:catalog-v1:v1 oci-archive:catalog.tar";

pub(crate) const IMAGE_PULL: &str = "Examples:
  mainstay image pull quay.io/operatorhubio/catalog:latest
  mainstay image pull --platform linux/arm64 registry.example/kiwi-bundle:v1.0.0
  mainstay image pull --mirrors mirrors.yaml --authfile auth.json quay.io/org/catalog:v1";

pub(crate) const IMAGE_PUSH: &str = "Examples:
  mainstay image push registry.example/kiwi-bundle:v1.0.0
  mainstay image push quay.io/org/catalog:v1 localhost:5000/catalog:v1";

pub(crate) const IMAGE_COPY: &str = "Examples:
  mainstay image copy quay.io/org/catalog:v1 oci-archive:catalog.tar
  mainstay image copy oci-archive:catalog.tar mirror.example:5000/org/catalog:v1
  mainstay image copy oci:out:v1 store:registry.example/kiwi-bundle:v1.0.0";

pub(crate) const IMAGE_INSPECT: &str = "Examples:
  mainstay image inspect quay.io/org/catalog:v1
  mainstay image inspect -o json oci:out | jq .labels
  mainstay image inspect --raw store:quay.io/org/catalog:v1";

pub(crate) const IMAGE_UNPACK: &str = "Examples:
  mainstay image unpack quay.io/org/catalog:v1 catalog --only configs
  mainstay image unpack oci-archive:kiwi.tar kiwi";

pub(crate) const IMAGE_TAGS: &str = "Examples:
  mainstay image tags quay.io/org/catalog
  mainstay image tags localhost:5000/catalog -o json";

pub(crate) const IMAGE_LIST: &str = "Examples:
  mainstay image list
  mainstay image list --store ./images -o json";

pub(crate) const IMAGE_REMOVE: &str = "Examples:
  mainstay image remove quay.io/org/catalog:v1";

pub(crate) const IMAGE_GC: &str = "Examples:
  mainstay image gc
  mainstay image gc --untagged --grace 0";

pub(crate) const RESOLVE: &str = "Examples:
  mainstay resolve                                         # the next steps of the cluster
  mainstay resolve -n operators --what-if subscribe=teapot-operator:fast
  mainstay resolve --catalog mine=./my-catalog teapot-operator:stable@1.0.0
  mainstay resolve --state state.yaml --catalog mine=./my-catalog -o yaml

Exits with 3 if a Subscription or a package cannot be resolved.";

pub(crate) const WHY: &str = "Examples:
  mainstay why subscription/teapot -n operators
  mainstay why csv/teapot-operator.v1.2.0 -n operators -o json
  mainstay why catalogsource/mine -n olm --state state.yaml
  mainstay why clusterextension/teapot

Exits with 0 if the object is healthy. Exits with 3 if it is not, and explains why.";

pub(crate) const CRD: &str = "Examples:
  mainstay crd diff ./kiwi-1.0.0 ./kiwi-1.1.0
  mainstay crd check --cluster ./kiwi-1.1.0";

pub(crate) const CRD_DIFF: &str = "Examples:
  mainstay crd diff ./kiwi-1.0.0 ./kiwi-1.1.0        # two bundle folders
  mainstay crd diff old.yaml new.yaml --override default=none
  mainstay crd diff old.yaml new.yaml -o sarif > crd.sarif";

pub(crate) const CRD_CHECK: &str = "Examples:
  mainstay crd check --cluster ./kiwi-1.1.0
  mainstay crd check --cluster --context production new.yaml -o json
  mainstay crd check --state saved.yaml new.yaml     # kubectl get crd,kiwis -A -o yaml > saved.yaml";

pub(crate) const UNINSTALL: &str = "Examples:
  mainstay uninstall teapot -n operators --dry-run       # prints the preview only
  mainstay uninstall teapot -n operators
  mainstay uninstall teapot-operator -n operators --operands --definitions
  mainstay uninstall clusterextension/teapot --keep-crds --dry-run";

pub(crate) const EXTENSION: &str = "Examples:
  mainstay extension install teapot --package teapot-operator --namespace operators
  mainstay extension list
  mainstay extension describe teapot";

pub(crate) const EXTENSION_INSTALL: &str = "Examples:
  mainstay extension install teapot --package teapot-operator --namespace operators
  mainstay extension install teapot -p teapot-operator -n operators --channel stable --version ~1.2
  mainstay extension install teapot -p teapot-operator -n operators --config teapot.yaml --cleanup
  mainstay extension install teapot -p teapot-operator -n operators --dry-run -o yaml
  mainstay extension install teapot -p teapot-operator -n operators --with-dependencies

Exits with 1 if the extension is not installed within --timeout, and says why.";

pub(crate) const EXTENSION_UPDATE: &str = "Examples:
  mainstay extension update teapot --version 1.3.x
  mainstay extension update teapot --channel fast --upgrade-constraint-policy SelfCertified
  mainstay extension update teapot --version= --labels team=tea,stage-   # any version, one label less";

pub(crate) const EXTENSION_DELETE: &str = "Examples:
  mainstay extension delete teapot --dry-run        # the preview only
  mainstay extension delete teapot --yes
  mainstay extension delete --all --no-preview";

pub(crate) const EXTENSION_MIGRATE: &str = "Examples:
  mainstay extension migrate catalogs
  mainstay extension migrate check --all
  mainstay extension migrate convert teapot -n operators --backup teapot-backup";

pub(crate) const MIGRATE_CHECK: &str = "Examples:
  mainstay extension migrate check teapot -n operators
  mainstay extension migrate check --all -o json";

pub(crate) const MIGRATE_CONVERT: &str = "Examples:
  mainstay extension migrate convert teapot -n operators --dry-run
  mainstay extension migrate convert teapot -n operators --backup teapot-backup
  mainstay extension migrate convert --all --continue-on-error --backup backups";

pub(crate) const MIGRATE_ROLLBACK: &str = "Examples:
  mainstay extension migrate rollback teapot --acknowledge-installed
  mainstay extension migrate rollback ./teapot-backup --acknowledge-installed";

pub(crate) const MIGRATE_CLEANUP: &str = "Examples:
  mainstay extension migrate cleanup teapot --dry-run
  mainstay extension migrate cleanup teapot --delete-operatorgroup --delete-catalogsource";

pub(crate) const MIGRATE_CATALOGS: &str = "Examples:
  mainstay extension migrate catalogs --dry-run
  mainstay extension migrate catalogs --delete-catalogsource";

pub(crate) const EXTENSION_LIST: &str = "Examples:
  mainstay extension list
  mainstay extension list -l team=tea -o json
  mainstay extension list teapot";

pub(crate) const EXTENSION_DESCRIBE: &str = "Examples:
  mainstay extension describe teapot
  mainstay extension describe teapot -o yaml";

pub(crate) const EXTENSION_HISTORY: &str = "Examples:
  mainstay extension history teapot
  mainstay extension history teapot -o json";

pub(crate) const EXTENSION_ROLLBACK: &str = "Examples:
  mainstay extension rollback teapot
  mainstay extension rollback teapot --to-revision 2 --dry-run";

pub(crate) const EXTENSION_WAIT: &str = "Examples:
  mainstay extension wait teapot --for installed
  mainstay extension wait teapot --for version=1.3.x --timeout 10m
  mainstay extension wait teapot --for deleted";

pub(crate) const EXTENSION_RBAC: &str = "Examples:
  mainstay extension rbac teapot --bundle ./teapot --namespace operators | kubectl apply -f -
  mainstay extension rbac teapot                           # the installed bundle of the cluster
  mainstay extension rbac teapot --also registry.example/teapot-bundle:v1.3.0 # for an update to it
  mainstay extension rbac teapot --diff registry.example/teapot-bundle:v1.3.0
  mainstay extension rbac --bundle ./teapot --namespace operators --documented
  mainstay extension rbac teapot --users --aggregate";

pub(crate) const EXTENSION_APPROVE: &str = "Examples:
  mainstay extension approve teapot
  mainstay extension approve teapot --dry-run              # shows, and lets the cluster check
  mainstay extension approve teapot --bundle ./teapot --namespace operators --yes
  mainstay extension approve teapot --dry-run -o yaml      # the roles, for a repository";

pub(crate) const VERSION: &str = "Examples:
  mainstay version
  mainstay version -o json";

pub(crate) const COMPLETION: &str = "Examples:
  source <(mainstay completion bash)
  mainstay completion zsh > ~/.zfunc/_mainstay
  mainstay completion fish > ~/.config/fish/completions/mainstay.fish";

pub(crate) const OPM: &str = "Examples:
  mainstay opm validate ./catalog
  mainstay opm render ./catalog -o yaml
  mainstay opm serve ./catalog";

/// Examples in the help of the program itself.
pub(crate) const ALL: &str = "Examples:
  mainstay demo --exit                           # a cluster, an operator and two upgrades
  mainstay up --catalog mine=./my-catalog
  mainstay why subscription/teapot -n operators

Exit codes of all commands: 0 for success, 1 for a failure, 2 for an argument that cannot be used,
and 3 for an obstacle that the command found (docs/command-line.md).";
