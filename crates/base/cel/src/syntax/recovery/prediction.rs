//! Which alternative of a choice the text takes: adaptive LL(*) prediction.
//!
//! All alternatives are followed through the network at once, token by token, until one is left.
//! At first without regard to how the rule was reached; if alternatives cannot be told apart that
//! way, again with it. Where no alternative fits, the token at which the last of them fell is
//! what an error is about. (T. Parr, S. Harwell, K. Fisher: Adaptive LL(*) Parsing, 2014, with the
//! habits of the runtime that cel-go uses.)

use super::super::lexer::TokenKind;
use super::network::{Edge, Network, Role, Rule, State, Tokens, Via};
use super::stack::{EMPTY, Stack, Stacks};
use std::collections::{HashMap, HashSet};

/// What came of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prediction {
    /// The alternative, from one.
    Alternative(u8),
    /// None; the offset from the first token of the token that is to blame.
    None(usize),
    /// It takes too much time to say.
    GivenUp,
}

/// How many steps all predictions of a text may take: texts that people write take a hundredth.
const MAX_STEPS: u32 = 500_000;

/// How many tokens after which choices are remembered, of all choices together.
const MAX_KNOWN: usize = 10_000;

/// What a token says, after others, without regard to how the rule was reached.
#[derive(Clone, Copy, Debug)]
enum Known {
    Alternative(u8),
    None,
    /// It depends on how the rule was reached.
    Callers,
    /// The next token has to be asked; with the number of those before it.
    More(u32),
}

/// Where an alternative has led.
#[derive(Clone, Copy, Debug)]
struct Config {
    state: State,
    alternative: u8,
    stack: Stack,
    /// How many rules beyond the first have ended.
    outer: u32,
    /// Whether it came out of the rule of the decision at its outermost level.
    suppressed: bool,
    /// Whether an operator is too weak here.
    refused: bool,
}

#[derive(Debug, Default)]
struct Configs {
    list: Vec<Config>,
    /// By state, alternative and refusal.
    places: HashMap<(State, u8, bool), usize>,
}

impl Configs {
    fn add(&mut self, config: Config, stacks: &mut Stacks, full: bool) {
        let key = (config.state, config.alternative, config.refused);
        let place = *self.places.entry(key).or_insert(self.list.len());
        match self.list.get_mut(place) {
            None => self.list.push(config),
            Some(known) => {
                known.stack = stacks.merge(known.stack, config.stack, !full);
                known.outer = known.outer.max(config.outer);
                known.suppressed |= config.suppressed;
            }
        }
    }

    fn only_alternative(&self) -> Option<u8> {
        let first = self.list.first()?.alternative;
        self.list.iter().all(|config| config.alternative == first).then_some(first)
    }
}

/// A choice: where, in which rules, and how strong operators must be.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    pub(super) state: State,
    /// The states where the rules were called that it is in, from the outermost.
    pub(super) callers: &'a [State],
    pub(super) precedence: u8,
}

/// Predicts.
#[derive(Debug)]
pub(super) struct Predictor<'n> {
    network: &'n Network,
    stacks: Stacks,
    steps: u32,
    /// The number of each choice, before any token.
    choices: HashMap<(State, u8), u32>,
    /// What is known of choices, by tokens before and the next one.
    known: HashMap<(u32, TokenKind), Known>,
    last: u32,
}

impl<'n> Predictor<'n> {
    pub(super) fn new(network: &'n Network) -> Self {
        let (choices, known) = (HashMap::new(), HashMap::new());
        Self { network, stacks: Stacks::new(), steps: 0, choices, known, last: 0 }
    }

    /// Which alternative is taken; `look` gives tokens by their distance.
    pub(super) fn predict(
        &mut self,
        choice: &Choice<'_>,
        look: &mut dyn FnMut(usize) -> TokenKind,
    ) -> Prediction {
        let first = *self.choices.entry((choice.state, choice.precedence)).or_insert_with(|| {
            self.last += 1;
            self.last
        });
        let (mut before, mut at) = (first, 0);
        loop {
            let kind = look(at);
            match self.known.get(&(before, kind)) {
                Some(Known::Alternative(known)) => return Prediction::Alternative(*known),
                Some(Known::None) => return Prediction::None(at),
                Some(Known::Callers) => break,
                Some(Known::More(next)) => before = *next,
                None => return self.simulate(choice, first, look),
            }
            at += usize::from(kind != TokenKind::End);
        }
        self.stacks = Stacks::new();
        self.predict_with_callers(choice, look)
    }

