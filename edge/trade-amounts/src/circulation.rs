//! The flow of the greatest value within the bounds, in integers.
//!
//! Think of what is *dropped*: start with every arc at its upper bound and drop as little value as possible until no asset is
//! short. The dropped value is itself a flow: an asset that is sold for less than is bought of it must drop some of what buys it,
//! which costs what was sold for that, and so on back to an asset that has something left over. Every hop costs the same, one per
//! unit, so a cheapest way is one with the fewest hops (undoing an earlier drop counts as a hop less).
//!
//! That is the transportation problem with costs of one, and the primal-dual method (Ford and Fulkerson 1957) fits it: keep a label
//! per asset, find all ways along which labels fall by exactly the cost of each hop, saturate them (a maximum flow, after Dinitz
//! 1970), raise by one the labels of all assets that still reach a short one, repeat. No way is longer than the number of assets
//! less one, so there are fewer rounds than assets, whatever the bounds: strongly polynomial, without scaling. Near an equilibrium
//! two or three rounds do.
//!
//! Sets of assets are bits, so that a step of a search is an `and` of three words per 64 assets.

use crate::bits::{BitRows, contains, insert, members, remove, words_for};
use crate::limits::STARTS_PER_LOOK;
use crate::network::{Network, ValueArc};

/// Finds best flows. Holds the tables between calls, so that a solver used again allocates nothing new.
///
/// Equal networks give equal flows, on every machine, whatever the solver did before. There is no warm start: a start from the
/// upper bounds is already near the best flow, and an answer that depended on the last one could not be checked by repeating it.
#[derive(Clone, Debug, Default)]
pub struct CirculationSolver {
    node_count: usize,
    /// Of the pair `from * node_count + to`: its place among the arcs whose bounds differ. Only entries that a bit below vouches
    /// for mean anything.
    arc_of_pair: Vec<u32>,
    /// Of each arc whose bounds differ: which it is, how much more may be dropped, and how much was.
    loose_arcs: Vec<u32>,
    droppable: Vec<i64>,
    dropped: Vec<i64>,
    /// Row `v`: the assets `u` with something droppable on the arc from `u` to `v`.
    can_drop_into: BitRows,
    /// Row `u`: the assets `v` with something dropped on the arc from `u` to `v`.
    can_restore_from: BitRows,
    /// What an asset has left over (positive) or is short of (negative) at the flow so far.
    spare: Vec<i128>,
    label: Vec<u32>,
    /// Row `k`: the assets with label `k`.
    with_label: BitRows,
    label_max: usize,
    /// The assets that are short, that have something left over, that a search reached.
    short: Vec<u64>,
    over: Vec<u64>,
    reached: Vec<u64>,
    /// Row `i`: the assets `i` hops from a short one, less those found to lead nowhere.
    at_distance: BitRows,
    candidates: Vec<u64>,
    path: Vec<u32>,
}

/// What a solver found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The best flow.
    Best(Circulation),
    /// No flow keeps the bounds.
    Infeasible(Cut),
}

/// A flow of the greatest value, with a proof that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circulation {
    /// The value on each arc, in the order of the network's arcs.
    pub flows: Vec<i64>,
    /// Their sum.
    pub value: i128,
    /// The proof: see [`Circulation::check`].
    pub labels: Vec<u32>,
    /// How often labels were raised.
    pub round_count: u32,
}

/// Why no flow keeps the bounds: even if the arcs out of these assets carry their upper bounds, and those into them no more than
/// their lower bounds, together they are sold for too little.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The assets, in ascending order.
    pub assets: Vec<u32>,
    /// What at least flows into them.
    pub lower_in: i128,
    /// What at most flows out of them.
    pub upper_out: i128,
    /// The sum of their least surpluses; `upper_out - lower_in` is less.
    pub surplus_min: i128,
}

impl CirculationSolver {
    /// A solver without tables yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The flow of the greatest value, or why there is none within the bounds.
    pub fn solve(&mut self, network: &Network<'_>) -> Answer {
        self.solve_until(network, &|| false).expect("nothing ends the search before it is done")
    }

