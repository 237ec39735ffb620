//! The question for the search: variables, and constraints between them.

use crate::candidates::EntryRef;
use crate::property::Api;
use std::rc::Rc;

/// A variable: something that is in the answer or not.
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
    /// A candidate, or an existing operator.
    Bundle(EntryRef),
    /// A Subscription, by its index.
    Subscription(usize),
    /// A demand, by its index.
    Demand(usize),
}

/// What must hold.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// The subject is in the answer.
    Mandatory,
    /// The subject is not in the answer.
    Prohibited,
    /// With the subject, one of these; earlier ones are preferred, none comes twice. Many versions
    /// require the same, so lists are shared.
    Dependency(Rc<[Var]>),
    /// Not with the subject.
    Conflict(Var),
    /// At most one of these; one that is named twice, side by side, excludes itself.
    AtMostOne(Vec<Var>),
}

/// Why it must hold.
#[derive(Clone, Debug)]
pub(crate) enum Reason {
    /// The Subscription exists.
    Exists,
    /// The Subscription cannot be met, with the text that says why.
    NoCandidates(String),
    /// The existing operator has no Subscription.
    Unsubscribed,
    /// The existing operator's Subscription, by its index, cannot be met, so that it stays.
    SubscriptionUnmet(usize),
    /// The bundle carries the mark.
    Deprecated,
    /// A rule of whoever runs the resolver, with its message.
    Forbidden(String),
    /// The bundle needs a newer Kubernetes: its least version, and the cluster's.
    Kubernetes(String, String),
    /// The Subscription asks for one of its candidates.
    SubscriptionWants,
    /// The demand exists.
    DemandExists,
    /// The demand asks for one of its candidates.
    DemandWants,
    /// The bundle states a requirement; its index among those of the bundle.
    Required(usize),
    /// An upgrade takes the place of what it upgrades.
    Upgrades,
    /// A kind has one provider.
    OneProvider(Api),
    /// A package has one operator.
    OneOfPackage(String),
}

/// One constraint.
#[derive(Clone, Debug)]
pub(crate) struct Constraint {
    /// What it is about; none for `AtMostOne`.
    pub subject: Option<Var>,
    pub rule: Rule,
    pub reason: Reason,
}

/// A whole question.
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
