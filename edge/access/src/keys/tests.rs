//! Keys in their file, shared, revoked and expired.

use super::*;
use crate::clock::now;

fn open(dir: &Path) -> Access {
    let start = Start { started: now(), log_time: TimeNs(0) };
    Access::open(dir, Rates::OFFLINE, Clock::system(), start).unwrap()
}

fn grant(account: Option<AccountId>, permissions: &[String]) -> Grant<'_> {
    Grant { account, permissions, name: None, expires: None }
}

fn ids(access: &Access) -> BTreeSet<String> {
    access.list().iter().map(|key| key["key_id"].as_str().unwrap().to_owned()).collect()
}

fn share(from: &Access, to: &Access) -> usize {
    from.all_news().iter().map(|news| to.take_news(news).unwrap()).sum()
}

#[test]
fn replicas_that_tell_each_other_know_the_same_keys_in_whatever_order() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (open(one.path()), open(other.path()));
    let trade = ["trade".to_owned()];
    let made = a.create(None, "hmac-sha256", &grant(Some(AccountId(1)), &trade)).unwrap()["key_id"].as_str().unwrap().to_owned();
    b.create(None, "ed25519", &grant(Some(AccountId(2)), &trade)).unwrap();
    assert_eq!((share(&a, &b), share(&b, &a), share(&a, &b)), (1, 1, 0));
    assert_eq!((ids(&a).len(), ids(&a)), (2, ids(&b)));
    // A change alone, and then everything: a revoked key does not come back from where it is still known.
    let before = a.change_count();
    a.revoke(None, &made).unwrap();
    assert_eq!(share(&b, &a), 0);
    assert!(!ids(&a).contains(&made));
    assert_eq!(b.take_news(&a.news_since(before)).unwrap(), 1);
    assert_eq!(ids(&a), ids(&b));
    // After a restart neither.
    drop(a);
    let a = open(one.path());
    assert_eq!((share(&b, &a), ids(&a)), (0, ids(&b)));
    assert!(a.take_news(b"{}").is_err() && a.take_news(b"\xff").is_err());
}

#[test]
fn names_are_kept_and_shared_and_go_with_their_keys() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (open(one.path()), open(other.path()));
    let trade = ["trade".to_owned()];
    let named = |name| Grant { name: Some(name), ..grant(Some(AccountId(1)), &trade) };
    let made = a.create(None, "hmac-sha256", &named("Ann's bot")).unwrap();
    let id = made["key_id"].as_str().unwrap();
    assert_eq!(made["name"], "Ann's bot");
    share(&a, &b);
    for access in [&open(one.path()), &b, &open(other.path())] {
        assert_eq!(access.list()[0]["name"], "Ann's bot");
    }
    for refused in ["", "a\u{1b}[2J", &"n".repeat(65)] {
        assert_eq!(a.create(None, "ed25519", &named(refused)).unwrap_err().reason, RejectReason::Malformed);
    }
    b.revoke(None, id).unwrap();
    share(&b, &a);
    assert!([&a, &b].iter().all(|access| access.list().is_empty() && access.journal().names.is_empty()));
}

#[test]
fn the_last_operators_key_stays_and_the_one_before_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let access = open(dir.path());
    let [first, second] = [0, 1].map(|_| access.create(None, "ed25519", &grant(None, &["operator".to_owned()])).unwrap());
    let [first, second] = [&first, &second].map(|made| made["key_id"].as_str().unwrap());
    access.create(None, "ed25519", &grant(Some(AccountId(1)), &["trade".to_owned()])).unwrap();
    access.revoke(None, first).unwrap();
    assert_eq!(access.revoke(None, second).unwrap_err().reason, RejectReason::LastOperatorKey);
    assert_eq!((access.has_operator(), access.operators()), (true, vec![second.to_owned()]));
    // One that is not there is unknown, though there is one operator's key only.
    assert_eq!(access.revoke(None, first).unwrap_err().reason, RejectReason::UnknownKey);
    drop(access);
    assert!(open(dir.path()).revoke(None, second).is_err());
}

