//! The token of a Redlock, checked in all orders in which things can happen.
//!
//! Three nodes and a few clients that want one lock. The clients run the product's own rules
//! (`lock::systems::redlock::quorum`); the nodes are its scripts, told again in Rust. Any message may be lost or late,
//! a key may expire at any moment, a client may stop for ever at any point (then its next actions are just not taken),
//! and a node may lose its memory once and be admitted again. There is no time: whatever needs a clock to be prevented
//! may happen here, except that a node is admitted only when the claims that it voted for are over.
//!
//! 1. No two grants have the same token.
//! 2. A grant that began after another had completed has the larger token.
//! 3. A claim whose keys lapsed, and were taken by somebody who was granted them, never gets the larger token.
//!
//! A model proves nothing unless it can fail: each property is also checked against nodes without the guard that it
//! stands on, and must be seen to break.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::collections::BTreeSet;
use std::time::Instant;

use doublebook::lock::Token;
use doublebook::lock::systems::redlock::quorum::{Quorum, Step, Vote, majority};
use stateright::{Checker, HasDiscoveries, Model, Property};

const NODES: usize = 3;

/// What a node does wrong, or those who admit one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// It takes a proposal that is not larger than its counter.
    IgnoresTheCounter,
    /// It takes a proposal of somebody who no longer has the key.
    IgnoresTheOwner,
    /// It votes although it has lost its memory.
    VotesWithoutMemory,
    /// It is admitted while claims that it voted for may still be granted.
    AdmittedTooSoon,
}

