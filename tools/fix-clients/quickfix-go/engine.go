package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/store/file"
)

const patience = 30 * time.Second

// What a session is for: the venue's names of its ends.
const (
	orders     = "WALRAS"
	dropCopy   = "WALRAS-DROP"
	marketData = "WALRAS-MD"
)

var all = []string{orders, dropCopy, marketData}

// What run.py says: name=value for each.
type options map[string]string

func (o options) set(given []string) {
	for _, one := range given {
		name, value, _ := strings.Cut(one, "=")
		o[name] = value
	}
}

func (o options) version() string             { return o["version"] }
func (o options) isFixt() bool                { return strings.HasPrefix(o.version(), "FIX.5") }
func (o options) isAtLeast(other string) bool { return o.version() >= other }

// quickfix-go with the sessions of a client: logs on, sorts what comes, and keeps its numbers in files as a program would.
type engine struct {
	options   options
	keys      map[string]key
	initiator *quickfix.Initiator
	reports   chan message
	copies    chan message
	logons    chan string
	logouts   chan string

	lock       sync.Mutex
	data       map[string]chan message
	heartbeats map[string]chan string
	// Messages of the venue that the engine or its dictionary did not take, and messages of the engine that the venue did not take.
	rejects        []string
	resendRequests int

	execIDs     map[string]bool
	copyExecIDs map[string]bool
}

func newEngine(options options) *engine {
	trading := keyOf(options["key"])
	return &engine{
		options: options,
		keys:    map[string]key{orders: trading, dropCopy: keyOf(options["signing_key"]), marketData: trading},
		reports: make(chan message, 1000), copies: make(chan message, 1000),
		logons: make(chan string, 1000), logouts: make(chan string, 1000),
		data: map[string]chan message{}, heartbeats: map[string]chan string{},
		execIDs: map[string]bool{}, copyExecIDs: map[string]bool{},
	}
}

func (e *engine) session(target string) quickfix.SessionID {
	begin := e.options.version()
	if e.options.isFixt() {
		begin = "FIXT.1.1"
	}
	return quickfix.SessionID{BeginString: begin, SenderCompID: "GO", TargetCompID: target}
}

// Starts the sessions; store is where their numbers are, and resets says whether they begin with 1 again.
func (e *engine) start(store string, resets bool, targets ...string) {
	var text strings.Builder
	spec := func(name string) string { return filepath.Join(e.options["spec"], name+".xml") }
	fmt.Fprintf(&text, "[DEFAULT]\nConnectionType=initiator\nHeartBtInt=2\nReconnectInterval=1\n")
	fmt.Fprintf(&text, "FileStorePath=%s\n", filepath.Join(e.options["folder"], store))
	dictionary := spec(strings.ReplaceAll(e.options.version(), ".", ""))
	if e.options.isFixt() {
		fmt.Fprintf(&text, "DefaultApplVerID=%s\n", e.options.version())
		fmt.Fprintf(&text, "TransportDataDictionary=%s\nAppDataDictionary=%s\n", spec("FIXT11"), dictionary)
	} else {
		fmt.Fprintf(&text, "DataDictionary=%s\n", dictionary)
	}
	if certificate := e.options["certificate"]; certificate != "" {
		fmt.Fprintf(&text, "SocketUseSSL=Y\nSocketCAFile=%s\nSocketServerName=127.0.0.1\n", certificate)
	}
	for _, target := range targets {
		ports := e.options["orders"]
		if target == marketData {
			ports = e.options["data"]
		}
		fmt.Fprintf(&text, "[SESSION]\nBeginString=%s\nSenderCompID=GO\n", e.session(target).BeginString)
		fmt.Fprintf(&text, "TargetCompID=%s\n", target)
		// The engine tries the next one where one does not answer.
		for at, port := range strings.Split(ports, ",") {
			number := ""
			if at > 0 {
				number = strconv.Itoa(at)
			}
			fmt.Fprintf(&text, "SocketConnectHost%s=127.0.0.1\nSocketConnectPort%s=%s\n", number, number, port)
		}
		if resets || target == marketData {
			fmt.Fprintf(&text, "ResetOnLogon=Y\n")
		}
	}
	settings, err := quickfix.ParseSettings(strings.NewReader(text.String()))
	if err != nil {
		fail("%v", err)
	}
	e.initiator, err = quickfix.NewInitiator(e, file.NewStoreFactory(settings), settings, logs{e.logouts})
	if err != nil {
		fail("%v", err)
	}
	forget(e.logons)
	if err := e.initiator.Start(); err != nil {
		fail("%v", err)
	}
}

