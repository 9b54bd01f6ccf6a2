//! What an archive missed it reads from the log of a venue that goes on writing.

use walras_archive::{DbnForm, Files, History, Service, Settings, TradesQuery};
use walras_config::Config;
use walras_engine::Engine;
use walras_log_reader::refill::refill_of_replica;
use walras_log_store::RealDisk;
use walras_node::node::Node;
use walras_testkit::plain;
use walras_types::{InstrumentId, Side, TimeNs};
use walras_wait::until;
use walras_wire::{Command, VenueCommand};

const TRADES: u64 = 40;

/// A market in which one account buys what the other sells, so often.
fn commands() -> Vec<Command> {
    let sold = |id| [(0, Side::Sell), (1, Side::Buy)].map(|(account, side)| plain::order(account, id, side, 201, id));
    plain::opening().into_iter().chain((1..=TRADES).flat_map(sold)).collect()
}

/// An archive that had no room for anything until a venue had traded reads all of it from the log that this one has open.
fn reads_beside(config: &Config) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let node = Node::start(&data, config).unwrap();
    let venue = node.venue();
    until("it takes commands", || venue.takes_commands());
    for (at, command) in commands().into_iter().enumerate() {
        assert_eq!(venue.command_blocking(command).unwrap().rejected(), None, "{command:?}");
        // Too late to be of use: the archive has nothing from before.
        if at == 30 {
            // It is refused while one is being written.
            until("a snapshot is written", || venue.snapshot_blocking().is_ok());
        }
    }
    let state = venue.read_blocking(|v| {
        let mut bytes = Vec::new();
        v.engine.snapshot(&mut bytes);
        bytes
    });
    let state = state.unwrap();
    let mut engine = Engine::restore(&state).unwrap();
    let archive = folder.path().join("beside");
    let settings = Settings {
        folder: archive.clone(),
        depth: 5,
        snapshot_every_ns: 1,
        parquet: false,
        dbn: false,
        dbn_form: DbnForm::default(),
        orders: true,
        keep_days: 0,
    };
    let service = Service::start(settings, Files::default(), Some(refill_of_replica(RealDisk, data.join("replica")))).unwrap();
    let mut recorder = service.recorder(&engine);
    recorder.go_live();
    let (before, mut events) = (engine.last_applied(), Vec::new());
    let (next, time) = (before.next(), engine.time());
    engine.apply(next, time, &Command::Venue(VenueCommand::Tick), &mut events);
    recorder.on_entry(next, time, &events, &[], &engine);
    recorder.flush();
    let status = service.status();
    until("it is durable", || status.view().durable >= next);
    let view = status.view();
    assert_eq!((view.missing, view.trouble), (0, None));
    assert!(view.refilled >= before.0, "{} of {before}", view.refilled);
    drop(recorder);
    service.stop();
    let query = TradesQuery { instrument: InstrumentId(0), from: TimeNs(0), to: TimeNs(u64::MAX), limit: 1_000, after: None };
    let sizes: Vec<u64> = History::new(&archive).trades(&query).unwrap().trades.iter().map(|trade| trade.size.get()).collect();
    assert_eq!(sizes, (1..=TRADES).collect::<Vec<_>>());
    assert_eq!(node.stop(), None);
}

fn config() -> Config {
    let mut config = Config::default();
    config.http.listen = "127.0.0.1:0".to_owned();
    config.order_entry.listen = "127.0.0.1:0".to_owned();
    config.log.segment_bytes = 1 << 20;
    config
}

#[test]
fn a_log_is_read_beside_the_venue_that_writes_it() {
    reads_beside(&config());
}

#[test]
fn where_snapshots_come_often_too() {
    let mut config = config();
    config.log.snapshot_every_entries = 16;
    reads_beside(&config);
}
