package main

import (
	"bufio"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A line of a journal; test/torture/history.ts describes them.
type entry struct {
	Type         string         `json:"type"`
	At           int64          `json:"at"`
	ID           int64          `json:"id"`
	Subject      string         `json:"subject"`
	Action       string         `json:"action"`
	Key          string         `json:"key"`
	Kind         string         `json:"kind"`
	Outcome      string         `json:"outcome"`
	IsShared     bool           `json:"isShared"`
	Since        int64          `json:"since"`
	FencingToken int64          `json:"fencingToken"`
	Details      map[string]any `json:"details"`
}

type call struct {
	entry
	process string
	to      int64
	outcome string
}

type history struct {
	calls []*call
	holds []entry
}

// What follows the last line break was cut off by a kill.
func (all *history) read(file string) error {
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	process := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	open := map[int64]*call{}
	reader := bufio.NewReader(opened)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var one entry
		if err := json.Unmarshal(line, &one); err != nil {
			return err
		}
		switch one.Type {
		case "call":
			begun := &call{entry: one, process: process, to: math.MaxInt64, outcome: "unknown"}
			if begun.Details == nil {
				begun.Details = map[string]any{}
			}
			open[one.ID] = begun
			all.calls = append(all.calls, begun)
		case "answer":
			if begun := open[one.ID]; begun != nil {
				begun.outcome = one.Outcome
				if one.Outcome != "unknown" {
					begun.to = one.At
				}
				for name, value := range one.Details {
					begun.Details[name] = value
				}
			}
		case "hold":
			all.holds = append(all.holds, one)
		}
	}
}

func (one *call) text(name string) string {
	text, _ := one.Details[name].(string)
	return text
}

func (one *call) token() int64 {
	number, _ := one.Details["fencingToken"].(float64)
	return int64(number)
}

func (one *call) operation(what step) porcupine.Operation {
	what.isUnknown = one.outcome == "unknown"
	return porcupine.Operation{Input: what, Call: one.At, Return: one.to}
}

var register = regexp.MustCompile(`^register/(.+)/(fence|check)$`)

// The operations on each lock and each register. A register has those on its lock too, where it is protected by a check of
// the lease.
func (all *history) objects() map[string][]porcupine.Operation {
	locks := all.locks()
	objects := maps.Clone(locks)
	for name, calls := range all.registers() {
		parts := register.FindStringSubmatch(name)
		if parts != nil && parts[2] == "check" {
			calls = append(calls, locks[parts[1]]...)
		}
		objects[name] = calls
	}
	return objects
}

// Grants, one for each token, and what proves that a lease still stood.
func (all *history) locks() map[string][]porcupine.Operation {
	type lease struct {
		key   string
		token int64
	}
	granted := map[lease]porcupine.Operation{}
	isShared := map[string]bool{}
	note := func(key string, token, since, at int64) {
		known, isKnown := granted[lease{key, token}]
		if isKnown {
			since, at = min(since, known.Call), min(at, known.Return)
		}
		granted[lease{key, token}] = porcupine.Operation{Input: step{kind: grant, token: token}, Call: since, Return: at}
	}
	for _, hold := range all.holds {
		if hold.Kind != "exclusive" {
			continue
		}
		if hold.IsShared {
			isShared[hold.Key] = true
		}
		note(hold.Key, hold.FencingToken, hold.Since, hold.At)
	}
	for _, one := range all.calls {
		if one.Action == "acquire" && one.outcome == "ok" && one.token() > 0 {
			note(one.Key, one.token(), one.At, one.to)
		}
	}
	objects := map[string][]porcupine.Operation{}
	for of, operation := range granted {
		objects[of.key] = append(objects[of.key], operation)
	}
	for _, one := range all.calls {
		_, isKnown := granted[lease{one.Key, one.token()}]
		isYes := one.outcome == "ok" && one.text("result") != "false"
		if !isKnown || !isYes || (one.Action != "release" && one.Action != "renew") {
			continue
		}
		kind := proof
		if one.Action == "release" && !isShared[one.Key] {
			kind = release
		}
		objects[one.Key] = append(objects[one.Key], one.operation(step{kind: kind, token: one.token()}))
	}
	return objects
}

// Reads and writes. A write of unknown outcome matters where its value was seen, and then it took effect before that.
func (all *history) registers() map[string][]porcupine.Operation {
	type value struct{ key, value string }
	seenBy := map[value]int64{}
	for _, one := range all.calls {
		if one.Subject != "register" || one.outcome == "refused" {
			continue
		}
		seen := value{one.Key, one.text("previous")}
		if one.Action == "read" {
			seen.value = one.text("value")
		}
		if one.Action == "read" && one.outcome != "ok" {
			continue
		}
		if at, isKnown := seenBy[seen]; !isKnown || one.to < at {
			seenBy[seen] = one.to
		}
	}
	objects := map[string][]porcupine.Operation{}
	for _, one := range all.calls {
		if one.Subject != "register" || one.outcome == "refused" {
			continue
		}
		if one.Action == "read" {
			if one.outcome == "ok" {
				what := step{kind: read, token: one.token(), before: one.text("value")}
				objects[one.Key] = append(objects[one.Key], one.operation(what))
			}
			continue
		}
		what := step{kind: checked, token: one.token(), before: one.text("previous"), after: one.text("value")}
		if strings.HasSuffix(one.Key, "/fence") {
			what.kind = fenced
		}
		operation := one.operation(what)
		if one.outcome == "unknown" {
			at, isSeen := seenBy[value{one.Key, one.text("value")}]
			if !isSeen {
				continue
			}
			operation.Return = at
		}
		objects[one.Key] = append(objects[one.Key], operation)
	}
	return objects
}