#[test]
fn a_new_operators_key_leaves_all_others_and_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let access = open(dir.path());
    let old = access.create_operator(dir.path()).unwrap();
    let secret = std::fs::read(&old.file).unwrap();
    access.create(None, "hmac-sha256", &grant(Some(AccountId(1)), &["trade".to_owned()])).unwrap();
    let before = ids(&access);
    let new = access.create_operator(dir.path()).unwrap();
    assert_eq!((&new.file, std::fs::read(dir.path().join("operator.key.old")).unwrap()), (&old.file, secret));
    assert_eq!(ids(&open(dir.path())), &before | &BTreeSet::from([new.key_id]));
}

#[test]
fn what_happens_to_keys_is_noted_before_it_does() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (open(one.path()), open(other.path()));
    let operator = a.create_operator(one.path()).unwrap().key_id;
    let made = a.create(Some(&operator), "hmac-sha256", &grant(Some(AccountId(3)), &["read".to_owned()])).unwrap();
    let made = made["key_id"].as_str().unwrap();
    share(&a, &b);
    assert!(a.revoke(Some(&operator), &operator).is_err() && a.revoke(Some(&operator), "hm_unknown").is_err());
    a.revoke(Some(&operator), made).unwrap();
    share(&a, &b);
    let lines = |dir: &Path| -> Vec<(String, String, String)> {
        let text = std::fs::read_to_string(dir.join(KEY_AUDIT_FILE)).unwrap();
        let line = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            (text("event"), text("key_id"), text("by"))
        };
        text.lines().map(line).collect()
    };
    let line = |event: &str, id: &str, by: &str| (event.to_owned(), id.to_owned(), by.to_owned());
    let of_a = [line("created", &operator, "venue"), line("created", made, &operator), line("revoked", made, &operator)];
    assert_eq!(lines(one.path()), of_a);
    let mut of_b = lines(other.path());
    of_b[..2].sort();
    let mut heard = [line("heard", &operator, "venue"), line("heard", made, "venue")];
    heard.sort();
    assert_eq!((&of_b[..2], &of_b[2..]), (&heard[..], &[line("heard_revoked", made, "venue")][..]));
    // Lines are added, and never rewritten.
    drop(a);
    open(one.path()).create(None, "ed25519", &grant(None, &["operator".to_owned()])).unwrap();
    assert_eq!((lines(one.path()).len(), &lines(one.path())[..3]), (4, &of_a[..]));
}

#[test]
fn replicas_that_revoke_each_others_key_at_once_agree() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (open(one.path()), open(other.path()));
    let [first, second] = [0, 1].map(|_| a.create(None, "ed25519", &grant(None, &["operator".to_owned()])).unwrap());
    share(&a, &b);
    a.revoke(None, first["key_id"].as_str().unwrap()).unwrap();
    b.revoke(None, second["key_id"].as_str().unwrap()).unwrap();
    share(&a, &b);
    share(&b, &a);
    assert_eq!((a.has_operator(), b.has_operator()), (false, false));
    // The way back is the same for each, and the other hears of it.
    a.create_operator(one.path()).unwrap();
    share(&a, &b);
    assert!(b.has_operator());
}

/// A clock that a test sets.
fn hand_set() -> (Clock, std::sync::Arc<std::sync::atomic::AtomicU64>) {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    let shown = std::sync::Arc::new(AtomicU64::new(now().0));
    let read = std::sync::Arc::clone(&shown);
    (Clock::new(move || TimeNs(read.load(Relaxed))), shown)
}

