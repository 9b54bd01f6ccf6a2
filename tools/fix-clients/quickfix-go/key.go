package main

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// An API key of the venue: its id and its secret.
type key struct{ id, secret string }

func keyOf(text string) key {
	id, secret, _ := strings.Cut(text, ".")
	return key{id, secret}
}

func (k key) sign(text string) string {
	secret, err := base64.RawURLEncoding.DecodeString(k.secret)
	if err != nil {
		panic(err)
	}
	var signature []byte
	if strings.HasPrefix(k.id, "ed_") {
		signature = ed25519.Sign(ed25519.NewKeyFromSeed(secret), []byte(text))
	} else {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		signature = mac.Sum(nil)
	}
	return base64.RawURLEncoding.EncodeToString(signature)
}
