// Enters an order by FIX, cancels it, and prints what it hears, on QuickFIX/J (docs/fix.md):
// java -cp CLASSPATH FixOrder.java PORT KEY_ID SECRET SYMBOL PRICE
import quickfix.*;

public class FixOrder extends ApplicationAdapter {
    static String[] args;

    public void toAdmin(Message message, SessionID session) {
        if (message instanceof quickfix.fix44.Logon) { message.setString(553, args[1]); message.setString(554, args[2]); }
    }
    public void onLogon(SessionID at) { send(at, "D", "11=first", "55=" + args[3], "54=1", "38=1", "40=2", "44=" + args[4], "59=1"); }
    public void fromApp(Message message, SessionID session) throws FieldNotFound {
        System.out.println("report " + message.getString(150) + (message.isSetField(58) ? " " + message.getString(58) : ""));
        if (message.getString(150).equals("0")) send(session, "F", "11=second", "41=first", "55=" + args[3], "54=1"); else System.exit(0);
    }
    static void send(SessionID session, String type, String... fields) {
        Message message = new Message();
        message.getHeader().setString(35, type);
        message.setUtcTimeStamp(60, java.time.LocalDateTime.now(java.time.ZoneOffset.UTC), true);
        for (String field : fields) message.setString(Integer.parseInt(field.split("=")[0]), field.split("=")[1]);
        Session.lookupSession(session).send(message);
    }
    public static void main(String[] arguments) throws Exception {
        args = arguments;
        String text = "[DEFAULT]\nConnectionType=initiator\nSocketConnectHost=127.0.0.1\nHeartBtInt=30\n"
            + "StartTime=00:00:00\nEndTime=00:00:00\n"
            + "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=EXAMPLE\nTargetCompID=WALRAS\nResetOnLogon=Y\nSocketConnectPort=" + args[0];
        SessionSettings settings = new SessionSettings(new java.io.ByteArrayInputStream(text.getBytes()));
        new SocketInitiator(new FixOrder(), new MemoryStoreFactory(), settings, new DefaultMessageFactory()).start();
        Thread.currentThread().join();
    }
}
