package walras.peer;

import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.client.AeronArchive;
import io.aeron.cluster.ClusteredMediaDriver;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.MinMulticastFlowControlSupplier;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.agrona.ErrorHandler;
import org.agrona.concurrent.NoOpLock;

/** One member, a process of its own: media driver, archive, consensus module and service. Ends when its standard input does. */
final class Node {
    private static final String ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0";

    private Node() {}

    @SuppressWarnings("try")
    static void run(String[] args) throws BadInput, IOException {
        int member = Integer.parseInt(args[0]);
        String members = args[1];
        Path memory = Path.of(args[2]);
        Path disk = Path.of(args[3]);
        String[] rest = new String[args.length - 4];
        System.arraycopy(args, 4, rest, 0, rest.length);
        Options options = Options.parse(rest);
        EchoService service = new EchoService();
        ErrorHandler errors = Throwable::printStackTrace;
        String driverDir = memory.resolve("member" + member).toString();

        MediaDriver.Context driver = driver(driverDir, options).multicastFlowControlSupplier(new MinMulticastFlowControlSupplier())
                .errorHandler(errors);
        Archive.Context archive = new Archive.Context()
                .aeronDirectoryName(driverDir)
                .archiveDir(disk.resolve("archive").toFile())
                .controlChannel("aeron:udp?endpoint=" + Member.endpointOf(members, member, Member.ARCHIVE))
                .archiveClientContext(new AeronArchive.Context().controlResponseChannel(ANY_PORT))
                .localControlChannel("aeron:ipc?term-length=64k")
                .replicationChannel(ANY_PORT)
                .recordingEventsEnabled(false)
                .threadingMode(ArchiveThreadingMode.SHARED)
                .idleStrategySupplier(options.idleStrategy())
                .fileSyncLevel(options.syncLevel)
                .catalogFileSyncLevel(options.syncLevel);
        AeronArchive.Context toArchive = new AeronArchive.Context()
                .lock(NoOpLock.INSTANCE)
                .controlRequestChannel(archive.localControlChannel())
                .controlRequestStreamId(archive.localControlStreamId())
                .controlResponseChannel(archive.localControlChannel())
                .aeronDirectoryName(driverDir);
        ConsensusModule.Context consensus = new ConsensusModule.Context()
                .clusterMemberId(member)
                .clusterMembers(members)
                .clusterDir(disk.resolve("cluster").toFile())
                .ingressChannel("aeron:udp?term-length=4m")
                .replicationChannel(ANY_PORT)
                .archiveContext(toArchive.clone())
                .idleStrategySupplier(options.idleStrategy())
                .fileSyncLevel(options.syncLevel)
                .errorHandler(errors);
        ClusteredServiceContainer.Context container = new ClusteredServiceContainer.Context()
                .aeronDirectoryName(driverDir)
                .archiveContext(toArchive.clone())
                .clusterDir(disk.resolve("cluster").toFile())
                .clusteredService(service)
                .idleStrategySupplier(options.idleStrategy())
                .errorHandler(errors);

        try (ClusteredMediaDriver ignoredDriver = ClusteredMediaDriver.launch(driver, archive, consensus);
                ClusteredServiceContainer ignoredContainer = ClusteredServiceContainer.launch(container);
                BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            while (questions.readLine() != null) {
                System.out.println(service.state());
            }
        }
    }

    /** The settings that the members' media drivers share with the client's. */
    static MediaDriver.Context driver(String dir, Options options) {
        return new MediaDriver.Context()
                .aeronDirectoryName(dir)
                .dirDeleteOnStart(true)
                .dirDeleteOnShutdown(true)
                .termBufferSparseFile(true)
                .mtuLength(options.mtu)
                .socketRcvbufLength(SOCKET_BYTES)
                .socketSndbufLength(SOCKET_BYTES)
                .initialWindowLength(SOCKET_BYTES)
                .threadingMode(options.threadingMode())
                .conductorIdleStrategy(options.idleStrategy().get())
                .senderIdleStrategy(options.idleStrategy().get())
                .receiverIdleStrategy(options.idleStrategy().get())
                .sharedNetworkIdleStrategy(options.idleStrategy().get())
                .sharedIdleStrategy(options.idleStrategy().get());
    }

    /** Aeron's guide for throughput is 2 MiB; where net.core.rmem_max is lower the driver says so and does not start. */
    private static final int SOCKET_BYTES = 2 << 20;
}
