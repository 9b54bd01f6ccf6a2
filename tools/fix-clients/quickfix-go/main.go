// A client on quickfix-go: logon, order, replace, fill, cancel, and a restart of the venue in between; meanwhile it reads the book.
//
// It does without NextExpectedMsgSeqNum: version 0.9.10 says the number after the one that it expects.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quickfixgo/quickfix"
)

type client struct {
	user, password string
	reports        chan *quickfix.Message
	data           chan *quickfix.Message
	logons         chan quickfix.SessionID
	execIDs        map[string]bool
}

func (c *client) OnCreate(quickfix.SessionID)   {}
func (c *client) OnLogon(id quickfix.SessionID) { c.logons <- id }
func (c *client) OnLogout(quickfix.SessionID)   {}

func (c *client) ToAdmin(message *quickfix.Message, _ quickfix.SessionID) {
	if kind, _ := message.Header.GetString(35); kind == "A" {
		message.Body.SetString(553, c.user)
		message.Body.SetString(554, c.password)
	}
}

func (c *client) ToApp(*quickfix.Message, quickfix.SessionID) error { return nil }

func (c *client) FromAdmin(message *quickfix.Message, _ quickfix.SessionID) quickfix.MessageRejectError {
	if kind, _ := message.Header.GetString(35); kind == "5" || kind == "3" {
		text, _ := message.Body.GetString(58)
		fmt.Fprintln(os.Stderr, "the venue says", kind, text)
	}
	return nil
}

func (c *client) FromApp(message *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	if id == marketData {
		c.data <- message.ToMessage()
	} else {
		c.reports <- message.ToMessage()
	}
	return nil
}

// The next message of market data must be of this type and have these fields in this order.
func (c *client) expectData(kind, fields string) {
	select {
	case message := <-c.data:
		found, _ := message.Header.GetString(35)
		if text := message.String(); found != kind || !strings.Contains(text, strings.ReplaceAll(fields, "|", "\x01")) {
			fail("expected %s with %s, got %s", kind, fields, text)
		}
		fmt.Println("market data", kind)
	case <-time.After(60 * time.Second):
		fail("no %s with %s came", kind, fields)
	}
}

func (c *client) expect(name, kind string) {
	select {
	case message := <-c.reports:
		found, _ := message.Body.GetString(11)
		execType, _ := message.Body.GetString(150)
		execID, _ := message.Body.GetString(17)
		if found != name || execType != kind || c.execIDs[execID] {
			fail("expected %s of %s, got %s", kind, name, message.String())
		}
		c.execIDs[execID] = true
		fmt.Println(name, kind)
	case <-time.After(60 * time.Second):
		fail("no report %s of %s came", kind, name)
	}
}

func fail(format string, values ...any) {
	fmt.Fprintln(os.Stderr, strings.ReplaceAll(fmt.Sprintf(format, values...), "\x01", "|"))
	os.Exit(1)
}

func order(kind string, fields map[quickfix.Tag]string) *quickfix.Message {
	message := quickfix.NewMessage()
	message.Header.SetString(35, kind)
	message.Body.SetString(60, time.Now().UTC().Format("20060102-15:04:05.000"))
	for tag, value := range fields {
		message.Body.SetString(tag, value)
	}
	return message
}

var (
	session    = quickfix.SessionID{BeginString: "FIX.4.4", SenderCompID: "GO", TargetCompID: "WALRAS"}
	marketData = quickfix.SessionID{BeginString: "FIX.4.4", SenderCompID: "GO", TargetCompID: "WALRAS-MD"}
)

// Asks for the book of the instrument, with updates. The group is written as text: its entries repeat their tag.
func (c *client) subscribe() {
	message := quickfix.NewMessage()
	message.Header.SetString(35, "V")
	for tag, value := range map[quickfix.Tag]string{262: "book", 263: "1", 264: "0", 265: "1"} {
		message.Body.SetString(tag, value)
	}
	kinds := quickfix.NewRepeatingGroup(267, quickfix.GroupTemplate{quickfix.GroupElement(269)})
	for _, kind := range []string{"0", "1"} {
		kinds.Add().SetString(269, kind)
	}
	symbols := quickfix.NewRepeatingGroup(146, quickfix.GroupTemplate{quickfix.GroupElement(55)})
	symbols.Add().SetString(55, "BTC/USD")
	message.Body.SetGroup(kinds)
	message.Body.SetGroup(symbols)
	if err := quickfix.SendToTarget(message, marketData); err != nil {
		fail("%v", err)
	}
}

