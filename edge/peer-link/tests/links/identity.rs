//! Peers with a wrong identity.

use walras_peer_link::keys::Validity;
use walras_peer_link::{LinkConfig, LinkError, LinkEvent, Links, Security, SetupError};

use crate::net::{CLUSTER, Net, authority, config, id, identity, plain, tls};

/// Connects two replicas, where the second calls the first as replica 1; returns the refusals that each reports.
fn meet(first: LinkConfig, second: LinkConfig) -> (LinkError, LinkError) {
    let (one, two) = (first.me.get(), second.me.get());
    let mut net = Net::new(vec![first, second]);
    let (at_first, at_second) = (net.address(0), net.address(1));
    let known = if two == one { 9 } else { two };
    net.introduce(0, &[(known, at_second)]);
    net.introduce(1, &[(1, at_first)]);
    let why = |event| match event {
        LinkEvent::Refused { why, .. } => why,
        other => panic!("{other:?}"),
    };
    let is_refused = |e: &LinkEvent| matches!(e, LinkEvent::Refused { .. });
    let both = (why(net.wait(0, is_refused)), why(net.wait(1, is_refused)));
    // Attempts continue, but nothing more is reported, and the two are never linked.
    for _ in 0..30 {
        net.skipped_ns += 300_000_000;
        net.step(std::time::Duration::from_millis(2));
    }
    assert!(net.events.iter().all(Vec::is_empty), "{both:?}, and then {:?}", net.events);
    both
}

#[test]
fn plain_and_tls_do_not_meet() {
    let authority = authority(CLUSTER);
    let (first, second) = meet(tls(&authority, 1), plain(2));
    assert_eq!((first, second), (LinkError::NotTls, LinkError::PeerSpeaksTls));
    let (first, second) = meet(plain(1), tls(&authority, 2));
    assert_eq!((first, second), (LinkError::PeerSpeaksTls, LinkError::NotTls));
}

#[test]
fn a_foreign_certificate_is_refused_on_either_side() {
    let (ours, theirs) = (authority(CLUSTER), authority(CLUSTER));
    let now = Validity::from_now;
    // Each trusts only its own authority.
    let (first, second) = meet(tls(&ours, 1), tls(&theirs, 2));
    assert!(matches!(first, LinkError::OurCertificateRejected(_)), "{first:?}");
    assert_eq!(second, LinkError::ForeignCertificate);
    // The caller trusts this authority, but its certificate is from the other one.
    let spy = config(2, CLUSTER, Security::Tls(identity(&ours, &theirs, 2, now())));
    let (first, second) = meet(tls(&ours, 1), spy);
    assert_eq!(first, LinkError::ForeignCertificate);
    assert!(matches!(second, LinkError::OurCertificateRejected(_)), "{second:?}");
}

#[test]
fn another_cluster_is_refused() {
    // The replica that is called trusts this authority, but its certificate is from another one.
    let (ours, other) = (authority(CLUSTER), authority(CLUSTER + 1));
    let stranger = config(2, CLUSTER + 1, Security::Tls(identity(&ours, &other, 2, Validity::from_now())));
    let (first, second) = meet(tls(&ours, 1), stranger);
    assert!(matches!(first, LinkError::OurCertificateRejected(_)), "{first:?}");
    assert_eq!(second, LinkError::WrongCluster { expected: CLUSTER + 1, found: CLUSTER });
    // In the other direction the replica that is called refuses it.
    let stranger = config(1, CLUSTER + 1, Security::Tls(identity(&ours, &other, 1, Validity::from_now())));
    let (first, second) = meet(stranger, tls(&ours, 2));
    assert!(matches!(first, LinkError::OurCertificateRejected(_)), "{first:?}");
    assert_eq!(second, LinkError::ForeignCertificate);

    let (first, second) = meet(plain(1), config(2, CLUSTER + 1, Security::PlainOnLoopback));
    assert_eq!(first, LinkError::WrongCluster { expected: CLUSTER, found: CLUSTER + 1 });
    let LinkError::RefusedByPeer(text) = second else { panic!("{second:?}") };
    assert!(text.contains("belongs to cluster 00000000000000c2, not to 00000000000000c1"), "{text}");
}

