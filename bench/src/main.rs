//! wip
#[global_allocator]
static ALLOCATOR: walras_huge_pages::HugePages = walras_huge_pages::HugePages;
mod records;
use records::*;
use std::time::Instant;
use walras_order_book::*;
use walras_types::*;

#[derive(Clone, Copy)]
#[repr(C)]
struct Evt {
    kind: u32,
    owner: u32,
    a: u64,
    b: u64,
    price: i64,
    size: u64,
    open: u64,
}

struct Ring {
    buf: Vec<Evt>,
    at: usize,
    trades: u64,
    volume: u64,
}
impl Ring {
    #[inline(always)]
    fn put(&mut self, e: Evt) {
        let to = &mut self.buf[self.at & 0xfff];
        to.kind = e.kind;
        to.owner = e.owner;
        to.a = e.a;
        to.b = e.b;
        to.price = e.price;
        to.size = e.size;
        to.open = e.open;
        self.at += 1;
    }
}
impl BookEvents for Ring {
    #[inline]
    fn traded(&mut self, f: &Fill) {
        self.trades += 1;
        self.volume += f.size.get();
        self.put(Evt {
            kind: 1,
            owner: f.maker.owner.0,
            a: f.maker.order_id.0,
            b: f.taker.order_id.0,
            price: f.price.get(),
            size: f.size.get(),
            open: f.maker.open.get(),
        });
    }
    fn uncrossed(&mut self, _: PriceTicks, _: SizeLots, _: &Party, _: &Party) {}
    fn removed(&mut self, o: &OpenOrder, _: RemovalCause) {
        self.put(Evt { kind: 2, owner: o.owner.0, a: o.order_id.0, b: 0, price: o.price.get(), size: 0, open: o.open.get() });
    }
    fn reduced(&mut self, _: &OpenOrder, _: SizeLots) {}
    fn taker_reduced(&mut self, _: SizeLots, _: SizeLots) {}
    fn replenished(&mut self, _: OrderId, _: SizeLots) {}
}

#[inline(always)]
fn step(book: &mut OrderBook, ring: &mut Ring, n: u64, r: &Record, stp: SelfTrade) -> u64 {
    let owner = OwnerId(r.user);
    let cl = ClientOrderId(r.id as u64);
    match r.op {
        Op::Gtc | Op::Ioc => {
            let (Some(price), Some(size)) = (PriceTicks::new(r.price), SizeLots::order_size(r.size as u64)) else { return 1 };
            let e = Entry {
                order_id: OrderId(n),
                client_order_id: cl,
                owner,
                side: if r.side == 1 { Side::Buy } else { Side::Sell },
                price,
                size,
                time_in_force: if r.op == Op::Gtc { TimeInForce::GoodTillCancel } else { TimeInForce::ImmediateOrCancel },
                post_only: PostOnly::Off,
                display: Display::Full,
                min_size: None,
                self_trade: stp,
                trigger: None,
            };
            let out = book.submit(&e, Band::OPEN, ring);
            let (kind, open) = match out {
                Ok(p) => match p.fate {
                    Fate::Rested { open, .. } => (3, open.get()),
                    Fate::Unfilled { open } => (4, open.get()),
                    _ => (5, 0),
                },
                Err(_) => (6, 0),
            };
            ring.put(Evt { kind, owner: r.user, a: n, b: cl.0, price: r.price, size: r.size as u64, open });
        }
        Op::Cancel => {
            let Some(h) = book.find(owner, cl) else { return 1 };
            let o = book.cancel(h);
            ring.put(Evt { kind: 7, owner: r.user, a: o.order_id.0, b: cl.0, price: 0, size: 0, open: o.open.get() });
        }
        Op::Move => {
            let Some(price) = PriceTicks::new(r.price) else { return 1 };
            let Some(h) = book.find(owner, cl) else { return 1 };
            let a = book.amend(h, Some(price), None, Band::OPEN, ring);
            let open = match a {
                Ok(Amended::Requeued { placed: Placed { fate: Fate::Rested { open, .. }, .. } }) => open.get(),
                _ => 0,
            };
            ring.put(Evt { kind: 8, owner: r.user, a: 0, b: cl.0, price: r.price, size: 0, open });
        }
        Op::Reduce => {
            let Some(h) = book.find(owner, cl) else { return 1 };
            let open = book.view(h).open;
            let left = open.saturating_sub(SizeLots::new(r.size as u64));
            if left.is_zero() {
                book.cancel(h);
            } else {
                let _ = book.amend(h, None, Some(left), Band::OPEN, ring);
            }
            ring.put(Evt { kind: 9, owner: r.user, a: 0, b: cl.0, price: 0, size: r.size as u64, open: left.get() });
        }
    }
    0
}

fn hash(book: &OrderBook) -> u64 {
    let mut h: u64 = 1469598103934665603;
    let mut word = |w: u64| {
        h = (h ^ w).wrapping_mul(0x100000001b3);
    };
    for side in [Side::Sell, Side::Buy] {
        let mut d = Vec::new();
        book.depth(side, usize::MAX, &mut d);
        for l in d {
            word(l.price.get() as u64);
            word(l.shown.get());
        }
    }
    h
}

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let rounds: usize = std::env::args().nth(2).map_or(7, |s| s.parse().unwrap());
    let fill: usize = std::env::args().nth(3).map_or(0, |s| s.parse().unwrap());
    let look = std::env::args().nth(4).is_some();
    let records = read(path.as_ref()).unwrap();
    for stp in [SelfTrade::Allow, SelfTrade::CancelNewest] {
        let mut best = f64::MAX;
        let mut all = vec![];
        let mut out = String::new();
        for _ in 0..rounds {
            let mut book = OrderBook::new(Allocation::PriceTime);
            let mut ring = Ring {
                buf: vec![Evt { kind: 0, owner: 0, a: 0, b: 0, price: 0, size: 0, open: 0 }; 1 << 12],
                at: 0,
                trades: 0,
                volume: 0,
            };
            let mut missing = 0;
            book.reserve(fill + fill / 8);
            for (n, r) in records[..fill].iter().enumerate() {
                missing += step(&mut book, &mut ring, n as u64 + 1, r, stp);
            }
            let t = Instant::now();
            let mut warm = [Warmth::default(); 16];
            for n in fill..records.len() {
                let r = &records[n];
                if let Some(f) = records.get(n + 48) {
                    prefetch(f);
                }
                if look && book.wants_warming() {
                    if let Some(f) = records.get(n + 12) {
                        let owner = OwnerId(f.user);
                        let cl = ClientOrderId(f.id as u64);
                        let side = if f.side == 1 { Side::Buy } else { Side::Sell };
                        warm[(n + 12) & 15] = book.warm(owner, cl, side, PriceTicks::saturating(f.price));
                    }
                    book.warm_order(warm[(n + 8) & 15]);
                    book.warm_neighbours(warm[(n + 4) & 15]);
                }

                missing += step(&mut book, &mut ring, n as u64 + 1, r, stp);
            }
            let ns = t.elapsed().as_nanos() as f64 / (records.len() - fill) as f64;
            best = best.min(ns);
            all.push(ns);
            out = format!(
                "trades {} volume {} missing {} hash {} orders {}",
                ring.trades,
                ring.volume,
                missing,
                hash(&book),
                book.order_count()
            );
        }
        all.sort_by(f64::total_cmp);
        println!("{stp:?}: best {best:.1} median {:.1} ns  {out}", all[all.len() / 2]);
    }
}
