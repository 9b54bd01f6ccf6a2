import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import quickfix.Group;
import quickfix.Message;
import quickfix.Session;

/** A client on QuickFIX/J. The steps are those of run.py; a step that fails ends the run, since the next ones build on it. */
public final class Main {
    private interface Step {
        void run() throws Exception;
    }

    private static final Target[] ALL = Target.values();
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyyMMdd-HH:mm:ss.SSS");

    private final Options options;
    private final Engine engine;
    private final BufferedReader answers;
    private String lastExecId = "";
    private int lastSeq;

    private Main(Options options, BufferedReader answers) {
        this.options = options;
        this.engine = new Engine(options);
        this.answers = answers;
    }

    public static void main(String[] args) {
        Main client = new Main(new Options(args), new BufferedReader(new InputStreamReader(System.in)));
        boolean isDone = client.runAll();
        System.exit(isDone ? 0 : 1);
    }

    private boolean runAll() {
        boolean has43 = options.isAtLeast("FIX.4.3");
        return step("logon", this::logon)
            && (!has43 || step("security_list", this::securityList))
            && step("security_status", this::securityStatus)
            && step("session_status", this::sessionStatus)
            && step("book", this::book)
            && step("order", this::order)
            && step("replace", this::replace)
            && step("trade", this::trade)
            && step("refused", this::refused)
            && step("order_status", this::orderStatus)
            && step("possible_resend", this::possibleResend)
            && step("cancel", this::cancel)
            && step("order_types", this::orderTypes)
            && (!has43 || step("mass_cancel", this::massCancel))
            && step("full_refresh", this::fullRefresh)
            && step("end_request", this::endRequest)
            && step("halt", this::halt)
            && step("heartbeat", this::heartbeat)
            && step("gap_at_the_venue", this::gapAtTheVenue)
            && step("gap_at_the_client", this::gapAtTheClient)
            && step("restart", this::restart)
            && step("missed_while_away", this::missedWhileAway)
            && step("lost_numbers", this::lostNumbers)
            && step("reset", this::reset)
            && step("logout", this::logout)
            && step("other_replica", this::otherReplica)
            && step("leaf_gateway", this::leafGateway);
    }

    private boolean step(String name, Step step) {
        try {
            step.run();
            engine.checkRejects();
            System.out.println("PASSED " + name);
            return true;
        } catch (Exception e) {
            if (!(e instanceof Failure)) {
                e.printStackTrace();
            }
            System.out.println("FAILED " + name + ": " + e.getMessage() + engine.rejects());
            return false;
        }
    }

    /** Asks run.py to do something with the venue, and waits until it is done; its answer. */
    private String please(String what) throws Exception {
        System.out.println("PLEASE " + what);
        return answers.readLine();
    }

    private static Message message(String kind, String... fields) {
        Message message = new Message();
        message.getHeader().setString(35, kind);
        for (String field : fields) {
            String[] parts = field.split("=", 2);
            message.setString(Integer.parseInt(parts[0]), parts[1]);
        }
        return message;
    }

    private static String now() {
        return LocalDateTime.now(ZoneOffset.UTC).format(TIME);
    }

    /** Sends a request about orders. Versions up to 4.3 want to know who handles an order. */
    private void ask(String kind, String... fields) {
        Message message = message(kind, fields);
        if (!kind.equals("H")) {
            message.setString(60, now());
        }
        if (!options.isAtLeast("FIX.4.4") && (kind.equals("D") || kind.equals("G"))) {
            message.setString(21, "1");
        }
        engine.send(Target.ORDERS, message);
    }

    private void buy(String name, String size, String price) {
        ask("D", "11=" + name, "55=BTC/USD", "54=1", "38=" + size, "40=2", "44=" + price, "59=1");
    }

    private void cancel(String name, String original, String size) {
        ask("F", "11=" + name, "41=" + original, "55=BTC/USD", "54=1", "38=" + size);
    }

    /** The next report, here and in the drop copy. */
    private Message expect(String name, String kind) throws InterruptedException {
        Message report = engine.expect(name, kind);
        engine.expectCopy(report);
        lastExecId = Engine.get(report, 17);
        lastSeq = Integer.parseInt(Engine.get(report.getHeader(), 34));
        return report;
    }

    /** A trade of an order that is filled by it. */
    private void expectFill(String name, String price, String size) throws InterruptedException {
        Message fill = expect(name, options.isAtLeast("FIX.4.3") ? "F" : "2");
        check(fill, 39, "2");
        check(fill, 31, price);
        check(fill, 32, size);
        check(fill, 151, "0.000");
    }

    private static void check(Message message, int tag, String value) {
        if (!Engine.get(message, tag).equals(value)) {
            throw new Failure("expected " + tag + "=" + value + " in " + Engine.readable(message));
        }
    }

