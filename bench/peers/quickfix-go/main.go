// An acceptor on quickfix-go: answers each NewOrderSingle and OrderCancelRequest with an execution report, at once and without keeping
// anything. `acceptor PORT SESSIONS FOLDER` takes sessions from BENCH1 to BENCHn, and prints `listening`. It writes nothing into the folder.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quickfixgo/quickfix"
)

type acceptor struct{ reports atomic.Int64 }

func (*acceptor) OnCreate(quickfix.SessionID)                       {}
func (*acceptor) OnLogon(quickfix.SessionID)                        {}
func (*acceptor) OnLogout(quickfix.SessionID)                       {}
func (*acceptor) ToAdmin(*quickfix.Message, quickfix.SessionID)     {}
func (*acceptor) ToApp(*quickfix.Message, quickfix.SessionID) error { return nil }
func (*acceptor) FromAdmin(*quickfix.Message, quickfix.SessionID) quickfix.MessageRejectError {
	return nil
}

func (a *acceptor) FromApp(message *quickfix.Message, session quickfix.SessionID) quickfix.MessageRejectError {
	kind, err := message.Header.GetString(35)
	if err != nil {
		return err
	}
	state, orderTag := "0", quickfix.Tag(11)
	switch kind {
	case "D":
	case "F":
		state, orderTag = "4", quickfix.Tag(41)
	default:
		return quickfix.UnsupportedMessageType()
	}
	name, err := message.Body.GetString(11)
	if err != nil {
		return err
	}
	order, err := message.Body.GetString(orderTag)
	if err != nil {
		return err
	}
	symbol, err := message.Body.GetString(55)
	if err != nil {
		return err
	}
	side, err := message.Body.GetString(54)
	if err != nil {
		return err
	}
	answer := quickfix.NewMessage()
	answer.Header.SetString(35, "8")
	for tag, value := range map[quickfix.Tag]string{
		37: order, 11: name, 17: strconv.FormatInt(a.reports.Add(1), 10), 150: state, 39: state, 55: symbol, 54: side,
		38: "0.0001", 44: "25000", 151: "0.0001", 14: "0", 6: "0", 60: time.Now().UTC().Format("20060102-15:04:05.000"),
	} {
		answer.Body.SetString(tag, value)
	}
	if kind == "F" {
		answer.Body.SetString(41, order)
	}
	if err := quickfix.SendToTarget(answer, session); err != nil {
		return quickfix.NewMessageRejectError(err.Error(), 99, nil)
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "acceptor:", err)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("give a port, a number of sessions and a folder"))
	}
	sessions, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fail(err)
	}
	settings := quickfix.NewSettings()
	settings.GlobalSettings().Set("SocketAcceptPort", os.Args[1])
	settings.GlobalSettings().Set("SocketAcceptHost", "127.0.0.1")
	for number := 1; number <= sessions; number++ {
		session := quickfix.NewSessionSettings()
		session.Set("BeginString", "FIX.4.4")
		session.Set("SenderCompID", "WALRAS")
		session.Set("TargetCompID", fmt.Sprintf("BENCH%d", number))
		session.Set("ResetOnLogon", "Y")
		if _, err := settings.AddSession(session); err != nil {
			fail(err)
		}
	}
	running, err := quickfix.NewAcceptor(&acceptor{}, quickfix.NewMemoryStoreFactory(), settings, quickfix.NewNullLogFactory())
	if err != nil {
		fail(err)
	}
	if err := running.Start(); err != nil {
		fail(err)
	}
	fmt.Println("listening")
	select {}
}
