"""The configuration both servers get: the same keys, so that the same answers are due."""

CFG = {
    "tickTime": "500",
    "maxSessionTimeout": "60000",
    "extendedTypesEnabled": "true",
    "enforceQuota": "true",
    "DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
    # Containers and TTL nodes vanish at the server's leisure; a run must not meet that moment.
    "znode.container.checkIntervalMs": "86400000",
}

# Java takes this one from the JVM's own properties only. Lock step makes fsync pure waiting, so it is off.
JVM_PROPS = {"znode.container.checkIntervalMs": "86400000", "zookeeper.forceSync": "no"}
