import java.io.ByteArrayInputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import quickfix.Application;
import quickfix.DefaultMessageFactory;
import quickfix.Group;
import quickfix.MemoryStoreFactory;
import quickfix.Message;
import quickfix.Session;
import quickfix.SessionID;
import quickfix.SessionSettings;
import quickfix.SocketInitiator;

/** A client on QuickFIX/J: logon, order, replace, fill, cancel, and a restart of the venue in between; meanwhile it reads the book. */
public final class Main implements Application {
    private final String user;
    private final String password;
    private final LinkedBlockingQueue<Message> reports = new LinkedBlockingQueue<>();
    private final LinkedBlockingQueue<Message> data = new LinkedBlockingQueue<>();
    private final LinkedBlockingQueue<SessionID> logons = new LinkedBlockingQueue<>();
    private SessionID marketData;
    private final Set<String> execIds = new HashSet<>();

    private Main(String user, String password) {
        this.user = user;
        this.password = password;
    }

    @Override
    public void onCreate(SessionID session) {}

    @Override
    public void onLogon(SessionID session) {
        logons.add(session);
    }

    @Override
    public void onLogout(SessionID session) {}

    @Override
    public void toAdmin(Message message, SessionID session) {
        if (message.getHeader().isSetField(35) && "A".equals(get(message.getHeader(), 35))) {
            message.setString(553, user);
            message.setString(554, password);
        }
    }

    @Override
    public void fromAdmin(Message message, SessionID session) {
        String kind = get(message.getHeader(), 35);
        if (kind.equals("5") || kind.equals("3")) {
            System.err.println("the venue says " + message.toString().replace('\u0001', '|'));
        }
    }

    @Override
    public void toApp(Message message, SessionID session) {}

    @Override
    public void fromApp(Message message, SessionID session) {
        ("WALRAS-MD".equals(session.getTargetCompID()) ? data : reports).add(message);
    }

    /** The next message of market data must be of this type and have these fields in this order. */
    private void expectData(String kind, String fields) throws InterruptedException {
        Message message = data.poll(60, TimeUnit.SECONDS);
        if (message == null) {
            throw new IllegalStateException("no " + kind + " with " + fields + " came");
        }
        String text = message.toString().replace('\u0001', '|');
        if (!kind.equals(get(message.getHeader(), 35)) || !text.contains(fields)) {
            throw new IllegalStateException("expected " + kind + " with " + fields + ", got " + text);
        }
        System.out.println("market data " + kind);
    }

    /** Waits for both sessions; which of them is that of orders. */
    private SessionID awaitLogons() throws InterruptedException {
        SessionID orders = null;
        for (int count = 0; count < 2; count++) {
            SessionID session = logons.poll(60, TimeUnit.SECONDS);
            if (session == null) {
                throw new IllegalStateException("no logon");
            }
            if ("WALRAS".equals(session.getTargetCompID())) {
                orders = session;
            } else {
                marketData = session;
            }
        }
        return orders;
    }

    /** Asks for the book of the instrument, with updates. */
    private void subscribe() throws Exception {
        Message message = new Message();
        message.getHeader().setString(35, "V");
        message.setString(262, "book");
        message.setString(263, "1");
        message.setString(264, "0");
        message.setString(265, "1");
        for (String kind : new String[] {"0", "1"}) {
            Group entry = new Group(267, 269);
            entry.setString(269, kind);
            message.addGroup(entry);
        }
        Group symbol = new Group(146, 55);
        symbol.setString(55, "BTC/USD");
        message.addGroup(symbol);
        Session.sendToTarget(message, marketData);
    }

    private static String get(quickfix.FieldMap fields, int tag) {
        try {
            return fields.isSetField(tag) ? fields.getString(tag) : "";
        } catch (quickfix.FieldNotFound e) {
            return "";
        }
    }

