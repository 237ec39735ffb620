//! Adaptive LL(*) prediction: which alternative of a decision matches the text.
//!
//! The prediction follows all alternatives through the network, token by token, until one is left.
//! It first ignores the calling rules; if alternatives then conflict, it repeats with them. If no
//! alternative matches, the token at which the last one failed is the position of the error. (T.
//! Parr, S. Harwell, K. Fisher: Adaptive LL(*) Parsing, 2014, with the behaviour of cel-go's
//! runtime.)

use super::super::lexer::TokenKind;
use super::network::{Network, Rule, State, StateKind, Tokens, Transition, TransitionKind};
use super::stack::{EMPTY, Stack, Stacks};
use std::collections::{HashMap, HashSet};

/// The result of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prediction {
    /// The index of the alternative, from one.
    Alternative(u8),
    /// No alternative matches; the offset of the token for the error.
    None(usize),
    /// The prediction exceeded its limit.
    GivenUp,
}

/// The maximum number of steps for all predictions of a text. Typical texts take a hundredth.
const MAX_STEPS: u32 = 500_000;

/// The maximum number of cached results.
const MAX_CACHED: usize = 10_000;

/// A cached result for a token after others, without calling rules.
#[derive(Clone, Copy, Debug)]
enum CachedResult {
    Alternative(u8),
    None,
    /// The result depends on the calling rules.
    NeedsCallers,
    /// The result needs the next token; the number identifies the tokens so far.
    NeedsMore(u32),
}

/// A configuration: a state that an alternative has reached.
#[derive(Clone, Copy, Debug)]
struct Config {
    state: State,
    alternative: u8,
    stack: Stack,
    /// The number of calling rules that have ended.
    ended_callers: u32,
    /// Whether it left the rule of the decision at its outermost level.
    suppressed: bool,
    /// Whether a precedence predicate failed.
    predicate_failed: bool,
}

#[derive(Debug, Default)]
struct Configs {
    list: Vec<Config>,
    /// Indices by state, alternative and failed predicate.
    indices: HashMap<(State, u8, bool), usize>,
}

impl Configs {
    fn add(&mut self, config: Config, stacks: &mut Stacks, with_callers: bool) {
        let key = (config.state, config.alternative, config.predicate_failed);
        let index = *self.indices.entry(key).or_insert(self.list.len());
        match self.list.get_mut(index) {
            None => self.list.push(config),
            Some(cached) => {
                cached.stack = stacks.merge(cached.stack, config.stack, !with_callers);
                cached.ended_callers = cached.ended_callers.max(config.ended_callers);
                cached.suppressed |= config.suppressed;
            }
        }
    }

    fn only_alternative(&self) -> Option<u8> {
        let first = self.list.first()?.alternative;
        self.list.iter().all(|config| config.alternative == first).then_some(first)
    }
}

/// A decision with its calling rules and its minimum precedence.
#[derive(Debug)]
pub(super) struct Decision<'a> {
    pub(super) state: State,
    /// The states that called the current rules, from the outermost.
    pub(super) callers: &'a [State],
    pub(super) precedence: u8,
}

/// A predictor with its cache.
#[derive(Debug)]
pub(super) struct Predictor<'n> {
    network: &'n Network,
    stacks: Stacks,
    steps: u32,
    /// The number of each decision before any token.
    decision_numbers: HashMap<(State, u8), u32>,
    /// Cached results by the number of the tokens so far and the next token.
    cached: HashMap<(u32, TokenKind), CachedResult>,
    last: u32,
}

impl<'n> Predictor<'n> {
    pub(super) fn new(network: &'n Network) -> Self {
        let (decision_numbers, cached) = (HashMap::new(), HashMap::new());
        Self { network, stacks: Stacks::new(), steps: 0, decision_numbers, cached, last: 0 }
    }

    /// Predicts the alternative; `look` returns tokens by their distance.
    pub(super) fn predict(
        &mut self,
        decision: &Decision<'_>,
        look: &mut dyn FnMut(usize) -> TokenKind,
    ) -> Prediction {
        let first = *self
            .decision_numbers
            .entry((decision.state, decision.precedence))
            .or_insert_with(|| {
                self.last += 1;
                self.last
            });
        let (mut before, mut at) = (first, 0);
        loop {
            let kind = look(at);
            match self.cached.get(&(before, kind)) {
                Some(CachedResult::Alternative(cached)) => return Prediction::Alternative(*cached),
                Some(CachedResult::None) => return Prediction::None(at),
                Some(CachedResult::NeedsCallers) => break,
                Some(CachedResult::NeedsMore(next)) => before = *next,
                None => return self.simulate(decision, first, look),
            }
            at += usize::from(kind != TokenKind::End);
        }
        self.stacks = Stacks::new();
        self.predict_with_callers(decision, look)
    }

