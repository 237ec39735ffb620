//! Examples in the help of commands. A test in `mainstay-cli` parses each line, another one requires an example
//! for each command.

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

pub(crate) const BUNDLE: &str = "Examples:
  mainstay bundle validate ./kiwi
  mainstay bundle render ./kiwi";

pub(crate) const IMAGE: &str = "Examples:
  mainstay image inspect oci:catalog-v1:v1
  mainstay image copy oci:catalog-v1:v1 oci-archive:catalog.tar";

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

pub(crate) const UNINSTALL: &str = "Examples:
  mainstay uninstall teapot -n operators --dry-run       # prints the preview only
  mainstay uninstall teapot -n operators
  mainstay uninstall teapot-operator -n operators --operands --definitions
  mainstay uninstall clusterextension/teapot --keep-crds --dry-run";

pub(crate) const EXTENSION: &str = "Examples:
  mainstay extension install teapot --package teapot-operator --namespace operators
  mainstay extension list
  mainstay extension describe teapot";

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