func (c *client) waitForLogons() {
	for range 2 {
		select {
		case id := <-c.logons:
			fmt.Println("logged on", id)
		case <-time.After(60 * time.Second):
			fail("no logon")
		}
	}
}

func main() {
	port, dataPort, user, password := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	text := fmt.Sprintf("[DEFAULT]\nConnectionType=initiator\nSocketConnectHost=127.0.0.1\nSocketConnectPort=%s\nHeartBtInt=10\n"+
		"ReconnectInterval=1\n[SESSION]\nBeginString=FIX.4.4\nSenderCompID=GO\nTargetCompID=WALRAS\n"+
		"[SESSION]\nBeginString=FIX.4.4\nSenderCompID=GO\nTargetCompID=WALRAS-MD\nSocketConnectPort=%s\nResetOnLogon=Y\n", port, dataPort)
	settings, err := quickfix.ParseSettings(strings.NewReader(text))
	if err != nil {
		fail("%v", err)
	}
	c := &client{user, password, make(chan *quickfix.Message, 100), make(chan *quickfix.Message, 100),
		make(chan quickfix.SessionID, 100), map[string]bool{}}
	initiator, err := quickfix.NewInitiator(c, quickfix.NewMemoryStoreFactory(), settings, quickfix.NewNullLogFactory())
	if err != nil {
		fail("%v", err)
	}
	if err := initiator.Start(); err != nil {
		fail("%v", err)
	}
	c.waitForLogons()
	c.subscribe()
	c.expectData("W", "268=1|269=1|270=100.0|271=0.010|346=1|290=1|")
	send := func(kind string, fields map[quickfix.Tag]string) {
		if err := quickfix.SendToTarget(order(kind, fields), session); err != nil {
			fail("%v", err)
		}
	}
	send("D", map[quickfix.Tag]string{11: "G1", 55: "BTC/USD", 54: "1", 38: "0.01", 40: "2", 44: "90", 59: "1"})
	c.expect("G1", "0")
	c.expectData("X", "279=0|269=0|55=BTC/USD|270=90.0|271=0.010|346=1|290=1|")
	send("G", map[quickfix.Tag]string{11: "G2", 41: "G1", 55: "BTC/USD", 54: "1", 38: "0.02", 40: "2", 44: "91"})
	c.expect("G2", "5")
	c.expectData("X", "268=2|279=2|269=0|55=BTC/USD|270=90.0|290=1|279=0|269=0|55=BTC/USD|270=91.0|271=0.020|346=1|290=1|")
	send("D", map[quickfix.Tag]string{11: "G3", 55: "BTC/USD", 54: "1", 38: "0.01", 40: "2", 44: "110", 59: "3"})
	c.expect("G3", "0")
	c.expect("G3", "F")
	c.expectData("X", "268=1|279=2|269=1|55=BTC/USD|270=100.0|290=1|")
	send("F", map[quickfix.Tag]string{11: "G4", 41: "G2", 55: "BTC/USD", 54: "1", 38: "0.02"})
	c.expect("G4", "4")
	c.expectData("X", "268=1|279=2|269=0|55=BTC/USD|270=91.0|290=1|")
	fmt.Println("STOP")
	bufio.NewReader(os.Stdin).ReadString('\n')
	// The venue is gone: this waits for the next logon, and is sent again then.
	send("D", map[quickfix.Tag]string{11: "G5", 55: "BTC/USD", 54: "1", 38: "0.01", 40: "2", 44: "92", 59: "1"})
	fmt.Println("START")
	c.expect("G5", "0")
	c.waitForLogons()
	c.subscribe()
	c.expectData("W", "268=1|269=0|270=92.0|271=0.010|346=1|290=1|")
	send("F", map[quickfix.Tag]string{11: "G6", 41: "G5", 55: "BTC/USD", 54: "1", 38: "0.01"})
	c.expect("G6", "4")
	initiator.Stop()
	fmt.Println("DONE")
}
