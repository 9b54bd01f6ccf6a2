//! A socket that answers as chronyd does, with bytes made from the protocol's list of fields.

use std::net::{SocketAddr, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;

use walras_clock_sync::chrony::{ChronyOptions, REPLY_BYTES, REQUEST_BYTES, ReplyError, Tracking, read, request};
use walras_clock_sync::{ClockOptions, ClockService, ClockView, SourceOptions};
use walras_fair_access::clock::ClockStatus;
use walras_wait::until_ok;

/// What `chronyc tracking` shows.
#[derive(Clone, Copy)]
struct Fields {
    status: u16,
    reference: u32,
    stratum: u16,
    leap: u16,
    correction_s: f64,
    rest_ppm: f64,
    skew_ppm: f64,
    delay_s: f64,
    dispersion_s: f64,
}

const GOOD: Fields = Fields {
    status: 0,
    reference: 0x0a00_0001,
    stratum: 2,
    leap: 0,
    correction_s: -12e-6,
    rest_ppm: -0.25,
    skew_ppm: 2.0,
    delay_s: 400e-6,
    dispersion_s: 30e-6,
};

/// Seven bits of exponent and 25 of coefficient, both signed; the inverse of what is tested, by another way.
fn number(value: f64) -> u32 {
    if value == 0.0 {
        return 0;
    }
    let mut exponent = value.abs().log2().ceil() as i32 + 1;
    // 24 bits of the value, the sign aside.
    let mut coefficient = (value * f64::from(25 - exponent).exp2()).round() as i32;
    while coefficient.abs() >= 1 << 24 {
        coefficient /= 2;
        exponent += 1;
    }
    ((exponent as u32) << 25) | (coefficient as u32 & 0x01ff_ffff)
}

fn answer(sequence: u32, fields: Fields) -> Vec<u8> {
    let mut bytes = vec![6, 2, 0, 0];
    let short = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_be_bytes());
    let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_be_bytes());
    short(&mut bytes, 33); // the command
    short(&mut bytes, 5); // the form of the answer
    short(&mut bytes, fields.status);
    (0..3).for_each(|_| short(&mut bytes, 0));
    word(&mut bytes, sequence);
    (0..2).for_each(|_| word(&mut bytes, 0));
    word(&mut bytes, fields.reference);
    bytes.extend([10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // the server's address
    short(&mut bytes, 1); // IPv4
    short(&mut bytes, 0);
    short(&mut bytes, fields.stratum);
    short(&mut bytes, fields.leap);
    (0..3).for_each(|_| word(&mut bytes, 0)); // when it was heard last
    word(&mut bytes, number(fields.correction_s));
    word(&mut bytes, number(1e-6)); // the last offset
    word(&mut bytes, number(2e-6)); // the mean of them
    word(&mut bytes, number(-17.5)); // the frequency
    word(&mut bytes, number(fields.rest_ppm));
    word(&mut bytes, number(fields.skew_ppm));
    word(&mut bytes, number(fields.delay_s));
    word(&mut bytes, number(fields.dispersion_s));
    word(&mut bytes, number(64.0)); // seconds from one update to the next
    assert_eq!(bytes.len(), REPLY_BYTES);
    bytes
}

#[test]
fn a_report_gives_the_bound_and_how_fast_it_grows() {
    // 12 us + 30 us + half of 400 us; 2.25 parts in a million. The numbers have 24 bits.
    let Tracking { bound_ns, growth_ppt } = read(&answer(7, GOOD), 7).unwrap().unwrap();
    assert!(bound_ns.abs_diff(242_000) <= 1 && growth_ppt.abs_diff(2_250_000) <= 1, "{bound_ns} {growth_ppt}");
    let still = Fields { rest_ppm: 0.0, skew_ppm: 0.001, ..GOOD };
    assert_eq!(read(&answer(7, still), 7).unwrap().unwrap().growth_ppt, 1_000_000, "no clock is better than a part in a million");
    assert_eq!(read(&answer(8, GOOD), 7), Ok(None), "an answer to another question");
}

#[test]
fn answers_that_give_no_bound_say_what_to_do() {
    let refuses = |fields: Fields| read(&answer(1, fields), 1).unwrap_err();
    assert_eq!(refuses(Fields { status: 2, ..GOOD }), ReplyError::Refused { status: 2 });
    assert_eq!(refuses(Fields { leap: 3, ..GOOD }), ReplyError::Unsynchronised);
    assert_eq!(refuses(Fields { reference: 0, ..GOOD }), ReplyError::Unsynchronised);
    assert_eq!(refuses(Fields { reference: 0x7f7f_0101, ..GOOD }), ReplyError::OwnClock);
    assert_eq!(refuses(Fields { delay_s: -1.0, ..GOOD }), ReplyError::Absurd);
    assert_eq!(refuses(Fields { dispersion_s: 4e9, ..GOOD }), ReplyError::Absurd);
    assert_eq!(refuses(Fields { skew_ppm: 2e6, ..GOOD }), ReplyError::Absurd);
    for length in 0..REPLY_BYTES {
        assert_eq!(read(&answer(1, GOOD)[..length], 1).unwrap_err(), ReplyError::Strange, "{length} bytes");
    }
    for (at, value) in [(0, 5), (1, 1), (5, 34), (7, 6)] {
        let mut bytes = answer(1, GOOD);
        bytes[at] = value;
        assert_eq!(read(&bytes, 1).unwrap_err(), ReplyError::Strange, "byte {at}");
    }
    for (error, advice) in [
        (ReplyError::Refused { status: 2 }, "cmdallow"),
        (ReplyError::Unsynchronised, "chronyc sources"),
        (ReplyError::OwnClock, "give it a server"),
    ] {
        assert!(error.to_string().contains(advice), "{error}");
    }
}

/// Answers each question by `said`, with what came of counting them; ends when a question is empty.
fn daemon(mut said: impl FnMut(u32, u32) -> Vec<Vec<u8>> + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let answers = move || {
        let (mut bytes, mut asked) = ([0; 512], 0);
        loop {
            let (length, from) = socket.recv_from(&mut bytes).unwrap();
            if length == 0 {
                return;
            }
            assert_eq!(length, REQUEST_BYTES, "as long as the answer, or chronyd does not give one");
            let sequence = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
            assert_eq!(bytes[..length], request(sequence));
            asked += 1;
            for answer in said(asked, sequence) {
                socket.send_to(&answer, from).unwrap();
            }
        }
    };
    (address, std::thread::spawn(answers))
}

fn end(address: SocketAddr, daemon: JoinHandle<()>) {
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[], address).unwrap();
    daemon.join().unwrap();
}

