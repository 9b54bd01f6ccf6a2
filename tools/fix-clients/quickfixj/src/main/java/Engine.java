import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import quickfix.Application;
import quickfix.DefaultMessageFactory;
import quickfix.FieldMap;
import quickfix.FieldNotFound;
import quickfix.FileStoreFactory;
import quickfix.Group;
import quickfix.Log;
import quickfix.Message;
import quickfix.Session;
import quickfix.SessionID;
import quickfix.SessionSettings;
import quickfix.SocketInitiator;

/** QuickFIX/J with the sessions of a client: logs on, sorts what comes, and keeps its numbers in files as a program would. */
final class Engine implements Application {
    private static final int PATIENCE_SECS = 30;

    private final Options options;
    private final Map<Target, Key> keys;
    private final Set<String> execIds = new HashSet<>();
    private final Set<String> dropExecIds = new HashSet<>();
    private final LinkedBlockingQueue<Message> reports = new LinkedBlockingQueue<>();
    private final LinkedBlockingQueue<Message> dropCopies = new LinkedBlockingQueue<>();
    private final LinkedBlockingQueue<Target> logons = new LinkedBlockingQueue<>();
    private final LinkedBlockingQueue<String> logouts = new LinkedBlockingQueue<>();
    private final Map<String, LinkedBlockingQueue<Message>> data = new ConcurrentHashMap<>();
    private final Map<Target, LinkedBlockingQueue<String>> heartbeats = new ConcurrentHashMap<>();
    private final Map<Target, SessionID> sessions = new ConcurrentHashMap<>();
    /** Messages of the venue that the engine or its dictionary did not take, and messages of the engine that the venue did not take. */
    private final ConcurrentLinkedQueue<String> rejects = new ConcurrentLinkedQueue<>();
    private final ConcurrentLinkedQueue<String> resendRequests = new ConcurrentLinkedQueue<>();
    private SocketInitiator initiator;

    Engine(Options options) {
        this.options = options;
        Key key = Key.of(options.get("key"));
        this.keys = Map.of(Target.ORDERS, key, Target.DROP_COPY, Key.of(options.get("signing_key")), Target.MARKET_DATA, key);
    }

    /** Starts the sessions; `store` is where their numbers are, and `resets` says whether they begin with 1 again. */
    void start(String store, boolean resets, Target... targets) throws Exception {
        StringBuilder text = new StringBuilder("[DEFAULT]\nConnectionType=initiator\n"
            + "StartTime=00:00:00\nEndTime=00:00:00\n"
            + "HeartBtInt=2\nReconnectInterval=1\nUseDataDictionary=Y\nFileStorePath=" + Path.of(options.get("folder"), store) + "\n");
        String dictionary = options.version().replace(".", "") + ".xml";
        if (options.isFixt()) {
            text.append("BeginString=FIXT.1.1\nDefaultApplVerID=").append(options.version());
            text.append("\nTransportDataDictionary=FIXT11.xml\nAppDataDictionary=").append(dictionary).append('\n');
        } else {
            text.append("BeginString=").append(options.version()).append("\nDataDictionary=").append(dictionary).append('\n');
        }
        String trust = options.trustStore();
        if (!trust.isEmpty()) {
            text.append("SocketUseSSL=Y\nEnabledProtocols=TLSv1.3\nEndpointIdentificationAlgorithm=HTTPS\nTrustStoreType=PKCS12\n");
            text.append("SocketTrustStore=").append(trust);
            text.append("\nSocketTrustStorePassword=").append(Options.STORE_PASSWORD).append('\n');
        }
        for (Target target : targets) {
            boolean isData = target == Target.MARKET_DATA;
            text.append("[SESSION]\nSenderCompID=JAVA\nTargetCompID=").append(target.compId);
            // The engine tries the next one where one does not answer.
            String[] ports = options.get(isData ? "data" : "orders").split(",");
            for (int at = 0; at < ports.length; at++) {
                String number = at == 0 ? "" : String.valueOf(at);
                text.append("\nSocketConnectHost").append(number).append("=127.0.0.1\nSocketConnectPort").append(number);
                text.append('=').append(ports[at]);
            }
            text.append("\nResetOnLogon=").append(isData || resets ? "Y" : "N");
            text.append("\nEnableNextExpectedMsgSeqNum=").append(isData ? "N" : options.get("next_expected")).append('\n');
        }
        SessionSettings settings = new SessionSettings(new ByteArrayInputStream(text.toString().getBytes(StandardCharsets.UTF_8)));
        logons.clear();
        initiator = new SocketInitiator(this, new FileStoreFactory(settings), settings, this::log, new DefaultMessageFactory());
        initiator.start();
    }

    /** Logs out and ends. */
    void stop() {
        initiator.stop();
        sessions.clear();
    }