    /// The same; `None` when `is_over` says so before there is an answer. It is asked after each search of the network, and on the
    /// way through the assets that drop.
    pub fn solve_until(&mut self, network: &Network<'_>, is_over: &dyn Fn() -> bool) -> Option<Answer> {
        self.load(network);
        let mut round_count = 0;
        loop {
            if !self.saturate(is_over) {
                return None;
            }
            if self.short.iter().all(|&word| word == 0) {
                return Some(Answer::Best(self.circulation(network, round_count)));
            }
            if !self.raise_labels() {
                return Some(Answer::Infeasible(cut(network, &self.reached)));
            }
            round_count += 1;
        }
    }

    /// All arcs at their upper bounds, all labels zero.
    fn load(&mut self, network: &Network<'_>) {
        let node_count = network.node_count();
        let words = words_for(node_count);
        self.node_count = node_count;
        if self.arc_of_pair.len() < node_count * node_count {
            self.arc_of_pair.resize(node_count * node_count, 0);
        }
        self.can_drop_into.reset(node_count, node_count);
        self.can_restore_from.reset(node_count, node_count);
        self.spare.clear();
        self.spare.extend(network.surplus_min().iter().map(|&surplus| -i128::from(surplus)));
        self.loose_arcs.clear();
        self.droppable.clear();
        for (arc, index) in network.arcs().iter().zip(0..) {
            let (from, to) = (arc.from as usize, arc.to as usize);
            self.spare[from] += i128::from(arc.upper);
            self.spare[to] -= i128::from(arc.upper);
            if arc.upper > arc.lower {
                self.arc_of_pair[from * node_count + to] = self.loose_arcs.len() as u32;
                self.can_drop_into.insert(to, from);
                self.loose_arcs.push(index);
                self.droppable.push(arc.upper - arc.lower);
            }
        }
        self.dropped.clear();
        self.dropped.resize(self.loose_arcs.len(), 0);
        for set in [&mut self.short, &mut self.over, &mut self.reached, &mut self.candidates] {
            set.clear();
            set.resize(words, 0);
        }
        self.at_distance.reset(1, node_count);
        self.with_label.reset(1, node_count);
        self.label_max = 0;
        self.label.clear();
        self.label.resize(node_count, 0);
        for node in 0..node_count {
            self.with_label.insert(0, node);
            if self.spare[node] > 0 {
                insert(&mut self.over, node);
            }
            if self.spare[node] < 0 {
                insert(&mut self.short, node);
            }
        }
    }

    /// Drops along ways whose every hop keeps the labels' balance until there is none from an asset left over to a short one.
    /// Leaves in `reached` the assets from which a short one can still be reached, the short ones included. False when `is_over`
    /// ended it before that.
    fn saturate(&mut self, is_over: &dyn Fn() -> bool) -> bool {
        while let Some(last) = self.search() {
            if is_over() {
                return false;
            }
            let mut start_count = 0;
            for start in 0..self.node_count {
                if contains(self.at_distance.row(0), start) {
                    start_count += 1;
                    if start_count % STARTS_PER_LOOK == 0 && is_over() {
                        return false;
                    }
                    self.drop_from(start, last);
                }
            }
        }
        true
    }

    /// Breadth first from the short assets, backward. The distance of the nearest assets with something left over.
    fn search(&mut self) -> Option<usize> {
        self.at_distance.row_mut(0).copy_from_slice(&self.short);
        self.reached.copy_from_slice(&self.short);
        let mut distance = 0;
        loop {
            self.at_distance.grow(distance + 2);
            let (here, next) = self.at_distance.rows_mut(distance, distance + 1);
            next.fill(0);
            for node in members(here) {
                let ways = Ways { into: &self.can_drop_into, from: &self.can_restore_from, with_label: &self.with_label };
                ways.visit(node, self.label[node] as usize, self.label_max, |index, found| next[index] |= found);
            }
            let (mut is_empty, mut is_over) = (true, false);
            for ((word, reached), over) in next.iter_mut().zip(&mut self.reached).zip(&self.over) {
                *word &= !*reached;
                *reached |= *word;
                is_empty &= *word == 0;
                is_over |= *word & over != 0;
            }
            distance += 1;
            if is_over {
                return Some(distance);
            }
            if is_empty {
                return None;
            }
        }
    }