#[test]
fn a_key_expires_at_every_replica_and_does_not_come_back_where_the_clock_is_set_back() {
    use std::sync::atomic::Ordering::Relaxed;
    const SECOND: u64 = 1_000_000_000;
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (clock, shown) = hand_set();
    let began = clock.now();
    let start = |at| Start { started: at, log_time: TimeNs(0) };
    let open = |dir: &Path, clock: &Clock, at| Access::open(dir, Rates::OFFLINE, clock.clone(), start(at)).unwrap();
    let (a, b) = (open(one.path(), &clock, began), open(other.path(), &clock, began));
    let operator = a.create_operator(one.path()).unwrap().key_id;
    let end = TimeNs(began.0 + 60 * SECOND);
    let trade = ["trade".to_owned()];
    let until = |expires| Grant { expires: Some(expires), ..grant(Some(AccountId(1)), &trade) };
    let version = || read_key_file(&one.path().join(Access::FILE)).unwrap().unwrap().version;
    assert_eq!(version(), WITHOUT_EXPIRY);
    let made = a.create(None, "hmac-sha256", &until(end)).unwrap();
    let id = made["key_id"].as_str().unwrap();
    assert_eq!((version(), &made["expire_time_ns"]), (KEY_FILE_VERSION, &json!(end.0.to_string())));
    share(&a, &b);
    let listed = |access: &Access| access.list().into_iter().find(|key| key["key_id"] == id).unwrap();
    assert_eq!((listed(&a), listed(&b)["expire_time_ns"].clone()), (listed(&b), made["expire_time_ns"].clone()));
    let key = walras_gateway::ClientKey::from_token(made["key"].as_str().unwrap()).unwrap();
    let ask = |access: &Access, stamp: u64| {
        let fields = key.sign(&Request::WEB_SOCKET, stamp, &stamp.to_string());
        access.authenticate_socket(&fields).map_err(|refusal| refusal.reason)
    };
    // Until the last nanosecond, on connections too.
    shown.store(end.0 - 1, Relaxed);
    let callers = [&a, &b].map(|access| ask(access, end.0 - 1).unwrap());
    let ends = || [(&a, &callers[0]), (&b, &callers[1])].map(|(access, caller)| access.key_end_of_caller(caller));
    assert_eq!((ends(), a.next_expiry(), b.next_expiry()), ([None; 2], Some(end), Some(end)));
    shown.store(end.0, Relaxed);
    assert_eq!((ends(), a.next_expiry(), b.next_expiry()), ([Some(KeyEnd::Expired); 2], None, None));
    for (access, caller) in [(&a, &callers[0]), (&b, &callers[1])] {
        assert_eq!(ask(access, end.0).unwrap_err(), RejectReason::KeyExpired);
        let charged = access.charge(caller, Permission::Trade, Allowance::Requests);
        assert_eq!(charged.unwrap_err().reason, RejectReason::KeyExpired);
        assert_eq!(access.key(id), None, "nobody acts for it");
    }
    // Those without the key learn nothing about it.
    let wrong = AuthFields { signature: "A".repeat(43), ..key.sign(&Request::WEB_SOCKET, end.0, "other") };
    assert_eq!(a.authenticate_socket(&wrong).unwrap_err().reason, RejectReason::SignatureInvalid);
    assert_eq!(a.create(None, "ed25519", &until(end)).unwrap_err().reason, RejectReason::Malformed, "that has passed");
    // A change writes down how late it is, and a process that begins with an earlier clock knows it.
    a.create(None, "ed25519", &grant(Some(AccountId(2)), &trade)).unwrap();
    drop(a);
    let (earlier, _) = hand_set();
    let again = open(one.path(), &earlier, began);
    assert!(earlier.now() < end);
    let ahead = again.accepts_timestamps_from().0;
    assert!(ahead > end.0, "its stamps are of later");
    assert_eq!(again.key(id), None);
    // The last operator's key that never expires stays, whichever others there are.
    let operators = ["operator".to_owned()];
    let brief = Grant { expires: Some(TimeNs(ahead + SECOND)), ..grant(None, &operators) };
    again.create(None, "ed25519", &brief).unwrap();
    assert_eq!(again.revoke(None, &operator).unwrap_err().reason, RejectReason::LastOperatorKey);
    again.revoke(None, id).unwrap();
}

#[test]
fn a_signature_is_checked_while_another_thread_has_the_gateway() {
    let dir = tempfile::tempdir().unwrap();
    let access = open(dir.path());
    let key = generate(Algorithm::Ed25519);
    access.add(key.record(Some(AccountId(1)), [Permission::Trade].into_iter().collect()).unwrap()).unwrap();
    let signed = key.sign(&Request::WEB_SOCKET, now().0, "n");
    let verifier = access.verifier(&signed.key);
    let held = access.gateway();
    assert!(verifier.verify(&Request::WEB_SOCKET, &signed).is_ok());
    drop(held);
}

#[test]
fn the_same_key_again_is_no_mistake_and_a_revoked_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let access = open(dir.path());
    let record = || generate(Algorithm::Ed25519).record(Some(AccountId(1)), [Permission::Trade].into_iter().collect()).unwrap();
    let one = record();
    access.add(one.clone()).unwrap();
    access.add(one.clone()).unwrap();
    assert_eq!(access.change_count(), 1);
    access.revoke(None, one.key_id().as_str()).unwrap();
    assert!(access.add(one).unwrap_err().detail.unwrap().contains("was revoked"));
}
