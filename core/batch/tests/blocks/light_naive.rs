//! A light client written from `docs/light-client.md` alone, as somebody would in another language: what it accepts is what the crate accepts.

use proptest::prelude::*;
use walras_batch::light::LightBlock;
use walras_clearing::{AssetIndex, OfferId, OfferKey, Pair};
use walras_types::{AccountId, BatchPrice};

use crate::light::{Served, block, cleared, standing};
use crate::world::{Draw, World};

fn h(name: &str, bytes: &[u8]) -> Vec<u8> {
    let key: [u8; 32] = format!("{name:32}").into_bytes().try_into().unwrap();
    blake3::keyed_hash(&key, bytes).as_bytes().to_vec()
}

/// Takes so many bytes from the front.
fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8], count: usize) -> Option<usize> {
    Some(take(bytes, count)?.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

fn starts(bytes: &mut &[u8], kind: u8) -> Option<()> {
    (take(bytes, 2)? == [1, kind]).then_some(())
}

/// Whether a light header and roots are those of a block.
fn is_block(trusted: &[u8], header: &[u8], roots: &[u8]) -> bool {
    let header = h("walras batch 3 block header", header);
    roots.len() >= 66
        && roots[..2] == [1, 4]
        && trusted == h("walras merkle 1 state root", &[&roots[2..66], &header, &roots[66..]].concat())
}

/// What an account is, as content; an empty one where there is none. `None` when it is not proven.
fn account(roots: &[u8], account: usize, mut statement: &[u8]) -> Option<Vec<u8>> {
    let s = &mut statement;
    starts(s, 5)?;
    let length = number(s, 4)?;
    let content = take(s, length)?;
    starts(s, 2)?;
    let count = number(s, 4)?;
    let mut hashes: Vec<&[u8]> = s.chunks(32).collect();
    let top = if content.is_empty() {
        (account >= count && hashes.len() == usize::from(count > 0)).then(|| hashes.concat())?
    } else {
        let (mut hash, mut at, mut level) = (h("walras merkle 1 account leaf", content), account, count);
        if at >= level {
            return None;
        }
        while level > 1 {
            let first = at / 16 * 16;
            let siblings = (level - first).min(16) - 1;
            let mut children: Vec<&[u8]> = (hashes.len() >= siblings).then(|| hashes.drain(..siblings).collect())?;
            children.insert(at - first, &hash);
            hash = h("walras merkle 1 account node", &children.concat());
            (at, level) = (at / 16, level.div_ceil(16));
        }
        hashes.is_empty().then_some(hash)?
    };
    let root = h("walras merkle 1 account root", &[&(count as u32).to_le_bytes()[..], &top].concat());
    (root == roots[2..34]).then(|| content.to_vec())
}

/// The root of the trie in which a key has this value, or is absent.
fn trie(proof: &mut &[u8], key: &[u8], value: Option<&[u8]>) -> Option<Vec<u8>> {
    starts(proof, 1)?;
    (number(proof, 1)? == key.len()).then_some(())?;
    let count = take(proof, 4)?;
    let entry = |of: &mut &[u8]| {
        let length = usize::from(*of.get(key.len())?);
        take(of, key.len() + 1 + length).map(<[u8]>::to_vec)
    };
    let mut below = match (number(proof, 1)?, value) {
        (0, Some(value)) => [key, &[value.len() as u8], value].concat(),
        (1, None) => Vec::new(),
        (2, None) => entry(proof).filter(|other| !other.starts_with(key))?,
        _ => return None,
    };
    let mut nodes = Vec::new();
    for _ in 0..number(proof, 1)? {
        let head = take(proof, 6)?;
        let (depth, way) = (head[0], head[1]);
        let [children, inner] = [2, 4].map(|at| u16::from_le_bytes([head[at], head[at + 1]]));
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for digit in (0..16).filter(|digit| children >> digit & 1 == 1 && *digit != way) {
            let hashed = if inner >> digit & 1 == 1 { take(proof, 32)?.to_vec() } else { entry(proof)? };
            if digit < way { before.extend(hashed) } else { after.extend(hashed) }
        }
        let byte = *key.get(usize::from(depth) / 2)?;
        let digit = if depth % 2 == 0 { byte >> 4 } else { byte & 15 };
        (digit == way).then_some(())?;
        nodes.push((depth, way, children, inner, before, after));
    }
    // The way ends where there is no child only if nothing is there.
    if let Some((_, way, children, ..)) = nodes.last() {
        (below.is_empty() == (children >> way & 1 == 0)).then_some(())?;
    }
    for (depth, _, children, inner, before, after) in nodes.into_iter().rev() {
        let masks = [children.to_le_bytes(), inner.to_le_bytes()].concat();
        below = h("walras merkle 1 trie node", &[&[key.len() as u8, depth][..], &masks, &before, &below, &after].concat());
    }
    Some(h("walras merkle 1 trie root", &[&[key.len() as u8], count, &below].concat()))
}

/// The value that a statement about a price or a trade proves under a root; `Some(None)` where there is none.
fn part<'s>(root: &[u8], kind: u8, key: &[u8], mut statement: &'s [u8]) -> Option<Option<&'s [u8]>> {
    let s = &mut statement;
    starts(s, kind)?;
    let value = match number(s, 1)? {
        0 => None,
        1 => Some(take(s, if kind == 8 { 8 } else { 32 })?),
        _ => return None,
    };
    (trie(s, key, value)? == root && s.is_empty()).then_some(value)
}

