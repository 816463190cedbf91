//! The rules of the vote, without any I/O: given the answers of the nodes as they come, what is to be done next.
//!
//! A lock is granted in two phases. In the first, a node sets the key where it is free or the owner's, and names the
//! smallest token that it would take. When a majority has, the highest of these is proposed. In the second phase a
//! node takes the proposal only **if the key is still the owner's and its counter is smaller**. When a majority has
//! taken the same proposal, the lock is granted with it as its token.
//!
//! Two grants share a node in their second phases, where each token was larger than what it found, so no two grants
//! have the same token, and one that began after another had ended has the larger one. The condition on the owner
//! keeps a claim that lost its keys from outrunning the holder who took them. (Read the highest of a majority, write
//! back to a majority: Attiya, Bar-Noy, Dolev, "Sharing memory robustly in message-passing systems", 1995.)
//!
//! It promises that nothing is decided before it is certain, and that it is decided as soon as it is: granted,
//! refused because others hold it, or unavailable because a majority of the nodes is silent. It knows no time: who
//! waits for the nodes decides how long, and looks at the lease last. `tests/redlock_model.rs` lets a model checker
//! play all orders of answers against it.

use crate::lock::claim::Token;

/// How many of so many nodes are a majority.
pub fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// What a node answers to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vote {
    /// First phase: the keys are the owner's.
    Granted {
        /// The smallest token that the node would take.
        floor: Token,
        /// What it took for this owner before, if this is not its first ask.
        token: Option<Token>,
    },
    /// First phase: a key is another's, and nothing was set.
    Taken {
        /// The smallest token that the node would take.
        floor: Token,
    },
    /// Second phase: the proposal was taken.
    Written(Token),
    /// Second phase: the counter is not smaller than the proposal.
    Outrun {
        /// The smallest token that the node would take.
        floor: Token,
    },
    /// Second phase: a key is no longer the owner's.
    Lapsed,
    /// No answer, or none that counts. A late one may come yet.
    Silent,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Wait for another answer.
    Wait,
    /// Send the proposal to these nodes. Each has only one request under way at a time.
    Write {
        /// The proposal.
        token: Token,
        /// By their numbers, from 0.
        nodes: Vec<usize>,
    },
    /// A majority has the lock with this token, if the lease is not over meanwhile.
    Granted(Token),
    /// No majority can be had, because others hold it or were faster.
    Refused,
    /// No majority can be had, because so many nodes are silent.
    Unavailable,
}

/// One claim before all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Quorum {
    nodes: Vec<Standing>,
    proposal: Option<Token>,
    /// The highest floor of any node.
    floor: Option<Token>,
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Standing {
    /// The first phase was not answered yet.
    Asked,
    /// The keys are the owner's, perhaps with a token of an earlier ask.
    Mine(Option<Token>),
    /// A proposal was not answered yet.
    Writing,
    /// It took the present proposal.
    Written,
    /// It did not take the present proposal.
    Outrun,
    Taken,
    Lapsed,
    Silent,
}

