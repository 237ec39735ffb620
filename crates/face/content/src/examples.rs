//! Examples in the help of commands. A test in `mainstay-cli` parses each line, another one requires an example
//! for each command.

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

pub(crate) const CRD_DIFF: &str = "Examples:
  mainstay crd diff ./kiwi-1.0.0 ./kiwi-1.1.0        # two bundle folders
  mainstay crd diff old.yaml new.yaml --override default=none
  mainstay crd diff old.yaml new.yaml -o sarif > crd.sarif";

pub(crate) const CRD_CHECK: &str = "Examples:
  mainstay crd check --cluster ./kiwi-1.1.0
  mainstay crd check --cluster --context production new.yaml -o json
  mainstay crd check --state saved.yaml new.yaml     # kubectl get crd,kiwis -A -o yaml > saved.yaml";