    /// Follows all alternatives and remembers what comes of it.
    fn simulate(
        &mut self,
        choice: &Choice<'_>,
        first: u32,
        look: &mut dyn FnMut(usize) -> TokenKind,
    ) -> Prediction {
        self.stacks = Stacks::new();
        let mut configs = self.start(choice, EMPTY, false);
        if self.network.node(choice.state).operators {
            configs = self.filter(&configs);
        }
        let (mut before, mut at) = (first, 0);
        loop {
            let kind = look(at);
            let reached = self.reach(choice, &configs, kind, false);
            if self.exhausted() {
                return Prediction::GivenUp;
            }
            let known = match &reached {
                None => finished(&configs, self.network).map_or(Known::None, Known::Alternative),
                Some(reached) => match reached.only_alternative() {
                    Some(only) => Known::Alternative(only),
                    None if self.conflicts(reached) => Known::Callers,
                    None => {
                        self.last += 1;
                        let known = self.known.get(&(before, kind)).copied();
                        known.unwrap_or(Known::More(self.last))
                    }
                },
            };
            if self.known.len() < MAX_KNOWN {
                self.known.insert((before, kind), known);
            }
            match known {
                Known::Alternative(only) => return Prediction::Alternative(only),
                Known::None => return Prediction::None(at),
                Known::Callers => return self.predict_with_callers(choice, look),
                Known::More(next) => before = next,
            }
            configs = reached.unwrap_or_default();
            at += usize::from(kind != TokenKind::End);
        }
    }

