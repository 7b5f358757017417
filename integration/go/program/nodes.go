package main

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

const second = time.Second

func createModes() {
	c := dial(10 * second)
	create(c, "/modes", zk.FlagPersistent)
	create(c, "/modes/persistent", zk.FlagPersistent)
	ephemeral := create(c, "/modes/ephemeral", zk.FlagEphemeral)
	sequential := create(c, "/modes/s-", zk.FlagSequence)
	both := create(c, "/modes/es-", zk.FlagEphemeral|zk.FlagSequence)
	_, err := c.CreateContainer("/modes/container", []byte("c"), zk.FlagContainer, open)
	must(err)
	_, err = c.CreateTTL("/modes/ttl", []byte("t"), zk.FlagTTL, open, time.Hour)
	must(err)
	timed, err := c.CreateTTL("/modes/ttl-", []byte("t"), zk.FlagPersistentSequentialWithTTL, open, time.Hour)
	must(err)
	_, err = c.Create("/modes/ephemeral/child", nil, 0, open)
	refused(err, zk.ErrNoChildrenForEphemerals)
	_, err = c.Create("/modes/persistent", nil, 0, open)
	refused(err, zk.ErrNodeExists)
	_, err = c.Create("/modes/no/child", nil, 0, open)
	refused(err, zk.ErrNoNode)

	_, stat, err := c.Exists(ephemeral)
	must(err)
	want(stat.EphemeralOwner == c.SessionID(), "owner %x of an ephemeral of %x", stat.EphemeralOwner, c.SessionID())
	_, stat, err = c.Exists("/modes")
	must(err)
	want(stat.NumChildren == 7 && stat.Cversion == 7, "%+v", stat)
	c.Close()

	c = dial(10 * second)
	defer c.Close()
	c.catchUp()
	children, _, err := c.Children("/modes")
	must(err)
	sort.Strings(children)
	expected := []string{"container", "persistent", name(sequential), "ttl", name(timed)}
	want(fmt.Sprint(children) == fmt.Sprint(expected), "%v instead of %v", children, expected)
	want(name(both) == "es-0000000003", "the fourth node is %s", both)
}

func protected() {
	c := dial(10 * second)
	defer c.Close()
	create(c, "/protected", 0)
	path, err := c.CreateProtectedEphemeralSequential("/protected/lock-", nil, open)
	must(err)
	want(strings.HasPrefix(path, "/protected/_c_") && strings.HasSuffix(path, "-lock-0000000000"), "%s", path)
}

func sequence() {
	c := dial(10 * second)
	defer c.Close()
	create(c, "/sequence", 0)
	for i := 0; i < 12; i++ {
		made := create(c, "/sequence/n", zk.FlagSequence)
		want(made == fmt.Sprintf("/sequence/n%010d", i), "number %d is %s", i, made)
		must(c.Delete(made, -1))
	}
}

func versions() {
	c := dial(10 * second)
	defer c.Close()
	create(c, "/versions", 0)
	stat, err := c.Set("/versions", []byte("one"), 0)
	must(err)
	want(stat.Version == 1 && stat.DataLength == 3 && stat.Mzxid > stat.Czxid, "%+v", stat)
	_, err = c.Set("/versions", []byte("two"), 0)
	refused(err, zk.ErrBadVersion)
	refused(c.Delete("/versions", 0), zk.ErrBadVersion)
	large := []byte(strings.Repeat("x", 1<<19))
	_, err = c.Set("/versions", large, 1)
	must(err)
	data, stat, err := c.Get("/versions")
	must(err)
	want(string(data) == string(large) && stat.Version == 2, "%d bytes, %+v", len(data), stat)
	create(c, "/versions/child", 0)
	refused(c.Delete("/versions", -1), zk.ErrNotEmpty)
	must(c.Delete("/versions/child", 0))
	must(c.Delete("/versions", 2))
	refused(c.Delete("/versions", -1), zk.ErrNoNode)
	found, _, err := c.Exists("/versions")
	must(err)
	want(!found, "a deleted node exists")
}

