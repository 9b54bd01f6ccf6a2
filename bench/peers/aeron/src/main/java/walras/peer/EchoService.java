package walras.peer;

import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.logbuffer.Header;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.DirectBuffer;

/** What every member runs: counts and hashes the commands in the log, and sends each back to who sent it. */
final class EchoService implements ClusteredService {
    private Cluster cluster;
    private long commands;
    private long hash = Command.HASH_OF_NONE;
    // Read by another thread when nothing is sent any more.
    private final AtomicLong commandsSeen = new AtomicLong();
    private final AtomicLong hashSeen = new AtomicLong(hash);
    private final AtomicLong term = new AtomicLong(-1);
    private volatile Cluster.Role role = Cluster.Role.FOLLOWER;

    @Override
    public void onStart(Cluster cluster, Image snapshotImage) {
        this.cluster = cluster;
        role = cluster.role();
    }

    @Override
    public void onSessionMessage(ClientSession session, long timestamp, DirectBuffer buffer, int offset, int length, Header header) {
        hash = Command.hash(hash, Command.number(buffer, offset), Command.dueNs(buffer, offset));
        commands++;
        hashSeen.lazySet(hash);
        commandsSeen.lazySet(commands);
        cluster.idleStrategy().reset();
        // A follower's offer goes nowhere and succeeds. A client that is gone ends it too.
        while (session.offer(buffer, offset, length) < 0 && !session.isClosing()) {
            cluster.idleStrategy().idle();
        }
    }

    @Override
    public void onRoleChange(Cluster.Role newRole) {
        role = newRole;
    }

    @Override
    public void onNewLeadershipTermEvent(
            long leadershipTermId, long logPosition, long timestamp, long termBaseLogPosition, int leaderMemberId, int logSessionId,
            TimeUnit timeUnit, int appVersion) {
        term.set(leadershipTermId);
    }

    /** What {@link Member#state} reads. */
    String state() {
        return "state " + commandsSeen.get() + " " + hashSeen.get() + " " + term.get() + " " + role;
    }

    @Override
    public void onSessionOpen(ClientSession session, long timestamp) {}

    @Override
    public void onSessionClose(ClientSession session, long timestamp, CloseReason closeReason) {}

    @Override
    public void onTimerEvent(long correlationId, long timestamp) {}

    @Override
    public void onTakeSnapshot(ExclusivePublication snapshotPublication) {}

    @Override
    public void onTerminate(Cluster cluster) {}
}
