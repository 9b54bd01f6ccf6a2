package main

import (
	"fmt"
	"strconv"
	"strings"
)

type field struct {
	tag   int
	value string
}

// A received message, as it came.
type message struct{ fields []field }

func messageOf(text string) message {
	var m message
	for _, part := range strings.Split(strings.TrimSuffix(text, "\x01"), "\x01") {
		name, value, _ := strings.Cut(part, "=")
		tag, _ := strconv.Atoi(name)
		m.fields = append(m.fields, field{tag, value})
	}
	return m
}

// The first value of a tag, or nothing.
func (m message) get(tag int) string {
	for _, field := range m.fields {
		if field.tag == tag {
			return field.value
		}
	}
	return ""
}

func (m message) String() string {
	var parts []string
	for _, field := range m.fields {
		parts = append(parts, fmt.Sprintf("%d=%s", field.tag, field.value))
	}
	return strings.Join(parts, "|")
}

func (m message) check(tag int, value string) {
	if m.get(tag) != value {
		fail("expected %d=%s in %s", tag, value, m)
	}
}

func (m message) checkHas(tag int, part string) {
	if !strings.Contains(m.get(tag), part) {
		fail("expected %s in field %d of %s", part, tag, m)
	}
}

// The entries of a message of market data: action, kind, price, size, orders and position, each or a minus.
func (m message) entries() []string {
	first := 269
	if m.get(35) == "X" {
		first = 279
	}
	var groups []message
	inside := false
	for _, field := range m.fields {
		inside = inside || field.tag == 268
		if inside && field.tag == first {
			groups = append(groups, message{})
		}
		if len(groups) > 0 {
			group := &groups[len(groups)-1]
			group.fields = append(group.fields, field)
		}
	}
	var entries []string
	for _, group := range groups {
		var parts []string
		for _, tag := range []int{279, 269, 270, 271, 346, 290} {
			if value := group.get(tag); value != "" {
				parts = append(parts, value)
			} else {
				parts = append(parts, "-")
			}
		}
		entries = append(entries, strings.Join(parts, " "))
	}
	if count := m.get(268); count != strconv.Itoa(len(entries)) {
		fail("it has not as many entries as it says: %s", m)
	}
	return entries
}
