package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var groupVersion2 = schema.GroupVersion{Group: groupVersion.Group, Version: "v2"}

// Hub says that the other versions are turned into this one.
func (*Site) Hub() {}

// SiteV2 is a Site in version 2, where the text is below a page.
type SiteV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpecV2 `json:"spec"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteSpecV2 is what is wanted.
type SiteSpecV2 struct {
	Page     Page   `json:"page"`
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
}

// Page is what is shown.
type Page struct {
	Text string `json:"text"`
}

// DeepCopyObject is what the client machinery asks for.
func (s *SiteV2) DeepCopyObject() runtime.Object {
	v1 := (&Site{Status: s.Status}).DeepCopy()
	return &SiteV2{TypeMeta: s.TypeMeta, ObjectMeta: *s.ObjectMeta.DeepCopy(), Spec: s.Spec, Status: v1.Status}
}

// ConvertTo makes version 1 of it.
func (s *SiteV2) ConvertTo(hub conversion.Hub) error {
	site := hub.(*Site)
	site.ObjectMeta, site.Status = s.ObjectMeta, s.Status
	site.Spec = SiteSpec{Text: s.Spec.Page.Text, Image: s.Spec.Image, Replicas: s.Spec.Replicas}
	return nil
}

// ConvertFrom makes it of version 1.
func (s *SiteV2) ConvertFrom(hub conversion.Hub) error {
	site := hub.(*Site)
	s.ObjectMeta, s.Status = site.ObjectMeta, site.Status
	s.Spec = SiteSpecV2{Page: Page{Text: site.Spec.Text}, Image: site.Spec.Image, Replicas: site.Spec.Replicas}
	return nil
}

// hooks defaults Sites and judges them.
type hooks struct{}

// Default labels a Site with its name.
func (hooks) Default(_ context.Context, site *Site) error {
	if site.Labels == nil {
		site.Labels = map[string]string{}
	}
	site.Labels["site"] = site.Name
	return nil
}

func judge(site *Site) (admission.Warnings, error) {
	if site.Spec.Text == "forbidden" {
		return nil, fmt.Errorf("text: %q may not be shown", site.Spec.Text)
	}
	if site.Spec.Replicas == 0 {
		return admission.Warnings{"nobody will see the page"}, nil
	}
	return nil, nil
}

// ValidateCreate judges a new Site.
func (hooks) ValidateCreate(_ context.Context, site *Site) (admission.Warnings, error) {
	return judge(site)
}

// ValidateUpdate judges a changed Site.
func (hooks) ValidateUpdate(_ context.Context, _, site *Site) (admission.Warnings, error) {
	return judge(site)
}

// ValidateDelete keeps Sites that somebody has locked.
func (hooks) ValidateDelete(_ context.Context, site *Site) (admission.Warnings, error) {
	if site.Labels["locked"] == "true" {
		return nil, fmt.Errorf("%s is locked", site.Name)
	}
	return nil, nil
}

// serve puts the webhooks behind the manager's server: admission at /mutate-… and /validate-…, conversion at
// /convert.
func serve(manager ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(manager, &Site{}).
		WithDefaulter(hooks{}).
		WithValidator(hooks{}).
		Complete()
}