    /// Follows all alternatives and caches the result.
    fn simulate(
        &mut self,
        decision: &Decision<'_>,
        first: u32,
        look: &mut dyn FnMut(usize) -> TokenKind,
    ) -> Prediction {
        self.stacks = Stacks::new();
        let mut configs = self.start(decision, EMPTY, false);
        if self.network.node(decision.state).operators {
            configs = self.filter(&configs);
        }
        let (mut before, mut at) = (first, 0);
        loop {
            let kind = look(at);
            let reached = self.configs_after_token(decision, &configs, kind, false);
            if self.exhausted() {
                return Prediction::GivenUp;
            }
            let cached = match &reached {
                None => ended_alternative(&configs, self.network)
                    .map_or(CachedResult::None, CachedResult::Alternative),
                Some(reached) => match reached.only_alternative() {
                    Some(only) => CachedResult::Alternative(only),
                    None if self.conflicts(reached) => CachedResult::NeedsCallers,
                    None => {
                        self.last += 1;
                        let cached = self.cached.get(&(before, kind)).copied();
                        cached.unwrap_or(CachedResult::NeedsMore(self.last))
                    }
                },
            };
            if self.cached.len() < MAX_CACHED {
                self.cached.insert((before, kind), cached);
            }
            match cached {
                CachedResult::Alternative(only) => return Prediction::Alternative(only),
                CachedResult::None => return Prediction::None(at),
                CachedResult::NeedsCallers => return self.predict_with_callers(decision, look),
                CachedResult::NeedsMore(next) => before = next,
            }
            configs = reached.unwrap_or_default();
            at += usize::from(kind != TokenKind::End);
        }
    }

    fn predict_with_callers(
        &mut self,
        decision: &Decision<'_>,
        look: &mut dyn FnMut(usize) -> TokenKind,
    ) -> Prediction {
        let stack = decision
            .callers
            .iter()
            .fold(EMPTY, |below, caller| self.stacks.push(self.network.follow(*caller), below));
        let mut configs = self.start(decision, stack, true);
        let mut at = 0_usize;
        loop {
            let kind = look(at);
            let reached = self.configs_after_token(decision, &configs, kind, true);
            if self.exhausted() {
                return Prediction::GivenUp;
            }
            let Some(reached) = reached else {
                // The error is then at the first token.
                return ended_alternative(&configs, self.network)
                    .map_or(Prediction::None(0), Prediction::Alternative);
            };
            if let Some(only) = reached.only_alternative() {
                return Prediction::Alternative(only);
            }
            let mut first_alternatives =
                alternatives(&reached).into_values().map(u64::trailing_zeros);
            if let Some(first) = first_alternatives.next()
                && first_alternatives.all(|other| other == first)
            {
                return Prediction::Alternative(u8::try_from(first).unwrap_or(u8::MAX));
            }
            configs = reached;
            at += usize::from(kind != TokenKind::End);
        }
    }

    fn exhausted(&self) -> bool {
        self.steps > MAX_STEPS
    }

    /// All configurations before the first token.
    fn start(&mut self, decision: &Decision<'_>, stack: Stack, with_callers: bool) -> Configs {
        let mut configs = Configs::default();
        for (transition, alternative) in
            self.network.node(decision.state).transitions.iter().zip(1..)
        {
            let config = Config {
                state: transition.to,
                alternative,
                stack,
                ended_callers: 0,
                suppressed: false,
                predicate_failed: false,
            };
            let mut closure = Closure {
                decision,
                with_callers,
                first: true,
                ended: false,
                visited: HashSet::new(),
            };
            self.close(&mut closure, config, &mut configs);
        }
        configs
    }

