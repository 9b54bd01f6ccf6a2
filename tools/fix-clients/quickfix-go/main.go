// A client on quickfix-go. The steps are those of run.py; a step that fails ends the run, since the next ones build on it.
//
// It does without NextExpectedMsgSeqNum: version 0.9.10 says the number after the one that it expects.
package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/quickfixgo/quickfix"
)

const timeFormat = "20060102-15:04:05.000"

// What was expected did not happen.
type failure struct{ text string }

func fail(format string, values ...any) {
	panic(failure{strings.ReplaceAll(fmt.Sprintf(format, values...), "\x01", "|")})
}

type client struct {
	*engine
	answers    *bufio.Reader
	lastExecID string
	lastSeq    int
}

func main() {
	options := options{}
	options.set(os.Args[1:])
	c := &client{engine: newEngine(options), answers: bufio.NewReader(os.Stdin)}
	steps := []struct {
		name  string
		since string
		run   func()
	}{
		{"logon", "", c.logon},
		{"security_list", "FIX.4.3", c.securityList},
		{"security_status", "", c.securityStatus},
		{"session_status", "", c.sessionStatus},
		{"book", "", c.book},
		{"order", "", c.order},
		{"replace", "", c.replace},
		{"trade", "", c.trade},
		{"refused", "", c.refused},
		{"order_status", "", c.orderStatus},
		{"possible_resend", "", c.possibleResend},
		{"cancel", "", c.cancelled},
		{"order_types", "", c.orderTypes},
		{"mass_cancel", "FIX.4.3", c.massCancel},
		{"full_refresh", "", c.fullRefresh},
		{"end_request", "", c.endRequest},
		{"halt", "", c.halt},
		{"heartbeat", "", c.heartbeat},
		{"gap_at_the_venue", "", c.gapAtTheVenue},
		{"gap_at_the_client", "", c.gapAtTheClient},
		{"restart", "", c.restart},
		{"missed_while_away", "", c.missedWhileAway},
		{"lost_numbers", "", c.lostNumbers},
		{"reset", "", c.reset},
		{"logout", "", c.logout},
		{"other_replica", "", c.otherReplica},
		{"leaf_gateway", "", c.leafGateway},
	}
	for _, step := range steps {
		if options.isAtLeast(step.since) && !c.step(step.name, step.run) {
			os.Exit(1)
		}
	}
}

func (c *client) step(name string, run func()) (isPassed bool) {
	defer func() {
		problem := recover()
		if failed, is := problem.(failure); is {
			fmt.Printf("FAILED %s: %s; %s\n", name, failed.text, c.takeRejects())
		} else if problem != nil {
			panic(problem)
		}
	}()
	run()
	if rejects := c.takeRejects(); rejects != "" {
		fail("%s", rejects)
	}
	fmt.Println("PASSED", name)
	return true
}

// Asks run.py to do something with the venue, and waits until it is done; its answer.
func (c *client) please(what string) string {
	fmt.Println("PLEASE", what)
	answer, err := c.answers.ReadString('\n')
	if err != nil {
		fail("%v", err)
	}
	return answer
}

type values map[quickfix.Tag]string

func messageWith(kind string, fields values) *quickfix.Message {
	outgoing := quickfix.NewMessage()
	outgoing.Header.SetString(35, kind)
	for tag, value := range fields {
		outgoing.Body.SetString(tag, value)
	}
	return outgoing
}

func now() string { return time.Now().UTC().Format(timeFormat) }

// A request about orders. Versions up to 4.3 want to know who handles an order.
func (c *client) request(kind string, fields values) *quickfix.Message {
	outgoing := messageWith(kind, fields)
	if kind != "H" {
		outgoing.Body.SetString(60, now())
	}
	if !c.options.isAtLeast("FIX.4.4") && (kind == "D" || kind == "G") {
		outgoing.Body.SetString(21, "1")
	}
	return outgoing
}

func (c *client) ask(kind string, fields values) { c.send(orders, c.request(kind, fields)) }

func (c *client) buy(name, size, price string) {
	c.ask("D", values{11: name, 55: "BTC/USD", 54: "1", 38: size, 40: "2", 44: price, 59: "1"})
}

func (c *client) cancel(name, original, size string) {
	c.ask("F", values{11: name, 41: original, 55: "BTC/USD", 54: "1", 38: size})
}

// The next report, here and in the drop copy.
func (c *client) expect(name, kind string) message {
	report := c.engine.expect(name, kind)
	c.expectCopy(report)
	c.lastExecID, c.lastSeq = report.get(17), number(report.get(34))
	return report
}