fn follow(address: SocketAddr) -> ClockService {
    let chrony = ChronyOptions { address, reference_bound_ns: 8_000, patience: Duration::from_millis(200) };
    let options = ClockOptions { bound_max_ns: 1_000_000, good_for_ns: 0, source: SourceOptions::Chrony(chrony) };
    ClockService::start(options).unwrap()
}

fn wait(service: &ClockService, is_so: impl Fn(&ClockView) -> bool) -> ClockView {
    until_ok("the clock is as it should be", || {
        let view = service.source().view();
        if is_so(&view) { Ok(view) } else { Err(format!("{view:?}")) }
    })
}

#[test]
fn the_clock_is_as_good_as_chronyd_says_until_it_loses_its_server() {
    let (address, daemon) = daemon(|asked, sequence| match asked {
        // An answer to an older question comes first.
        1 => vec![answer(sequence.wrapping_sub(1), Fields { status: 9, ..GOOD }), answer(sequence, GOOD)],
        2 => vec![answer(sequence, Fields { leap: 3, ..GOOD })],
        _ => vec![answer(sequence, GOOD)],
    });
    let service = follow(address);
    let view = wait(&service, |view| view.status == ClockStatus::Good);
    let bound_ns = view.reading.unwrap().bound_ns;
    assert!(bound_ns >= 250_000, "{bound_ns}");
    assert!(view.system_ahead_ns.unwrap().unsigned_abs() < 1_000_000_000, "it is the system's clock: {view:?}");
    let view = wait(&service, |view| view.status == ClockStatus::Unknown);
    assert_eq!(view.reading, None);
    assert!(wait(&service, |view| view.trouble.is_some()).trouble.unwrap().contains("chronyc sources"));
    wait(&service, |view| view.status == ClockStatus::Good && view.trouble.is_none());
    drop(service);
    end(address, daemon);
}

#[test]
fn without_chronyd_there_is_no_clock_and_the_advice_is_to_start_it() {
    // A port where nothing listens any more.
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let service = follow(address);
    let view = wait(&service, |view| view.trouble.is_some());
    let trouble = view.trouble.unwrap();
    assert!(
        trouble.contains(&address.to_string()) && trouble.contains("start it") && trouble.contains("clock.chrony"),
        "{trouble}"
    );
    assert_eq!((view.status, service.source().stamp()), (ClockStatus::Unknown, None));
}

#[test]
fn a_malformed_answer_is_reported() {
    let (address, daemon) = daemon(|_, _| vec![b"HTTP/1.1 400 Bad Request".to_vec()]);
    let service = follow(address);
    let view = wait(&service, |view| view.trouble.is_some());
    assert!(view.trouble.unwrap().contains("check its address"));
    assert_eq!(view.status, ClockStatus::Unknown);
    drop(service);
    end(address, daemon);
}