#[test]
fn an_expired_certificate_is_refused_on_either_side() {
    let authority = authority(CLUSTER);
    let past = Validity { from_s: 1_000_000_000, until_s: 1_000_086_400 };
    let expired = |me| config(me, CLUSTER, Security::Tls(identity(&authority, &authority, me, past)));
    let (first, second) = meet(tls(&authority, 1), expired(2));
    assert_eq!(first, LinkError::ExpiredCertificate);
    assert!(matches!(&second, LinkError::OurCertificateRejected(why) if why.contains("expired")), "{second:?}");
    let (first, second) = meet(expired(1), tls(&authority, 2));
    assert!(matches!(&first, LinkError::OurCertificateRejected(why) if why.contains("expired")), "{first:?}");
    assert_eq!(second, LinkError::ExpiredCertificate);
}

#[test]
fn another_replica_at_the_address_is_reported_by_name() {
    let authority = authority(CLUSTER);
    let mut net = Net::new(vec![tls(&authority, 2), tls(&authority, 3)]);
    let (at_second, at_third) = (net.address(0), net.address(1));
    net.introduce(0, &[(3, at_third)]);
    net.introduce(1, &[(1, at_second)]);
    let refused = net.wait(1, |e| matches!(e, LinkEvent::Refused { .. }));
    let expected = LinkError::WrongReplica { expected: id(1), found: id(2) };
    assert_eq!(refused, LinkEvent::Refused { id: Some(id(1)), remote: Some(at_second), why: expected });

    let mut net = Net::new(vec![plain(2), plain(3)]);
    let (at_second, at_third) = (net.address(0), net.address(1));
    net.introduce(0, &[(3, at_third)]);
    net.introduce(1, &[(1, at_second)]);
    // The replica that was called accepted the caller and answered.
    let refused = net.wait(1, |e| matches!(e, LinkEvent::Refused { .. }));
    assert!(
        matches!(refused, LinkEvent::Refused { why: LinkError::WrongReplica { expected, found }, .. } if (expected, found) == (id(1), id(2))),
        "{refused:?}"
    );
}

#[test]
fn somebody_with_our_own_id_is_refused() {
    let authority = authority(CLUSTER);
    // Replica 2 calls the address of replica 1 and reaches another replica 2.
    let mut net = Net::new(vec![tls(&authority, 2), tls(&authority, 2)]);
    let (at_first, at_second) = (net.address(0), net.address(1));
    net.introduce(0, &[(9, at_second)]);
    net.introduce(1, &[(1, at_first)]);
    let refused = net.wait(1, |e| matches!(e, LinkEvent::Refused { .. }));
    assert!(matches!(refused, LinkEvent::Refused { why: LinkError::OwnId { .. }, .. }), "{refused:?}");
    let (first, second) = meet(plain(2), plain(2));
    assert_eq!(first, LinkError::OwnId { id: id(2) });
    assert!(matches!(second, LinkError::RefusedByPeer(_)), "{second:?}");
}

#[test]
fn two_processes_under_one_id_are_found_out() {
    let authority = authority(CLUSTER);
    let mut net = Net::connected(vec![tls(&authority, 1), tls(&authority, 2)]);
    let mut double = tls(&authority, 2);
    double.incarnation = 77;
    let place = net.start(double);
    let first = net.address(0);
    net.introduce(place, &[(1, first)]);
    // The later process supersedes the earlier one, which calls again and is refused.
    let lost = net.wait(0, |e| matches!(e, LinkEvent::Lost { .. }));
    assert_eq!(lost, LinkEvent::Lost { id: id(2), why: LinkError::Replaced });
    net.wait(place, |e| matches!(e, LinkEvent::Connected { .. }));
    let refused = net.wait(0, |e| matches!(e, LinkEvent::Refused { .. }));
    assert!(
        matches!(refused, LinkEvent::Refused { id: Some(who), why: LinkError::TwoWithOneId { .. }, .. } if who == id(2)),
        "{refused:?}"
    );
    let refused = net.wait(1, |e| matches!(e, LinkEvent::Refused { .. }));
    assert!(
        matches!(&refused, LinkEvent::Refused { why: LinkError::RefusedByPeer(text), .. } if text.contains("two processes")),
        "{refused:?}"
    );
    // It keeps calling, so both run: the one that started later is asked to stop, with both addresses.
    let lost = net.wait(place, |e| matches!(e, LinkEvent::Lost { .. }));
    assert!(
        matches!(&lost, LinkEvent::Lost { why: LinkError::Dismissed(text), .. } if text.contains("replica 2") && text.matches("127.0.0.1:").count() == 2),
        "{lost:?}"
    );
    let lost = net.wait(0, |e| matches!(e, LinkEvent::Lost { .. }));
    assert!(matches!(&lost, LinkEvent::Lost { why: LinkError::LaterOfTwo { .. }, .. }), "{lost:?}");
    // The other one continues.
    net.wait(1, |e| matches!(e, LinkEvent::Connected { .. }));
    net.at(0).send(id(2), "still there").unwrap();
    assert_eq!(net.message(1), (1, b"still there".to_vec()));
}

