//! Examples in the help of commands. A test in `mainstay-cli` parses each line, another one requires an example
//! for each command.

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