// Logs out and ends.
func (e *engine) stop() { e.initiator.Stop() }

func (e *engine) OnCreate(quickfix.SessionID)   {}
func (e *engine) OnLogon(id quickfix.SessionID) { e.logons <- id.TargetCompID }
func (e *engine) OnLogout(quickfix.SessionID)   {}

func (e *engine) ToAdmin(outgoing *quickfix.Message, id quickfix.SessionID) {
	switch kind, _ := outgoing.Header.GetString(35); kind {
	case "A":
		e.prove(outgoing, id.TargetCompID)
	case "3":
		e.reject("the engine rejects: ", outgoing)
	}
}

// With its secret where the version has a field for that and the key is no signing key; else with a signature.
func (e *engine) prove(logon *quickfix.Message, target string) {
	key, hasUsername := e.keys[target], e.options.isAtLeast("FIX.4.3")
	if hasUsername {
		logon.Body.SetString(553, key.id)
	}
	if hasUsername && target == orders {
		logon.Body.SetString(554, key.secret)
		return
	}
	header := func(tag quickfix.Tag) string { value, _ := logon.Header.GetString(tag); return value }
	body := func(tag quickfix.Tag) string { value, _ := logon.Body.GetString(tag); return value }
	seq, resets := header(34), "N"
	if body(141) == "Y" {
		seq, resets = "1", "Y"
	}
	signed := []string{
		"walras-v1", "LOGON", "/fix", header(8), header(49), header(56), seq, header(52), body(108), resets, body(789),
	}
	raw := key.sign(strings.Join(signed, "\n"))
	if !hasUsername {
		raw = key.id + ":" + raw
	}
	logon.Body.SetInt(95, len(raw))
	logon.Body.SetString(96, raw)
}

func (e *engine) ToApp(outgoing *quickfix.Message, _ quickfix.SessionID) error {
	if kind, _ := outgoing.Header.GetString(35); kind == "j" {
		e.reject("the engine rejects: ", outgoing)
	}
	return nil
}

func (e *engine) reject(what string, rejected *quickfix.Message) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.rejects = append(e.rejects, what+strings.ReplaceAll(rejected.String(), "\x01", "|"))
}

func (e *engine) FromAdmin(incoming *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	switch kind, _ := incoming.Header.GetString(35); kind {
	case "0":
		name, _ := incoming.Body.GetString(112)
		e.heartbeatsOf(id.TargetCompID) <- name
	case "2":
		e.lock.Lock()
		e.resendRequests++
		e.lock.Unlock()
	case "3":
		e.reject("the venue rejects: ", incoming)
	}
	return nil
}

func (e *engine) FromApp(incoming *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	if kind, _ := incoming.Header.GetString(35); kind == "j" {
		e.reject("the venue rejects: ", incoming)
		return nil
	}
	received := messageOf(incoming.String())
	switch id.TargetCompID {
	case orders:
		e.reports <- received
	case dropCopy:
		e.copies <- received
	case marketData:
		for _, tag := range []int{262, 320, 324, 335} {
			if request := received.get(tag); request != "" {
				e.dataOf(request) <- received
			}
		}
	}
	return nil
}

// Reads logouts on the wire: what comes instead of a logon does not reach the application.
type logs struct{ logouts chan string }

func (l logs) Create() (quickfix.Log, error)                             { return l, nil }
func (l logs) CreateSessionLog(quickfix.SessionID) (quickfix.Log, error) { return l, nil }
func (l logs) OnOutgoing([]byte)                                         {}
func (l logs) OnEvent(string)                                            {}
func (l logs) OnEventf(string, ...any)                                   {}

func (l logs) OnIncoming(text []byte) {
	if incoming := messageOf(string(text)); incoming.get(35) == "5" {
		l.logouts <- incoming.String()
	}
}

func (e *engine) dataOf(request string) chan message {
	return queueOf(&e.lock, e.data, request)
}

func (e *engine) heartbeatsOf(target string) chan string {
	return queueOf(&e.lock, e.heartbeats, target)
}

