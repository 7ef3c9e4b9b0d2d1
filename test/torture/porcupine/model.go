package main

import "github.com/anishathalye/porcupine"

// What becomes of a lock, and of one register that it protects. Fencing tokens are numbers above 0.
type state struct {
	value    string
	granted  int64
	released int64
	stamped  int64
}

type kind int

const (
	// The lock is granted with a token.
	grant kind = iota
	// Its holder is told that it has released it, or that it has renewed it.
	release
	// The same for one of several handles of a holder: the lease may go on.
	proof
	// A read without a lease, or with one whose fence the register remembers.
	read
	// A write in place of a value, with a fence or with a check of the lease.
	fenced
	checked
)

type step struct {
	kind  kind
	token int64
	// What a read has seen, or what a write replaces.
	before string
	after  string
	// Nobody knows whether it took effect.
	isUnknown bool
}

var model = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(now, input, _ interface{}) (bool, interface{}) {
		is, one := now.(state), input.(step)
		next, ok := one.apply(is)
		if ok {
			return true, next
		}
		// Placed where it can have no effect, it had none.
		return one.isUnknown, is
	},
}

func (one step) apply(is state) (state, bool) {
	next := is
	switch one.kind {
	case grant:
		next.granted = one.token
		return next, one.token > is.granted
	case release:
		next.released = one.token
		return next, one.token == is.granted
	case proof:
		return next, one.token == is.granted && one.token > is.released
	case read:
		if one.token > 0 {
			next.stamped = one.token
		}
		return next, is.value == one.before && (one.token == 0 || one.token >= is.stamped)
	case fenced:
		next.value, next.stamped = one.after, one.token
		return next, is.value == one.before && one.token >= is.stamped
	default:
		next.value = one.after
		isHeld := one.token == 0 || (one.token >= is.granted && one.token > is.released)
		return next, is.value == one.before && isHeld
	}
}