impl Quorum {
    /// All nodes have been asked.
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![Standing::Asked; nodes],
            proposal: None,
            floor: None,
        }
    }

    /// Takes note of an answer.
    pub fn hear(&mut self, node: usize, vote: Vote) {
        let standing = self.standing(vote);
        if let Some(node) = self.nodes.get_mut(node) {
            *node = standing;
        }
    }

    /// Nobody waits any longer for the nodes that have not answered.
    pub fn give_up_waiting(&mut self) {
        for node in &mut self.nodes {
            if matches!(node, Standing::Asked | Standing::Writing) {
                *node = Standing::Silent;
            }
        }
    }

    /// The nodes that are waited for.
    pub fn waited_for(&self) -> impl Iterator<Item = usize> {
        let waited_for = |node: &Standing| matches!(node, Standing::Asked | Standing::Writing);
        let nodes = self.nodes.iter().enumerate();
        nodes
            .filter(move |(_, node)| waited_for(node))
            .map(|(number, _)| number)
    }

    /// What is to be done next. What it says to write counts as sent.
    pub fn next_step(&mut self) -> Step {
        if let Some(token) = self.granted() {
            return Step::Granted(token);
        }
        if let Some(token) = self.new_proposal() {
            self.propose(token);
            return self.next_step();
        }
        if let Some(token) = self.proposal {
            let nodes = self.start_writing();
            if !nodes.is_empty() {
                return Step::Write { token, nodes };
            }
        }
        if self.is_possible() {
            return Step::Wait;
        }
        self.failure()
    }

    fn standing(&mut self, vote: Vote) -> Standing {
        match vote {
            Vote::Granted { floor, token } => {
                self.floor = self.floor.max(Some(floor));
                match token {
                    Some(token) if Some(token) == self.proposal => Standing::Written,
                    token => Standing::Mine(token),
                }
            }
            Vote::Taken { floor } => {
                self.floor = self.floor.max(Some(floor));
                Standing::Taken
            }
            Vote::Written(token) if Some(token) == self.proposal => Standing::Written,
            // It took a proposal that was outrun meanwhile; it gets the present one.
            Vote::Written(token) => Standing::Mine(Some(token)),
            Vote::Outrun { floor } => {
                self.floor = self.floor.max(Some(floor));
                if Some(floor) > self.proposal {
                    Standing::Outrun
                } else {
                    Standing::Mine(None)
                }
            }
            Vote::Lapsed => Standing::Lapsed,
            Vote::Silent => Standing::Silent,
        }
    }

    /// The token that a majority has.
    fn granted(&self) -> Option<Token> {
        match self.proposal {
            Some(proposal) => self
                .is_majority(self.count(|node| node == Standing::Written))
                .then_some(proposal),
            None => self
                .kept()
                .filter(|&token| self.is_majority(self.having(token))),
        }
    }

    /// The highest token that a node took for this owner at an earlier ask.
    fn kept(&self) -> Option<Token> {
        let tokens = self.nodes.iter().map(|node| match node {
            Standing::Mine(token) => *token,
            _ => None,
        });
        tokens.max().flatten()
    }

    fn having(&self, token: Token) -> usize {
        self.count(|node| node == Standing::Mine(Some(token)))
    }

    /// What should be proposed now instead of what is.
    fn new_proposal(&self) -> Option<Token> {
        let Some(outrun) = self.proposal else {
            return self.first_proposal();
        };
        let with = self.in_reach();
        let again = with + self.count(|node| node == Standing::Outrun);
        let hopeless = !self.is_majority(with);
        (hopeless && self.is_majority(again))
            .then(|| self.floor.filter(|&floor| floor > outrun))
            .flatten()
    }

    /// An owner that asks again keeps the token that it was granted. So it is waited for as long as a majority may
    /// have it, and proposed where only some have it: who takes it had a smaller counter.
    fn first_proposal(&self) -> Option<Token> {
        let mine = self.count(|node| matches!(node, Standing::Mine(_)));
        if !self.is_majority(mine) {
            return None;
        }
        let Some(kept) = self.kept() else {
            return self.floor;
        };
        let may_have_it = self.having(kept) + self.waited_for().count();
        (!self.is_majority(may_have_it)).then_some(kept)
    }

    fn propose(&mut self, token: Token) {
        self.proposal = Some(token);
        for node in &mut self.nodes {
            *node = match *node {
                Standing::Mine(Some(kept)) if kept == token => Standing::Written,
                Standing::Written | Standing::Outrun => Standing::Mine(None),
                other => other,
            };
        }
    }

    fn start_writing(&mut self) -> Vec<usize> {
        let mut numbers = Vec::new();
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if matches!(node, Standing::Mine(_)) {
                *node = Standing::Writing;
                numbers.push(number);
            }
        }
        numbers
    }

    fn is_possible(&self) -> bool {
        self.is_majority(self.in_reach())
    }

    /// The nodes that are won or may be yet.
    fn in_reach(&self) -> usize {
        self.count(|node| {
            matches!(
                node,
                Standing::Asked | Standing::Mine(_) | Standing::Writing | Standing::Written
            )
        })
    }

    /// Why no majority can be had, once it is certain.
    fn failure(&self) -> Step {
        let silent = self.count(|node| node == Standing::Silent);
        let blocking = self.nodes.len() - majority(self.nodes.len());
        if silent > blocking {
            Step::Unavailable
        } else if silent + self.waited_for().count() > blocking {
            Step::Wait
        } else {
            Step::Refused
        }
    }

    fn is_majority(&self, nodes: usize) -> bool {
        nodes >= majority(self.nodes.len())
    }

    fn count(&self, is: impl Fn(Standing) -> bool) -> usize {
        self.nodes.iter().filter(|&&node| is(node)).count()
    }
}

