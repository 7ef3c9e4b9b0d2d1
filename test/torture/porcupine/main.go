// Porcupine judges the journals of a torture run, as a second opinion beside test/torture/checker: by a search, in another
// language, by another author. It knows locks and the registers that they protect.
//
//	go run . FOLDER
//
// It prints a line for each lock and register that is wrong, and one for all; it exits with 1 where one has no order that
// agrees with the times, and with 3 where one took too long to judge.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// No object of a run takes longer than this on a machine that is not overloaded.
const longestSearch = 2 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . FOLDER, with the journals of a run (*.jsonl)")
		os.Exit(2)
	}
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.jsonl"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no journal (*.jsonl) in %s", os.Args[1])
	}
	history := &history{}
	for _, file := range files {
		if err == nil {
			err = history.read(file)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	objects := history.objects()
	names := make([]string, 0, len(objects))
	for name := range objects {
		names = append(names, name)
	}
	sort.Strings(names)
	wrong, late, all := 0, 0, 0
	for _, name := range names {
		found := porcupine.CheckOperationsTimeout(model, objects[name], longestSearch)
		all += len(objects[name])
		switch found {
		case porcupine.Illegal:
			wrong++
			fmt.Printf("%s: its %d operations have no order that agrees with the times\n", name, len(objects[name]))
		case porcupine.Unknown:
			late++
			fmt.Printf("%s: its %d operations were not judged within %s\n", name, len(objects[name]), longestSearch)
		}
	}
	fmt.Printf("%d operations on %d locks and registers: %d wrong, %d not judged\n", all, len(names), wrong, late)
	if wrong > 0 {
		os.Exit(1)
	}
	if late > 0 {
		os.Exit(3)
	}
}
