// What every program on quickfix-go has to log on: settings, the key in the logon, and a message with its time.
package main

import (
	"strings"
	"time"

	q "github.com/quickfixgo/quickfix"
)

// session is an application that does nothing but log on: programs embed it.
type session struct{ keyID, secret string }

func (session) OnCreate(q.SessionID)                                         {}
func (session) OnLogon(q.SessionID)                                          {}
func (session) OnLogout(q.SessionID)                                         {}
func (session) ToApp(*q.Message, q.SessionID) error                          { return nil }
func (session) FromAdmin(*q.Message, q.SessionID) (err q.MessageRejectError) { return }
func (key session) ToAdmin(message *q.Message, _ q.SessionID) {
	if message.IsMsgTypeOf("A") {
		message.Body.SetString(553, key.keyID).SetString(554, key.secret)
	}
}

// start connects a program to the venue's orders on a port of this machine.
func start(program q.Application, port string) *q.Initiator {
	settings, _ := q.ParseSettings(strings.NewReader("[DEFAULT]\nConnectionType=initiator\nSocketConnectHost=127.0.0.1\nHeartBtInt=30\n" +
		"[SESSION]\nBeginString=FIX.4.4\nSenderCompID=EXAMPLE\nTargetCompID=WALRAS\nResetOnLogon=Y\nSocketConnectPort=" + port))
	initiator, _ := q.NewInitiator(program, q.NewMemoryStoreFactory(), settings, q.NewNullLogFactory())
	initiator.Start()
	return initiator
}

// send sends a message of these fields and the time.
func send(id q.SessionID, kind string, fields map[q.Tag]string) {
	message := q.NewMessage()
	message.Header.SetString(35, kind)
	message.Body.SetString(60, time.Now().UTC().Format("20060102-15:04:05.000"))
	for tag, value := range fields {
		message.Body.SetString(tag, value)
	}
	q.SendToTarget(message, id)
}
