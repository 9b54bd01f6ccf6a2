// Enters an order by FIX, cancels it, and prints what it hears (docs/fix.md): go run fix-order.go PORT KEY_ID SECRET SYMBOL PRICE
package main

import "bufio"
import "fmt"
import "net"
import "os"
import "strings"
import "time"

func send(venue net.Conn, seq int, kind, fields string) {
	now := time.Now().UTC().Format("20060102-15:04:05.000")
	body := fmt.Sprintf("35=%s|34=%d|49=EXAMPLE|52=%s|56=WALRAS|%s", kind, seq, now, strings.ReplaceAll(fields, "NOW", now))
	text, sum := strings.ReplaceAll(fmt.Sprintf("8=FIX.4.4|9=%d|%s", len(body), body), "|", "\x01"), 0
	for _, char := range []byte(text) {
		sum += int(char)
	}
	fmt.Fprintf(venue, "%s10=%03d\x01", text, sum%256)
}

func main() {
	venue, err := net.Dial("tcp", "127.0.0.1:"+os.Args[1])
	names, field := map[string]string{"150": "report", "58": "because"}, ""
	send(venue, 1, "A", "98=0|108=30|141=Y|553="+os.Args[2]+"|554="+os.Args[3]+"|")
	send(venue, 2, "D", "11=first|55="+os.Args[4]+"|54=1|60=NOW|38=1|40=2|44="+os.Args[5]+"|59=1|")
	send(venue, 3, "F", "11=second|41=first|55="+os.Args[4]+"|54=1|60=NOW|")
	for heard := bufio.NewReader(venue); err == nil && field != "150=4\x01"; { // until the order is cancelled
		field, err = heard.ReadString(1)
		if tag, value, _ := strings.Cut(strings.TrimSuffix(field, "\x01"), "="); names[tag] != "" {
			fmt.Println(names[tag], value)
		}
	}
}
