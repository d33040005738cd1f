// The official Go SDK as a judge:
//
//	peer client ERA COMMAND...|URL          its client against Segue's server
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
	if len(os.Args) > 1 && os.Args[1] == "server" {
		serve(os.Args[2:])
		return
	}
	fmt.Fprintln(os.Stderr, "usage: peer client ERA COMMAND...|URL")
	fmt.Fprintln(os.Stderr, "       peer server [--versions A,B] [--http PORT]")
	os.Exit(2)
}