    private void expect(String name, String kind) throws InterruptedException {
        Message message = reports.poll(60, TimeUnit.SECONDS);
        if (message == null) {
            throw new IllegalStateException("no report " + kind + " of " + name + " came");
        }
        if (!name.equals(get(message, 11)) || !kind.equals(get(message, 150)) || !execIds.add(get(message, 17))) {
            throw new IllegalStateException("expected " + kind + " of " + name + ", got " + message.toString().replace('\u0001', '|'));
        }
        System.out.println(name + " " + kind);
    }

    private static void send(SessionID session, String kind, String... fields) throws Exception {
        Message message = new Message();
        message.getHeader().setString(35, kind);
        message.setUtcTimeStamp(60, LocalDateTime.now(ZoneOffset.UTC), true);
        for (String field : fields) {
            String[] parts = field.split("=", 2);
            message.setString(Integer.parseInt(parts[0]), parts[1]);
        }
        Session.sendToTarget(message, session);
    }

    public static void main(String[] args) throws Exception {
        String text = "[DEFAULT]\nConnectionType=initiator\nSocketConnectHost=127.0.0.1\nSocketConnectPort=" + args[0]
            + "\nStartTime=00:00:00\nEndTime=00:00:00\nHeartBtInt=10\nReconnectInterval=1\nEnableNextExpectedMsgSeqNum=Y\n"
            + "UseDataDictionary=Y\nDataDictionary=FIX44.xml\n[SESSION]\nBeginString=FIX.4.4\nSenderCompID=JAVA\nTargetCompID=WALRAS\n"
            + "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=JAVA\nTargetCompID=WALRAS-MD\nSocketConnectPort=" + args[1]
            + "\nResetOnLogon=Y\nEnableNextExpectedMsgSeqNum=N\n";
        SessionSettings settings = new SessionSettings(new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)));
        Main client = new Main(args[2], args[3]);
        SocketInitiator initiator =
            new SocketInitiator(client, new MemoryStoreFactory(), settings, new DefaultMessageFactory());
        initiator.start();
        try {
            SessionID session = client.awaitLogons();
            client.subscribe();
            client.expectData("W", "268=1|269=1|270=100.0|271=0.010|346=1|290=1|");
            send(session, "D", "11=J1", "55=BTC/USD", "54=1", "38=0.01", "40=2", "44=90", "59=1");
            client.expect("J1", "0");
            client.expectData("X", "279=0|269=0|55=BTC/USD|270=90.0|271=0.010|346=1|290=1|");
            send(session, "G", "11=J2", "41=J1", "55=BTC/USD", "54=1", "38=0.02", "40=2", "44=91");
            client.expect("J2", "5");
            client.expectData("X", "268=2|279=2|269=0|55=BTC/USD|270=90.0|290=1|279=0|269=0|55=BTC/USD|270=91.0|271=0.020|346=1|290=1|");
            send(session, "D", "11=J3", "55=BTC/USD", "54=1", "38=0.01", "40=2", "44=110", "59=3");
            client.expect("J3", "0");
            client.expect("J3", "F");
            client.expectData("X", "268=1|279=2|269=1|55=BTC/USD|270=100.0|290=1|");
            send(session, "F", "11=J4", "41=J2", "55=BTC/USD", "54=1", "38=0.02");
            client.expect("J4", "4");
            client.expectData("X", "268=1|279=2|269=0|55=BTC/USD|270=91.0|290=1|");
            System.out.println("STOP");
            new BufferedReader(new InputStreamReader(System.in)).readLine();
            // The venue is gone: this waits for the next logon, and is sent again then.
            send(session, "D", "11=J5", "55=BTC/USD", "54=1", "38=0.01", "40=2", "44=92", "59=1");
            System.out.println("START");
            client.expect("J5", "0");
            client.awaitLogons();
            client.subscribe();
            client.expectData("W", "268=1|269=0|270=92.0|271=0.010|346=1|290=1|");
            send(session, "F", "11=J6", "41=J5", "55=BTC/USD", "54=1", "38=0.01");
            client.expect("J6", "4");
            System.out.println("DONE");
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
        initiator.stop();
        System.exit(0);
    }
}
