//! Every key, once: its section, type, default and meaning.

use serde::Deserialize;

macro_rules! sections {
    ($($field:ident: $times:ident $(#[doc = $section_doc:literal])* $section:ident {
        $($(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:tt;)*
    })*) => {
        /// The whole configuration.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(default)]
        pub struct Config { $($(#[doc = $section_doc])* pub $field: $times<$section>,)* }

        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
            #[serde(default)]
            pub struct $section { $($(#[doc = $doc])+ pub $key: $type,)* }

            impl Default for $section {
                fn default() -> Self { Self { $($key: $default.into(),)* } }
            }
        )*

        impl Config {
            /// The sections that differ.
            fn differing_sections(&self, other: &Self) -> Vec<&'static str> {
                let sections = [$((stringify!($field), self.$field == other.$field),)*];
                sections.into_iter().filter(|(_, is_same)| !is_same).map(|(section, _)| section).collect()
            }
        }

        impl Key {
            /// Every key, section by section.
            pub const ALL: &[Key] = &[$($(Key {
                section: stringify!($field), times: Times::$times, name: stringify!($key), literal: stringify!($default),
                doc: concat!($($doc),+),
            },)*)*];
        }
    };
}

/// A section that stands once, as `[section]`.
type Once<T> = T;

/// One that stands as often as there are such things, as `[[section]]`.
type Each<T> = Vec<T>;

/// How often a section may stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Once, as `[section]`.
    Once,
    /// Any number of times, as `[[section]]`.
    Each,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its section, such as `http`.
    pub section: &'static str,
    /// How often that may stand.
    pub times: Times,
    /// Its name.
    pub name: &'static str,
    literal: &'static str,
    /// What it means, units included.
    pub doc: &'static str,
}

impl Config {
    /// The sections in which `later` says something that a venue takes over only when it starts.
    #[must_use]
    pub fn sections_that_need_a_restart(&self, later: &Self) -> Vec<&'static str> {
        let mut now = self.clone();
        let Cluster { peers, genesis, listen, keys, insecure_loopback, .. } = later.cluster.clone();
        now.cluster = Cluster { peers, genesis, listen, keys, insecure_loopback, ..now.cluster };
        let OrderEntry { certificate, private_key, .. } = later.order_entry.clone();
        now.order_entry = OrderEntry { certificate, private_key, ..now.order_entry };
        now.differing_sections(later)
    }
}

impl Engine {
    /// Threads that share the work of a block.
    #[must_use]
    pub fn threads(&self) -> std::num::NonZero<usize> {
        let all = || std::thread::available_parallelism().unwrap_or(std::num::NonZero::<usize>::MIN);
        std::num::NonZero::new(self.threads).unwrap_or_else(all)
    }
}

impl Key {
    /// Its default, as TOML.
    #[must_use]
    pub fn default(&self) -> &'static str {
        // The integer type that a literal is widened from is no part of the value.
        self.literal.split("_u").next().expect("a split has a first part")
    }

    /// The head of its section, as TOML.
    #[must_use]
    pub fn head(&self) -> String {
        match self.times {
            Times::Once => format!("[{}]", self.section),
            Times::Each => format!("[[{}]]", self.section),
        }
    }
}

sections! {
    venue: Once /// What the venue is.
    Venue {
        /// Name shown by the page and by `/v1/status`.
        name: String = "Walras";
        /// Folder of the log, the snapshots and the keys. One venue per folder.
        data: String = ".walras/venue";
    }
    log: Once /// The durable log.
    Log {
        /// Size of a log segment in bytes. Each is allocated in full, so that a full disk is noticed before a command is accepted. The same on all replicas: a leader sends others what its own segments have room for.
        segment_bytes: u64 = 67108864_u32;
        /// A snapshot is written after this many entries, by all replicas of a cluster at the same one, so that their states can be compared: the same on all replicas. 0 for never. The last two are kept, and the log lets go of what both hold (see `keep_days`).
        snapshot_every_entries: u64 = 1000000_u32;
        /// A replica also writes a snapshot after so many seconds in which anything was logged; 0 turns this off. One that is alone writes another one when it stops in good order.
        snapshot_every_seconds: u64 = 3600_u32;
        /// Days for which segments stay after the log has let go of them; 0 for no limit by time. They are in `log/history`, for `walras log dump`, `verify` and `audit`, and are not read at a start.
        keep_days: u32 = 7_u32;
        /// Most MiB of such segments; the oldest go first. 0 keeps none: their files are reused, and older commands cannot be looked up.
        keep_mib: u64 = 10240_u32;
        /// The oldest of them go as soon as fewer MiB are free on the disk, however young they are.
        keep_free_mib: u64 = 2048_u32;
        /// Folder into which they are moved instead of being removed, on this disk or another; empty for none. One node per folder. One that cannot be moved stays.
        archive_dir: String = "";
        /// Commands that may wait for the log or for the engine. Beyond it they are refused as `Overloaded` (112).
        queue_entries: usize = 65535_u16;
        /// An entry that only carries the time is logged when none came for so many milliseconds, so that good-till-time orders leave the book while nobody trades. (None trades past its time in any case.)
        tick_interval_ms: u64 = 5000_u32;
    }
    engine: Once /// The state machine.
    Engine {
        /// Threads that share the work of a batch's block; 0 takes as many as the machine has processors. The result does not depend on it.
        threads: usize = 0_u16;
    }
    batch: Each /// A batch market (`docs/batch-markets.md`). The venue, of a cluster the leader, creates it as soon as all of its assets exist, and opens it; later only `interval_ms` and `account_fee` may change. Markets that the file does not name stay as they are.
    Batch {
        /// Its name in the API: 1 to 15 characters of `A-Z 0-9 / - . _`, or of `a-z`, which stand for the capitals.
        name: String = "";
        /// Symbols of its assets, 2 to 100, each once: each trades with each other. Prices are shown in units of the first, the numeraire. With `currencies`, symbols of its other assets, the stocks: up to 4096 with the currencies.
        assets: Vec<String> = [];
        /// Symbols of its currencies, 1 to 100, if some of its assets trade with these only: two of `assets` are no pair then, and prices are shown in units of the first currency. With k currencies and n stocks, `k (k - 1) + 2 k n` may be at most 20480, so 10 currencies with 1019 stocks, or 5 with 2046. Empty where all assets trade with each other.
        currencies: Vec<String> = [];
        /// Minimum milliseconds between two batches; an empty batch is left out.
        interval_ms: u64 = 500_u32;
        /// The venue's share of what each trade buys: 2^-commission, 1 to 30, or 0 for none.
        commission: u8 = 15;
        /// An offer whose limit is more than 2^-mu below the price is clearly in the money: it trades in full, but for what `unserved_percent_max` allows. 1 to 30. The share 2^-mu must be larger than 2^-commission, so this number is smaller than `commission`.
        mu: u8 = 10;
        /// Largest share, in percent, of the tradable volume that a block may leave untraded. A block that leaves more is refused, unless nothing trades in it. 100 for no limit.
        gap_percent_max: u8 = 1;
        /// Largest share, in percent, of what offers clearly in the money want to sell or to buy of any one asset that a block may leave untraded. A block that leaves more is refused, unless nothing trades in it. 100 for no limit.
        unserved_percent_max: u8 = 1;
        /// Which transactions of a batch are kept: `filter` (of each account all that is good by itself, or none where together they cannot be; whatever their order) or `reserve` (one by one, in the order in which they came).
        intake: String = "filter";
        /// Transactions that one batch takes. More are refused until the next one collects.
        transactions_max: u32 = 100000_u32;
        /// Fee for an account that a transaction opens, paid by its sender: an amount of any asset of the venue, such as `0.5 USD`, or `none`. Fees are the operator's (`walras admin fees`). If empty, the value last set by `walras admin account-fee` stays in force (at first: no fee).
        account_fee: String = "";
    }
    shards: Once /// This venue as one of several shards (`docs/shards.md`), which the `[[shard]]` sections list.
    Shards {
        /// Which of them this is.
        own: u8 = 0;
        /// Milliseconds from one look for transfers to other shards to the next; what is asked over HTTP is seen at once.
        poll_ms: u64 = 200_u32;
        /// Most milliseconds until a shard that could not be reached is tried again. The wait begins at `poll_ms`, doubles, and varies by a half.
        retry_ms_max: u64 = 5000_u32;
    }
    shard: Each /// One of several shards: the same list at all of them, but for the keys. Without any the venue is the only one.
    Shard {
        /// Its number: 0, 1, 2 and so on, each once.
        number: u8 = 0;
        /// Where its replicas serve HTTP, such as `http://10.0.0.7:7070` or, behind a proxy that speaks TLS, `https://shard-1.example.com`; participants are shown them.
        urls: Vec<String> = [];
        /// File with a key of that shard that has the permission `transfer_relay`, to deliver transfers there: one line, `<key id>.<secret>`. Not for the own shard.
        key_file: String = "";
        /// File with the certificates (PEM) of the authority that signed the certificates of this shard's `https://` addresses.
        ca_file: String = "";
    }
    archive: Once /// The venue's past in files (`docs/history.md`), kept by this node: every trade, and pictures of every book, by day of the log's time.
    Archive {
        /// Folder of the archive; empty for none. One node per folder.
        folder: String = "";
        /// A picture of a book is taken after the first entry of every so many milliseconds of the log's time, where the book changed.
        snapshot_every_ms: u64 = 1000_u32;
        /// Levels of a side in a picture, 1 to 1000. A change takes effect with the next day.
        depth: u32 = 10_u32;
        /// Whether a day has Parquet files when it is closed.
        parquet: bool = true;
        /// Whether it has files in Databento's binary encoding (DBN, version 3).
        dbn: bool = false;
        /// Whether these are compressed by zstd, as Databento's own are: `.dbn.zst`.
        dbn_zstd: bool = false;
        /// Publisher's number in their records. Databento gives these numbers; 0 is nobody's.
        dbn_publisher: u16 = 0_u16;
        /// Whether what happens to each displayed order is kept too: the book by order, for back-tests. Of a day in which this is switched off, none is.
        orders: bool = false;
        /// Closed days that are kept; 0 for all.
        keep_days: u32 = 0_u32;
    }
    http: Once /// The HTTP server.
    Http {
        /// Address and port to listen on. Port 0 takes a free one and prints it.
        listen: String = "127.0.0.1:7070";
        /// Address and port to listen on for operators alone, with places of its own: a connection that has shown no operator's key after 5 s is closed. Bind it to an address that only operators reach, such as one of a private network. Empty for none.
        operator_listen: String = "";
        /// Origins whose pages may use the API from a browser, as `https://desk.example`; `"*"` for any. Without one, only the venue's own page does.
        cors_origins: Vec<String> = [];
        /// Connections of clients at a time: HTTP, WebSocket and order entry together. Where the system's limit of open files leaves fewer, that many; the venue says so at its start. Beyond it an idle connection without a key is closed for each new one, of the address that has the most.
        connections_max: usize = 4096_u16;
        /// The same of one address (of IPv6, of one network of 64 bits); operators' do not count. Behind a proxy, where all clients have one address, give as many as `connections_max`.
        source_connections_max: usize = 1024_u16;
        /// Connections of one account that keep their places, on all ports together; never more than half of those that participants may keep. A further logon by FIX or binary order entry is refused as `Overloaded` (112); a further HTTP connection or WebSocket is served, and is closed among the first when all places are taken.
        account_connections_max: usize = 256_u16;
        /// Largest request body in bytes. A larger one is refused as `TooLarge` (101).
        body_bytes_max: usize = 16384_u16;
        /// Milliseconds a client may take to send a request's head, counted from the connection's beginning and from the answer before it: a connection on which nothing is asked ends.
        header_timeout_ms: u64 = 5000_u32;
        /// Milliseconds a request may take in all. A command that takes longer may still be applied: the answer says so.
        request_timeout_ms: u64 = 15000_u32;
        /// Milliseconds for which a client may take nothing of an answer before its connection is closed.
        write_timeout_ms: u64 = 15000_u32;
    }
    websocket: Once /// WebSocket sessions.
    WebSocket {
        /// Milliseconds from one ping to the next. A client that is not heard for twice as long is closed with code 4009.
        ping_interval_ms: u64 = 15000_u32;
        /// Milliseconds after which a connection that neither subscribed nor authenticated is closed with code 4010; looked at with each ping.
        idle_timeout_ms: u64 = 30000_u32;
        /// Most updates of one book, tape or candle a second and connection; changes in between are merged. Where market data is held (`fair_access.release`), the same on all replicas, and at gateways that give out market data by FIX.
        updates_per_second: u64 = 20_u32;
        /// Messages that may wait for a slow reader before it is dropped with close code 4008.
        queue_messages: usize = 256_u16;
        /// Largest message from a client in bytes.
        message_bytes_max: usize = 16384_u16;
        /// Subscriptions of one connection.
        subscriptions_max: usize = 64_u16;
        /// Commands of one connection that may wait for their answers. Beyond it the venue reads no more from that connection until one is answered.
        in_flight_max: usize = 256_u16;
        /// Milliseconds a message may take to be sent before the reader counts as gone.
        write_timeout_ms: u64 = 10000_u32;
        /// Send buffer of a connection in the operating system, in bytes: what the venue keeps there for a reader that does not read. 0 leaves it to the system.
        send_buffer_bytes: u32 = 131072_u32;
    }
    feed: Once /// The binary market-data feed, on a relay tree.
    BinaryFeed {
        /// File of the relay tree (`docs/relays.md`) on which this replica sends the feed while it leads. Empty for none. The feed begins with the log: a venue that has logged entries without it publishes none. The same on all replicas, or none on all.
        tree: String = "";
        /// Address from which packets are sent. It must reach all nodes of the tree: `[::]:0` where they have addresses of IPv6, or of both kinds.
        source: String = "0.0.0.0:0";
        /// Longest packet in bytes, 512 to 1472. A packet and its headers (28 bytes with IPv4, 48 with IPv6) should fit the MTU of every path of the tree: the default fits 1,420. What does not fit goes in fragments of IP, one packet at a time.
        packet_bytes: usize = 1372_u16;
        /// Address and UDP port at which readers ask for messages that they missed. Empty for none.
        requests: String = "";
        /// Requests of one address a second. The addresses of an IPv6 network of 64 bits count as one. As many a second of all addresses together may be such as were sent before, or do not have the time of now: those are answered with one packet at most.
        requests_per_second: u32 = 200_u32;
        /// KiB of the latest messages of each channel that are kept for readers that ask.
        kept_kib: u64 = 1024_u32;
        /// MiB of the latest messages of all channels together. Beyond it the channel to which nothing came for longest keeps nothing.
        kept_mib: u64 = 512_u32;
        /// Milliseconds for which a channel may be quiet before it has a heartbeat; so long or up to twice as long.
        heartbeat_ms: u64 = 500_u32;
        /// KiB of snapshots a second.
        snapshot_kib_per_second: u64 = 512_u32;
        /// Milliseconds from the beginning of one rotation through all snapshots to that of the next, at least.
        snapshot_rotation_ms: u64 = 2000_u32;
    }
    binance: Once /// The venue in the dialect of Binance's Spot API (`docs/binance.md`), for programs written for that one.
    Binance {
        /// Where it is served, such as `127.0.0.1:7075`; empty for nowhere. It shares its places with the other ports (`http.connections_max`).
        listen: String = "";
        /// Whether who names an `hmac-sha256` key may open its account's stream without a signature, as the dialect has it (`POST /api/v3/userDataStream`). If not, such a request must be signed.
        listen_keys: bool = true;
    }
    throttle: Once /// How often a key and an address may ask. Beyond it requests are refused as `Throttled` (107).
    Throttle {
        /// Signed requests and WebSocket commands of one key a second, sustained. Cancels of orders are counted apart, and there may be as many: a throttled participant can still take its orders out.
        requests_per_second: u32 = 1000_u32;
        /// The same at once, after a pause.
        burst: u32 = 2000_u32;
        /// Requests of any kind from one address a second, sustained; cancels of orders apart, and as many.
        source_requests_per_second: u32 = 2000_u32;
        /// The same at once, after a pause.
        source_burst: u32 = 4000_u32;
    }
    cluster: Once /// The venue as a cluster: of one machine, or of several (`docs/cluster.md`). All but `replica` and `listen` should be the same on all of them. `peers`, `gateways`, `listen` and the keys are read again on SIGHUP (`systemctl reload`).
    Cluster {
        /// This replica's id, 1 or more.
        replica: u64 = 1_u32;
        /// The cluster's number, the same on all replicas: what is of another cluster is refused.
        cluster_id: u64 = 1_u32;
        /// Every replica, those that are not members yet included; empty for a venue on one machine, which has no links and needs no keys: `"ID=HOST:PORT http=HOST:PORT orders=HOST:PORT"` with the address of its links, and where participants reach its HTTP server and its order entry, which others name when they do not lead.
        peers: Vec<String> = [];
        /// Ids of the replicas with which the cluster began, never changed afterwards, not even when some of them have left. Empty: all of `peers`. A venue that began on one machine and grows says `[1]`.
        genesis: Vec<u64> = [];
        /// Ids of the leaf gateways that may link with the replicas (`docs/gateways.md`), each greater than those of all replicas. The same on all of them.
        gateways: Vec<u64> = [];
        /// Address and port of this replica's links to its peers. Port 0 is refused: the others must know it.
        listen: String = "127.0.0.1:7171";
        /// Folder of the links' keys (`ca.crt`, `replica-ID.crt`, `replica-ID.key`), as `walras cluster keys` makes it.
        keys: String = "";
        /// Links without TLS, between addresses of one machine: for tests.
        insecure_loopback: bool = false;
        /// When a command counts as held by a replica: `disk` (synced) or `memory` (its process has it; see `docs/cluster.md` for what is lost then, and when).
        durability: String = "disk";
        /// Interval of a leader's heartbeats, in milliseconds.
        heartbeat_ms: u64 = 30_u32;
        /// A follower that hears from no leader for a time between this, in milliseconds, ...
        election_timeout_min_ms: u64 = 150_u32;
        /// ... and this stands for election. The same on all replicas.
        election_timeout_max_ms: u64 = 300_u32;
        /// A follower whose link to the leader breaks, or that hears nothing from it for `election_timeout_min_ms`, starts a pre-vote a moment later instead of waiting for a random timeout: a leader that dies is replaced within some tens of milliseconds, one that falls silent soon after the shorter timeout. Replicas that still hear the leader refuse, so a broken link costs nothing.
        fast_fail_over: bool = true;
        /// Probation of a process that has just started, in milliseconds: for this time after its first link with another replica it neither votes nor acknowledges entries there. Within this time the others detect a second process under its id, on a copy of its folder, and stop the later one. Set it higher on slow networks; 0 for none.
        probation_ms: u64 = 250_u32;
        /// Maximum difference of this machine's clock from most voters' clocks, in milliseconds. Beyond it a leader hands over and reports that in `walras cluster status`; 0 for no limit.
        clock_error_max_ms: u64 = 1000_u32;
        /// Lets the operator inject faults into links (`POST /v1/admin/cluster/faults`). For tests of a cluster of real processes only.
        test_faults: bool = false;
    }
    gateway: Once /// A leaf gateway (`walras gateway`, `docs/gateways.md`). Its configuration has the section `[cluster]` of the replicas too, as far as `cluster_id`, `peers` and `keys`.
    Gateway {
        /// This gateway's id, which the replicas name in `cluster.gateways`.
        id: u64 = 0_u32;
        /// File of the relay tree (`docs/relays.md`) by which market data comes, for participants, strategies and FIX; empty for none.
        tree: String = "";
        /// The gateway's place in the last layer of that tree, from 0.
        place: u32 = 0_u32;
        /// File of the tree of one layer whose receivers are the gateway's participants. Its number and its key are its own: they get packets when their release time has come.
        participants: String = "";
        /// Address from which packets are sent to participants.
        source: String = "0.0.0.0:0";
        /// Address and UDP port at which participants ask for messages that they missed, as `[feed]` limits it. Empty for none.
        requests: String = "";
        /// Addresses at which the replicas answer requests for missed messages (their `feed.requests`). The gateway asks them, at most
        /// `feed.requests_per_second` times a second in all, for packets that came to it by no path, and for what a participant asks for
        /// that it keeps no more. Empty: it does not ask, and its participants wait for a snapshot.
        venue_requests: Vec<String> = [];
        /// Under load, so many microseconds of orders and answers are passed on together, which takes less of the processor. Below
        /// some thousand orders a second nothing waits. 0: never.
        gather_us: u32 = 200_u32;
        /// Whether the thread that passes on orders and answers looks at its sockets again and again instead of sleeping. It then takes a
        /// whole core, and saves the time in which the kernel wakes it, twice an order.
        spin_orders: bool = false;
        /// Whether market data is received and released by one thread that never sleeps. It then takes a whole core, and saves two
        /// wake-ups for each packet that may be released when it comes.
        spin_market_data: bool = false;
    }
    strategies: Each /// A participant's program in the process of a leaf gateway, as WebAssembly (`docs/strategies.md`). The gateway needs a `tree`.
    Strategy {
        /// Its name in the log of the process.
        name: String = "";
        /// The file of its module, binary or text.
        file: String = "";
        /// The file of the API key with which it trades.
        key: String = "";
        /// The account of that key.
        account: u32 = 0_u32;
        /// Numbers of the channels whose messages it gets (`docs/market-data-feed.md`), such as `0x01000005`; empty for all. Name the channel of its view's snapshots too (`0x01ffffff`): after a gap the strategy needs it.
        channels: Vec<u32> = [];
        /// Released packets that may wait for it, 1 to 65536. Beyond it the strategy misses some, as the numbers of messages show.
        queue_packets: u32 = 4096_u16;
        /// Fuel of one call, about one for each instruction. A call that needs more ends the strategy.
        fuel_per_call: u64 = 1000000_u32;
        /// Most memory that it may have, in KiB, 64 to 1048576. Asking for more ends the strategy.
        memory_kib: u32 = 16384_u16;
        /// The file of the certificate that order entry shows, where it has TLS (`order-entry.crt` of the gateway's data folder).
        trust: String = "";
        /// Whether the strategy's thread looks at its queue again and again instead of sleeping. It then takes a whole core, and saves
        /// the time in which the kernel wakes it, once for each release.
        spin: bool = false;
    }
    order_entry: Once /// The binary order-entry port (`docs/order-entry.md`).
    OrderEntry {
        /// Address and port to listen on; empty for none. Port 0 takes a free one and prints it; so does the default where `http.listen` has port 0.
        listen: String = "127.0.0.1:7272";
        /// TLS 1.3: `auto` (where `listen` is not on the loopback), `on`, or `off`, which is for networks that nobody else reads.
        tls: String = "auto";
        /// The PEM file of the certificate that the port shows with TLS, followed by those between it and its authority; empty for one that the venue makes for itself, `order-entry.crt` in its data folder, of which clients get a copy.
        certificate: String = "";
        /// The PEM file of its private key.
        private_key: String = "";
    }
    fix: Once /// The FIX port (`docs/fix.md`), beside that of binary order entry and with its certificate.
    Fix {
        /// Address and port to listen on, such as `127.0.0.1:7373`; empty for none. Port 0 takes a free one and prints it.
        listen: String = "";
        /// Address and port of market data by FIX, such as `127.0.0.1:7374`; empty for none. Every replica gives out what it
        /// releases, whether it leads or not; so does a gateway that has a `gateway.tree`.
        market_data_listen: String = "";
        /// The venue's name in FIX sessions (CompID). Sessions that only listen to an account's reports use the name with `-DROP`,
        /// those of market data with `-MD`.
        comp_id: String = "WALRAS";
        /// TLS 1.3: `auto` (where `listen` is not on the loopback), `on`, or `off`, which is for networks that nobody else reads. Its certificate is that of `[order_entry]`.
        tls: String = "auto";
    }
    fair_access: Once /// Fair access (`docs/fair-access.md`): orders in the order in which they reached the venue's edge, market data to all at once. The same on all replicas, but for `clock` and `bound_us`.
    FairAccess {
        /// How long the leader holds orders (d_s) to put them in the order of their stamps: `off` (it does not, and only the leader takes orders), a fixed time such as `300us`, or the share of them that may leave after one with a later stamp, such as `1%`, to which the leader steers the delay.
        sequencing: String = "off";
        /// Longest that orders may be held, in microseconds.
        sequencing_max_us: u64 = 20000_u32;
        /// How long every replica holds market data before it is released (d_h): `off`, a fixed time such as `300us`, or the share of it that may reach some replica too late, such as `1%`, to which the leader steers the delay.
        release: String = "off";
        /// Longest that market data may wait, in microseconds.
        release_max_us: u64 = 20000_u32;
        /// How a steered delay moves: `tracking` (the median transit of the last window and an offset that learns from each sample) or `stepped` (up or down by `step_us` as the share over the last window is above or below the target: CloudEx's rule).
        rule: String = "tracking";
        /// Orders in the window of d_s.
        sequencing_window: usize = 1000_u16;
        /// Publications in the window of d_h.
        release_window: usize = 64_u16;
        /// By how much a steered delay moves, in microseconds.
        step_us: u64 = 5_u32;
        /// What stamps orders here and releases market data: `system`, the computer's clock with the bound that `bound_us` declares, or `configured`, that of the section `[clock]` with the bound that it reports.
        clock: String = "system";
        /// Error bound of that clock, in microseconds, as declared by the operator; 0 if unknown: then nothing is stamped here, and orders count from their arrival at the leader.
        bound_us: u64 = 0_u32;
        /// Maximum error bound of a clock that stamps. Stamps further ahead of the leader's clock than twice this are lowered to that.
        bound_max_us: u64 = 500_u32;
        /// Stamps older than this, in microseconds, are raised to that.
        stamp_age_max_us: u64 = 100000_u32;
        /// A gateway whose median transit differs by more than this, in microseconds, from the others' is an outlier: it does not steer the delay, and its stamps do not count, until it is within half of this. A longer transit may differ by the round trip to that gateway as well: distance is no error.
        outlier_us: u64 = 1000_u32;
        /// Orders of one gateway that the leader holds at a time. Beyond it they are refused as `Overloaded` (112).
        held_per_gateway_max: u32 = 65535_u16;
        /// From one watermark to the next, in microseconds, while orders come: each gateway says up to which stamp it has sent all its orders, and an order leaves once all have said so of its stamp, or after d_s. 0: none are sent, and every order is held for d_s. The same at leaf gateways.
        watermark_us: u64 = 250_u32;
    }
    clock: Once /// The venue's time at this node, with how far off it may be: see `docs/clocks.md`.
    Clock {
        /// The source of the time: `system`, `chrony`, `phc` or `mesh`; empty for none (`GET /v1/clock` then answers 404).
        source: String = "";
        /// Maximum error bound of a clock that stamps orders, in microseconds. It stamps again after a second within three quarters of this.
        bound_max_us: u64 = 1000_u32;
        /// With `system`: the clock's error bound, in microseconds. With `chrony` and `phc`: the error bound of their reference itself, which is added to the bound that they report.
        declared_bound_us: u64 = 0_u32;
        /// Address and port of chronyd's monitoring.
        chrony: String = "127.0.0.1:323";
        /// The PTP hardware clock.
        phc: String = "/dev/ptp0";
        /// A file in which the driver writes its clock's error bound, in nanoseconds; empty for none.
        phc_bound_file: String = "";
        /// Where each node of the mesh listens by UDP, `"HOST:PORT"`, in the same order on all of them.
        mesh_nodes: Vec<String> = [];
        /// Which of `mesh_nodes` this node is, counted from 0.
        mesh_node: u32 = 0_u16;
        /// Address and port on which this node listens for the mesh; empty for its own line of `mesh_nodes`.
        mesh_listen: String = "";
        /// File with the mesh's key, the same on all nodes: at least 16 bytes that nobody else has.
        mesh_key: String = "";
        /// Index in `mesh_nodes` of the coordinator, which combines all measurements.
        mesh_coordinator: u32 = 0_u16;
        /// Milliseconds of a window, after which clocks are corrected.
        mesh_window_ms: u64 = 1000_u32;
        /// Milliseconds from one exchange of probes between two nodes to the next.
        mesh_interval_ms: u64 = 10_u32;
    }
    demo: Once /// `walras demo`.
    Demo {
        /// Pace of the replayed stream: `1x`, `10x` and so on, or `max`.
        speed: String = "10x";
        /// A file to replay. Empty: the LOBSTER sample under `WALRAS_DATA` or `../shared/data` where there is one, else a generated stream.
        file: String = "";
        /// Market-making bots, in addition to the stream.
        bots: u32 = 4_u32;
        /// Seed of the generated stream, of the bots, and of the fair prices that the bots of the batch market trade around.
        seed: u64 = 1_u32;
        /// Bots of the batch market of ten assets; 0 leaves the market out.
        batch_bots: u32 = 20_u32;
    }
}
