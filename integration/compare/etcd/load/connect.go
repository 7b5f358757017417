package main

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// opening is how many connections are made at the same time.
const opening = 32

// quiet is the configuration of a client of one member, all else as the client's own defaults are.
func quiet(ctx context.Context, host string) clientv3.Config {
	return clientv3.Config{Context: ctx, Endpoints: []string{host}, DialTimeout: 30 * time.Second, Logger: zap.NewNop()}
}

// connect makes the client of the connection with that number and waits until a member answers it.
func connect(ctx context.Context, options *Options, number int) (*clientv3.Client, error) {
	host := options.Hosts[number%len(options.Hosts)]
	client, err := clientv3.New(quiet(ctx, host))
	if err != nil {
		return nil, err
	}
	if _, err := client.Get(ctx, "/", clientv3.WithSerializable(), clientv3.WithCountOnly()); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("connection %d: %w", number, err)
	}
	return client, nil
}

func connectAll(ctx context.Context, options *Options) ([]*clientv3.Client, error) {
	clients := make([]*clientv3.Client, options.Connections)
	group := new(errgroup.Group)
	group.SetLimit(opening)
	for number := range clients {
		group.Go(func() error {
			client, err := connect(ctx, options, number)
			clients[number] = client
			return err
		})
	}
	return clients, group.Wait()
}

func closeAll(clients []*clientv3.Client) {
	for _, client := range clients {
		if client != nil {
			_ = client.Close()
		}
	}
}

// fillers is how many writes are in flight while the keys are made.
const fillers = 256

func fill(ctx context.Context, client *clientv3.Client, options *Options) error {
	data := content(options.Size, 'x')
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fillers)
	for index := range options.Keys {
		if index%folderKeys == 0 {
			group.Go(func() error {
				_, err := client.Put(ctx, folder(options.Root, index), "")
				return err
			})
		}
		group.Go(func() error {
			_, err := client.Put(ctx, key(options.Root, index), data)
			return err
		})
	}
	return group.Wait()
}