/// Messages sent in the meantime count as taking part. A process on probation sends none.
#[test]
fn a_process_superseded_by_one_that_took_part_has_to_stop() {
    let authority = authority(CLUSTER);
    let mut peer = tls(&authority, 1);
    peer.counts = |bytes| bytes == b"a promise";
    let mut net = Net::connected(vec![peer, tls(&authority, 2)]);
    let mut copy = tls(&authority, 2);
    copy.incarnation = 77;
    // The first one is unreachable for a while.
    net.links[1] = None;
    net.wait(0, |e| matches!(e, LinkEvent::Lost { .. }));
    let place = net.start(copy);
    let at_first = net.address(0);
    net.introduce(place, &[(1, at_first)]);
    net.wait(place, |e| matches!(e, LinkEvent::Connected { .. }));
    net.at(place).send(id(1), "a promise").unwrap();
    assert_eq!(net.message(0), (2, b"a promise".to_vec()));
    // It is back.
    let back = net.start(tls(&authority, 2));
    net.introduce(back, &[(1, at_first)]);
    let refused = net.wait(back, |e| matches!(e, LinkEvent::Refused { .. }));
    assert!(
        matches!(&refused, LinkEvent::Refused { why: LinkError::Dismissed(text), .. } if text.contains("took its place and took part")),
        "{refused:?}"
    );
    net.at(0).send(id(2), "you go on").unwrap();
    assert_eq!(net.message(place), (1, b"you go on".to_vec()));
}

#[test]
fn versions_that_do_not_go_together_are_refused_by_name() {
    let authority = authority(CLUSTER);
    let mut newer = tls(&authority, 2);
    newer.versions = walras_peer_link::Versions::new(4, 12, "walras 0.2.0");
    let (first, second) = meet(tls(&authority, 1), newer);
    assert!(matches!(&first, LinkError::Versions { ours, theirs } if (ours.wire, theirs.wire) == (3, 4)), "{first:?}");
    let LinkError::RefusedByPeer(text) = second else { panic!("{second:?}") };
    assert!(text.contains("walras 0.2.0") && text.contains("upgrade-check"), "{text}");
}

#[test]
fn another_program_version_is_no_reason() {
    let authority = authority(CLUSTER);
    let mut newer = tls(&authority, 2);
    newer.versions.software = "walras 0.2.0".to_owned();
    let net = Net::connected(vec![tls(&authority, 1), newer]);
    let status = net.links[0].as_ref().unwrap().status(id(2)).unwrap();
    assert_eq!(status.versions.unwrap().software, "walras 0.2.0");
}

#[test]
fn files_of_another_replica_are_refused_at_the_start() {
    let authority = authority(CLUSTER);
    let poll = mio::Poll::new().unwrap();
    let wrong = [
        config(2, CLUSTER, Security::Tls(identity(&authority, &authority, 1, Validity::from_now()))),
        config(1, CLUSTER + 1, Security::Tls(identity(&authority, &authority, 1, Validity::from_now()))),
    ];
    for config in wrong {
        let refused = Links::new(poll.registry(), 0..20, config, 0);
        assert!(matches!(refused, Err(SetupError::NotOurCertificate { .. })));
    }
}