/// The hash of a full header: the light one's, made of it.
fn full_hash_of(full: &[u8]) -> Vec<u8> {
    let mut rest = &full[2..];
    let (place, outcomes) = (take(&mut rest, 152).unwrap(), take(&mut rest, 32).unwrap());
    let count = take(&mut rest, 4).unwrap();
    let bits = u32::from_le_bytes(count.try_into().unwrap());
    let (assets, currencies) = (bits & 0xffff, if bits >> 16 == 0 { bits } else { bits >> 16 });
    let prices: Vec<([u8; 2], [u8; 8])> = (0..assets as u16)
        .map(|asset| (asset.to_be_bytes(), take(&mut rest, 8).unwrap().try_into().unwrap()))
        .filter(|(_, price)| *price != [0; 8])
        .collect();
    let trades: Vec<([u8; 4], [u8; 32])> = (0..number(&mut rest, 4).unwrap())
        .map(|_| {
            let [sell, buy] = [number(&mut rest, 2).unwrap(), number(&mut rest, 2).unwrap()];
            let (sell, buy) = (sell as u32, buy as u32);
            let stocks = sell.saturating_sub(currencies);
            let pair = sell.min(currencies) * assets + stocks * currencies + buy;
            (pair.to_be_bytes(), take(&mut rest, 32).unwrap().try_into().unwrap())
        })
        .collect();
    assert!(rest.is_empty());
    let (prices, trades) = (walras_merkle::Trie::build(&prices[..]).root(), walras_merkle::Trie::build(&trades[..]).root());
    h("walras batch 3 block header", &[&[1, 10][..], place, count, &prices.0, &trades.0, outcomes].concat())
}