func multi() {
	c := dial(10 * second)
	defer c.Close()
	create(c, "/multi", 0)
	create(c, "/multi/old", 0)
	results, err := c.Multi(
		&zk.CheckVersionRequest{Path: "/multi", Version: 0},
		&zk.CreateRequest{Path: "/multi/n-", Data: []byte("n"), Acl: open, Flags: zk.FlagSequence},
		&zk.CreateRequest{Path: "/multi/e", Acl: open, Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: "/multi", Data: []byte("new"), Version: 0},
		&zk.DeleteRequest{Path: "/multi/old", Version: -1},
	)
	must(err)
	want(len(results) == 5 && results[1].String == "/multi/n-0000000001" && results[3].Stat.Version == 1, "%+v", results)
	_, made, err := c.Exists("/multi/n-0000000001")
	must(err)
	_, changed, err := c.Exists("/multi")
	must(err)
	want(made.Czxid == changed.Mzxid, "parts of one multi at %x and %x", made.Czxid, changed.Mzxid)

	results, err = c.Multi(
		&zk.SetDataRequest{Path: "/multi", Data: []byte("lost"), Version: -1},
		&zk.CheckVersionRequest{Path: "/multi", Version: 7},
		&zk.DeleteRequest{Path: "/multi/none", Version: -1},
	)
	refused(err, zk.ErrBadVersion)
	want(len(results) == 3 && results[0].Error == nil && results[1].Error == zk.ErrBadVersion && results[2].Error != nil, "%+v", results)
	data, _, err := c.Get("/multi")
	must(err)
	want(string(data) == "new", "a failed multi left %q", data)
}

func accessLists() {
	owner, stranger := dial(10*second), dial(10*second)
	defer owner.Close()
	defer stranger.Close()
	_, err := owner.Create("/acl", nil, 0, zk.AuthACL(zk.PermAll))
	refused(err, zk.ErrInvalidACL)
	must(owner.AddAuth("digest", []byte("ann:secret")))
	_, err = owner.Create("/acl", []byte("hers"), 0, zk.AuthACL(zk.PermAll))
	must(err)
	list, stat, err := owner.GetACL("/acl")
	must(err)
	expected := zk.DigestACL(zk.PermAll, "ann", "secret")
	want(len(list) == 1 && list[0] == expected[0] && stat.Aversion == 0, "%+v", list)
	stranger.catchUp()
	_, _, err = stranger.Get("/acl")
	refused(err, zk.ErrNoAuth)
	_, err = stranger.Set("/acl", nil, -1)
	refused(err, zk.ErrNoAuth)
	_, err = owner.SetACL("/acl", []zk.ACL{{Perms: zk.PermRead, Scheme: "ip", ID: "127.0.0.0/8"}, expected[0]}, 0)
	must(err)
	stranger.catchUp()
	_, _, err = stranger.Get("/acl")
	must(err)
	_, err = stranger.SetACL("/acl", open, -1)
	refused(err, zk.ErrNoAuth)
	_, err = owner.SetACL("/acl", open, 0)
	refused(err, zk.ErrBadVersion)
}

func watches() {
	c, other := dial(10*second), dial(10*second)
	defer c.Close()
	defer other.Close()
	found, _, exists, err := c.ExistsW("/watched")
	want(err == nil && !found, "%v", err)
	create(other, "/watched", 0)
	fires(exists, zk.EventNodeCreated, "/watched")
	_, _, data, err := c.GetW("/watched")
	must(err)
	_, _, children, err := c.ChildrenW("/watched")
	must(err)
	create(other, "/watched/child", 0)
	fires(children, zk.EventNodeChildrenChanged, "/watched")
	quiet(data)
	_, err = other.Set("/watched", nil, -1)
	must(err)
	fires(data, zk.EventNodeDataChanged, "/watched")
	_, _, data, err = c.GetW("/watched/child")
	must(err)
	_, _, children, err = c.ChildrenW("/watched/child")
	must(err)
	must(other.Delete("/watched/child", -1))
	fires(data, zk.EventNodeDeleted, "/watched/child")
	fires(children, zk.EventNodeDeleted, "/watched/child")
}