    /// Drops along shortest ways that end in `start` until it is no longer short or none is left.
    fn drop_from(&mut self, start: usize, last: usize) {
        self.path.clear();
        self.path.push(start as u32);
        while let Some(&top) = self.path.last() {
            let (node, distance) = (top as usize, self.path.len() - 1);
            if distance == last {
                if contains(&self.over, node) {
                    self.drop_along_path();
                } else {
                    remove(self.at_distance.row_mut(distance), node);
                    self.path.pop();
                }
            } else if let Some(next) = self.next_hop(node, distance + 1) {
                self.path.push(next);
            } else {
                remove(self.at_distance.row_mut(distance), node);
                self.path.pop();
            }
            if self.spare[start] >= 0 {
                return;
            }
        }
    }

    /// The first asset at this distance that can drop toward `node`.
    fn next_hop(&mut self, node: usize, distance: usize) -> Option<u32> {
        let at_distance = self.at_distance.row(distance);
        self.candidates.fill(0);
        let candidates = &mut self.candidates;
        let ways = Ways { into: &self.can_drop_into, from: &self.can_restore_from, with_label: &self.with_label };
        ways.visit(node, self.label[node] as usize, self.label_max, |index, found| candidates[index] |= found & at_distance[index]);
        members(&self.candidates).next().map(|next| next as u32)
    }

    /// Drops as much as the path allows, and cuts the path back to where it can go on.
    fn drop_along_path(&mut self) {
        let (start, end) = (self.path[0] as usize, self.path[self.path.len() - 1] as usize);
        let mut amount = self.spare[start].unsigned_abs().min(self.spare[end].unsigned_abs());
        for hop in self.path.windows(2) {
            let (arc, restores) = self.arc_of_hop(hop);
            let room = if restores { self.dropped[arc] } else { self.droppable[arc] };
            amount = amount.min(u128::from(room.unsigned_abs()));
        }
        // At least one of the three is a room on an arc, below 2^62.
        let value = i64::try_from(amount).expect("a path has a hop, whose room fits 62 bits");
        let mut keep = self.path.len();
        for position in (1..self.path.len()).rev() {
            if !self.shift_hop(position, value) {
                keep = position;
            }
        }
        self.spare[start] += i128::from(value);
        self.spare[end] -= i128::from(value);
        if self.spare[start] == 0 {
            remove(&mut self.short, start);
        }
        if self.spare[end] == 0 {
            remove(&mut self.over, end);
        }
        self.path.truncate(keep);
    }

    /// Whether the hop from `path[position - 1]` back to `path[position]` still has room after `value` more goes along it.
    fn shift_hop(&mut self, position: usize, value: i64) -> bool {
        let (node, next) = (self.path[position - 1] as usize, self.path[position] as usize);
        let (arc, restores) = self.arc_of_hop(&self.path[position - 1..=position]);
        if restores {
            self.dropped[arc] -= value;
            self.droppable[arc] += value;
            self.can_drop_into.insert(next, node);
            if self.dropped[arc] == 0 {
                self.can_restore_from.remove(node, next);
            }
            self.dropped[arc] > 0
        } else {
            self.dropped[arc] += value;
            self.droppable[arc] -= value;
            self.can_restore_from.insert(next, node);
            if self.droppable[arc] == 0 {
                self.can_drop_into.remove(node, next);
            }
            self.droppable[arc] > 0
        }
    }

    /// The arc between two neighbours of the path, and whether the hop restores what was dropped on it: then the label rises by one
    /// along the hop, else it falls by one.
    #[inline]
    fn arc_of_hop(&self, hop: &[u32]) -> (usize, bool) {
        let (node, next) = (hop[0] as usize, hop[1] as usize);
        let restores = self.label[next] > self.label[node];
        let pair = if restores { node * self.node_count + next } else { next * self.node_count + node };
        (self.arc_of_pair[pair] as usize, restores)
    }

    /// Raises the labels of the reached assets by one. False when nothing that was not reached can help them, at any label.
    fn raise_labels(&mut self) -> bool {
        let can_grow = members(&self.reached).any(|node| {
            let words = self.can_drop_into.row(node).iter().zip(self.can_restore_from.row(node)).zip(&self.reached);
            words.into_iter().any(|((drop, restore), reached)| (drop | restore) & !reached != 0)
        });
        if !can_grow {
            return false;
        }
        self.with_label.grow(self.label_max + 2);
        for label in (0..=self.label_max).rev() {
            let (low, high) = self.with_label.rows_mut(label, label + 1);
            for ((low, high), reached) in low.iter_mut().zip(high).zip(&self.reached) {
                *high |= *low & reached;
                *low &= !reached;
            }
        }
        for node in members(&self.reached) {
            self.label[node] += 1;
            self.label_max = self.label_max.max(self.label[node] as usize);
        }
        true
    }

