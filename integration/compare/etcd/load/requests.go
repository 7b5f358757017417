package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// folderKeys is the number of keys that a listing finds.
const folderKeys = 100

func folder(root string, index int) string {
	return fmt.Sprintf("%s/d%07d", root, index/folderKeys)
}

func key(root string, index int) string {
	return fmt.Sprintf("%s/d%07d/n%02d", root, index/folderKeys, index%folderKeys)
}

func content(size int, letter byte) string {
	return strings.Repeat(string(letter), size)
}

// errRefused is a transaction whose comparison failed.
var errRefused = errors.New("a comparison failed that should hold")

// Worker is one request in flight of one connection, and the next one once that is answered.
type Worker struct {
	options *Options
	client  *clientv3.Client
	keys    []string
	data    string
	random  *rand.Rand
	prefix  string
	created int
}

// Loop is a workload: send makes one request and tells whether it was a read.
type Loop struct {
	needsKeys bool
	send      func(ctx context.Context, worker *Worker) (read bool, err error)
}

var loops = map[string]Loop{
	// What ZooKeeper's reads are: answered by the member that is asked, from what it has.
	"get": {true, func(ctx context.Context, w *Worker) (bool, error) {
		return true, w.get(ctx, clientv3.WithSerializable())
	}},
	// What etcd does unless told otherwise: the member asks the leader first.
	"get-linearizable": {true, func(ctx context.Context, w *Worker) (bool, error) { return true, w.get(ctx) }},
	"exists": {true, func(ctx context.Context, w *Worker) (bool, error) {
		return true, one(w.client.Get(ctx, w.pick(), clientv3.WithSerializable(), clientv3.WithKeysOnly()))
	}},
	"children": {true, func(ctx context.Context, w *Worker) (bool, error) { return true, w.list(ctx) }},
	"set":      {true, func(ctx context.Context, w *Worker) (bool, error) { return false, w.set(ctx) }},
	"mixed": {true, func(ctx context.Context, w *Worker) (bool, error) {
		if w.random.Float64() < w.options.ReadRatio {
			return true, w.get(ctx, clientv3.WithSerializable())
		}
		return false, w.set(ctx)
	}},
	"create":        {false, func(ctx context.Context, w *Worker) (bool, error) { return false, w.create(ctx, w.next()) }},
	"create-delete": {false, func(ctx context.Context, w *Worker) (bool, error) { return false, w.createOrDelete(ctx) }},
	"check-set":     {true, func(ctx context.Context, w *Worker) (bool, error) { return false, w.checkAndSet(ctx) }},
}

func (w *Worker) pick() string {
	return w.keys[w.random.IntN(len(w.keys))]
}

// one is the outcome of a read of a key that exists.
func one(found *clientv3.GetResponse, err error) error {
	if err == nil && len(found.Kvs) != 1 {
		return fmt.Errorf("%d keys instead of one", len(found.Kvs))
	}
	return err
}

func (w *Worker) get(ctx context.Context, how ...clientv3.OpOption) error {
	found, err := w.client.Get(ctx, w.pick(), how...)
	if err := one(found, err); err != nil {
		return err
	}
	if length := len(found.Kvs[0].Value); length != len(w.data) {
		return fmt.Errorf("a value of %d bytes", length)
	}
	return nil
}

func (w *Worker) list(ctx context.Context) error {
	picked := folder(w.options.Root, w.random.IntN(w.options.Keys))
	found, err := w.client.Get(ctx, picked+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithSerializable())
	if err == nil && len(found.Kvs) == 0 {
		return errors.New("an empty listing")
	}
	return err
}

func (w *Worker) set(ctx context.Context) error {
	_, err := w.client.Put(ctx, w.pick(), w.data)
	return err
}

// next is a name that nobody else makes, a thousand of them in a folder.
func (w *Worker) next() string {
	name := fmt.Sprintf("%s-%06d/n%04d", w.prefix, w.created/1000, w.created%1000)
	w.created++
	return name
}

func (w *Worker) create(ctx context.Context, name string) error {
	return held(w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).
		Then(clientv3.OpPut(name, w.data)).
		Commit())
}

func held(done *clientv3.TxnResponse, err error) error {
	if err == nil && !done.Succeeded {
		return errRefused
	}
	return err
}

func (w *Worker) createOrDelete(ctx context.Context) error {
	name := fmt.Sprintf("%s-%08d", w.prefix, w.created/2)
	w.created++
	if w.created%2 == 1 {
		return w.create(ctx, name)
	}
	gone, err := w.client.Delete(ctx, name)
	if err == nil && gone.Deleted != 1 {
		return errors.New("nothing was there to delete")
	}
	return err
}

// checkAndSet checks the key of the folder, which nobody ever writes again.
func (w *Worker) checkAndSet(ctx context.Context) error {
	picked := w.pick()
	checked := picked[:strings.LastIndexByte(picked, '/')]
	return held(w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Version(checked), "=", 1)).
		Then(clientv3.OpPut(picked, w.data)).
		Commit())
}