// A trade of an order that is filled by it.
func (c *client) expectFill(name, price, size string) {
	kind := "F"
	if !c.options.isAtLeast("FIX.4.3") {
		kind = "2"
	}
	fill := c.expect(name, kind)
	fill.check(39, "2")
	fill.check(31, price)
	fill.check(32, size)
	fill.check(151, "0.000")
}

func (c *client) requestData(name, lasting, updates string, kinds ...string) {
	outgoing := messageWith("V", values{262: name, 263: lasting, 264: "0", 265: updates})
	entries := quickfix.NewRepeatingGroup(267, quickfix.GroupTemplate{quickfix.GroupElement(269)})
	for _, kind := range kinds {
		entries.Add().SetString(269, kind)
	}
	symbols := quickfix.NewRepeatingGroup(146, quickfix.GroupTemplate{quickfix.GroupElement(55)})
	symbols.Add().SetString(55, "BTC/USD")
	outgoing.Body.SetGroup(entries)
	outgoing.Body.SetGroup(symbols)
	c.send(marketData, outgoing)
}

func (c *client) logon() {
	c.start("store", false, all...)
	c.awaitLogons(3)
}

func (c *client) securityList() {
	c.send(marketData, messageWith("x", values{320: "list", 559: "4"}))
	list := c.expectData("list", "y")
	list.check(560, "0")
	list.check(146, "1")
	list.check(55, "BTC/USD")
	list.checkHas(58, "tick 0.5, lot 0.001, base BTC, price-time, ")
}

func (c *client) securityStatus() {
	c.send(marketData, messageWith("e", values{324: "status", 55: "BTC/USD", 263: "1"}))
	c.expectData("status", "f").check(326, "17")
}

func (c *client) sessionStatus() {
	c.send(marketData, messageWith("g", values{335: "phases", 263: "0"}))
	c.expectData("phases", "h").check(340, "2")
}

func (c *client) book() {
	c.requestData("book", "1", "1", "0", "1")
	c.expectEntries("book", "W", "- 1 100.0 0.010 1 1")
	c.requestData("trades", "1", "1", "2")
	c.expectEntries("trades", "W")
}

func (c *client) order() {
	c.buy("G1", "0.01", "90")
	report := c.expect("G1", "0")
	report.check(39, "0")
	report.check(151, "0.010")
	c.expectEntries("book", "X", "0 0 90.0 0.010 1 1")
}

func (c *client) replace() {
	c.ask("G", values{11: "G2", 41: "G1", 55: "BTC/USD", 54: "1", 38: "0.02", 40: "2", 44: "91"})
	c.expect("G2", "5").check(41, "G1")
	c.expectEntries("book", "X", "2 0 90.0 - - 1", "0 0 91.0 0.020 1 1")
}

func (c *client) trade() {
	c.ask("D", values{11: "G3", 55: "BTC/USD", 54: "1", 38: "0.01", 40: "2", 44: "110", 59: "3"})
	c.expect("G3", "0")
	c.expectFill("G3", "100.0", "0.010")
	c.expectEntries("book", "X", "2 1 100.0 - - 1")
	c.expectEntries("trades", "X", "0 2 100.0 0.010 - -")
}

func (c *client) refused() {
	c.buy("odd", "0.01", "90.3")
	report := c.expect("odd", "8")
	report.check(39, "8")
	report.checkHas(58, "PriceNotOnTick")
	c.ask("D", values{11: "none", 55: "NO/SUCH", 54: "1", 38: "1", 40: "1"})
	c.expect("none", "8").checkHas(58, "UnknownInstrument")
	c.cancel("nothing", "never", "0.01")
	rejected := c.expectOther("9", true)
	rejected.check(434, "1")
	rejected.checkHas(58, "UnknownOrder")
}

// An answer to a question is no report of the account: the drop copy does not have it.
func (c *client) expectStatus(name, open string) {
	kind := "I"
	if !c.options.isAtLeast("FIX.4.3") {
		kind = "0"
	}
	status := c.engine.expect(name, kind)
	status.check(39, "0")
	status.check(151, open)
	status.checkHas(17, "S")
}

func (c *client) orderStatus() {
	c.ask("H", values{11: "G2", 55: "BTC/USD", 54: "1"})
	c.expectStatus("G2", "0.020")
}

func (c *client) possibleResend() {
	again := c.request("D", values{11: "G2", 55: "BTC/USD", 54: "1", 38: "0.02", 40: "2", 44: "91", 59: "1"})
	again.Header.SetString(97, "Y")
	c.send(orders, again)
	c.expectStatus("G2", "0.020")
}

func (c *client) cancelled() {
	c.cancel("G4", "G2", "0.02")
	c.expect("G4", "4").check(39, "4")
	c.expectEntries("book", "X", "2 0 91.0 - - 1")
}

