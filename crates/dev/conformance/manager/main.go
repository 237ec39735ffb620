// Manager is a small operator as people write them with controller-runtime: it owns a ConfigMap and a
// Deployment for each Site, reports in the Site's status, and cleans up with a finalizer. It must run
// against Mainstay's API as it runs against any other, and is therefore free of anything of ours.
//
// With --webhooks PORT it serves webhooks, too, with the certificate in --certificates: Sites are defaulted, judged, and
// converted between two versions.
//
//	manager --kubeconfig FILE --namespace NAMESPACE [--webhooks PORT --certificates FOLDER]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	finalizer = "sites.manager.example.com/cleanup"
	owner     = "site-manager"
)

type reconciler struct {
	client.Client
	scheme   *runtime.Scheme
	recorder events.EventRecorder
}

// Reconcile brings a Site's ConfigMap (by reading and writing), Deployment (by server-side apply) and
// status in line with its spec.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.cleanUp(ctx, site)
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		if err := r.Update(ctx, site); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}

	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, page, func() error {
		page.Data = map[string]string{"index.html": site.Spec.Text}
		return controllerutil.SetControllerReference(site, page, r.scheme)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("write the ConfigMap: %w", err)
	}
	if result != controllerutil.OperationResultNone {
		r.recorder.Eventf(site, page, corev1.EventTypeNormal, "Written", "Write", "ConfigMap %s", result)
	}

	if err := r.Apply(ctx, r.web(site), client.FieldOwner(owner), client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply the Deployment: %w", err)
	}
	web := &appsv1.Deployment{}
	if err := r.Get(ctx, request.NamespacedName, web); err != nil {
		// The cache may be behind what was just applied.
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, client.IgnoreNotFound(err)
	}

	before := site.DeepCopy()
	site.Status.ObservedGeneration = site.Generation
	site.Status.Ready = web.Status.ReadyReplicas
	condition := metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionFalse,
		Reason:             "Waiting",
		Message:            fmt.Sprintf("%d of %d are ready", web.Status.ReadyReplicas, site.Spec.Replicas),
		ObservedGeneration: site.Generation,
	}
	if web.Status.ReadyReplicas == site.Spec.Replicas && web.Status.ObservedGeneration == web.Generation {
		condition.Status, condition.Reason = metav1.ConditionTrue, "AllReady"
	}
	meta.SetStatusCondition(&site.Status.Conditions, condition)
	if err := r.Status().Patch(ctx, site, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, fmt.Errorf("write the status: %w", err)
	}
	return ctrl.Result{}, nil
}

// web is what the manager wants of the Deployment, and no more: other fields are other people's.
func (r *reconciler) web(site *Site) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"site": site.Name}
	return appsapply.Deployment(site.Name, site.Namespace).
		WithLabels(labels).
		WithOwnerReferences(metaapply.OwnerReference().
			WithAPIVersion(groupVersion.String()).WithKind("Site").
			WithName(site.Name).WithUID(site.UID).
			WithController(true).WithBlockOwnerDeletion(true)).
		WithSpec(appsapply.DeploymentSpec().
			WithReplicas(site.Spec.Replicas).
			WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(coreapply.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(coreapply.PodSpec().WithContainers(
					coreapply.Container().WithName("web").WithImage(site.Spec.Image)))))
}

// cleanUp leaves a note behind (the work that the finalizer is for) and lets the Site go.
func (r *reconciler) cleanUp(ctx context.Context, site *Site) error {
	if !controllerutil.ContainsFinalizer(site, finalizer) {
		return nil
	}
	note := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-was-here"},
		Data:       map[string]string{"text": site.Spec.Text},
	}
	if err := r.Create(ctx, note); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("leave the note: %w", err)
	}
	controllerutil.RemoveFinalizer(site, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, site))
}

func run() error {
	namespace := flag.String("namespace", "", "the namespace to work in")
	port := flag.Int("webhooks", 0, "the port on which to serve webhooks")
	certificates := flag.String("certificates", "", "the folder of tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(addToScheme(scheme))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: *port, CertDir: *certificates}),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{*namespace: {}}},
		LeaderElection:                true,
		LeaderElectionID:              "sites.manager.example.com",
		LeaderElectionNamespace:       *namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	if *port != 0 {
		if err := serve(manager); err != nil {
			return err
		}
	}
	reconciler := &reconciler{
		Client:   manager.GetClient(),
		scheme:   scheme,
		recorder: manager.GetEventRecorder(owner),
	}
	// Every Site that shows a page hears of changes to a shared ConfigMap.
	shared := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		if object.GetName() != "shared" {
			return nil
		}
		sites := &SiteList{}
		if err := manager.GetClient().List(ctx, sites, client.InNamespace(*namespace)); err != nil {
			return nil
		}
		requests := make([]reconcile.Request, 0, len(sites.Items))
		for i := range sites.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sites.Items[i])})
		}
		return requests
	})
	err = ctrl.NewControllerManagedBy(manager).
		For(&Site{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Watches(&corev1.ConfigMap{}, shared).
		Complete(reconciler)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}