    @Override
    public void onCreate(SessionID session) {
        sessions.put(Target.of(session.getTargetCompID()), session);
    }

    @Override
    public void onLogon(SessionID session) {
        logons.add(Target.of(session.getTargetCompID()));
    }

    @Override
    public void onLogout(SessionID session) {}

    @Override
    public void toAdmin(Message message, SessionID session) {
        String kind = get(message.getHeader(), 35);
        if (kind.equals("A")) {
            prove(message, Target.of(session.getTargetCompID()));
        }
        if (kind.equals("3")) {
            rejects.add("the engine rejects: " + readable(message));
        }
    }

    /** With its secret where the version has a field for that and the key is no signing key; else with a signature. */
    private void prove(Message message, Target target) {
        Key key = keys.get(target);
        boolean hasUsername = options.isAtLeast("FIX.4.3");
        if (hasUsername) {
            message.setString(553, key.id());
        }
        if (hasUsername && target == Target.ORDERS) {
            message.setString(554, key.secret());
            return;
        }
        FieldMap header = message.getHeader();
        boolean resets = get(message, 141).equals("Y");
        String signature = key.sign(String.join("\n", "walras-v1", "LOGON", "/fix", get(header, 8), get(header, 49), get(header, 56),
            resets ? "1" : get(header, 34), get(header, 52), get(message, 108), resets ? "Y" : "N", get(message, 789)));
        String raw = hasUsername ? signature : key.id() + ":" + signature;
        message.setInt(95, raw.length());
        message.setString(96, raw);
    }

    @Override
    public void fromAdmin(Message message, SessionID session) {
        String kind = get(message.getHeader(), 35);
        if (kind.equals("3")) {
            rejects.add("the venue rejects: " + readable(message));
        }
        if (kind.equals("0")) {
            heartbeatsOf(Target.of(session.getTargetCompID())).add(get(message, 112));
        }
        if (kind.equals("2")) {
            resendRequests.add(get(message, 7));
        }
    }

    @Override
    public void toApp(Message message, SessionID session) {
        if (get(message.getHeader(), 35).equals("j")) {
            rejects.add("the engine rejects: " + readable(message));
        }
    }

    @Override
    public void fromApp(Message message, SessionID session) {
        if (get(message.getHeader(), 35).equals("j")) {
            rejects.add("the venue rejects: " + readable(message));
            return;
        }
        switch (Target.of(session.getTargetCompID())) {
            case ORDERS -> reports.add(message);
            case DROP_COPY -> dropCopies.add(message);
            case MARKET_DATA -> {
                for (int tag : new int[] {262, 320, 324, 335}) {
                    if (message.isSetField(tag)) {
                        dataOf(get(message, tag)).add(message);
                    }
                }
            }
        }
    }

    /** Reads logouts on the wire: what comes instead of a logon does not reach the application. */
    private Log log(SessionID session) {
        return new Log() {
            @Override
            public void clear() {}

            @Override
            public void onIncoming(String message) {
                if (message.contains("\u000135=5\u0001")) {
                    logouts.add(message.replace('\u0001', '|'));
                }
            }

            @Override
            public void onOutgoing(String message) {}

            @Override
            public void onEvent(String text) {}

            @Override
            public void onErrorEvent(String text) {
                System.err.println(session + ": " + text);
            }
        };
    }

    private LinkedBlockingQueue<Message> dataOf(String request) {
        return data.computeIfAbsent(request, name -> new LinkedBlockingQueue<>());
    }

    private LinkedBlockingQueue<String> heartbeatsOf(Target target) {
        return heartbeats.computeIfAbsent(target, name -> new LinkedBlockingQueue<>());
    }

    static String get(FieldMap fields, int tag) {
        try {
            return fields.isSetField(tag) ? fields.getString(tag) : "";
        } catch (FieldNotFound e) {
            return "";
        }
    }

    static String readable(Message message) {
        return message.toString().replace('\u0001', '|');
    }

    private static <T> T next(LinkedBlockingQueue<T> queue, String what) throws InterruptedException {
        T found = queue.poll(PATIENCE_SECS, TimeUnit.SECONDS);
        if (found == null) {
            throw new Failure("nothing came: " + what);
        }
        return found;
    }

    /** Waits until so many sessions are logged on. */
    void awaitLogons(int count) throws InterruptedException {
        Set<Target> seen = new HashSet<>();
        while (seen.size() < count) {
            seen.add(next(logons, "logons of " + count + " sessions, after " + seen));
        }
    }

    /** The next logout of the venue. */
    String awaitLogout() throws InterruptedException {
        return next(logouts, "a logout");
    }

    void forgetLogouts() {
        logouts.clear();
    }