// Kinds of orders whose reports have further fields, which the engine's dictionary checks. They show in no book.
func (c *client) orderTypes() {
	hidden := quickfix.Tag(111)
	if c.options.isAtLeast("FIX.5.0") {
		hidden = 1138
	}
	kinds := []values{
		{40: "4", 44: "120", 99: "115", 59: "1"},
		{40: "3", 99: "116", 59: "6", 126: time.Now().UTC().Add(24 * time.Hour).Format(timeFormat)},
		{40: "2", 44: "80", 59: "1", hidden: "0"},
	}
	if c.options.isAtLeast("FIX.4.4") {
		kinds = append(kinds, values{40: "3", 18: "a", 211: "5", 836: "0", 59: "1"})
	}
	for at, fields := range kinds {
		fields[11] = fmt.Sprint("T", at)
		fields[55], fields[54], fields[38] = "BTC/USD", "1", "0.01"
		c.ask("D", fields)
		c.expect(fields[11], "0")
	}
	if !c.options.isAtLeast("FIX.4.3") {
		for at := range kinds {
			c.cancel(fmt.Sprint("U", at), fmt.Sprint("T", at), "0.01")
			c.expect(fmt.Sprint("U", at), "4")
		}
	}
}

func (c *client) massCancel() {
	c.ask("q", values{11: "all", 530: "7"})
	c.expectOther("r", false).check(531, "7")
	count := 3
	if c.options.isAtLeast("FIX.4.4") {
		count = 4
	}
	for at := range count {
		c.expect(fmt.Sprint("T", at), "4")
	}
}

func (c *client) fullRefresh() {
	c.requestData("full", "1", "0", "0", "1")
	c.expectEntries("full", "W")
	c.buy("G5", "0.01", "92")
	c.expect("G5", "0")
	c.expectEntries("full", "W", "- 0 92.0 0.010 1 1")
	c.expectEntries("book", "X", "0 0 92.0 0.010 1 1")
}

func (c *client) endRequest() {
	c.requestData("full", "2", "0", "0", "1")
	// The second change comes after all that the first one could lead to.
	c.buy("G6", "0.01", "93")
	c.expect("G6", "0")
	c.expectEntries("book", "X", "0 0 93.0 0.010 1 1")
	c.cancel("G7", "G6", "0.01")
	c.expect("G7", "4")
	c.expectEntries("book", "X", "2 0 93.0 - - 1")
	if len(c.dataOf("full")) > 0 {
		fail("a request that was ended gets updates")
	}
}

func (c *client) halt() {
	c.please("phase halt")
	c.expectData("status", "f").check(326, "2")
	c.please("phase continuous")
	c.expectData("status", "f").check(326, "17")
}

func (c *client) heartbeat() {
	for _, target := range all {
		c.send(target, messageWith("1", values{112: "are you there"}))
		c.awaitHeartbeat(target, "are you there")
		c.awaitHeartbeat(target, "")
	}
}

// Numbers that the venue never got: it asks for them, and the engine fills the gap.
func (c *client) gapAtTheVenue() {
	c.takeResendRequests()
	seq, err := quickfix.GetExpectedSenderNum(c.session(orders))
	if err == nil {
		err = quickfix.SetNextSenderMsgSeqNum(c.session(orders), seq+5)
	}
	if err != nil {
		fail("%v", err)
	}
	c.buy("G8", "0.01", "88")
	c.expect("G8", "0")
	if c.takeResendRequests() == 0 {
		fail("the venue did not ask for what it lacks")
	}
	// Before it is cancelled: changes that come close together are merged.
	c.expectEntries("book", "X", "0 0 88.0 0.010 1 2")
	c.cancel("G9", "G8", "0.01")
	c.expect("G9", "4")
	c.expectEntries("book", "X", "2 0 88.0 - - 2")
}

// Reports that the client lacks: it asks for them, and they come again before the next one.
func (c *client) gapAtTheClient() {
	again := c.lastExecID
	if err := quickfix.SetNextTargetMsgSeqNum(c.session(orders), c.lastSeq); err != nil {
		fail("%v", err)
	}
	c.buy("G10", "0.01", "89")
	c.expectAgain(again)
	c.expect("G10", "0")
	c.expectEntries("book", "X", "0 0 89.0 0.010 1 2")
	c.cancel("G11", "G10", "0.01")
	c.expect("G11", "4")
	c.expectEntries("book", "X", "2 0 89.0 - - 2")
}

func (c *client) subscribeAgain(levels ...string) {
	c.forgetData()
	c.requestData("book", "1", "1", "0", "1")
	c.expectEntries("book", "W", levels...)
}

