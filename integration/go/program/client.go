package main

import (
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

var (
	hosts []string
	open  = zk.WorldACL(zk.PermAll)
)

// client is a session whose connections can be cut.
type client struct {
	*zk.Conn
	states chan zk.State

	lock   sync.Mutex
	socket net.Conn
	barred bool
}

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

// dial makes a session and waits for it.
func dial(timeout time.Duration) *client {
	c := &client{states: make(chan zk.State, 10000)}
	callback := zk.WithEventCallback(func(event zk.Event) {
		if event.Type == zk.EventSession {
			c.states <- event.State
		}
	})
	conn, events, err := zk.Connect(hosts, timeout, callback, zk.WithDialer(c.connect), zk.WithLogger(silent{}))
	must(err)
	go func() {
		for range events {
		}
	}()
	c.Conn = conn
	c.await(zk.StateHasSession)
	return c
}

func (c *client) connect(network, address string, timeout time.Duration) (net.Conn, error) {
	c.lock.Lock()
	barred := c.barred
	c.lock.Unlock()
	if barred {
		return nil, net.ErrClosed
	}
	socket, err := net.DialTimeout(network, address, timeout)
	c.lock.Lock()
	defer c.lock.Unlock()
	c.socket = socket
	return socket, err
}

// cut closes the connection below the client; with bar it also cannot make another one until unbar.
func (c *client) cut(bar bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.barred = bar
	c.socket.Close()
}

func (c *client) unbar() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.barred = false
}

// await passes over states up to the wanted one.
func (c *client) await(wanted zk.State) {
	limit := time.After(60 * time.Second)
	for {
		select {
		case state := <-c.states:
			if state == wanted {
				return
			}
			want(state != zk.StateExpired, "the session has expired, while %v was awaited", wanted)
		case <-limit:
			want(false, "no state %v within a minute", wanted)
		}
	}
}

// insist repeats an operation that a lost connection may have ended.
func insist(operation func() error) error {
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := operation()
		if err != zk.ErrConnectionClosed && err != zk.ErrNoServer || time.Now().After(deadline) {
			return err
		}
	}
}

// catchUp waits until the member of this session has what the others have written: reads of different members may differ.
func (c *client) catchUp() {
	_, err := c.Sync("/")
	must(err)
}

func event(events <-chan zk.Event) zk.Event {
	select {
	case event := <-events:
		return event
	case <-time.After(30 * time.Second):
		want(false, "no event within 30 s")
	}
	panic("unreachable")
}

func fires(events <-chan zk.Event, kind zk.EventType, path string) {
	got := event(events)
	want(got.Type == kind && got.Path == path && got.Err == nil, "got %+v, not %v of %s", got, kind, path)
}

func quiet(events <-chan zk.Event) {
	select {
	case event := <-events:
		want(false, "an event that nobody awaits: %+v", event)
	default:
	}
}

func create(c *client, path string, flags int32) string {
	made, err := c.Create(path, []byte(path), flags, open)
	must(err)
	return made
}

func name(path string) string {
	return path[strings.LastIndex(path, "/")+1:]
}
