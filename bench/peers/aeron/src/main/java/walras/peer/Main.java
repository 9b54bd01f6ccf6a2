package walras.peer;

import io.aeron.CommonContext;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.driver.MediaDriver;
import io.aeron.exceptions.AeronException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Runs Aeron Cluster beside Walras: starts members, loads them from one client, checks what they have come to and prints the figures.
 * Start reading at {@link Load} and {@link Node}.
 */
public final class Main {
    private Main() {}

    public static void main(String[] args) {
        if (List.of(args).contains("--help") || List.of(args).contains("-h")) {
            System.out.print(Options.USAGE);
            return;
        }
        int status;
        try {
            if (args.length > 0 && args[0].equals("node")) {
                Node.run(List.of(args).subList(1, args.length).toArray(String[]::new));
            } else {
                run(args);
            }
            status = 0;
        } catch (BadInput refused) {
            status = failed(refused.getMessage(), 2);
        } catch (RunFailed failed) {
            status = failed(failed.getMessage(), 1);
        } catch (IOException | RuntimeException | Error failed) {
            failed.printStackTrace();
            status = failed("Aeron or this program failed as printed above; the figures of this run are void.", 1);
        }
        System.exit(status);
    }

    private static int failed(String message, int status) {
        System.err.println("aeron peer: " + message);
        return status;
    }

    private static void run(String[] args) throws BadInput, RunFailed {
        Options options = Options.parse(args);
        String version = CommonContext.class.getPackage().getImplementationVersion();
        Json json = new Json()
                .put("peer", "aeron-cluster")
                .put("version", version == null ? "unknown" : version)
                .put("members", options.members)
                .put("clients", 1)
                .put("outstanding", options.outstanding)
                .put("offered", options.offered)
                .put("sync", options.sync())
                .put("sync_level", options.syncLevel)
                .put("idle", options.idle)
                .put("client_idle", options.clientIdle)
                .put("threading", options.threading)
                .put("mtu", options.mtu)
                .put("value_bytes", options.valueBytes)
                .put("seconds", options.seconds)
                .put("warmup_s", options.warmup);
        try (Members members = Members.start(args, options)) {
            Load load = new Load(options, members);
            try (MediaDriver driver = MediaDriver.launch(Node.driver(members.clientDriverDir(), options));
                    AeronCluster client = connect(members, driver.aeronDirectoryName(), load)) {
                long term = members.term();
                System.out.printf("Aeron Cluster %s: %d members, sync level %d, %s%n", version, options.members, options.syncLevel,
                        options.offered > 0 ? options.offered + " commands/s offered" : options.outstanding + " outstanding");
                load.run(client);
                members.verify(load.answered(), load.hash(), term, options.stallS);
            }
            load.writeTo(json);
        }
        System.out.println(json.put("check", "equal").put("jvm", System.getProperty("java.runtime.version")));
    }

    private static AeronCluster connect(Members members, String driverDir, Load load) throws RunFailed {
        try {
            return AeronCluster.connect(new AeronCluster.Context()
                    .aeronDirectoryName(driverDir)
                    .egressListener(load)
                    .messageTimeoutNs(TimeUnit.SECONDS.toNanos(60))
                    .ingressChannel("aeron:udp?term-length=4m")
                    .ingressEndpoints(members.ingressEndpoints)
                    .egressChannel("aeron:udp?endpoint=127.0.0.1:0|term-length=4m"));
        } catch (AeronException failed) {
            throw new RunFailed("the client found no leader (" + failed.getMessage() + "); the members wrote:\n" + members.lastWords());
        }
    }
}