/// Amount and limit of an offer, as content; an empty one where none stands. `None` when it is not proven.
fn offer(roots: &[u8], pair: u32, key: [u64; 3], mut statement: &[u8]) -> Option<Vec<u8>> {
    let s = &mut statement;
    starts(s, 6)?;
    let content = match number(s, 1)? {
        0 => None,
        1 => Some(take(s, 16)?),
        _ => return None,
    };
    starts(s, 3)?;
    let length = number(s, 4)?;
    let mut of_pair = take(s, length)?;
    let of_offers = if s.is_empty() { None } else { Some(trie(s, &key.map(u64::to_be_bytes).concat(), content)?) };
    (s.is_empty() && (of_offers.is_some() || content.is_none())).then_some(())?;
    let root = trie(&mut of_pair, &pair.to_be_bytes(), of_offers.as_deref())?;
    (of_pair.is_empty() && root == roots[68..100]).then(|| content.unwrap_or_default().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_client_written_from_the_page_accepts_the_same(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = World::new(1 + draw.below(40) as u32 + 5, 300).with_drawn_currencies(draw);
        let _ = block(&mut world, draw);
        let done = cleared(&mut world, draw);
        let Served { hash, header: full, light: header, roots, kept } = Served::of(&done);
        let opened = LightBlock::open(&hash, &header, &roots).unwrap();
        prop_assert_eq!(full_hash_of(&full), h("walras batch 3 block header", &header));
        for at in 0..3 {
            let statement = done.header.price_statement(AssetIndex(at)).unwrap();
            let naive = part(&header[158..190], 8, &at.to_be_bytes(), &statement).unwrap();
            let price = done.header.prices[usize::from(at)].map(|price| price.bits().to_le_bytes().to_vec());
            prop_assert_eq!(naive.map(|price| price.to_vec()), price);
        }
        for (trade, _) in &done.header.trades {
            let number = world.batch.pair_number(trade.pair).unwrap();
            let statement = done.header.trade_statement(trade.pair).unwrap();
            let value = part(&header[190..222], 9, &number.to_be_bytes(), &statement);
            prop_assert_eq!(value.unwrap().unwrap()[..8].to_vec(), trade.sold.get().to_le_bytes().to_vec());
        }
        for offer in done.traded.iter().flat_map(|pair| &pair.offers) {
            let statement = done.outcomes.statement(walras_types::OfferName::of_number(offer.key().id.0));
            let length = usize::from(statement[2]);
            let leaf = h("walras batch 1 outcome", &statement[3..3 + length]);
            let root = trie(&mut &statement[3 + length..], &offer.key().id.0.to_be_bytes(), Some(&leaf)).unwrap();
            prop_assert_eq!(&root[..], &header[222..254]);
        }
        let mut change = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let at = draw.below(bytes.len() as u64) as usize;
            match draw.below(4) {
                0 => {}
                1 => bytes[at] ^= 1 << draw.below(8),
                2 => bytes.truncate(at),
                _ => bytes.insert(at, draw.below(256) as u8),
            }
            bytes
        };
        for _ in 0..20 {
            let (header, roots) = (change(&header), change(&roots));
            prop_assert_eq!(LightBlock::open(&hash, &header, &roots).is_ok(), is_block(&hash, &header, &roots));
        }
        for number in 0..world.ledger.account_count() + 2 {
            let right = world.accounts.statement(&world.ledger, AccountId(number), &kept).unwrap();
            let content = account(&roots, number as usize, &right).unwrap();
            let is_there = number < world.ledger.account_count();
            prop_assert_eq!(content, if is_there { world.accounts.content(&world.ledger, AccountId(number)) } else { Vec::new() });
            for about in [number, number + 1] {
                let statement = change(&right);
                let (naive, own) = (account(&roots, about as usize, &statement), opened.account(AccountId(about), &statement));
                prop_assert_eq!(naive.map(|content| !content.is_empty()), own.ok().map(|found| found.is_some()), "{:?}", statement);
            }
        }
        let stands: Vec<(Pair, OfferKey)> = standing(&world).into_iter().map(|(pair, offer)| (pair, offer.key())).collect();
        let pair = |sell, buy| Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
        let beside = stands.iter().map(|(pair, key)| (*pair, OfferKey { tie: key.tie ^ 1 << 60, ..*key }));
        let round = (0..3).map(|sell| pair(sell, (sell + 1) % 3)).filter(|pair| world.batch.pair_number(*pair).is_some());
        let far = round.map(|pair| (pair, OfferKey { limit: BatchPrice::MIN, tie: 0, id: OfferId(0) }));
        for (pair, key) in stands.iter().copied().chain(beside).chain(far) {
            let right = world.batch.offer_statement(pair, &key).unwrap();
            let (number, numbers) = (world.batch.pair_number(pair).unwrap(), [key.limit.bits(), key.tie, key.id.0]);
            prop_assert_eq!(offer(&roots, number, numbers, &right).map(|content| !content.is_empty()), Some(stands.contains(&(pair, key))));
            for _ in 0..3 {
                let statement = change(&right);
                let (naive, own) = (offer(&roots, number, numbers, &statement), opened.offer(pair, &key, &statement));
                prop_assert_eq!(naive.map(|content| !content.is_empty()), own.ok().map(|found| found.is_some()), "{:?}", statement);
            }
        }
    }
}