    fn predict_with_callers(
        &mut self,
        choice: &Choice<'_>,
        look: &mut dyn FnMut(usize) -> TokenKind,
    ) -> Prediction {
        let stack = choice
            .callers
            .iter()
            .fold(EMPTY, |below, caller| self.stacks.push(self.network.follow(*caller), below));
        let mut configs = self.start(choice, stack, true);
        let mut at = 0_usize;
        loop {
            let kind = look(at);
            let reached = self.reach(choice, &configs, kind, true);
            if self.exhausted() {
                return Prediction::GivenUp;
            }
            let Some(reached) = reached else {
                // What is to blame is then the first token.
                return finished(&configs, self.network)
                    .map_or(Prediction::None(0), Prediction::Alternative);
            };
            if let Some(only) = reached.only_alternative() {
                return Prediction::Alternative(only);
            }
            let mut least_of = alternatives(&reached).into_values().map(u64::trailing_zeros);
            if let Some(first) = least_of.next()
                && least_of.all(|other| other == first)
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

    /// All that can be reached before the first token.
    fn start(&mut self, choice: &Choice<'_>, stack: Stack, full: bool) -> Configs {
        let mut configs = Configs::default();
        for (edge, alternative) in self.network.node(choice.state).edges.iter().zip(1..) {
            let config = Config {
                state: edge.to,
                alternative,
                stack,
                outer: 0,
                suppressed: false,
                refused: false,
            };
            let mut walk = Walk { choice, full, first: true, ended: false, busy: HashSet::new() };
            self.close(&mut walk, config, &mut configs);
        }
        configs
    }

    /// Drops operators that are too weak, and of two ways to the same place the one that leaves
    /// the rule first.
    fn filter(&mut self, configs: &Configs) -> Configs {
        let mut kept = Configs::default();
        let mut from_first = HashMap::new();
        let (first, others): (Vec<&Config>, Vec<_>) =
            configs.list.iter().partition(|config| config.alternative == 1);
        for config in first {
            if !config.refused {
                from_first.insert(config.state, config.stack);
                kept.add(*config, &mut self.stacks, false);
            }
        }
        for config in others {
            if config.suppressed || from_first.get(&config.state) != Some(&config.stack) {
                kept.add(*config, &mut self.stacks, false);
            }
        }
        kept
    }

    /// Where a token leads; nothing if nowhere.
    fn reach(
        &mut self,
        choice: &Choice<'_>,
        configs: &Configs,
        kind: TokenKind,
        full: bool,
    ) -> Option<Configs> {
        let ended = kind == TokenKind::End;
        let mut direct = Configs::default();
        let mut stopped = Vec::new();
        for config in &configs.list {
            let node = self.network.node(config.state);
            if node.role == Role::RuleStop {
                if full || ended {
                    stopped.push(*config);
                }
                continue;
            }
            for edge in &node.edges {
                if let Via::Token(tokens, _) = edge.via
                    && tokens.has(kind)
                {
                    direct.add(Config { state: edge.to, ..*config }, &mut self.stacks, full);
                }
            }
        }
        let mut reached = if stopped.is_empty() && !ended && direct.only_alternative().is_some() {
            direct
        } else {
            let mut reached = Configs::default();
            let mut walk = Walk { choice, full, first: false, ended, busy: HashSet::new() };
            for config in direct.list {
                self.close(&mut walk, config, &mut reached);
            }
            reached
        };
        if ended {
            let at_stop = |config: &Config| self.network.node(config.state).role == Role::RuleStop;
            let mut only = Configs::default();
            for config in reached.list.into_iter().filter(at_stop) {
                only.add(config, &mut self.stacks, full);
            }
            reached = only;
        }
        let at_stop = |config: &Config| self.network.node(config.state).role == Role::RuleStop;
        if !full || !reached.list.iter().any(at_stop) {
            for config in stopped {
                reached.add(config, &mut self.stacks, full);
            }
        }
        (!reached.list.is_empty()).then_some(reached)
    }

    /// Adds all that can be reached from somewhere without a token.
    fn close(&mut self, walk: &mut Walk<'_>, config: Config, into: &mut Configs) {
        let mut open = vec![(config, 0)];
        while let Some((config, depth)) = open.pop() {
            self.steps += 1;
            if self.exhausted() {
                return;
            }
            let node = self.network.node(config.state);
            if node.role == Role::RuleStop {
                if config.stack != EMPTY {
                    for (state, stack) in self.stacks.tops(config.stack) {
                        open.push((Config { state: *state, stack: *stack, ..config }, depth));
                    }
                    continue;
                }
                if walk.full {
                    into.add(config, &mut self.stacks, true);
                    continue;
                }
            }
            if node.edges.is_empty()
                || node.edges.iter().any(|edge| matches!(edge.via, Via::Token(..)))
            {
                into.add(config, &mut self.stacks, walk.full);
            }
            let skips_turn = self.is_return_to_loop(config);
            for edge in node.edges.iter().skip(usize::from(skips_turn)) {
                open.extend(self.step(walk, config, depth, edge));
            }
        }
    }

    /// A step along an edge that takes no token, if that is possible and new.
    fn step(
        &mut self,
        walk: &mut Walk<'_>,
        config: Config,
        depth: i32,
        edge: &Edge,
    ) -> Option<(Config, i32)> {
        let mut next = Config { state: edge.to, ..config };
        let mut next_depth = depth;
        match edge.via {
            Via::Nothing => {}
            Via::Token(tokens, _) => {
                if !walk.ended || !tokens.has(TokenKind::End) || !walk.is_new(next) {
                    return None;
                }
            }
            Via::Rule { follow, .. } => {
                next.stack = self.stacks.push(follow, config.stack);
                if depth >= 0 {
                    next_depth += 1;
                }
            }
            Via::Precedence(strength) => {
                if walk.first && depth == 0 && strength < walk.choice.precedence {
                    if walk.full {
                        return None;
                    }
                    next.refused = true;
                }
            }
            Via::Return { outermost } => {
                let decision = self.network.node(walk.choice.state);
                let same_rule = self.network.node(config.state).rule == decision.rule;
                next.suppressed |= decision.operators && outermost && same_rule;
                next.outer += 1;
                next_depth -= 1;
                if !walk.is_new(next) {
                    return None;
                }
            }
        }
        Some((next, next_depth))
    }

    /// Whether a loop over operators was reached from its own right operand: what could be read
    /// in another turn there is read in the turn it came from.
    fn is_return_to_loop(&self, config: Config) -> bool {
        let node = self.network.node(config.state);
        if !node.operators || config.stack == EMPTY {
            return false;
        }
        let end = self.network.node(node.edges[0].to).end;
        self.stacks.tops(config.stack).iter().all(|(state, _)| *state == end)
    }

    /// Whether alternatives have met and none goes its own way.
    fn conflicts(&self, configs: &Configs) -> bool {
        let is_stop = |config: &Config| self.network.node(config.state).role == Role::RuleStop;
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

/// A walk along edges that take no token.
#[derive(Debug)]
struct Walk<'a> {
    choice: &'a Choice<'a>,
    /// Whether it is known how the rule was reached.
    full: bool,
    /// Whether no token has been read yet.
    first: bool,
    /// Whether the text has ended.
    ended: bool,
    busy: HashSet<(State, u8, Stack, bool, bool)>,
}

impl Walk<'_> {
    fn is_new(&mut self, config: Config) -> bool {
        self.busy.insert((
            config.state,
            config.alternative,
            config.stack,
            config.suppressed,
            config.refused,
        ))
    }
}

/// Which alternatives have led to the same place.
fn alternatives(configs: &Configs) -> HashMap<(State, Stack), u64> {
    let mut found = HashMap::new();
    for config in &configs.list {
        *found.entry((config.state, config.stack)).or_default() |= 1 << config.alternative;
    }
    found
}

/// The first alternative with which the rule could end before the token that did not fit.
fn finished(configs: &Configs, network: &Network) -> Option<u8> {
    let is_done = |config: &&Config| {
        let stopped = network.node(config.state).role == Role::RuleStop;
        config.outer > 0 || (stopped && config.stack == EMPTY)
    };
    let done = |refused| {
        let of = configs.list.iter().filter(move |config| config.refused == refused);
        of.filter(is_done).map(|config| config.alternative).min()
    };
    done(false).or_else(|| done(true))
}

/// All that can come next, with the rules that it is in.
pub(super) fn expected(network: &Network, state: State, callers: &[State]) -> Tokens {
    let mut next = network.node(state).next;
    let mut expected = next.without_end();
    for caller in callers.iter().rev() {
        if !next.reaches_end() {
            break;
        }
        next = network.node(network.follow(*caller)).next;
        expected = expected.and(next.without_end());
    }
    if next.reaches_end() { expected.and(Tokens::of(&[TokenKind::End])) } else { expected }
}

/// All that can come after the rules that it is in.
pub(super) fn after_any(network: &Network, callers: &[State]) -> Tokens {
    callers.iter().fold(Tokens::NONE, |found, caller| {
        found.and(network.node(network.follow(*caller)).next.without_end())
    })
}

/// The rules of operators, whose left operands are read before they are.
pub(super) fn is_recursive(rule: Rule) -> bool {
    matches!(rule, Rule::Relation | Rule::Calc | Rule::Member)
}
