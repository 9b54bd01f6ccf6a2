//! Modules that behave, and modules that do not, in one host.

use walras_strategies::StrategyLimits;
use walras_strategies::host::{Host, LoadError, Stopped, Strategy};
use walras_strategies::interface::{BUFFER_BYTES, COMMANDS_PER_CALL_MAX, LimitOrder, cancel, cancel_all};
use walras_types::{AccountId, RejectReason};
use walras_wire::Command;

const ACCOUNT: AccountId = AccountId(7);
const LIMITS: StrategyLimits = StrategyLimits { fuel_per_call: 20_000, memory_bytes: 3 << 16 };

/// A module of one page whose buffer begins at 1024, with this body of `walras_market_data` and these further lines.
fn module(body: &str, more: &str) -> String {
    format!(
        r#"(module
            (import "walras" "limit_order" (func $order (param i64 i32 i32 i64 i64 i32) (result i32)))
            (import "walras" "cancel" (func $cancel (param i64 i32) (result i32)))
            (import "walras" "cancel_all" (func $cancel_all (result i32)))
            (memory (export "memory") 1)
            (func (export "walras_abi") (result i32) i32.const 1)
            (func (export "walras_buffer") (result i32) i32.const 1024)
            {more}
            (func (export "walras_market_data") (param $channel i32) (param $number i64) (param $len i32) {body}))"#
    )
}

fn load(text: &str) -> Result<Strategy, LoadError> {
    Host::new().unwrap().load(text.as_bytes(), LIMITS, ACCOUNT)
}

fn commands(strategy: &mut Strategy) -> Vec<Command> {
    strategy.commands().collect()
}

fn order(client_order_id: i64, price: i64) -> Command {
    LimitOrder { client_order_id, instrument: 5, side: 1, price, size: 4, time_in_force: 2 }.command(ACCOUNT).unwrap()
}

#[test]
fn a_message_comes_whole_and_orders_go_out_in_order() {
    // The price is the sum of the message's first two 8-byte words and its length, the name the message's number.
    let body = "(drop (call $order (local.get $number) (local.get $channel) (i32.const 1)
            (i64.add (i64.extend_i32_u (local.get $len)) (i64.add (i64.load (i32.const 1024)) (i64.load (i32.const 1032))))
            (i64.const 4) (i32.const 2)))
        (drop (call $cancel (local.get $number) (local.get $channel)))
        (drop (call $cancel_all))";
    let mut strategy = load(&module(body, "")).unwrap();
    let mut message = [0; 466];
    (message[0], message[8]) = (100, 11);
    strategy.market_data(5, 42, &message, 9).unwrap();
    assert_eq!(commands(&mut strategy), [order(42, 100 + 11 + 466), cancel(ACCOUNT, 42, 5), cancel_all(ACCOUNT)]);
    // A shorter one leaves the rest of the buffer as it was, and the length says so; the longest fits.
    strategy.market_data(5, 43, &message[..8], 9).unwrap();
    assert_eq!(commands(&mut strategy)[0], order(43, 100 + 11 + 8));
    let longest = [0; BUFFER_BYTES];
    strategy.market_data(5, 44, &longest, 9).unwrap();
    assert_eq!(commands(&mut strategy)[0], order(44, BUFFER_BYTES as i64));
}

/// The answers of the host are what the module puts into the name of its last order.
#[test]
fn the_host_says_what_it_does_not_take() {
    let body = "(local $first i32) (local $second i32)
        (local.set $first (call $order (i64.const 1) (i32.const 5) (i32.const 2) (i64.const 9) (i64.const 4) (i32.const 2)))
        (local.set $second (call $order (i64.const 1) (i32.const 5) (i32.const 1) (i64.const 0) (i64.const 4) (i32.const 2)))
        (drop (call $order (i64.extend_i32_u (i32.add (i32.mul (local.get $first) (i32.const 10)) (local.get $second)))
            (i32.const 5) (i32.const 1) (i64.const 9) (i64.const 4) (i32.const 2)))
        (i32.store (i32.const 0) (call $cancel_all))
        (if (i32.ne (i32.load (i32.const 0)) (local.get $len)) (then unreachable))";
    let mut strategy = load(&module(body, "")).unwrap();
    // The message's length is what it expects of the last call: 1, no room.
    strategy.market_data(0, 0, &[0], 1).unwrap();
    assert_eq!(commands(&mut strategy), [order(22, 9)], "bad arguments are 2, and take no room");
    strategy.market_data(0, 0, &[0], 0).unwrap();
    assert_eq!(commands(&mut strategy), []);
    let all = "(loop $again (br_if $again (i32.eqz (call $cancel_all))))";
    let mut strategy = load(&module(all, "")).unwrap();
    strategy.market_data(0, 0, &[0], u32::MAX).unwrap();
    assert_eq!(commands(&mut strategy).len(), COMMANDS_PER_CALL_MAX as usize);
}