    /// Drops configurations with a failed predicate, and of two that reach the same state the one
    /// that leaves the rule first.
    fn filter(&mut self, configs: &Configs) -> Configs {
        let mut filtered = Configs::default();
        let mut from_first = HashMap::new();
        let (first, others): (Vec<&Config>, Vec<_>) =
            configs.list.iter().partition(|config| config.alternative == 1);
        for config in first {
            if !config.predicate_failed {
                from_first.insert(config.state, config.stack);
                filtered.add(*config, &mut self.stacks, false);
            }
        }
        for config in others {
            if config.suppressed || from_first.get(&config.state) != Some(&config.stack) {
                filtered.add(*config, &mut self.stacks, false);
            }
        }
        filtered
    }

    /// The configurations after a token, if any.
    fn configs_after_token(
        &mut self,
        decision: &Decision<'_>,
        configs: &Configs,
        kind: TokenKind,
        with_callers: bool,
    ) -> Option<Configs> {
        let ended = kind == TokenKind::End;
        let mut direct = Configs::default();
        let mut stopped = Vec::new();
        for config in &configs.list {
            let node = self.network.node(config.state);
            if node.state_kind == StateKind::RuleStop {
                if with_callers || ended {
                    stopped.push(*config);
                }
                continue;
            }
            for transition in &node.transitions {
                if let TransitionKind::Token(tokens, _) = transition.kind
                    && tokens.contains(kind)
                {
                    direct.add(
                        Config { state: transition.to, ..*config },
                        &mut self.stacks,
                        with_callers,
                    );
                }
            }
        }
        let mut reached = if stopped.is_empty() && !ended && direct.only_alternative().is_some() {
            direct
        } else {
            let mut reached = Configs::default();
            let mut closure =
                Closure { decision, with_callers, first: false, ended, visited: HashSet::new() };
            for config in direct.list {
                self.close(&mut closure, config, &mut reached);
            }
            reached
        };
        if ended {
            let at_stop =
                |config: &Config| self.network.node(config.state).state_kind == StateKind::RuleStop;
            let mut only = Configs::default();
            for config in reached.list.into_iter().filter(at_stop) {
                only.add(config, &mut self.stacks, with_callers);
            }
            reached = only;
        }
        let at_stop =
            |config: &Config| self.network.node(config.state).state_kind == StateKind::RuleStop;
        if !with_callers || !reached.list.iter().any(at_stop) {
            for config in stopped {
                reached.add(config, &mut self.stacks, with_callers);
            }
        }
        (!reached.list.is_empty()).then_some(reached)
    }

    /// Adds all configurations reachable without a token (the closure).
    fn close(&mut self, closure: &mut Closure<'_>, config: Config, into: &mut Configs) {
        let mut open = vec![(config, 0)];
        while let Some((config, depth)) = open.pop() {
            self.steps += 1;
            if self.exhausted() {
                return;
            }
            let node = self.network.node(config.state);
            if node.state_kind == StateKind::RuleStop {
                if config.stack != EMPTY {
                    for (state, stack) in self.stacks.tops(config.stack) {
                        open.push((Config { state: *state, stack: *stack, ..config }, depth));
                    }
                    continue;
                }
                if closure.with_callers {
                    into.add(config, &mut self.stacks, true);
                    continue;
                }
            }
            if node.transitions.is_empty()
                || node
                    .transitions
                    .iter()
                    .any(|transition| matches!(transition.kind, TransitionKind::Token(..)))
            {
                into.add(config, &mut self.stacks, closure.with_callers);
            }
            let skips_iteration = self.is_return_to_loop(config);
            for transition in node.transitions.iter().skip(usize::from(skips_iteration)) {
                open.extend(self.step(closure, config, depth, transition));
            }
        }
    }

    /// Follows a transition without a token, if that is possible and new.
    fn step(
        &mut self,
        closure: &mut Closure<'_>,
        config: Config,
        depth: i32,
        transition: &Transition,
    ) -> Option<(Config, i32)> {
        let mut next = Config { state: transition.to, ..config };
        let mut next_depth = depth;
        match transition.kind {
            TransitionKind::Nothing => {}
            TransitionKind::Token(tokens, _) => {
                if !closure.ended || !tokens.contains(TokenKind::End) || !closure.is_new(next) {
                    return None;
                }
            }
            TransitionKind::Rule { follow, .. } => {
                next.stack = self.stacks.push(follow, config.stack);
                if depth >= 0 {
                    next_depth += 1;
                }
            }
            TransitionKind::Precedence(precedence) => {
                if closure.first && depth == 0 && precedence < closure.decision.precedence {
                    if closure.with_callers {
                        return None;
                    }
                    next.predicate_failed = true;
                }
            }
            TransitionKind::Return { outermost } => {
                let decision = self.network.node(closure.decision.state);
                let same_rule = self.network.node(config.state).rule == decision.rule;
                next.suppressed |= decision.operators && outermost && same_rule;
                next.ended_callers += 1;
                next_depth -= 1;
                if !closure.is_new(next) {
                    return None;
                }
            }
        }
        Some((next, next_depth))
    }

