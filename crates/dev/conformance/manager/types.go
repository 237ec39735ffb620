package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "manager.example.com", Version: "v1"}

// Site is a page that is served by some replicas.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteSpec is what is wanted.
type SiteSpec struct {
	Text     string `json:"text"`
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
}

// SiteStatus is what is there.
type SiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Ready              int32              `json:"ready"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// SiteList is several of them.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Site `json:"items"`
}

// DeepCopyObject is what the client machinery asks for.
func (s *Site) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopy returns a Site that shares nothing with this one.
func (s *Site) DeepCopy() *Site {
	copied := &Site{TypeMeta: s.TypeMeta, ObjectMeta: *s.ObjectMeta.DeepCopy(), Spec: s.Spec, Status: s.Status}
	copied.Status.Conditions = nil
	for i := range s.Status.Conditions {
		copied.Status.Conditions = append(copied.Status.Conditions, *s.Status.Conditions[i].DeepCopy())
	}
	return copied
}

// DeepCopyObject is what the client machinery asks for.
func (l *SiteList) DeepCopyObject() runtime.Object {
	copied := &SiteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopy())
	}
	return copied
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	scheme.AddKnownTypeWithName(groupVersion2.WithKind("Site"), &SiteV2{})
	metav1.AddToGroupVersion(scheme, groupVersion2)
	return nil
}
