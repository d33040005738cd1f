// The official Go SDK as a judge:
//
//	peer client ERA COMMAND...|URL          its client against Segue's server
//	peer record ERA COMMAND...|URL <STEPS        its client, told what to do
//	peer server [--versions A,B] [--http PORT]   its server for Segue's client
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == "client" {
		judge(os.Args[2], os.Args[3:])
		return
	}
	if len(os.Args) > 3 && os.Args[1] == "record" {
		if err := record(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "peer:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "server" {
		serve(os.Args[2:])
		return
	}
	fmt.Fprintln(os.Stderr, "usage: peer client|record ERA COMMAND...|URL")
	fmt.Fprintln(os.Stderr, "       peer server [--versions A,B] [--http PORT]")
	os.Exit(2)
}