func (c *client) restart() {
	c.buy("G12", "0.01", "86")
	c.expect("G12", "0")
	c.ask("G", values{11: "G13", 41: "G12", 55: "BTC/USD", 54: "1", 38: "0.01", 40: "2", 44: "87"})
	c.expect("G13", "5")
	c.please("kill")
	// The venue is gone: this waits for the next logon, and is sent again then.
	c.buy("G14", "0.01", "91")
	c.please("start")
	c.expect("G14", "0")
	c.awaitLogons(3)
	c.subscribeAgain("- 0 92.0 0.010 1 1", "- 0 91.0 0.010 1 2", "- 0 87.0 0.010 1 3")
	// The log has the ClOrdID that the replace gave, so it leads to the order without an OrderID.
	c.cancel("G15", "G13", "0.01")
	c.expect("G15", "4")
	c.expectEntries("book", "X", "2 0 87.0 - - 3")
}

// While the client is away its orders trade, and the venue is killed.
func (c *client) missedWhileAway() {
	c.stop()
	c.please("sell 0.02 91")
	c.please("kill")
	c.please("start")
	c.start("store", false, all...)
	c.awaitLogons(3)
	c.expectFill("G5", "92.0", "0.010")
	c.expectFill("G14", "91.0", "0.010")
	c.subscribeAgain()
	c.buy("G16", "0.01", "90")
	c.expect("G16", "0")
	c.expectEntries("book", "X", "0 0 90.0 0.010 1 1")
}

// The client has lost its numbers: the venue says which it expects.
func (c *client) lostNumbers() {
	c.stop()
	forget(c.logouts)
	c.start("lost", false, orders)
	text := next(c.logouts, "a logout")
	c.stop()
	if !strings.Contains(text, "MsgSeqNum too low, expecting ") {
		fail("expected which number the venue expects, got %s", text)
	}
}

// Numbers begin with 1 at both ends; orders stay, and nothing that was before comes again.
func (c *client) reset() {
	c.start("reset", true, all...)
	c.awaitLogons(3)
	c.ask("H", values{11: "G16", 55: "BTC/USD", 54: "1"})
	c.expectStatus("G16", "0.010")
	c.subscribeAgain("- 0 90.0 0.010 1 1")
	c.cancel("G17", "G16", "0.01")
	c.expect("G17", "4")
	c.expectEntries("book", "X", "2 0 90.0 - - 1")
}

func (c *client) logout() {
	forget(c.logouts)
	c.stop()
	for range all {
		next(c.logouts, "a logout")
	}
}

// Steps at another venue, which starts when it is asked for so.
func (c *client) elsewhere(asked string, steps func(*client)) {
	options := maps.Clone(c.options)
	options.set(strings.Fields(c.please(asked)))
	other := &client{engine: newEngine(options), answers: c.answers}
	steps(other)
	other.stop()
	if rejects := other.takeRejects(); rejects != "" {
		fail("%s", rejects)
	}
}

// Three replicas with fair access: the one that leads, and that the client is connected to, is killed.
func (c *client) otherReplica() { c.elsewhere("cluster start", (*client).goesOnElsewhere) }

// A leaf gateway below a relay: all of the venue that the client knows.
func (c *client) leafGateway() { c.elsewhere("leaf start", (*client).tradesAtAGateway) }

func (c *client) tradesAtAGateway() {
	c.logon()
	c.book()
	c.order()
	c.replace()
	c.trade()
	c.refused()
	c.orderStatus()
	c.possibleResend()
	c.cancelled()
	c.orderTypes()
	if c.options.isAtLeast("FIX.4.3") {
		c.massCancel()
	}
}

func (c *client) goesOnElsewhere() {
	c.logon()
	c.buy("R1", "0.01", "92")
	c.expect("R1", "0")
	c.buy("R2", "0.01", "91")
	c.expect("R2", "0")
	seq := c.lastSeq
	// One on its way, and one while there is no connection: each is sent again where it has to be, and entered once.
	c.buy("R3", "0.01", "90")
	c.please("cluster kill")
	c.buy("R4", "0.01", "89")
	c.expect("R3", "0")
	c.expect("R4", "0")
	c.awaitLogons(3)
	if c.lastSeq <= seq {
		fail("the number %d of the last report is not above %d", c.lastSeq, seq)
	}
	c.subscribeAgain("- 0 92.0 0.010 1 1", "- 0 91.0 0.010 1 2", "- 0 90.0 0.010 1 3", "- 0 89.0 0.010 1 4")
	c.please("cluster sell 0.01 92")
	c.expectFill("R1", "92.0", "0.010")
	c.expectEntries("book", "X", "2 0 92.0 - - 1")
	c.cancel("R5", "R4", "0.01")
	c.expect("R5", "4")
	c.expectEntries("book", "X", "2 0 89.0 - - 3")
}
