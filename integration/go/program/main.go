// A program that uses the Go client of ZooKeeper in the ways that its own tests leave out, or only touch.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	hosts = strings.Split(os.Args[1], ",")
	members := os.Args[2]

	step("create: every mode, and what it leaves behind", createModes)
	step("create: protected ephemeral sequential", protected)
	step("create: the names of sequential nodes", sequence)
	step("set, get, delete: versions", versions)
	step("multi: all or nothing, with the reason of each part", multi)
	step("access lists: digest, address, and an unproven identity", accessLists)
	step("watches: data, existence, children, each once", watches)
	step("watches: registered again on another connection", watchesAgain)
	step("session: the same one on a new connection, by its password", reattach)
	step("session: expired while away", expiry)
	step("session: closed", closed)
	step("sync: a write through one member is seen through another", syncs)
	step("four-letter words: ruok, srvr, cons", func() { words(members) })
	step("configuration: /zookeeper/config is readable", configuration)
	step("locks: eight sessions, one at a time", locks)
	step("locks: held by a client that vanishes", lockOfTheDead)
	step("failover: sessions, ephemerals, watches and a lock live on", failover)
	step("failover: a counter that is added to all the while", counter)
	fmt.Println("end")
}