    /// Whether a loop over operators was reached from its own right operand. Operators there belong
    /// to the iteration that they came from.
    fn is_return_to_loop(&self, config: Config) -> bool {
        let node = self.network.node(config.state);
        if !node.operators || config.stack == EMPTY {
            return false;
        }
        let end = self.network.node(node.transitions[0].to).end;
        self.stacks.tops(config.stack).iter().all(|(state, _)| *state == end)
    }

    /// Whether alternatives conflict in every state.
    fn conflicts(&self, configs: &Configs) -> bool {
        let is_stop =
            |config: &Config| self.network.node(config.state).state_kind == StateKind::RuleStop;
        if configs.list.iter().all(is_stop) {
            return true;
        }
        let mut by_state: HashMap<State, u64> = HashMap::new();
        for config in &configs.list {
            *by_state.entry(config.state).or_default() |= 1 << config.alternative;
        }
        alternatives(configs).values().any(|alternatives| alternatives.count_ones() > 1)
            && by_state.values().all(|alternatives| alternatives.count_ones() > 1)
    }
}

/// The state of computing a closure.
#[derive(Debug)]
struct Closure<'a> {
    decision: &'a Decision<'a>,
    /// Whether calling rules count.
    with_callers: bool,
    /// Whether no token has been read yet.
    first: bool,
    /// Whether the text has ended.
    ended: bool,
    visited: HashSet<(State, u8, Stack, bool, bool)>,
}

impl Closure<'_> {
    fn is_new(&mut self, config: Config) -> bool {
        self.visited.insert((
            config.state,
            config.alternative,
            config.stack,
            config.suppressed,
            config.predicate_failed,
        ))
    }
}

/// The alternatives that have reached the same state and stack.
fn alternatives(configs: &Configs) -> HashMap<(State, Stack), u64> {
    let mut found = HashMap::new();
    for config in &configs.list {
        *found.entry((config.state, config.stack)).or_default() |= 1 << config.alternative;
    }
    found
}

/// The first alternative that could end the rule before the token that does not match.
fn ended_alternative(configs: &Configs, network: &Network) -> Option<u8> {
    let has_ended = |config: &&Config| {
        let stopped = network.node(config.state).state_kind == StateKind::RuleStop;
        config.ended_callers > 0 || (stopped && config.stack == EMPTY)
    };
    let first_ended = |predicate_failed| {
        let candidates =
            configs.list.iter().filter(move |config| config.predicate_failed == predicate_failed);
        candidates.filter(has_ended).map(|config| config.alternative).min()
    };
    first_ended(false).or_else(|| first_ended(true))
}

/// The tokens that can follow, including those after the current rules.
pub(super) fn expected_tokens(network: &Network, state: State, callers: &[State]) -> Tokens {
    let mut next = network.node(state).next;
    let mut expected_tokens = next.without_end();
    for caller in callers.iter().rev() {
        if !next.reaches_end() {
            break;
        }
        next = network.node(network.follow(*caller)).next;
        expected_tokens = expected_tokens.union(next.without_end());
    }
    if next.reaches_end() {
        expected_tokens.union(Tokens::of(&[TokenKind::End]))
    } else {
        expected_tokens
    }
}

/// The tokens that can follow any of the current rules.
pub(super) fn tokens_after_callers(network: &Network, callers: &[State]) -> Tokens {
    callers.iter().fold(Tokens::NONE, |found, caller| {
        found.union(network.node(network.follow(*caller)).next.without_end())
    })
}

/// Whether a rule is left-recursive: a rule of operators.
pub(super) fn is_recursive(rule: Rule) -> bool {
    matches!(rule, Rule::Relation | Rule::Calc | Rule::Member)
}
