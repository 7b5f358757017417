package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

func watchesAgain() {
	c, other := dial(10*second), dial(10*second)
	defer c.Close()
	defer other.Close()
	create(other, "/again", 0)
	c.catchUp()
	_, _, early, err := c.GetW("/again")
	must(err)
	_, _, late, err := c.ChildrenW("/again")
	must(err)
	c.cut(true)
	c.await(zk.StateDisconnected)
	_, err = other.Set("/again", []byte("while away"), -1)
	must(err)
	c.unbar()
	fires(early, zk.EventNodeDataChanged, "/again")
	quiet(late)
	create(other, "/again/child", 0)
	fires(late, zk.EventNodeChildrenChanged, "/again")
}

func reattach() {
	c := dial(10 * second)
	defer c.Close()
	session := c.SessionID()
	path := create(c, "/attached", zk.FlagEphemeral)
	for i := 0; i < 5; i++ {
		c.cut(false)
		c.await(zk.StateHasSession)
		want(c.SessionID() == session, "session %x is now %x", session, c.SessionID())
	}
	_, stat, err := c.Exists(path)
	must(err)
	want(stat != nil && stat.EphemeralOwner == session, "the ephemeral: %+v", stat)
}

func expiry() {
	c, other := dial(2*second), dial(20*second)
	defer c.Close()
	defer other.Close()
	session := c.SessionID()
	path := create(c, "/expiring", zk.FlagEphemeral)
	other.catchUp()
	_, _, gone, err := other.ExistsW(path)
	must(err)
	_, _, lost, err := c.GetW(path)
	must(err)
	c.cut(true)
	fires(gone, zk.EventNodeDeleted, path)
	c.unbar()
	want(event(lost).Err == zk.ErrSessionExpired, "a watch of an expired session did not say so")
	eventually("a new session", func() bool { return c.State() == zk.StateHasSession && c.SessionID() != session })
}

func closed() {
	c, other := dial(20*second), dial(20*second)
	defer other.Close()
	path := create(c, "/closing", zk.FlagEphemeral)
	other.catchUp()
	_, _, gone, err := other.ExistsW(path)
	must(err)
	c.Close()
	fires(gone, zk.EventNodeDeleted, path)
	_, _, err = c.Get("/")
	want(err != nil, "a closed client reads")
}

func syncs() {
	writer, reader := dial(10*second), dial(10*second)
	defer writer.Close()
	defer reader.Close()
	create(writer, "/synced", 0)
	for i := 0; i < 50; i++ {
		text := fmt.Sprint(i)
		_, err := writer.Set("/synced", []byte(text), -1)
		must(err)
		path, err := reader.Sync("/synced")
		must(err)
		want(path == "/synced", "sync answers %q", path)
		data, _, err := reader.Get("/synced")
		must(err)
		want(string(data) == text, "%q instead of %q behind a sync", data, text)
	}
}

func words(members string) {
	c := dial(10 * second)
	defer c.Close()
	for i, alive := range zk.FLWRuok(hosts, 5*second) {
		want(alive, "%s is not ok", hosts[i])
	}
	servers, fine := zk.FLWSrvr(hosts, 5*second)
	modes := map[zk.Mode]int{}
	for _, server := range servers {
		want(server.Error == nil, "%s: %v", server.Server, server.Error)
		want(strings.HasPrefix(server.Version, "3.") && !server.BuildTime.IsZero(), "%+v", server)
		want(server.NodeCount > 4 && server.Epoch > 0 && server.Received > 0, "%+v", server)
		modes[server.Mode]++
	}
	want(fine, "srvr could not be read")
	if members == "1" {
		want(modes[zk.ModeStandalone] == 1, "%v", modes)
	} else {
		want(modes[zk.ModeLeader] == 1 && modes[zk.ModeFollower] == 2, "%v", modes)
	}
	// It calls itself failed for the line of its own connection, which has no session; the others it has read.
	connections, _ := zk.FLWCons(hosts, 5*second)
	found := 0
	for _, server := range connections {
		must(server.Error)
		for _, connection := range server.Clients {
			must(connection.Error)
			if connection.SessionID == c.SessionID() {
				found++
				want(connection.Timeout == 10000 && connection.Received > 0 && connection.LastOperation == "SESS", "%+v", connection)
			}
		}
	}
	want(found == 1, "%d connections of this session", found)
}

func configuration() {
	c := dial(10 * second)
	defer c.Close()
	_, stat, err := c.Get("/zookeeper/config")
	must(err)
	want(stat != nil, "no stat")
}