    private static void checkHas(Message message, int tag, String part) {
        if (!Engine.get(message, tag).contains(part)) {
            throw new Failure("expected " + part + " in field " + tag + " of " + Engine.readable(message));
        }
    }

    private void requestData(String name, String lasting, String updates, String... kinds) {
        Message message = message("V", "262=" + name, "263=" + lasting, "264=0", "265=" + updates);
        for (String kind : kinds) {
            Group entry = new Group(267, 269);
            entry.setString(269, kind);
            message.addGroup(entry);
        }
        Group symbol = new Group(146, 55);
        symbol.setString(55, "BTC/USD");
        message.addGroup(symbol);
        engine.send(Target.MARKET_DATA, message);
    }

    private void logon() throws Exception {
        engine.start("store", false, ALL);
        engine.awaitLogons(3);
    }

    private void securityList() throws Exception {
        engine.send(Target.MARKET_DATA, message("x", "320=list", "559=4"));
        Message list = engine.expectData("list", "y");
        check(list, 560, "0");
        List<Group> groups = list.getGroups(146);
        if (groups.size() != 1 || !Engine.get(groups.get(0), 55).equals("BTC/USD")
                || !Engine.get(groups.get(0), 58).startsWith("tick 0.5, lot 0.001, base BTC, price-time, ")) {
            throw new Failure("expected BTC/USD alone, got " + Engine.readable(list));
        }
    }

    private void securityStatus() throws Exception {
        engine.send(Target.MARKET_DATA, message("e", "324=status", "55=BTC/USD", "263=1"));
        check(engine.expectData("status", "f"), 326, "17");
    }

    private void sessionStatus() throws Exception {
        engine.send(Target.MARKET_DATA, message("g", "335=phases", "263=0"));
        check(engine.expectData("phases", "h"), 340, "2");
    }

    private void book() throws Exception {
        requestData("book", "1", "1", "0", "1");
        engine.expectEntries("book", "W", "- 1 100.0 0.010 1 1");
        requestData("trades", "1", "1", "2");
        engine.expectEntries("trades", "W");
    }

    private void order() throws Exception {
        buy("J1", "0.01", "90");
        Message report = expect("J1", "0");
        check(report, 39, "0");
        check(report, 151, "0.010");
        engine.expectEntries("book", "X", "0 0 90.0 0.010 1 1");
    }

    private void replace() throws Exception {
        ask("G", "11=J2", "41=J1", "55=BTC/USD", "54=1", "38=0.02", "40=2", "44=91");
        check(expect("J2", "5"), 41, "J1");
        engine.expectEntries("book", "X", "2 0 90.0 - - 1", "0 0 91.0 0.020 1 1");
    }

    private void trade() throws Exception {
        ask("D", "11=J3", "55=BTC/USD", "54=1", "38=0.01", "40=2", "44=110", "59=3");
        expect("J3", "0");
        expectFill("J3", "100.0", "0.010");
        engine.expectEntries("book", "X", "2 1 100.0 - - 1");
        engine.expectEntries("trades", "X", "0 2 100.0 0.010 - -");
    }

    private void refused() throws Exception {
        buy("odd", "0.01", "90.3");
        Message report = expect("odd", "8");
        check(report, 39, "8");
        checkHas(report, 58, "PriceNotOnTick");
        ask("D", "11=none", "55=NO/SUCH", "54=1", "38=1", "40=1");
        checkHas(expect("none", "8"), 58, "UnknownInstrument");
        cancel("nothing", "never", "0.01");
        Message rejected = engine.expectOther("9", true);
        check(rejected, 434, "1");
        checkHas(rejected, 58, "UnknownOrder");
    }

    /** An answer to a question is no report of the account: the drop copy does not have it. */
    private void expectStatus(String name, String open) throws Exception {
        Message status = engine.expect(name, options.isAtLeast("FIX.4.3") ? "I" : "0");
        check(status, 39, "0");
        check(status, 151, open);
        checkHas(status, 17, "S");
    }

    private void orderStatus() throws Exception {
        ask("H", "11=J2", "55=BTC/USD", "54=1");
        expectStatus("J2", "0.020");
    }

    private void possibleResend() throws Exception {
        Message message = message("D", "11=J2", "55=BTC/USD", "54=1", "38=0.02", "40=2", "44=91", "59=1", "60=" + now());
        message.getHeader().setString(97, "Y");
        if (!options.isAtLeast("FIX.4.4")) {
            message.setString(21, "1");
        }
        engine.send(Target.ORDERS, message);
        expectStatus("J2", "0.020");
    }