/// What happens in a world.
#[derive(Debug, Clone, Copy)]
struct World {
    clients: usize,
    /// Whether an answer may be heard after another that was given later.
    late_answers: bool,
    /// Whether a node may lose its memory.
    amnesia: bool,
    flaw: Flaw,
    /// What has happened before.
    begins: &'static [Action],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    nodes: [Node; NODES],
    clients: Vec<Client>,
    /// Whether a node has lost its memory already.
    forgot: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Node {
    /// Who has the key, and with which token if it was written.
    key: Option<(usize, Option<Token>)>,
    /// The last token.
    counter: i64,
    /// It has lost its memory and is not admitted.
    empty: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Client {
    phase: Phase,
    wires: [Wire; NODES],
    /// The highest token that was granted before it asked.
    before: i64,
    /// The highest token that was granted to somebody after this claim had lost its keys.
    overtaken: i64,
    /// Whether it asked before a node lost its memory.
    old: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    /// It has nothing, and may ask.
    Idle,
    Claiming(Quorum),
    Granted(Token),
    /// It gave up, and is not heard of again. What it has sent may be late for ever: then it has not given up yet.
    Gone,
}

/// What is under way between a client and a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wire {
    Quiet,
    Ask,
    Write(Token),
    Answer(Vote),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Action {
    /// The client asks all nodes.
    Ask(usize),
    /// The request reaches the node.
    Reach(usize, usize),
    /// The answer reaches the client.
    Hear(usize, usize),
    /// The client stops waiting for what it has not heard. It may be lost, or come yet.
    StopWaiting(usize),
    /// The key is over at the node.
    Expire(usize),
    /// The node loses its memory.
    Forget(usize),
    /// The node is admitted again.
    Admit(usize),
}

impl Node {
    /// The smallest token that it would take.
    fn floor(&self) -> Token {
        Token::new(self.counter + 1).unwrap()
    }

    /// `ask.lua`.
    fn ask(&mut self, client: usize) -> Vote {
        let floor = self.floor();
        match self.key {
            Some((owner, _)) if owner != client => Vote::Taken { floor },
            key => {
                let token = key.and_then(|(_, token)| token);
                self.key = Some((client, token));
                Vote::Granted { floor, token }
            }
        }
    }

    /// `write.lua`.
    fn write(&mut self, client: usize, token: Token, flaw: Flaw) -> Vote {
        let is_owner = self.key.is_some_and(|(owner, _)| owner == client);
        if !is_owner && flaw != Flaw::IgnoresTheOwner {
            return Vote::Lapsed;
        }
        if self.key == Some((client, Some(token))) {
            return Vote::Written(token);
        }
        if self.counter >= token.get() && flaw != Flaw::IgnoresTheCounter {
            return Vote::Outrun {
                floor: self.floor(),
            };
        }
        self.counter = token.get();
        if is_owner {
            self.key = Some((client, Some(token)));
        }
        Vote::Written(token)
    }
}

impl Client {
    fn new() -> Self {
        Self {
            phase: Phase::Idle,
            wires: [Wire::Quiet; NODES],
            before: 0,
            overtaken: 0,
            old: false,
        }
    }

    fn token(&self) -> Option<i64> {
        match self.phase {
            Phase::Granted(token) => Some(token.get()),
            _ => None,
        }
    }

    fn is_claiming(&self) -> bool {
        matches!(self.phase, Phase::Claiming(_))
    }

    fn waits(&self) -> bool {
        match &self.phase {
            Phase::Claiming(quorum) => quorum.waited_for().next().is_some(),
            _ => false,
        }
    }

    fn give_up(&mut self) {
        self.phase = Phase::Gone;
        self.wires = [Wire::Quiet; NODES];
    }

    fn hear(&mut self, node: usize, vote: Vote) {
        match &mut self.phase {
            Phase::Claiming(quorum) => quorum.hear(node, vote),
            // A node that grants late takes the token as well.
            Phase::Granted(token) if matches!(vote, Vote::Granted { .. }) => {
                self.wires[node] = Wire::Write(*token);
            }
            _ => {}
        }
    }

    /// Does what the rules say.
    fn go_on(&mut self) {
        loop {
            let Phase::Claiming(quorum) = &mut self.phase else {
                return;
            };
            match quorum.next_step() {
                Step::Wait => return,
                Step::Write { token, nodes } => {
                    for node in nodes {
                        assert_eq!(self.wires[node], Wire::Quiet, "one request at a time");
                        self.wires[node] = Wire::Write(token);
                    }
                }
                Step::Granted(token) => self.phase = Phase::Granted(token),
                // What it has is released; that this may happen at any time or never is in `Expire`.
                Step::Refused | Step::Unavailable => self.give_up(),
            }
        }
    }
}

impl State {
    fn highest(&self) -> i64 {
        let tokens = self.clients.iter().filter_map(Client::token);
        tokens.max().unwrap_or(0)
    }

    /// Whether the grant stands at a majority: key and token.
    fn stands(&self, client: usize) -> Option<i64> {
        let token = self.clients[client].token()?;
        let stands = |node: &&Node| node.key == Some((client, Token::new(token)));
        (self.nodes.iter().filter(stands).count() >= majority(NODES)).then_some(token)
    }

    /// While a grant stands at a majority, whoever has asked everywhere has no majority and will not have one any more.
    fn overtake(&mut self) {
        let standing = (0..self.clients.len()).filter_map(|client| self.stands(client));
        let Some(token) = standing.max() else {
            return;
        };
        for client in &mut self.clients {
            if client.is_claiming() && !client.wires.contains(&Wire::Ask) {
                client.overtaken = client.overtaken.max(token);
            }
        }
    }

    fn reach(&mut self, client: usize, node: usize, flaw: Flaw) {
        let wire = &mut self.clients[client].wires[node];
        let node = &mut self.nodes[node];
        if node.empty && flaw != Flaw::VotesWithoutMemory {
            *wire = Wire::Answer(Vote::Silent);
            return;
        }
        *wire = match *wire {
            Wire::Ask => Wire::Answer(node.ask(client)),
            Wire::Write(token) => Wire::Answer(node.write(client, token, flaw)),
            quiet => quiet,
        };
    }

    fn hear(&mut self, client: usize, node: usize) {
        if let Wire::Answer(vote) = self.clients[client].wires[node] {
            self.clients[client].wires[node] = Wire::Quiet;
            self.clients[client].hear(node, vote);
            self.clients[client].go_on();
        }
    }

    fn forget(&mut self, node: usize) {
        self.forgot = true;
        self.nodes[node] = Node {
            empty: true,
            ..Node::default()
        };
        for client in &mut self.clients {
            client.old = client.is_claiming();
        }
    }

    /// What the others remember is written to it. By then the longest lease is over, so claims from before can no
    /// longer be granted: the lease is looked at last.
    fn admit(&mut self, node: usize, flaw: Flaw) {
        let counters = self.nodes.iter().map(|node| node.counter);
        self.nodes[node].counter = counters.max().unwrap();
        self.nodes[node].empty = false;
        if flaw == Flaw::AdmittedTooSoon {
            return;
        }
        for client in &mut self.clients {
            if client.old && client.is_claiming() {
                client.give_up();
            }
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let state = State {
            nodes: [Node::default(); NODES],
            clients: vec![Client::new(); self.clients],
            forgot: false,
        };
        let begins = self.begins.iter();
        vec![begins.fold(state, |state, &action| {
            self.next_state(&state, action).unwrap()
        })]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, client) in state.clients.iter().enumerate() {
            // Clients are alike, so they ask in order.
            let is_next = number == 0 || state.clients[number - 1].phase != Phase::Idle;
            if client.phase == Phase::Idle && is_next {
                actions.push(Action::Ask(number));
            }
            for (node, wire) in client.wires.iter().enumerate() {
                match wire {
                    Wire::Quiet => {}
                    // Nodes are alike, so the first client's asks reach them in order.
                    Wire::Ask if number == 0 && client.wires[..node].contains(&Wire::Ask) => {}
                    Wire::Ask | Wire::Write(_) => actions.push(Action::Reach(number, node)),
                    Wire::Answer(_) => actions.push(Action::Hear(number, node)),
                }
            }
            if client.waits() {
                actions.push(Action::StopWaiting(number));
            }
        }
        for (number, node) in state.nodes.iter().enumerate() {
            if node.key.is_some() {
                actions.push(Action::Expire(number));
            }
            if self.amnesia && !state.forgot {
                actions.push(Action::Forget(number));
            }
            if node.empty {
                actions.push(Action::Admit(number));
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        match action {
            Action::Ask(client) => {
                let before = state.highest();
                let client = &mut state.clients[client];
                client.phase = Phase::Claiming(Quorum::new(NODES));
                client.wires = [Wire::Ask; NODES];
                client.before = before;
            }
            Action::Reach(client, node) => {
                state.reach(client, node, self.flaw);
                if !self.late_answers {
                    state.hear(client, node);
                }
            }
            Action::Hear(client, node) => state.hear(client, node),
            Action::StopWaiting(client) => {
                if let Phase::Claiming(quorum) = &mut state.clients[client].phase {
                    quorum.give_up_waiting();
                }
                state.clients[client].go_on();
            }
            Action::Expire(node) => state.nodes[node].key = None,
            Action::Forget(node) => state.forget(node),
            Action::Admit(node) => state.admit(node, self.flaw),
        }
        state.overtake();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(UNIQUE, |_, state: &State| {
                let mut tokens: Vec<_> = state.clients.iter().filter_map(Client::token).collect();
                let granted = tokens.len();
                tokens.sort_unstable();
                tokens.dedup();
                tokens.len() == granted
            }),
            Property::always(RISING, |_, state: &State| {
                let mut clients = state.clients.iter();
                clients.all(|client| client.token().is_none_or(|token| token > client.before))
            }),
            Property::always(OVERTAKEN, |_, state: &State| {
                let mut overtaken = state.clients.iter().filter(|client| client.overtaken > 0);
                overtaken.all(|client| client.token().is_none_or(|token| token < client.overtaken))
            }),
            Property::sometimes(GRANTED_TO_TWO, |_, state: &State| {
                state.clients.iter().filter_map(Client::token).count() >= 2
            }),
        ]
    }
}

const UNIQUE: &str = "no two grants have the same token";
const RISING: &str = "a grant that began after another had completed has the larger token";
const OVERTAKEN: &str = "who lost its keys to a grant does not get the larger token";
/// Else the others would say little.
const GRANTED_TO_TWO: &str = "two clients can be granted the lock, one after another";

/// How much deeper the long form looks. Each step is about half as many states again.
const SOAK_STEPS: usize = 3;

/// The checker's threads. It runs beside other tests.
const THREADS: usize = 2;

/// Two clients, answers heard as they are given, all nodes with their memory.
const PLAIN: World = World {
    clients: 2,
    late_answers: false,
    amnesia: false,
    flaw: Flaw::None,
    begins: &[],
};

impl World {
    /// Looks at all states that can be reached; at those of the first `depth` steps, where all
    /// are too many; the long form goes further.
    fn check(self, depth: Option<usize>) {
        let began = Instant::now();
        let further = if std::env::var_os("DOUBLEBOOK_SOAK").is_some() {
            SOAK_STEPS
        } else {
            0
        };
        let depth = depth.map(|depth| depth + further);
        let checker = self.checker().threads(THREADS);
        let checker = checker.target_max_depth(depth.unwrap_or(usize::MAX));
        let checker = checker.spawn_bfs().join();
        let limit = depth.map_or("all".to_owned(), |depth| format!("{depth} steps of them"));
        println!(
            "{self:?}: {limit}: {} different states, {} steps deep, in {:?}",
            checker.unique_state_count(),
            checker.max_depth(),
            began.elapsed()
        );
        for property in [UNIQUE, RISING, OVERTAKEN] {
            checker.assert_no_discovery(property);
        }
        checker.assert_any_discovery(GRANTED_TO_TWO);
    }

    /// Searches until the property breaks, and fails if it does not.
    fn must_break(self, property: &'static str) {
        let found = HasDiscoveries::AllOf(BTreeSet::from([property]));
        let checker = self.checker().threads(THREADS).finish_when(found);
        let broken = checker.spawn_bfs().join().assert_any_discovery(property);
        println!(
            "{:?}: {property}: broken by {:?}",
            self.flaw,
            broken.into_actions()
        );
    }
}

#[test]
fn the_token_is_right_in_all_orders_with_a_node_that_forgets() {
    let world = World {
        amnesia: true,
        ..PLAIN
    };
    world.check(None);
}

#[test]
fn the_token_is_right_when_answers_overtake_each_other() {
    let world = World {
        late_answers: true,
        // Some client is the first one at two nodes.
        begins: &[Action::Ask(0), Action::Reach(0, 0), Action::Reach(0, 1)],
        ..PLAIN
    };
    world.check(Some(18));
}

#[test]
fn the_token_is_right_with_three_clients() {
    let world = World {
        clients: 3,
        ..PLAIN
    };
    world.check(Some(14));
}

#[test]
fn without_the_condition_on_the_counter_two_grants_have_the_same_token() {
    let world = World {
        flaw: Flaw::IgnoresTheCounter,
        ..PLAIN
    };
    world.must_break(UNIQUE);
}

#[test]
fn without_the_condition_on_the_owner_a_lost_claim_outruns_the_holder() {
    let world = World {
        flaw: Flaw::IgnoresTheOwner,
        // The first client has asked everywhere, and before it can write its keys are over.
        begins: &[
            Action::Ask(0),
            Action::Reach(0, 0),
            Action::Reach(0, 1),
            Action::Reach(0, 2),
            Action::Expire(0),
            Action::Expire(1),
            Action::Expire(2),
        ],
        ..PLAIN
    };
    world.must_break(OVERTAKEN);
}

#[test]
fn a_node_that_votes_without_its_memory_lets_tokens_fall() {
    let world = World {
        amnesia: true,
        flaw: Flaw::VotesWithoutMemory,
        ..PLAIN
    };
    world.must_break(RISING);
}

#[test]
fn a_node_that_is_admitted_too_soon_lets_tokens_fall() {
    let world = World {
        amnesia: true,
        flaw: Flaw::AdmittedTooSoon,
        ..PLAIN
    };
    world.must_break(RISING);
}
