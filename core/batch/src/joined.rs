//! Transactions of an account that are kept together or not at all.
//!
//! Those that are joined have numbers that follow each other, and are called a chain. Each says in its terms where it stands, so no
//! part of a chain is kept, whatever became of the rest ([`Joined`]). Of [`Joined::Next`] this is not so: what it is joined with may
//! be kept alone, or be another transaction than was meant.

use walras_types::{Amount, BatchTransaction, DropReason, Joined};

use crate::gather::Entry;
use crate::intake::{Outcome, Taken, View};

/// Whether two transactions are kept together or not at all, by what they say of each other.
fn are_joined(transactions: &[BatchTransaction], first: &Entry, second: &Entry) -> bool {
    let [first, second] = [first, second].map(|entry| &transactions[entry.1 as usize]);
    let is_next = first.sequence.0.checked_add(1) == Some(second.sequence.0);
    first.account == second.account && is_next && first.terms.joined.meets(second.terms.joined)
}

/// Whether any of these transactions is joined with another, or says that it is.
pub(crate) fn any_is_joined(transactions: &[BatchTransaction], group: &[Entry]) -> bool {
    group.iter().any(|entry| transactions[entry.1 as usize].terms.joined != Joined::No)
}

/// Adds to what is wrong with the transactions of a chain by themselves what is wrong with it as a whole: one before its first is
/// missing, or one after its last.
pub(crate) fn add_faults(transactions: &[BatchTransaction], chain: &[Entry], faults: &mut [Option<DropReason>]) {
    let joined = |entry: &Entry| transactions[entry.1 as usize].terms.joined;
    if let Some((first, fault)) = chain.first().zip(faults.first_mut())
        && joined(first).needs_one_before()
    {
        fault.get_or_insert(DropReason::JoinedMissing);
    }
    if let Some((end, fault)) = chain.last().zip(faults.last_mut())
        && joined(end).needs_next()
    {
        fault.get_or_insert(DropReason::JoinedMissing);
    }
    if faults.iter().any(Option::is_some) {
        faults.iter_mut().for_each(|fault| *fault = fault.or(Some(DropReason::JoinedDropped)));
    }
}

/// For each of an account's transactions, which are in the order of their numbers, why it is dropped before they are looked at together,
/// if it is: it or one of its chain is wrong by itself, or an end of the chain is not there. Nothing where none is joined.
pub(crate) fn torn(
    view: &View<'_>,
    transactions: &[BatchTransaction],
    group: &[Entry],
    last: u64,
    standing: impl Fn(&Entry) -> Option<Amount>,
) -> Vec<Option<DropReason>> {
    if !any_is_joined(transactions, group) {
        return Vec::new();
    }
    let mut outcome = Outcome::default();
    let nothing = outcome.mark();
    let mut own_fault = |entry: &Entry| {
        let (transaction, enough) = (&transactions[entry.1 as usize], |_| Some(Amount::MAX));
        let taken = view.take(transaction, last, &mut Taken::default(), enough, || standing(entry), &mut outcome);
        outcome.rewind(nothing);
        taken.err().filter(|reason| reason.is_of_one())
    };
    let by_number = by_number(transactions, group);
    let mut torn: Vec<(u32, Option<DropReason>)> = Vec::with_capacity(group.len());
    for chain in chains(transactions, &by_number) {
        let mut faults: Vec<Option<DropReason>> = chain.iter().map(&mut own_fault).collect();
        add_faults(transactions, chain, &mut faults);
        torn.extend(chain.iter().map(|entry| entry.1).zip(faults));
    }
    torn.sort_unstable_by_key(|(index, _)| *index);
    let fault_of = |entry: &Entry| {
        let at = torn.binary_search_by_key(&entry.1, |(index, _)| *index).expect("each was looked at");
        torn[at].1
    };
    group.iter().map(fault_of).collect()
}

/// By account and number. An entry's name is not enough: beyond the last number that there is, all names are alike. Where several have
/// one number, the order in which they came does not decide which of them the next number is joined with.
fn by_number(transactions: &[BatchTransaction], group: &[Entry]) -> Vec<Entry> {
    let mut sorted = group.to_vec();
    sorted.sort_unstable_by_key(|entry| {
        let BatchTransaction { account, sequence, terms, .. } = transactions[entry.1 as usize];
        (account, sequence, terms.joined, entry.1)
    });
    sorted
}

/// Calls `see` with the chains of transactions, of one account or of several: in the order in which their first came, and each in the order
/// of its numbers. A transaction that is joined with none is a chain of its own.
pub(crate) fn for_each_chain(transactions: &[BatchTransaction], group: &[Entry], mut see: impl FnMut(&[Entry])) {
    if !any_is_joined(transactions, group) {
        return group.chunks(1).for_each(see);
    }
    let by_number = by_number(transactions, group);
    let mut chains: Vec<&[Entry]> = chains(transactions, &by_number).collect();
    chains.sort_by_key(|chain| chain.iter().map(|entry| entry.1).min());
    chains.into_iter().for_each(&mut see);
}

/// The chains of transactions that are in the order of their numbers.
fn chains<'e>(transactions: &'e [BatchTransaction], entries: &'e [Entry]) -> impl Iterator<Item = &'e [Entry]> {
    entries.chunk_by(|a, b| are_joined(transactions, a, b))
}