    private void cancel() throws Exception {
        cancel("J4", "J2", "0.02");
        check(expect("J4", "4"), 39, "4");
        engine.expectEntries("book", "X", "2 0 91.0 - - 1");
    }

    /** Kinds of orders whose reports have further fields, which the engine's dictionary checks. They show in no book. */
    private void orderTypes() throws Exception {
        String expires = LocalDateTime.now(ZoneOffset.UTC).plusDays(1).format(TIME);
        List<String[]> orders = new ArrayList<>();
        orders.add(new String[] {"40=4", "44=120", "99=115", "59=1"});
        orders.add(new String[] {"40=3", "99=116", "59=6", "126=" + expires});
        orders.add(new String[] {"40=2", "44=80", "59=1", options.isAtLeast("FIX.5.0") ? "1138=0" : "111=0"});
        if (options.isAtLeast("FIX.4.4")) {
            orders.add(new String[] {"40=3", "18=a", "211=5", "836=0", "59=1"});
        }
        for (int at = 0; at < orders.size(); at++) {
            List<String> fields = new ArrayList<>(List.of("11=T" + at, "55=BTC/USD", "54=1", "38=0.01"));
            fields.addAll(List.of(orders.get(at)));
            ask("D", fields.toArray(String[]::new));
            expect("T" + at, "0");
        }
        if (!options.isAtLeast("FIX.4.3")) {
            for (int at = 0; at < orders.size(); at++) {
                cancel("U" + at, "T" + at, "0.01");
                expect("U" + at, "4");
            }
        }
    }

    private void massCancel() throws Exception {
        ask("q", "11=all", "530=7");
        Message answer = engine.expectOther("r", false);
        check(answer, 531, "7");
        int count = options.isAtLeast("FIX.4.4") ? 4 : 3;
        for (int at = 0; at < count; at++) {
            expect("T" + at, "4");
        }
    }

    private void fullRefresh() throws Exception {
        requestData("full", "1", "0", "0", "1");
        engine.expectEntries("full", "W");
        buy("J5", "0.01", "92");
        expect("J5", "0");
        engine.expectEntries("full", "W", "- 0 92.0 0.010 1 1");
        engine.expectEntries("book", "X", "0 0 92.0 0.010 1 1");
    }

    private void endRequest() throws Exception {
        requestData("full", "2", "0", "0", "1");
        // The second change comes after all that the first one could lead to.
        buy("J6", "0.01", "93");
        expect("J6", "0");
        engine.expectEntries("book", "X", "0 0 93.0 0.010 1 1");
        cancel("J7", "J6", "0.01");
        expect("J7", "4");
        engine.expectEntries("book", "X", "2 0 93.0 - - 1");
        if (engine.hasData("full")) {
            throw new Failure("a request that was ended gets updates");
        }
    }

    private void halt() throws Exception {
        please("phase halt");
        check(engine.expectData("status", "f"), 326, "2");
        please("phase continuous");
        check(engine.expectData("status", "f"), 326, "17");
    }

    private void heartbeat() throws Exception {
        for (Target target : ALL) {
            engine.session(target).generateTestRequest("are you there");
            engine.awaitHeartbeat(target, "are you there");
            engine.awaitHeartbeat(target, "");
        }
    }

    /** Numbers that the venue never got: it asks for them, and the engine fills the gap. */
    private void gapAtTheVenue() throws Exception {
        engine.forgetResendRequests();
        Session session = engine.session(Target.ORDERS);
        session.setNextSenderMsgSeqNum(session.getExpectedSenderNum() + 5);
        buy("J8", "0.01", "88");
        expect("J8", "0");
        if (!engine.wasAskedToResend()) {
            throw new Failure("the venue did not ask for what it lacks");
        }
        // Before it is cancelled: changes that come close together are merged.
        engine.expectEntries("book", "X", "0 0 88.0 0.010 1 2");
        cancel("J9", "J8", "0.01");
        expect("J9", "4");
        engine.expectEntries("book", "X", "2 0 88.0 - - 2");
    }

    /** Reports that the client lacks: it asks for them, and they come again before the next one. */
    private void gapAtTheClient() throws Exception {
        String again = lastExecId;
        engine.session(Target.ORDERS).setNextTargetMsgSeqNum(lastSeq);
        buy("J10", "0.01", "89");
        engine.expectAgain(again);
        expect("J10", "0");
        engine.expectEntries("book", "X", "0 0 89.0 0.010 1 2");
        cancel("J11", "J10", "0.01");
        expect("J11", "4");
        engine.expectEntries("book", "X", "2 0 89.0 - - 2");
    }

    private void subscribeAgain(String... levels) throws Exception {
        engine.forgetData();
        requestData("book", "1", "1", "0", "1");
        engine.expectEntries("book", "W", levels);
    }