#[test]
fn answers_and_reports_come_where_they_are_wanted() {
    let more = r#"(func (export "walras_answer") (param $id i64) (param $reason i32)
            (drop (call $order (local.get $id) (i32.const 5) (i32.const 1) (i64.extend_i32_u (local.get $reason)) (i64.const 4) (i32.const 2))))
        (func (export "walras_report") (param $len i32)
            (drop (call $order (i64.load8_u (i32.const 1024)) (i32.const 5) (i32.const 1) (i64.extend_i32_u (local.get $len)) (i64.const 4) (i32.const 2))))"#;
    let mut strategy = load(&module("", more)).unwrap();
    strategy.answer(-3, Some(RejectReason::Overloaded), 9).unwrap();
    assert_eq!(commands(&mut strategy), [order(-3, 112)]);
    strategy.answer(1, None, 9).unwrap();
    assert_eq!(commands(&mut strategy), [], "price 0 is refused");
    strategy.report(&[77, 1, 2], 9).unwrap();
    assert_eq!(commands(&mut strategy), [order(77, 3)]);
    let mut without = load(&module("", "")).unwrap();
    without.answer(1, None, 9).unwrap();
    without.report(&[1], 9).unwrap();
}

#[test]
fn one_that_misbehaves_is_stopped_with_a_reason_and_the_others_go_on() {
    let host = Host::new().unwrap();
    let load = |text: String| host.load(text.as_bytes(), LIMITS, ACCOUNT).unwrap();
    let place = "(drop (call $order (i64.const 1) (i32.const 5) (i32.const 1) (i64.const 9) (i64.const 4) (i32.const 2)))";
    let mut good = load(module(place, ""));
    let deep = "(func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (i32.add (local.get 0) (i32.const 1)))))";
    for (body, more, says) in [
        ("(loop $for_ever (br $for_ever))", "", "out of fuel: a call used more than 20000"),
        ("(loop $more (drop (memory.grow (i32.const 1))) (br $more))", "", "out of memory: it asked for more than 196608 bytes"),
        (
            "(loop $more (drop (table.grow $t (ref.null func) (i32.const 5000))) (br $more))",
            "(table $t 1 funcref)",
            "out of tables",
        ),
        ("unreachable", "", "trap: wasm trap: wasm `unreachable` instruction executed"),
        ("(i32.store (i32.const -4) (i32.const 1))", "", "trap: wasm trap: out of bounds memory access"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "", "trap: wasm trap: integer divide by zero"),
        ("(drop (call $deep (i32.const 0)))", deep, "out of fuel"),
    ] {
        let mut bad = load(module(&format!("{place} {body}"), more));
        let why = bad.market_data(1, 1, &[1], 9).unwrap_err();
        assert!(why.to_string().starts_with(says), "{body}: {why}");
        assert_eq!(commands(&mut bad), [], "what it had asked for is not sent");
        good.market_data(1, 1, &[1], 9).unwrap();
        assert_eq!(commands(&mut good), [order(1, 9)]);
    }
    // With fuel enough its stack ends first.
    let generous = StrategyLimits { fuel_per_call: u64::MAX / 2, ..LIMITS };
    let text = module("(drop (call $deep (i32.const 0)))", deep);
    let mut bad = host.load(text.as_bytes(), generous, ACCOUNT).unwrap();
    let why = bad.market_data(1, 1, &[1], 9).unwrap_err();
    assert_eq!(why, Stopped::Trap("wasm trap: call stack exhausted".into()));
    good.market_data(1, 1, &[1], 9).unwrap();
}

/// Each call has all its fuel again, however many there are.
#[test]
fn fuel_is_for_each_call() {
    let some = "(local $i i32) (loop $on (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $on (i32.lt_u (local.get $i) (i32.const 1000))))";
    let mut strategy = load(&module(some, "")).unwrap();
    (0..100).for_each(|number| strategy.market_data(1, number, &[1], 9).unwrap());
    let used = LIMITS.fuel_per_call - strategy.fuel_left();
    assert!((1_000..LIMITS.fuel_per_call).contains(&used), "{used}");
}

#[test]
fn what_cannot_run_here_is_refused_with_what_to_do() {
    let sound = module("", "");
    let refused = |text: &str| load(text).unwrap_err().to_string();
    for (from, to, says) in [
        (r#""walras" "cancel""#, r#""wasi_snapshot_preview1" "clock_time_get""#, "an import is not known"),
        (r#""walras" "cancel""#, r#""walras" "now""#, "an import is not known"),
        ("(param i64 i32) (result i32)", "(param i64) (result i32)", "an import is not known"),
        (r#"(export "memory") 1"#, "1", "it exports no `memory`"),
        (r#"(export "walras_market_data") (param $channel i32)"#, r#"(export "walras_market_data")"#, "`walras_market_data`"),
        ("walras_abi", "walras_version", "`walras_abi`"),
        ("(result i32) i32.const 1)", "(result i32) i32.const 2)", "written for version 2"),
        ("i32.const 1024)", "i32.const 65000)", "no room for 1472 bytes"),
        ("i32.const 1024)", "i32.const -1)", "no room for 1472 bytes"),
        (r#"(export "memory") 1"#, r#"(export "memory") 4"#, "out of memory"),
        (r#"(export "memory") 1"#, r#"(export "memory") 1 1 shared"#, "no module of WebAssembly"),
        (r#"(memory (export"#, r#"(memory 1) (memory (export"#, "no module of WebAssembly"),
        (
            "(func (export \"walras_abi\")",
            "(func $s (loop $l (br $l))) (start $s) (func (export \"walras_abi\")",
            "when it began: out of fuel",
        ),
        ("(module", "(modul", "no module of WebAssembly"),
    ] {
        assert!(sound.contains(from), "{from}");
        let said = refused(&sound.replace(from, to));
        assert!(said.contains(says), "{from} -> {to}: {said}");
    }
    assert!(refused("").contains("no module"));
    assert!(refused("\0asm\x02\0\0\0").contains("no module"));
}