/// One question to all nodes that each answers with yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    nodes: usize,
    yes: usize,
    no: usize,
    silent: usize,
}

/// How a poll ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A majority said yes.
    Yes,
    /// So many said no that no majority can say yes.
    No,
    /// So many are silent that it could be either.
    Unknown,
}

impl Poll {
    /// All nodes have been asked.
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            yes: 0,
            no: 0,
            silent: 0,
        }
    }

    /// Takes note of an answer; `None` is silence.
    pub fn hear(&mut self, answer: Option<bool>) {
        match answer {
            Some(true) => self.yes += 1,
            Some(false) => self.no += 1,
            None => self.silent += 1,
        }
    }

    /// The outcome, once it is certain.
    pub fn outcome(&self) -> Option<Outcome> {
        let waited_for = self.nodes - self.yes - self.no - self.silent;
        let needed = majority(self.nodes);
        let blocking = self.nodes - needed + 1;
        if self.yes >= needed {
            Some(Outcome::Yes)
        } else if self.no >= blocking {
            Some(Outcome::No)
        } else if self.yes + waited_for < needed && self.no + waited_for < blocking {
            Some(Outcome::Unknown)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: i64) -> Token {
        Token::new(number).unwrap()
    }

    fn granted(floor: i64) -> Vote {
        Vote::Granted {
            floor: token(floor),
            token: None,
        }
    }

    /// Granted to an owner that has a token already.
    fn again(floor: i64, kept: i64) -> Vote {
        Vote::Granted {
            floor: token(floor),
            token: Some(token(kept)),
        }
    }

    fn taken(floor: i64) -> Vote {
        Vote::Taken {
            floor: token(floor),
        }
    }

    fn outrun(floor: i64) -> Vote {
        Vote::Outrun {
            floor: token(floor),
        }
    }

    fn written(number: i64) -> Vote {
        Vote::Written(token(number))
    }

    fn write(number: i64, nodes: &[usize]) -> Step {
        Step::Write {
            token: token(number),
            nodes: nodes.to_vec(),
        }
    }

    /// Five nodes that have answered this, from the first one on.
    fn five(votes: &[Vote]) -> Quorum {
        let mut quorum = Quorum::new(5);
        for (node, &vote) in votes.iter().enumerate() {
            quorum.hear(node, vote);
        }
        quorum
    }

    fn step(quorum: &mut Quorum, node: usize, vote: Vote) -> Step {
        quorum.hear(node, vote);
        quorum.next_step()
    }

    #[test]
    fn a_majority_is_more_than_half() {
        assert_eq!([3, 5, 7].map(majority), [2, 3, 4]);
    }

    #[test]
    fn the_highest_floor_of_a_majority_is_proposed_and_granted_when_a_majority_has_taken_it() {
        let mut quorum = five(&[granted(4), granted(9)]);
        assert_eq!(quorum.next_step(), Step::Wait);
        assert_eq!(step(&mut quorum, 2, granted(5)), write(9, &[0, 1, 2]));
        assert_eq!(quorum.next_step(), Step::Wait);
        assert_eq!(step(&mut quorum, 0, written(9)), Step::Wait);
        assert_eq!(step(&mut quorum, 1, written(9)), Step::Wait);
        assert_eq!(step(&mut quorum, 2, written(9)), Step::Granted(token(9)));
    }

    #[test]
    fn the_floor_of_a_node_that_refused_counts_as_well() {
        let mut quorum = five(&[taken(30), granted(4), granted(4)]);
        assert_eq!(step(&mut quorum, 3, granted(4)), write(30, &[1, 2, 3]));
    }

    #[test]
    fn who_grants_later_gets_the_proposal_as_well() {
        let mut quorum = five(&[granted(1), granted(1), granted(1)]);
        assert_eq!(quorum.next_step(), write(1, &[0, 1, 2]));
        assert_eq!(step(&mut quorum, 3, granted(7)), write(1, &[3]));
        quorum.hear(0, written(1));
        quorum.hear(1, Vote::Silent);
        assert_eq!(step(&mut quorum, 2, written(1)), Step::Wait);
        assert_eq!(step(&mut quorum, 3, written(1)), Step::Granted(token(1)));
    }

    #[test]
    fn three_that_refuse_are_enough_to_be_refused() {
        let mut quorum = five(&[taken(1), taken(1)]);
        assert_eq!(quorum.next_step(), Step::Wait);
        assert_eq!(step(&mut quorum, 2, taken(1)), Step::Refused);
    }

    #[test]
    fn a_split_vote_is_refused() {
        let mut quorum = five(&[granted(1), granted(1), taken(1), taken(1)]);
        assert_eq!(quorum.next_step(), Step::Wait);
        assert_eq!(step(&mut quorum, 4, taken(1)), Step::Refused);
    }

    #[test]
    fn a_silent_majority_is_unavailable_and_not_refused() {
        let mut quorum = five(&[Vote::Silent, Vote::Silent, granted(1), granted(1)]);
        assert_eq!(quorum.next_step(), Step::Wait);
        assert_eq!(step(&mut quorum, 4, Vote::Silent), Step::Unavailable);
    }

    /// Whether the lock is taken or the nodes are dead is not said before it is known.
    #[test]
    fn dead_is_told_from_taken() {
        let mut dead = five(&[Vote::Silent, Vote::Silent, taken(1)]);
        assert_eq!(dead.next_step(), Step::Wait);
        let mut taken_by_others = dead.clone();
        assert_eq!(step(&mut dead, 3, Vote::Silent), Step::Unavailable);
        assert_eq!(step(&mut taken_by_others, 3, taken(1)), Step::Wait);
        assert_eq!(step(&mut taken_by_others, 4, granted(1)), Step::Refused);
    }

    #[test]
    fn two_silent_nodes_do_not_matter() {
        let mut quorum = five(&[Vote::Silent, Vote::Silent, granted(1), granted(1)]);
        assert_eq!(step(&mut quorum, 4, granted(1)), write(1, &[2, 3, 4]));
    }

    #[test]
    fn a_late_answer_counts_although_nobody_waited_for_it() {
        let mut quorum = five(&[granted(1), granted(1), granted(1)]);
        quorum.next_step();
        quorum.hear(0, written(1));
        quorum.hear(1, written(1));
        quorum.give_up_waiting();
        let mut late_write = quorum.clone();
        assert_eq!(quorum.next_step(), Step::Unavailable);
        assert_eq!(
            step(&mut late_write, 2, written(1)),
            Step::Granted(token(1))
        );
        assert_eq!(step(&mut quorum, 4, granted(1)), write(1, &[4]));
    }

    #[test]
    fn who_is_outrun_proposes_more_to_all_that_have_answered() {
        let mut quorum = five(&[granted(1), granted(1), granted(1)]);
        assert_eq!(quorum.next_step(), write(1, &[0, 1, 2]));
        quorum.give_up_waiting();
        quorum.hear(0, written(1));
        quorum.hear(1, outrun(8));
        assert_eq!(step(&mut quorum, 2, outrun(6)), write(8, &[0, 1, 2]));
        quorum.hear(0, written(8));
        quorum.hear(1, written(8));
        assert_eq!(step(&mut quorum, 2, written(8)), Step::Granted(token(8)));
    }

    #[test]
    fn one_that_is_outrun_changes_nothing_while_a_majority_may_take_the_proposal() {
        let mut quorum = five(&[granted(1), granted(1), granted(1), granted(1)]);
        assert_eq!(quorum.next_step(), write(1, &[0, 1, 2, 3]));
        assert_eq!(step(&mut quorum, 0, outrun(8)), Step::Wait);
        quorum.hear(1, written(1));
        quorum.hear(2, written(1));
        assert_eq!(step(&mut quorum, 3, written(1)), Step::Granted(token(1)));
    }

    /// A node has one request under way at a time, so a write that is late is followed by the present proposal.
    #[test]
    fn an_answer_to_an_old_proposal_is_no_answer_to_the_new_one() {
        let mut quorum = five(&[granted(1), granted(1), granted(1)]);
        quorum.next_step();
        quorum.hear(3, Vote::Silent);
        quorum.hear(4, Vote::Silent);
        quorum.hear(0, outrun(5));
        assert_eq!(quorum.next_step(), write(5, &[0]));
        assert_eq!(step(&mut quorum, 1, written(1)), write(5, &[1]));
        assert_eq!(step(&mut quorum, 2, outrun(3)), write(5, &[2]));
        quorum.hear(0, written(5));
        quorum.hear(1, written(5));
        assert_eq!(step(&mut quorum, 2, written(5)), Step::Granted(token(5)));
    }

    #[test]
    fn keys_that_lapsed_between_the_phases_are_a_refusal() {
        let mut quorum = five(&[granted(1), granted(1), granted(1), taken(1), taken(1)]);
        quorum.next_step();
        assert_eq!(step(&mut quorum, 0, Vote::Lapsed), Step::Refused);
    }

    /// More would not help: the keys are another's.
    #[test]
    fn who_lost_its_keys_does_not_propose_more() {
        let mut quorum = five(&[granted(1), granted(1), granted(1), taken(1), taken(1)]);
        quorum.next_step();
        quorum.hear(0, outrun(9));
        assert_eq!(step(&mut quorum, 1, Vote::Lapsed), Step::Refused);
    }

    #[test]
    fn an_owner_that_asks_again_keeps_the_token_that_a_majority_has() {
        let mut quorum = five(&[again(8, 7), granted(50), again(8, 7)]);
        assert_eq!(quorum.next_step(), Step::Wait);
        assert_eq!(step(&mut quorum, 3, again(8, 7)), Step::Granted(token(7)));
    }

    #[test]
    fn a_token_that_only_some_have_is_proposed_to_the_others() {
        let votes = [again(8, 7), granted(5), again(8, 7)];
        let mut quorum = five(&votes);
        quorum.hear(3, Vote::Silent);
        assert_eq!(quorum.next_step(), Step::Wait);
        assert_eq!(step(&mut quorum, 4, Vote::Silent), write(7, &[1]));
        let mut taken_over = quorum.clone();
        assert_eq!(step(&mut quorum, 1, written(7)), Step::Granted(token(7)));
        assert_eq!(step(&mut taken_over, 1, outrun(12)), write(12, &[0, 1, 2]));
    }

    #[test]
    fn who_is_waited_for_is_known() {
        let mut quorum = five(&[granted(1), Vote::Silent, granted(1), granted(1)]);
        assert_eq!(quorum.waited_for().collect::<Vec<_>>(), [4]);
        quorum.next_step();
        assert_eq!(quorum.waited_for().collect::<Vec<_>>(), [0, 2, 3, 4]);
        quorum.give_up_waiting();
        assert_eq!(quorum.waited_for().count(), 0);
    }

    /// Every set of answers of the first phase, in which each of three nodes grants, refuses or is silent: the end is
    /// what the counts say.
    #[test]
    fn all_ends_of_a_first_phase_of_three_nodes() {
        let votes = [granted(1), taken(1), Vote::Silent];
        for number in 0..27 {
            let answers = [number / 9, number / 3 % 3, number % 3];
            let mut quorum = Quorum::new(3);
            for (node, answer) in answers.into_iter().enumerate() {
                quorum.hear(node, votes[answer]);
            }
            let of = |answer| answers.iter().filter(|&&one| one == answer).count();
            match quorum.next_step() {
                Step::Write { nodes, .. } => assert!(of(0) >= 2 && nodes.len() == of(0)),
                Step::Unavailable => assert!(of(2) >= 2),
                Step::Refused => assert!(of(0) < 2 && of(2) < 2),
                other => panic!("{answers:?} ends with {other:?}"),
            }
        }
    }

    fn poll(answers: &[Option<bool>]) -> Option<Outcome> {
        let mut poll = Poll::new(5);
        answers.iter().for_each(|&answer| poll.hear(answer));
        poll.outcome()
    }

    #[test]
    fn a_poll_ends_as_soon_as_it_is_certain() {
        let (yes, no, silent) = (Some(true), Some(false), None);
        assert_eq!(poll(&[yes, yes]), None);
        assert_eq!(poll(&[yes, yes, yes]), Some(Outcome::Yes));
        assert_eq!(poll(&[no, no, silent]), None);
        assert_eq!(poll(&[no, no, no]), Some(Outcome::No));
        assert_eq!(poll(&[silent, silent, silent]), Some(Outcome::Unknown));
        assert_eq!(poll(&[yes, no, silent, silent]), Some(Outcome::Unknown));
        assert_eq!(poll(&[yes, yes, no, silent]), None);
        assert_eq!(poll(&[yes, yes, no, no, silent]), Some(Outcome::Unknown));
    }
}