func locks() {
	var inside, total int32
	var group sync.WaitGroup
	reasons := make(chan interface{}, 8)
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			defer func() { reasons <- recover() }()
			c := dial(10 * second)
			defer c.Close()
			lock := zk.NewLock(c.Conn, "/locks/one", open)
			for round := 0; round < 5; round++ {
				must(lock.Lock())
				want(atomic.AddInt32(&inside, 1) == 1, "two inside")
				total++
				atomic.AddInt32(&inside, -1)
				must(lock.Unlock())
			}
		}()
	}
	group.Wait()
	for i := 0; i < 8; i++ {
		if reason := <-reasons; reason != nil {
			panic(reason)
		}
	}
	want(total == 40, "%d rounds", total)
}

func lockOfTheDead() {
	holder, waiter := dial(2*second), dial(20*second)
	defer waiter.Close()
	must(zk.NewLock(holder.Conn, "/locks/dead", open).Lock())
	got := make(chan error, 1)
	lock := zk.NewLock(waiter.Conn, "/locks/dead", open)
	go func() { got <- lock.Lock() }()
	eventually("the second in the queue", func() bool {
		children, _, err := waiter.Children("/locks/dead")
		return err == nil && len(children) == 2
	})
	want(len(got) == 0, "two hold the lock")
	holder.cut(true)
	select {
	case err := <-got:
		must(err)
	case <-time.After(30 * second):
		want(false, "the lock of a vanished client was never passed on")
	}
	must(lock.Unlock())
	holder.Close()
}

func failover() {
	clients := make([]*client, 6)
	first := dial(30 * second)
	defer first.Close()
	create(first, "/failover", 0)
	sessions := map[*client]int64{}
	paths := map[*client]string{}
	changed := map[*client]<-chan zk.Event{}
	for i := range clients {
		c := dial(30 * second)
		defer c.Close()
		clients[i], sessions[c] = c, c.SessionID()
		paths[c] = create(c, "/failover-", zk.FlagEphemeral|zk.FlagSequence)
		c.catchUp()
		_, _, events, err := c.GetW("/failover")
		must(err)
		changed[c] = events
	}
	lock := zk.NewLock(clients[0].Conn, "/locks/failover", open)
	must(lock.Lock())
	failOver()
	for _, c := range clients {
		quiet(changed[c])
		must(insist(func() error {
			_, stat, err := c.Exists(paths[c])
			if err == nil {
				want(stat != nil && stat.EphemeralOwner == sessions[c], "%s of %x: %+v", paths[c], sessions[c], stat)
			}
			return err
		}))
		want(c.SessionID() == sessions[c], "session %x is now %x", sessions[c], c.SessionID())
	}
	must(insist(func() error {
		_, err := clients[0].Set("/failover", []byte("over"), -1)
		return err
	}))
	for _, c := range clients {
		fires(changed[c], zk.EventNodeDataChanged, "/failover")
	}
	must(insist(lock.Unlock))
	must(insist(lock.Lock))
}

// counter adds under optimistic locking while the leader is killed: acknowledged additions are all there, and none twice.
// What a lost connection left open may or may not be there.
func counter() {
	c := dial(30 * second)
	defer c.Close()
	create(c, "/counter", 0)
	_, err := c.Set("/counter", []byte("0"), 0)
	must(err)
	var acknowledged, open int64
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			data, stat, err := c.Get("/counter")
			if err == nil {
				var value int64
				fmt.Sscan(string(data), &value)
				_, err = c.Set("/counter", []byte(fmt.Sprint(value+1)), stat.Version)
				switch err {
				case nil:
					atomic.AddInt64(&acknowledged, 1)
				case zk.ErrConnectionClosed:
					open++
				}
			}
			if err != nil && err != zk.ErrConnectionClosed && err != zk.ErrNoServer && err != zk.ErrBadVersion {
				done <- err
				return
			}
		}
	}()
	more := func() {
		from := atomic.LoadInt64(&acknowledged)
		eventually("twenty further additions", func() bool { return atomic.LoadInt64(&acknowledged) >= from+20 })
	}
	more()
	failOver()
	more()
	close(stop)
	must(<-done)
	data, stat, err := c.Get("/counter")
	must(err)
	var value int64
	fmt.Sscan(string(data), &value)
	want(value >= acknowledged && value <= acknowledged+open, "%d, with %d acknowledged and %d open", value, acknowledged, open)
	want(int64(stat.Version) == value+1, "value %d at version %d", value, stat.Version)
}
