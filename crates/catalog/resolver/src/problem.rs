//! Resolution problem: variables, and constraints between them. The input of the solver.

use crate::candidates::EntryRef;
use crate::property::OperatorApi;
use std::rc::Rc;

/// A variable: a bundle, Subscription or demand that is in the answer or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Var(pub u32);

impl Var {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a variable stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// A candidate of a catalog, or an existing `ClusterServiceVersion`.
    Bundle(EntryRef),
    /// A Subscription, by its index.
    Subscription(usize),
    /// A demand, by its index.
    Demand(usize),
}

/// What a constraint demands.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// The subject is in the answer.
    Mandatory,
    /// The subject is not in the answer.
    Prohibited,
    /// With the subject, one of these is in the answer; earlier ones are preferred, and the list
    /// has no duplicates. Many bundles have the same requirement, so constraints share lists.
    Dependency(Rc<[Var]>),
    /// This one is not in the answer together with the subject.
    Conflict(Var),
    /// At most one of these is in the answer; a variable that is listed twice, side by side,
    /// excludes itself.
    AtMostOne(Vec<Var>),
}

/// Why a constraint exists.
#[derive(Clone, Debug)]
pub(crate) enum Reason {
    /// The Subscription exists.
    Exists,
    /// The Subscription has no candidates, for the reason in the text.
    NoCandidates(String),
    /// The existing `ClusterServiceVersion` has no Subscription.
    Unsubscribed,
    /// The existing `ClusterServiceVersion` stays, because its Subscription, by its index, cannot
    /// be met.
    SubscriptionUnmet(usize),
    /// The bundle has the property `olm.deprecated`.
    Deprecated,
    /// A prohibition of the administrator, with its message.
    Forbidden(String),
    /// The bundle needs a newer Kubernetes: its `minKubeVersion`, and the version of the cluster.
    Kubernetes(String, String),
    /// The Subscription requires one of its candidates.
    SubscriptionWants,
    /// The demand exists.
    DemandExists,
    /// The demand requires one of its candidates.
    DemandWants,
    /// The bundle has a requirement; its index among the requirements of the bundle.
    Required(usize),
    /// An upgrade replaces the installed `ClusterServiceVersion`.
    Upgrades,
    /// An API has at most one provider.
    OneProvider(OperatorApi),
    /// A package has at most one operator.
    OneOfPackage(String),
}

/// One constraint.
#[derive(Clone, Debug)]
pub(crate) struct Constraint {
    /// The variable that it is about; none for `AtMostOne`.
    pub subject: Option<Var>,
    pub rule: Rule,
    pub reason: Reason,
}

/// A whole resolution problem.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    pub subjects: Vec<Subject>,
    pub constraints: Vec<Constraint>,
}

impl Problem {
    pub(crate) fn variable(&mut self, subject: Subject) -> Var {
        // One variable per entry and Subscription: far below the limit.
        let var = Var(u32::try_from(self.subjects.len()).unwrap_or(u32::MAX));
        self.subjects.push(subject);
        var
    }

    pub(crate) fn constrain(&mut self, subject: Option<Var>, rule: Rule, reason: Reason) {
        self.constraints.push(Constraint { subject, rule, reason });
    }
}