    fn circulation(&self, network: &Network<'_>, round_count: u32) -> Circulation {
        let mut flows: Vec<i64> = network.arcs().iter().map(|arc| arc.upper).collect();
        for (&arc, dropped) in self.loose_arcs.iter().zip(&self.dropped) {
            flows[arc as usize] -= dropped;
        }
        let value = flows.iter().map(|&flow| i128::from(flow)).sum();
        Circulation { flows, value, labels: self.label.clone(), round_count }
    }
}

/// The tables that say from where an asset can be helped.
struct Ways<'a> {
    into: &'a BitRows,
    from: &'a BitRows,
    with_label: &'a BitRows,
}

impl Ways<'_> {
    /// Calls with each word of the set of assets that can drop toward `node` at the labels as they are.
    #[inline]
    fn visit(&self, node: usize, label: usize, label_max: usize, mut word: impl FnMut(usize, u64)) {
        if label > 0 {
            let pairs = self.into.row(node).iter().zip(self.with_label.row(label - 1));
            pairs.enumerate().for_each(|(index, (can, labelled))| word(index, can & labelled));
        }
        if label < label_max {
            let pairs = self.from.row(node).iter().zip(self.with_label.row(label + 1));
            pairs.enumerate().for_each(|(index, (can, labelled))| word(index, can & labelled));
        }
    }
}

fn cut(network: &Network<'_>, inside: &[u64]) -> Cut {
    let is_inside = |node: u32| contains(inside, node as usize);
    let sum = |bound: fn(&ValueArc) -> i64, crosses: &dyn Fn(&ValueArc) -> bool| {
        network.arcs().iter().filter(|arc| crosses(arc)).map(|arc| i128::from(bound(arc))).sum()
    };
    Cut {
        assets: members(inside).map(|node| node as u32).collect(),
        lower_in: sum(|arc| arc.lower, &|arc| !is_inside(arc.from) && is_inside(arc.to)),
        upper_out: sum(|arc| arc.upper, &|arc| is_inside(arc.from) && !is_inside(arc.to)),
        surplus_min: members(inside).map(|node| i128::from(network.surplus_min()[node])).sum(),
    }
}

impl Circulation {
    /// Whether this is a flow of the greatest value in the network, in one pass and without solving anything.
    ///
    /// The labels prove it: with label `l`, dropping on the arc from u to v is worth `1 + l(u) - l(v)`. Where that is positive
    /// nothing is dropped, where it is negative as much as possible is, and only assets with label zero keep more than their least
    /// surplus. By complementary slackness no flow has more value.
    #[must_use]
    pub fn check(&self, network: &Network<'_>) -> bool {
        let (arcs, label) = (network.arcs(), |node: u32| i64::from(self.labels[node as usize]));
        if self.flows.len() != arcs.len() || self.labels.len() != network.node_count() {
            return false;
        }
        let mut spare: Vec<i128> = network.surplus_min().iter().map(|&surplus| -i128::from(surplus)).collect();
        for (arc, &flow) in arcs.iter().zip(&self.flows) {
            let price = 1 + label(arc.from) - label(arc.to);
            let is_best = (price <= 0 || flow == arc.upper) && (price >= 0 || flow == arc.lower);
            if !is_best || flow < arc.lower || flow > arc.upper {
                return false;
            }
            spare[arc.from as usize] += i128::from(flow);
            spare[arc.to as usize] -= i128::from(flow);
        }
        let total: i128 = self.flows.iter().map(|&flow| i128::from(flow)).sum();
        total == self.value && spare.iter().zip(&self.labels).all(|(&spare, &label)| spare == 0 || (spare > 0 && label == 0))
    }
}

impl Cut {
    /// Whether this proves that no flow in the network keeps the bounds.
    #[must_use]
    pub fn check(&self, network: &Network<'_>) -> bool {
        let mut inside = vec![0; words_for(network.node_count())];
        for &asset in &self.assets {
            if asset as usize >= network.node_count() {
                return false;
            }
            insert(&mut inside, asset as usize);
        }
        *self == cut(network, &inside) && self.upper_out - self.lower_in < self.surplus_min
    }
}