// The queue of this name, made when it is asked for first.
func queueOf[T any](lock *sync.Mutex, queues map[string]chan T, name string) chan T {
	lock.Lock()
	defer lock.Unlock()
	if queues[name] == nil {
		queues[name] = make(chan T, 1000)
	}
	return queues[name]
}

func next[T any](queue chan T, what string) T {
	select {
	case found := <-queue:
		return found
	case <-time.After(patience):
		fail("nothing came: %s", what)
		panic("unreachable")
	}
}

func forget[T any](queue chan T) {
	for len(queue) > 0 {
		<-queue
	}
}

// Waits until so many sessions are logged on.
func (e *engine) awaitLogons(count int) {
	seen := map[string]bool{}
	for len(seen) < count {
		seen[next(e.logons, fmt.Sprintf("logons of %d sessions, after %v", count, seen))] = true
	}
}

// A heartbeat that is the answer to a test request, or with an empty id one of its own.
func (e *engine) awaitHeartbeat(target, id string) {
	for next(e.heartbeatsOf(target), "a heartbeat of "+target) != id {
	}
}

// The next report must be of this order, and new.
func (e *engine) expect(order, kind string) message {
	report := nextNew(e.reports, e.execIDs, kind+" of "+order)
	if report.get(11) != order || report.get(150) != kind {
		fail("expected %s of %s, got %s", kind, order, report)
	}
	return report
}

// The next report of the drop copy must be this one. What a request called it is known to the session of orders alone.
func (e *engine) expectCopy(report message) {
	copied := nextNew(e.copies, e.copyExecIDs, "the drop copy of "+report.String())
	tags := []int{17, 37, 150, 39, 55, 54, 31, 32, 14, 151, 6}
	if report.get(150) == "8" {
		// What another session asked and the venue refused is in no order, so the copy says little of it.
		tags = []int{17, 37, 150, 39, 103}
	}
	for _, tag := range tags {
		if copied.get(tag) != report.get(tag) {
			fail("the drop copy of %s is %s", report, copied)
		}
	}
}

func nextNew(queue chan message, seen map[string]bool, what string) message {
	for {
		report := next(queue, what)
		execID := report.get(17)
		if !seen[execID] {
			seen[execID] = true
			return report
		}
		// What was asked for again may come twice; what was not must not.
		if report.get(43) != "Y" {
			fail("this came before: %s", report)
		}
	}
}

// The next message must be of this type, which is no execution report.
func (e *engine) expectOther(kind string, isCopied bool) message {
	found := next(e.reports, kind)
	found.check(35, kind)
	if isCopied {
		next(e.copies, "the drop copy of "+found.String()).check(35, kind)
	}
	return found
}

// Reports that come again, until this ExecID: all must be flagged as such and known.
func (e *engine) expectAgain(lastExecID string) {
	for {
		report := next(e.reports, "the report "+lastExecID+" again")
		if report.get(43) != "Y" || report.get(122) == "" || !e.execIDs[report.get(17)] {
			fail("expected a report that came before, got %s", report)
		}
		if report.get(17) == lastExecID {
			return
		}
	}
}

// The next message of a request must be of this type.
func (e *engine) expectData(request, kind string) message {
	found := next(e.dataOf(request), kind+" of "+request)
	found.check(35, kind)
	return found
}

func (e *engine) expectEntries(request, kind string, entries ...string) {
	found := e.expectData(request, kind)
	if !slices.Equal(found.entries(), entries) {
		fail("expected the entries %q, got %q in %s", entries, found.entries(), found)
	}
}

func (e *engine) forgetData() {
	e.lock.Lock()
	defer e.lock.Unlock()
	clear(e.data)
}

func (e *engine) takeResendRequests() int {
	e.lock.Lock()
	defer e.lock.Unlock()
	count := e.resendRequests
	e.resendRequests = 0
	return count
}

func (e *engine) send(target string, outgoing *quickfix.Message) {
	if err := quickfix.SendToTarget(outgoing, e.session(target)); err != nil {
		fail("%v", err)
	}
}

// What was rejected so far.
func (e *engine) takeRejects() string {
	e.lock.Lock()
	defer e.lock.Unlock()
	text := strings.Join(e.rejects, "; ")
	e.rejects = nil
	return text
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		fail("%v", err)
	}
	return value
}
