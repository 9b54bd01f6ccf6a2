//! Two receivers of a participant: the same program twice, each with the market data and the order entry of a leaf gateway of its own,
//! under one session with copies (`docs/adr/0042-copies-by-number-not-by-hash.md`). One gateway is killed, and each order is executed
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;

use rustix::process::Signal;
use walras_client::local_cluster::{FIRST_GATEWAY, FIRST_RELAY};
use walras_feed::message::{Message, OrderAdded};
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, SizeLots};
use walras_wire::{Command, NewOrder, OrderCommand};

use super::client::{Diary, Participant};
use super::gateways::{Ends, sharing};
use super::leaf::{Listener, wait_for_keys};
use super::{Cluster, Shape, check_told, progress, stop_in_order, until};

const ALL: [u64; 3] = [1, 2, 3];

/// The program: it joins each displayed order of more than one lot with an order of one lot, so it does not join its own. What it sends is
/// a function of the channel's messages alone, and so is the number under which it sends it.
fn joins(message: &Message) -> Option<OrderTerms> {
    match message {
        Message::OrderAdded(OrderAdded { side, price, shown, .. }) if shown.get() > 1 => {
            Some(OrderTerms::limit(*side, *price, SizeLots::new(1)))
        }
        _ => None,
    }
}

/// The commands that follow from what a gateway's listener hears.
fn commands(account: AccountId, heard: mpsc::Receiver<OrderTerms>) -> impl FnMut() -> Option<Command> + Send + 'static {
    let mut last = 0;
    move || {
        let terms = heard.try_recv().ok()?;
        last += 1;
        let (instrument, client_order_id) = (InstrumentId(0), ClientOrderId(last));
        Some(Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms })))
    }
}

#[test]
fn two_receivers_with_a_gateway_each_order_once_and_one_goes_on_when_the_others_gateway_dies() {
    let more = vec![
        ("fair_access", "sequencing", "500us".into()),
        ("fair_access", "bound_us", toml::Value::Integer(10)),
        ("feed", "heartbeat_ms", toml::Value::Integer(50)),
    ];
    let mut cluster = Cluster::of(Shape { gateways: 2, relays: 2, checkpoint_every: 200, more, ..Shape::default() });
    for id in (FIRST_RELAY..).take(2).chain((FIRST_GATEWAY..).take(2)) {
        cluster.local.start(id).unwrap();
    }
    // They hear the channel from its first message on.
    let (listeners, heard): (Vec<Listener>, Vec<mpsc::Receiver<OrderTerms>>) = cluster
        .local
        .gateways
        .iter()
        .map(|gateway| {
            let (tell, heard) = mpsc::channel();
            let listener = Listener::hearing(&gateway.dir, move |message| {
                if let Some(terms) = joins(message) {
                    // Its program may have ended.
                    let _ = tell.send(terms);
                }
            });
            (listener, heard)
        })
        .unzip();
    let mut accounts = cluster.market(3);
    for gateway in &cluster.local.gateways {
        wait_for_keys(&gateway.dir, &accounts);
    }
    let (account, key) = accounts.remove(0);
    let logged_on = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let mut programs: Vec<Participant> = Vec::new();
    for ((gateway, heard), (logged_on, ends)) in
        cluster.local.gateways.iter().zip(heard).zip(logged_on.iter().zip([Ends::Answered, Ends::AtOnce]))
    {
        let (mut next, logged_on) = (commands(account, heard), Arc::clone(logged_on));
        programs.push(sharing(&key, std::slice::from_ref(&gateway.orders), ends, move || {
            logged_on.store(true, SeqCst);
            next()
        }));
    }
    until("both have the session, before there is anything to join", || logged_on.iter().all(|is| is.load(SeqCst)));

    let orders: Vec<String> = cluster.local.replicas.iter().map(|replica| replica.orders.clone()).collect();
    let others: Vec<Participant> =
        (0x2ece..).zip(accounts).map(|(seed, (account, key))| Participant::start(account, key, orders.clone(), seed)).collect();
    progress(&programs, 100);
    cluster.local.gateways[1].signal(Signal::KILL).unwrap();
    cluster.local.gateways[1].wait().unwrap();
    let had = programs[1].answered_count();
    until("the other one goes on alone", || programs[0].answered_count() > had + 100);

    let mut diaries: Vec<Diary> = others.into_iter().map(Participant::finish).collect();
    let [first, second] = <[Participant; 2]>::try_from(programs).ok().unwrap().map(Participant::finish);
    assert!(second.answers.len() >= 100 && first.answers.len() > second.answers.len());
    assert_eq!(first.session, second.session);
    assert!(first.sent.starts_with(&second.sent), "both programs number alike");
    assert!(first.answers.starts_with(&second.answers), "both were answered by the one entry that holds the command");
    assert_eq!(first.disconnected, 0, "it noticed nothing of the other one's loss");
    for listener in listeners {
        listener.finish();
    }
    diaries.push(first);
    let end = stop_in_order(&mut cluster, &ALL);
    check_told(&cluster, &ALL, &diaries, end);
}
