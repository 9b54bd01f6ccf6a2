//! What reading the venue's time costs.

use std::hint::black_box;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_clock_sync::mesh::{MeshKey, MeshOptions};
use walras_clock_sync::{ClockOptions, ClockService, SourceOptions};
use walras_fair_access::mesh::NodeId;
use walras_wait::within;

use crate::statistics::median;

const BATCH: u32 = 1_024;
/// Longest that the mesh may take to come about.
const PATIENCE: Duration = Duration::from_secs(30);

fn options(source: SourceOptions) -> ClockOptions {
    ClockOptions { bound_max_ns: 1_000_000, good_for_ns: 0, source }
}

/// The system's clock, with a bound that is declared.
pub(super) fn system() -> anyhow::Result<ClockService> {
    let service = ClockService::start(options(SourceOptions::System { bound_ns: 500_000 }))?;
    wait(&service)?;
    Ok(service)
}

/// Two nodes of a mesh over loopback, with a quarter of a window between corrections and a slew after each.
pub(super) fn mesh() -> anyhow::Result<[ClockService; 2]> {
    let listen = || UdpSocket::bind("127.0.0.1:0").context("listening on loopback");
    let sockets = [listen()?, listen()?];
    let addresses = [sockets[0].local_addr()?, sockets[1].local_addr()?];
    let nodes: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let [first, second] = sockets;
    let start = |node: u32, socket: UdpSocket| {
        let mesh = MeshOptions {
            node: NodeId(node),
            nodes: nodes.clone(),
            listen: addresses[node as usize],
            socket: Some(Arc::new(socket)),
            key: MeshKey::of_secret(&[7; 32]).map_err(anyhow::Error::msg)?,
            coordinator: NodeId(0),
            window_ns: 400_000_000,
            interval_ns: 10_000_000,
        };
        Ok::<_, anyhow::Error>(ClockService::start(options(SourceOptions::Mesh(mesh)))?)
    };
    let services = [start(0, first)?, start(1, second)?];
    services.iter().try_for_each(wait)?;
    Ok(services)
}

fn wait(service: &ClockService) -> anyhow::Result<()> {
    within(PATIENCE, || {
        ensure!(service.source().reading().0.is_some(), "the clock has no time: {:?}", service.source().view());
        Ok(())
    })
}

/// What readings cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readings {
    /// Nanoseconds a reading, of the median batch.
    pub(super) ns: f64,
    /// How often there was no time to read for a while: on a busy machine a window of the mesh can be too bad to go by.
    pub(super) lost: usize,
}

/// So many batches of readings, without those in which the clock was lost; fails where that was more than one in a hundred.
pub(super) fn readings(service: &ClockService, batches: usize) -> anyhow::Result<Readings> {
    let source = service.source();
    let mut samples = Vec::with_capacity(batches);
    let (mut last_ns, mut lost) = (0, 0);
    while samples.len() < batches {
        let begun = Instant::now();
        for _ in 0..BATCH {
            black_box(source.reading());
        }
        let sample = begun.elapsed().as_nanos() as f64 / f64::from(BATCH);
        let (Some(reading), _) = source.reading() else {
            lost += 1;
            ensure!(lost <= batches.div_ceil(100), "the clock was lost {lost} times while it was read: {:?}", source.view());
            wait(service)?;
            continue;
        };
        samples.push(sample);
        ensure!(reading.time_ns >= last_ns, "the time went back");
        last_ns = reading.time_ns;
    }
    Ok(Readings { ns: median(&samples), lost })
}