    /** A heartbeat that is the answer to a test request, or with an empty id one of its own. */
    void awaitHeartbeat(Target target, String id) throws InterruptedException {
        while (!next(heartbeatsOf(target), "a heartbeat of " + target).equals(id)) {
            // Another one.
        }
    }

    /** The next report must be of this order, and new. */
    Message expect(String order, String kind) throws InterruptedException {
        Message message = nextNew(reports, execIds, kind + " of " + order);
        if (!order.equals(get(message, 11)) || !kind.equals(get(message, 150))) {
            throw new Failure("expected " + kind + " of " + order + ", got " + readable(message));
        }
        return message;
    }

    /** The next report of the drop copy must be this one. What a request called it is known to the session of orders alone. */
    void expectCopy(Message report) throws InterruptedException {
        Message copy = nextNew(dropCopies, dropExecIds, "the drop copy of " + readable(report));
        // What another session asked and the venue refused is in no order, so the copy says little of it.
        boolean isRefused = get(report, 150).equals("8");
        for (int tag : isRefused ? new int[] {17, 37, 150, 39, 103} : new int[] {17, 37, 150, 39, 55, 54, 31, 32, 14, 151, 6}) {
            if (!get(copy, tag).equals(get(report, tag))) {
                throw new Failure("the drop copy of " + readable(report) + " is " + readable(copy));
            }
        }
    }

    private static Message nextNew(LinkedBlockingQueue<Message> queue, Set<String> seen, String what) throws InterruptedException {
        while (true) {
            Message message = next(queue, what);
            if (seen.add(get(message, 17))) {
                return message;
            }
            // What was asked for again may come twice; what was not must not.
            if (!get(message.getHeader(), 43).equals("Y")) {
                throw new Failure("this came before: " + readable(message));
            }
        }
    }

    /** The next message must be of this type, which is no execution report. */
    Message expectOther(String kind, boolean isCopied) throws InterruptedException {
        Message message = ofKind(next(reports, kind), kind);
        if (isCopied) {
            ofKind(next(dropCopies, "the drop copy of " + readable(message)), kind);
        }
        return message;
    }

    private static Message ofKind(Message message, String kind) {
        if (!get(message.getHeader(), 35).equals(kind)) {
            throw new Failure("expected " + kind + ", got " + readable(message));
        }
        return message;
    }

    /** Reports that come again, until this ExecID: all must be flagged as such and known. */
    int expectAgain(String lastExecId) throws InterruptedException {
        for (int count = 1; ; count++) {
            Message message = next(reports, "the report " + lastExecId + " again");
            boolean isFlagged = get(message.getHeader(), 43).equals("Y") && !get(message.getHeader(), 122).isEmpty();
            if (!isFlagged || !execIds.contains(get(message, 17))) {
                throw new Failure("expected a report that came before, got " + readable(message));
            }
            if (get(message, 17).equals(lastExecId)) {
                return count;
            }
        }
    }

    /** The next message of a request must be of this type. */
    Message expectData(String request, String kind) throws InterruptedException {
        return ofKind(next(dataOf(request), kind + " of " + request), kind);
    }

    /** The same with these entries: action, kind, price, size, orders and position, each or a minus. */
    void expectEntries(String request, String kind, String... entries) throws InterruptedException {
        Message message = expectData(request, kind);
        List<String> found = new ArrayList<>();
        for (Group group : message.getGroups(268)) {
            List<String> parts = new ArrayList<>();
            for (int tag : new int[] {279, 269, 270, 271, 346, 290}) {
                parts.add(group.isSetField(tag) ? get(group, tag) : "-");
            }
            found.add(String.join(" ", parts));
        }
        if (!found.equals(List.of(entries))) {
            throw new Failure("expected the entries " + List.of(entries) + ", got " + found + " in " + readable(message));
        }
    }

    boolean hasData(String request) {
        return !dataOf(request).isEmpty();
    }

    void forgetData() {
        data.clear();
    }

    void forgetResendRequests() {
        resendRequests.clear();
    }

    boolean wasAskedToResend() {
        return !resendRequests.isEmpty();
    }

    /** The engine's own end of a session. */
    Session session(Target target) {
        return Session.lookupSession(sessions.get(target));
    }

    void send(Target target, Message message) {
        try {
            // False where the session is not logged on: then the engine keeps the message for the next logon.
            Session.sendToTarget(message, sessions.get(target));
        } catch (quickfix.SessionNotFound e) {
            throw new Failure("there is no session of " + target);
        }
    }

    /** Nothing was rejected so far. */
    void checkRejects() {
        if (!rejects.isEmpty()) {
            throw new Failure("there were rejects");
        }
    }

    /** What was rejected. */
    String rejects() {
        return rejects.isEmpty() ? "" : "; " + String.join("; ", rejects);
    }
}
