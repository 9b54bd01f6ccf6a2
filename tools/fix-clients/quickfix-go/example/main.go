// What docs/fix-order.go does, on quickfix-go; session.go logs on: go run ./example PORT KEY_ID SECRET SYMBOL PRICE
package main

import (
	"fmt"
	"os"

	q "github.com/quickfixgo/quickfix"
)

var symbol, price, done = os.Args[4], os.Args[5], make(chan bool)

type app struct{ session }

func (app) OnLogon(id q.SessionID) {
	send(id, "D", map[q.Tag]string{11: "first", 55: symbol, 54: "1", 38: "1", 40: "2", 44: price, 59: "1"})
}
func (app) FromApp(message *q.Message, id q.SessionID) (err q.MessageRejectError) {
	kind, _ := message.Body.GetString(150)
	text, _ := message.Body.GetString(58)
	fmt.Println("report", kind, text)
	if kind == "0" {
		send(id, "F", map[q.Tag]string{11: "second", 41: "first", 55: symbol, 54: "1"})
	} else {
		close(done)
	}
	return
}

func main() {
	initiator := start(app{session{os.Args[2], os.Args[3]}}, os.Args[1])
	<-done
	initiator.Stop()
}