    private void restart() throws Exception {
        buy("J12", "0.01", "86");
        expect("J12", "0");
        ask("G", "11=J13", "41=J12", "55=BTC/USD", "54=1", "38=0.01", "40=2", "44=87");
        expect("J13", "5");
        please("kill");
        // The venue is gone: this waits for the next logon, and is sent again then.
        buy("J14", "0.01", "91");
        please("start");
        expect("J14", "0");
        engine.awaitLogons(3);
        subscribeAgain("- 0 92.0 0.010 1 1", "- 0 91.0 0.010 1 2", "- 0 87.0 0.010 1 3");
        // The log has the ClOrdID that the replace gave, so it leads to the order without an OrderID.
        cancel("J15", "J13", "0.01");
        expect("J15", "4");
        engine.expectEntries("book", "X", "2 0 87.0 - - 3");
    }

    /** While the client is away its orders trade, and the venue is killed. */
    private void missedWhileAway() throws Exception {
        engine.stop();
        please("sell 0.02 91");
        please("kill");
        please("start");
        engine.start("store", false, ALL);
        engine.awaitLogons(3);
        expectFill("J5", "92.0", "0.010");
        expectFill("J14", "91.0", "0.010");
        subscribeAgain();
        buy("J16", "0.01", "90");
        expect("J16", "0");
        engine.expectEntries("book", "X", "0 0 90.0 0.010 1 1");
    }

    /** The client has lost its numbers: the venue says which it expects. */
    private void lostNumbers() throws Exception {
        engine.stop();
        engine.forgetLogouts();
        engine.start("lost", false, Target.ORDERS);
        String text = engine.awaitLogout();
        engine.stop();
        if (!text.contains("MsgSeqNum too low, expecting ")) {
            throw new Failure("expected which number the venue expects, got " + text);
        }
    }

    /** Numbers begin with 1 at both ends; orders stay, and nothing that was before comes again. */
    private void reset() throws Exception {
        engine.start("reset", true, ALL);
        engine.awaitLogons(3);
        ask("H", "11=J16", "55=BTC/USD", "54=1");
        expectStatus("J16", "0.010");
        subscribeAgain("- 0 90.0 0.010 1 1");
        cancel("J17", "J16", "0.01");
        expect("J17", "4");
        engine.expectEntries("book", "X", "2 0 90.0 - - 1");
    }

    private void logout() throws Exception {
        engine.forgetLogouts();
        engine.stop();
        for (int at = 0; at < ALL.length; at++) {
            engine.awaitLogout();
        }
    }

    /** Steps at another venue, which starts when it is asked for so. */
    private void elsewhere(String asked, Function<Main, Step> steps) throws Exception {
        Main other = new Main(options.with(please(asked)), answers);
        try {
            steps.apply(other).run();
            other.engine.checkRejects();
        } catch (Failure e) {
            throw new Failure(e.getMessage() + other.engine.rejects());
        }
        other.engine.stop();
    }

    /** Three replicas with fair access: the one that leads, and that the client is connected to, is killed. */
    private void otherReplica() throws Exception {
        elsewhere("cluster start", other -> other::goesOnElsewhere);
    }

    /** A leaf gateway below a relay: all of the venue that the client knows. */
    private void leafGateway() throws Exception {
        elsewhere("leaf start", other -> other::tradesAtAGateway);
    }

    private void tradesAtAGateway() throws Exception {
        logon();
        book();
        order();
        replace();
        trade();
        refused();
        orderStatus();
        possibleResend();
        cancel();
        orderTypes();
        if (options.isAtLeast("FIX.4.3")) {
            massCancel();
        }
    }

    private void goesOnElsewhere() throws Exception {
        logon();
        buy("R1", "0.01", "92");
        expect("R1", "0");
        buy("R2", "0.01", "91");
        expect("R2", "0");
        int seq = lastSeq;
        // One on its way, and one while there is no connection: each is sent again where it has to be, and entered once.
        buy("R3", "0.01", "90");
        please("cluster kill");
        buy("R4", "0.01", "89");
        expect("R3", "0");
        expect("R4", "0");
        engine.awaitLogons(3);
        if (lastSeq <= seq) {
            throw new Failure("the number " + lastSeq + " of the last report is not above " + seq);
        }
        subscribeAgain("- 0 92.0 0.010 1 1", "- 0 91.0 0.010 1 2", "- 0 90.0 0.010 1 3", "- 0 89.0 0.010 1 4");
        please("cluster sell 0.01 92");
        expectFill("R1", "92.0", "0.010");
        engine.expectEntries("book", "X", "2 0 92.0 - - 1");
        cancel("R5", "R4", "0.01");
        expect("R5", "4");
        engine.expectEntries("book", "X", "2 0 89.0 - - 3");
    }
}
