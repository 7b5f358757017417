package quenda.scenarios;

import java.util.Optional;
import java.util.stream.Stream;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCacheStorage;

/**
 * What a CuratorCache holds, told apart by the node and not by its path alone: one that was deleted and made again is a new
 * one.
 *
 * A CuratorCache asks for the children of a node if the count of their changes is another one than before, and tells
 * listeners of data if its version is. A node that was made again while the cache's client was away, with the same numbers, is
 * taken for the old one by Curator's own storage, whichever server it is: its children are missing for good, and listeners
 * keep the old data. Here it is a new one.
 */
final class ByNode implements CuratorCacheStorage {
    private final CuratorCacheStorage nodes = CuratorCacheStorage.standard();

    @Override
    public Optional<ChildData> put(ChildData data) {
        return nodes.put(data).filter(old -> old.getStat().getCzxid() == data.getStat().getCzxid());
    }

    @Override
    public Optional<ChildData> remove(String path) {
        return nodes.remove(path);
    }

    @Override
    public Optional<ChildData> get(String path) {
        return nodes.get(path);
    }

    @Override
    public int size() {
        return nodes.size();
    }

    @Override
    public Stream<ChildData> stream() {
        return nodes.stream();
    }

    @Override
    public void clear() {
        nodes.clear();
    }
}
